//===- NodeContext.h - what an import function sees of its node -*- C++ -*-===//
//
// An import function reads operands and attributes of one ONNX node, makes nn ops and sets the node's results:
//
//   void importTrilu(NodeContext &node) {
//     int64_t offset = node.hasOperand(1) ? node.constantInt(1) : 0;
//     node.result(0, node.create<nn::TriluOp>(node.operand(0), offset, node.intAttr("upper", 1) != 0));
//   }
//
// What nn has no op for is spelled out in those that it has, so that evaluator, kernels, sharding rules and gradients come with them:
// the node is a composer of formulas (cleave/Dialect/Nn/IR/Composer.h).
//
//   nn::Composer &f = node;
//   node.result(0, f.mul(x, f.sigmoid(f.mul(x, 1.702))));   // QuickGelu
//
// Errors stick: the first one is reported, located at the node; from then on `failed()` holds, `create` makes nothing
// and gives null, getters give defaults. So an import function needs to test `failed()` only before it indexes into
// something that it got. Every op made is inferred and verified first, so that a wrong model is an error and nothing
// worse; an op whose operands are all constants is folded on the spot (ConstantFolder.h).
//
// An attribute that no getter asked for is an error in the end: models say more than we understand.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_NODECONTEXT_H
#define CLEAVE_LIB_IMPORT_ONNX_NODECONTEXT_H

#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Onnx/Model.h"
#include "cleave/Reference/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include <memory>
#include <optional>

namespace cleave::onnx {

class GraphImporter;
struct Scope;

using mlir::Value;
using Shape = llvm::ArrayRef<int64_t>;
using Ints = llvm::SmallVector<int64_t>;

/// True if no extent is negative, and the others without zeros multiply to no more than a tensor may have: products of
/// a tensor's extents never overflow.
bool isPossibleShape(Shape shape);

/// A sequence of tensors, or an optional value that is absent (one that is there is the value itself). Its length is known
/// while a model is imported, and nothing of it is left in the program.
struct ValueList {
  bool isNone = false;
  llvm::SmallVector<Value> items;
};

/// What a name of ONNX stands for: a tensor or a list, or nothing.
struct Bound {
  Value value;
  std::shared_ptr<const ValueList> list;

  explicit operator bool() const { return value || list; }
};

class NodeContext : public nn::Composer {
public:
  NodeContext(GraphImporter &importer, Scope &scope, const NodeProto &node, int64_t opset,
              llvm::ArrayRef<Bound> operands);

  /// Opset version that the model imports for the op's domain.
  int64_t getOpset() const { return opset; }
  llvm::StringRef getOpType() const;
  GraphImporter &getImporter() { return importer; }
  Scope &getScope() { return scope; }
  const NodeProto &getNode() const { return node; }
  mlir::MLIRContext *getContext() const;
  mlir::Builder getBuilder() const { return mlir::Builder(getContext()); }

  /// The first error of a node is reported, the text after `model.onnx: error: node '/x' (MatMul, ai.onnx 13, output
  /// 'y'): `; later ones are dropped.
  void error(const llvm::Twine &message);
  bool failed() const { return hasFailed; }
  /// For a failure that has been reported already.
  void fail() { hasFailed = true; }
  /// Reports `message` unless `holds`; returns `holds`.
  bool check(bool holds, const llvm::Twine &message);
  /// An error unless all these operands are there, where an optional one stands in front of them.
  bool require(llvm::ArrayRef<unsigned> operands);

  //===--- Operands --------------------------------------------------------===//

  /// Number of operands; absent trailing ones do not count.
  unsigned getNumOperands() const { return operands.size(); }
  bool hasOperand(unsigned index) const { return index < operands.size() && operands[index]; }
  /// Null if absent.
  Value operand(unsigned index) const { return index < operands.size() ? operands[index] : Value(); }
  llvm::ArrayRef<Value> getOperands() const { return operands; }
  /// For the importer, before the node is imported: it reads `value` instead.
  void replaceOperand(unsigned index, Value value) { operands[index] = value; }
  /// An operand that is no tensor; null if it is one, or absent.
  const ValueList *list(unsigned index) const { return index < lists.size() ? lists[index].get() : nullptr; }
  Bound bound(unsigned index) const { return index < operands.size() ? Bound{operands[index], lists[index]} : Bound(); }
  /// Likewise; an error where it is no sequence.
  llvm::ArrayRef<Value> sequence(unsigned index);
  /// Name of an operand's tensor.
  llvm::StringRef operandName(unsigned index) const;

  /// Elements of an operand that must be known at import; an error and an empty tensor where they are not.
  std::optional<reference::Tensor> constant(unsigned index);
  /// Elements of an operand if they are known; no error otherwise.
  std::optional<reference::Tensor> tryConstant(unsigned index);
  /// After one of these found nothing: which input it depends on, as the end of a sentence; empty if on none.
  std::string explainUnknown();
  /// Elements of an integer or bool operand of rank 0 or 1 that must be known at import.
  Ints constantInts(unsigned index);
  /// The only element of an integer or bool operand that must be known at import.
  int64_t constantInt(unsigned index);
  /// The elements of a value if they are known; no error otherwise.
  std::optional<reference::Tensor> tryConstantOf(Value value);
  /// Elements of a float operand that must be known at import.
  llvm::SmallVector<double> constantFloats(unsigned index);

