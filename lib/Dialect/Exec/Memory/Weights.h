//===- Weights.h - what is loaded before the first run ----------*- C++ -*-===//
//
// Parameters, constants, packed or not, the pieces of them that are a rank's own, and the rank's number, which is a piece
// of 0, 1, 2, ..: all of these are boxes of parameters. Equal boxes are loaded once.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_MEMORY_WEIGHTS_H
#define CLEAVE_LIB_DIALECT_EXEC_MEMORY_WEIGHTS_H

#include "RankTable.h"

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Pieces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace cleave::exec {

class Weights {
public:
  /// Parameters are made in front of `before`.
  Weights(mlir::Operation *before, RankTable &table);

  /// Where the loaded value (`isLoaded`) begins in the buffer of weights. Fails with an error on its op.
  mlir::FailureOr<int64_t> place(mlir::Value value);
  int64_t getBytes() const { return bytes; }
  bool isEmpty() const { return loads.empty(); }
  /// Emits all loads.
  void emit(mlir::OpBuilder &builder, mlir::FlatSymbolRefAttr buffer);
  /// Emits the load of what a state begins as (Begins.h), into its `view`. Fails with an error at `func`.
  llvm::LogicalResult emitBeginning(mlir::OpBuilder &builder, mlir::func::FuncOp func, mlir::Attribute begins,
                                    mlir::RankedTensorType global, mlir::Value view);

private:
  struct Box {
    mlir::FlatSymbolRefAttr param;
    llvm::SmallVector<NumberAttr> starts;
    llvm::SmallVector<int64_t> sizes;
    std::optional<Layout> layout;
    /// Per dim, how much of the box there is, from its start; empty: all of it. The rest is padding of an uneven shard.
    llvm::SmallVector<NumberAttr, 0> present = {};
  };
  struct Load {
    Box box;
    mlir::RankedTensorType type;
    int64_t offset;
    mlir::Location loc;
  };

  mlir::FailureOr<Box> getBox(mlir::Value value);
  mlir::FailureOr<Box> getBox(nn::LoadOp op);
  Box getBox(mlir::FlatSymbolRefAttr param, const nn::LoadedBox &loaded);
  static void emitLoad(mlir::OpBuilder &builder, mlir::Location loc, const Box &box, mlir::Value view);
  /// Each rank along `axes` keeps a shard of `size` positions of a dim of the box, as far as they are there.
  void shard(Box &box, unsigned dim, llvm::ArrayRef<spmd::AxisAttr> axes, int64_t size);
  Box getWhole(mlir::FlatSymbolRefAttr param, llvm::ArrayRef<int64_t> shape);
  mlir::FlatSymbolRefAttr getParam(mlir::ElementsAttr value, llvm::StringRef name);
  mlir::Attribute getKey(const Box &box, mlir::Type type);

  mlir::OpBuilder builder; ///< of parameters
  mlir::SymbolTable symbols;
  RankTable &table;
  llvm::DenseMap<mlir::Attribute, mlir::FlatSymbolRefAttr> constants;
  llvm::DenseMap<mlir::Attribute, unsigned> known;
  llvm::SmallVector<Load, 0> loads;
  int64_t bytes = 0;
};

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_MEMORY_WEIGHTS_H
