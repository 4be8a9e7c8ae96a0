//===- ConstantFolder.h - what is known at import ---------------*- C++ -*-===//
//
// Exporters compute shapes with tensor ops. Two mechanisms find out what such a computation gives, both through the
// reference evaluator:
//
//   eagerly     an op whose operands are all constants becomes a constant as soon as it is made, if it is small;
//   on demand   a structural operand (the shape of a Reshape) is computed from whatever leads to it: constants, iotas,
//               small parameters, inputs with given values.
//
// Elements per result and in total are bounded, so that a small model can't ask for endless work.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_GRAPH_CONSTANTFOLDER_H
#define CLEAVE_LIB_IMPORT_ONNX_GRAPH_CONSTANTFOLDER_H

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Reference/Tensor.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include <functional>
#include <optional>

namespace cleave::onnx {

class ConstantFolder {
public:
  /// Most elements of a folded result.
  static constexpr int64_t kMaxElements = 65536;
  /// Reads a parameter by its symbol, nothing if it is too large or unreadable.
  using ParamReader = std::function<std::optional<reference::Tensor>(llvm::StringRef)>;

  ConstantFolder(int64_t budget, ParamReader readParam) : budget(budget), readParam(std::move(readParam)) {}

  /// The value of an input that structural operands may be computed from.
  void bind(mlir::BlockArgument input, reference::Tensor tensor) { inputs[input] = std::move(tensor); }
  /// The inputs whose values something was computed from, with these.
  const llvm::MapVector<mlir::BlockArgument, reference::Tensor> &getUsedInputs() const { return usedInputs; }
  /// The input whose value the last `compute` lacked; null if it lacked something else.
  mlir::BlockArgument getMissingInput() const { return missingInput; }

  /// Ops that take `value` are not folded any more, should it be a constant; what is computed on demand still is.
  void hold(mlir::Value value);
  /// Nothing that follows from `value` is folded or known from now on: what is differentiated by it must be there.
  void forget(mlir::Value value);

  /// An nn.constant.
  mlir::Value makeConstant(mlir::OpBuilder &builder, mlir::Location loc, reference::Tensor tensor);
  /// The elements of an nn.constant's result.
  std::optional<reference::Tensor> getConstant(mlir::Value value);
  /// The elements of any value that can be computed at import.
  std::optional<reference::Tensor> compute(mlir::Value value);

  /// What is computed from `value` is not known, even if it could be.
  void hide(mlir::Value value) { unknown[value] = {}; }

  /// Evaluates `op` if its operands are constants and the results small; `results` stays empty if not. Fails, with a
  /// diagnostic at the op, where the evaluator does.
  llvm::LogicalResult tryFold(mlir::Operation *op, llvm::SmallVectorImpl<reference::Tensor> &results);

private:
  bool spend(mlir::Operation *op);
  /// The elements that are known by now, or null.
  const reference::Tensor *find(mlir::Value value) const;
  // Parts of `compute`: each puts elements into `computed`, or returns false where they cannot be known.
  std::optional<reference::Tensor> walkBack(mlir::Value root);
  bool computeInput(mlir::BlockArgument input);
  bool computeLoad(nn::LoadOp load);
  bool computeResults(mlir::Operation *op, llvm::ArrayRef<reference::Tensor> operands);

  int64_t budget;
  ParamReader readParam;
  /// Elements of constants.
  llvm::DenseMap<mlir::Value, reference::Tensor> constants;
  /// Elements of other values, computed on demand.
  llvm::DenseMap<mlir::Value, reference::Tensor> computed;
  llvm::DenseMap<mlir::BlockArgument, reference::Tensor> inputs;
  llvm::MapVector<mlir::BlockArgument, reference::Tensor> usedInputs;
  mlir::BlockArgument missingInput;
  /// Values that `compute` could not find, each with the input that it lacked.
  llvm::DenseMap<mlir::Value, mlir::BlockArgument> unknown;
};

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_GRAPH_CONSTANTFOLDER_H
