//===- Pieces.h - what a parameter is made of -------------------*- C++ -*-===//
//
// A parameter is a range of a file or elements, or a stack: an array of such pieces, one for each entry of its first dim.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_PIECES_H
#define CLEAVE_DIALECT_NN_IR_PIECES_H

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Spmd/IR/ShardBox.h"

namespace cleave::nn {

inline bool isStack(ParamOp param) { return llvm::isa<mlir::ArrayAttr>(param.getValue()); }

/// The parts of a stack, or the value itself.
llvm::SmallVector<mlir::Attribute> getPieces(ParamOp param);
/// What each of them is: the type, without the first dim in a stack.
mlir::RankedTensorType getPieceType(ParamOp param);

/// What a load reads of its parameter: a box of it, and by which sharding ranks share that box (null: each has all of it).
struct LoadedBox {
  llvm::SmallVector<int64_t> starts, sizes;
  spmd::ShardingAttr sharding;

  /// The part of `rank`, in places of the parameter.
  spmd::ShardBox getShard(int64_t rank) const;
};
/// Of a load of `param`. Fails, and leaves the error to the caller, where the load's sharding is not one of the box over `mesh`.
mlir::FailureOr<LoadedBox> getLoadedBox(LoadOp load, ParamOp param, spmd::MeshAttr mesh);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_PIECES_H