  //===--- Attributes ------------------------------------------------------===//

  bool hasAttr(llvm::StringRef name);
  int64_t intAttr(llvm::StringRef name, std::optional<int64_t> fallback = std::nullopt);
  /// An attribute that must be 0 or 1.
  bool boolAttr(llvm::StringRef name, bool fallback);
  double floatAttr(llvm::StringRef name, std::optional<double> fallback = std::nullopt);
  llvm::StringRef stringAttr(llvm::StringRef name, std::optional<llvm::StringRef> fallback = std::nullopt);
  std::optional<Ints> intsAttr(llvm::StringRef name);
  std::optional<llvm::SmallVector<double>> floatsAttr(llvm::StringRef name);
  std::optional<llvm::SmallVector<llvm::StringRef>> stringsAttr(llvm::StringRef name);
  /// A tensor attribute as a constant, or as a parameter that refers to the model's bytes where it is large; an error
  /// where it is missing. `isOutput`: it is the node's output, and has its name.
  Value tensorAttr(llvm::StringRef name, bool isOutput);
  /// The same of a sparse one, which is the node's output.
  Value sparseAttr(llvm::StringRef name);
  /// An element type, as its ONNX number; null after an error.
  mlir::Type typeAttr(llvm::StringRef name, std::optional<int64_t> fallback = std::nullopt);
  /// An error where the attribute is missing.
  const GraphProto *graphAttr(llvm::StringRef name);
  /// The attribute, references of function bodies resolved; null if absent. Counts as asked for.
  const AttributeProto *findAttr(llvm::StringRef name);
  /// For attributes that change nothing in inference.
  void ignoreAttr(llvm::StringRef name) { findAttr(name); }

  //===--- Checks ----------------------------------------------------------===//

  /// `axis` counted from 0, an error outside [-rank, rank).
  int64_t axis(int64_t axis, int64_t rank, llvm::StringRef what = "axis");
  /// Distinct, ascending axes counted from 0.
  Ints axes(Shape axes, int64_t rank, llvm::StringRef what = "axes");
  /// An error where a tensor of this shape is out of all proportion.
  bool checkSize(Shape shape, mlir::Type elementType);

  //===--- Making ops ------------------------------------------------------===//

  /// An op with a body, whose result types stand in `state`; an empty list after an error.
  llvm::SmallVector<Value, 2> createFrom(mlir::OperationState &state) {
    return hasFailed ? llvm::SmallVector<Value, 2>() : make(state, nullptr);
  }

  /// Constants. A scalar has rank 0; of an integer type it is an error where the number is none.
  Value constant(reference::Tensor value);
  Value literal(mlir::DenseElementsAttr elements) override;
  Value scalar(mlir::Type elementType, double value) override;
  Value vector(Shape values);
  /// A tensor of floats of `type`, in row-major order.
  Value table(mlir::Type type, Shape shape, llvm::ArrayRef<double> values);

  //===--- Results ---------------------------------------------------------===//

  /// True if the model names that output of the node.
  bool wantsResult(unsigned index) const;
  unsigned getNumResults() const;
  void result(unsigned index, Value value) { result(index, Bound{value, nullptr}); }
  void result(unsigned index, Bound bound);
  void result(unsigned index, llvm::SmallVector<Value> sequence);
  /// These results have `count` rows along `dim` that are found, and padding behind them.
  void padRows(llvm::ArrayRef<unsigned> ofResults, Value count, int64_t dim = 0);
  Bound getBoundResult(unsigned index) const { return {results[index], resultLists[index]}; }
  llvm::ArrayRef<Value> getResults() const { return results; }
  /// The ops made so far. Their locations are set when the node is done: only then is known which of them stand for the
  /// node's outputs.
  llvm::ArrayRef<mlir::Operation *> getCreated() const { return created; }
  /// For the importer: reports attributes that nobody asked for and outputs that were not set.
  void finish();

private:
  llvm::SmallVector<Value, 2> make(mlir::OperationState &state, InferFn infer) override;
  void discard(mlir::Operation *op);
  Value take(llvm::StringRef name, llvm::Expected<Value> value);
  template <typename Action> bool guarded(Action action);

  GraphImporter &importer;
  Scope &scope;
  const NodeProto &node;
  int64_t opset;
  llvm::SmallVector<Value, 4> operands;
  /// As many as operands; null for tensors.
  llvm::SmallVector<std::shared_ptr<const ValueList>, 4> lists;
  llvm::SmallVector<Value, 2> results;
  llvm::SmallVector<std::shared_ptr<const ValueList>, 2> resultLists;
  llvm::SmallVector<mlir::Operation *, 4> created;
  llvm::SmallVector<const AttributeProto *, 4> asked;
};

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_NODECONTEXT_H
