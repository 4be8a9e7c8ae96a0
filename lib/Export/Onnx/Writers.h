//===- Writers.h - which function writes which op ---------------*- C++ -*-===//
//
// A table keyed by ops of nn and spmd. One file per op family fills it; a new op is a row there. A writer gives the name of the
// tensor that is the op's result, or has emitted an error: what has no ONNX form is told, never written otherwise.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_EXPORT_ONNX_WRITERS_H
#define CLEAVE_LIB_EXPORT_ONNX_WRITERS_H

#include "GraphBuilder.h"
#include "llvm/ADT/DenseMap.h"

namespace cleave::onnx {

using Written = mlir::FailureOr<std::string>;

class WriterTable {
public:
  using Writer = std::function<llvm::LogicalResult(mlir::Operation *, GraphBuilder &)>;

  /// All families.
  static const WriterTable &get();

  /// The writer of an op with one result: the name of a tensor, or `Written`, from (OpT, GraphBuilder &).
  template <typename OpT, typename Fn> void add(Fn fn) {
    writers[mlir::TypeID::get<OpT>()] = [fn](mlir::Operation *op, GraphBuilder &out) -> llvm::LogicalResult {
      Written name = fn(llvm::cast<OpT>(op), out);
      if (llvm::failed(name))
        return llvm::failure();
      out.bind(op->getResult(0), *name);
      return llvm::success();
    };
  }
  /// An op that is one node of ONNX on the same operands, without attributes.
  template <typename OpT> void addSame(llvm::StringLiteral opType) {
    add<OpT>([opType](OpT op, GraphBuilder &out) {
      Names inputs;
      for (mlir::Value operand : op->getOperands())
        inputs.push_back(out(operand));
      return out.node(opType, std::move(inputs), llvm::cast<mlir::RankedTensorType>(op->getResult(0).getType()));
    });
  }
  /// The writer of an op with several results.
  template <typename OpT, typename Fn> void addMany(Fn fn) {
    writers[mlir::TypeID::get<OpT>()] = [fn](mlir::Operation *op, GraphBuilder &out) -> llvm::LogicalResult {
      mlir::FailureOr<Names> made = fn(llvm::cast<OpT>(op), out);
      if (llvm::failed(made))
        return llvm::failure();
      for (auto [result, name] : llvm::zip_equal(op->getResults(), *made))
        out.bind(result, name);
      return llvm::success();
    };
  }
  /// Null where no family has one.
  const Writer *find(mlir::OperationName name) const {
    auto found = writers.find(name.getTypeID());
    return found == writers.end() ? nullptr : &found->second;
  }

private:
  llvm::DenseMap<mlir::TypeID, Writer> writers;
};

// One per family: `registerConvolution(table)` is in Convolution.cpp.
#define CLEAVE_NN_FAMILY(Family) void register##Family(WriterTable &table);
#include "cleave/Dialect/Nn/IR/NnFamilies.inc"
/// Loops.
void registerControl(WriterTable &table);
/// Ops of spmd.
void registerCollectives(WriterTable &table);
/// Ops of pipe.
void registerMessages(WriterTable &table);

/// All ops of a block but its terminator, each by its writer.
llvm::LogicalResult writeBlock(mlir::Block &block, GraphBuilder &out);

/// The type of an op's only result.
inline mlir::RankedTensorType getResultType(mlir::Operation *op, unsigned index = 0) {
  return llvm::cast<mlir::RankedTensorType>(op->getResult(index).getType());
}

} // namespace cleave::onnx

#endif // CLEAVE_LIB_EXPORT_ONNX_WRITERS_H
