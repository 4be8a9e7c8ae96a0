//===- LocalBuilder.h - builds per-device forms -----------------*- C++ -*-===//
//
// Arithmetic on local tensors, written as formulas. Positions are i64; "global" positions are local ones plus the
// offset of the rank's shard.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_NN_PARTITION_LOCALBUILDER_H
#define CLEAVE_LIB_DIALECT_NN_PARTITION_LOCALBUILDER_H

#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Spmd/IR/Partition.h"
#include "cleave/Sharding/WindowMoves.h"

namespace cleave::nn {

class LocalBuilder : public Composer {
public:
  explicit LocalBuilder(spmd::PartitionContext &context) : Composer(context.builder, context.loc), context(context) {}

  mlir::Value zeroLike(mlir::Value value) { return scalarLike(value, 0); }

  /// Positions `start + step * i` of a dim of `size` elements, as a tensor of `rank` dims that are 1 except `dim`.
  mlir::Value positions(int64_t size, int64_t start, int64_t step, int64_t rank, int64_t dim);
  /// First element of the rank's shard of a dim cut over `axes`, of which each shard has `localExtent` elements.
  mlir::Value shardOffset(llvm::ArrayRef<spmd::AxisAttr> axes, int64_t localExtent);
  /// Global positions of a local dim: `positions` plus `shardOffset`, which is nothing without axes.
  mlir::Value globalPositions(llvm::ArrayRef<spmd::AxisAttr> axes, int64_t localExtent, int64_t rank, int64_t dim);

  /// As of the reduction's `Composer::identity`; 0 for a mean.
  mlir::Value identity(ReduceKind kind, mlir::Type elementType);
  /// `value` with the identity of `kind` where its dim `dim`, cut over `axes`, is padding: behind the last of
  /// `globalExtent` positions of all shards together. `value` itself where shards divide. Selected, never multiplied: padding
  /// may be NaN.
  mlir::Value maskPadding(mlir::Value value, int64_t dim, llvm::ArrayRef<spmd::AxisAttr> axes, int64_t globalExtent,
                          ReduceKind kind);
  /// The same with a scalar of the caller.
  mlir::Value maskPadding(mlir::Value value, int64_t dim, llvm::ArrayRef<spmd::AxisAttr> axes, int64_t globalExtent,
                          mlir::Value fill);
  /// True if the last shards of a dim of an operand are padded.
  bool isPadded(unsigned operand, int64_t dim) const;
  /// The positions of a dim of an operand, on all ranks.
  int64_t getGlobalExtent(unsigned operand, int64_t dim) const;
  /// `value`, which is operand number `operand` or has its dims, masked as above along `dims`.
  mlir::Value maskOperand(mlir::Value value, unsigned operand, llvm::ArrayRef<int64_t> dims, ReduceKind kind);

  /// `reduce` over `dims` of this rank, then over the ranks along `axes`; the dims stay with size 1.
  mlir::Value reduceAcross(ReduceKind kind, mlir::Value value, llvm::ArrayRef<int64_t> dims,
                           llvm::ArrayRef<spmd::AxisAttr> axes);

  /// This rank's piece of a list of numbers that all ranks know.
  mlir::Value ownPart(mlir::DenseElementsAttr whole, llvm::ArrayRef<spmd::AxisAttr> axes);

  /// The shards of all ranks along `axes`, one after the other along `dim`.
  mlir::Value allGather(mlir::Value value, int64_t dim, llvm::ArrayRef<spmd::AxisAttr> axes);

  /// One dim of what `readWindows` gives: the axes that cut it, and who has what and wants what.
  struct ReadDim {
    unsigned dim;
    llvm::SmallVector<spmd::AxisAttr> axes;
    spmd::DimWindow window;
  };
  /// What this rank's part of the result needs of an operand along the dims that the rule slides over and that are cut:
  /// with edges of neighbors, and `fill` beyond the ends (null: what the rule says). The operand becomes that.
  llvm::SmallVector<ReadDim, 2> readWindows(mlir::TypedAttr fill, unsigned operand = 0);
  /// The intervals of `value` along these dims.
  mlir::Value window(mlir::Value value, llvm::ArrayRef<ReadDim> read, mlir::TypedAttr fill);

  spmd::PartitionContext &context;
};

/// Indices into a cut dim, as one rank sees them.
struct LocalIndices {
  /// Positions in the rank's shard, `outside` for those in others'.
  mlir::Value indices;
  /// True where the index falls into the shard.
  mlir::Value isInside;

  /// \param indices into a dim of `globalExtent`, negative ones counting from its end.
  /// \param places how many the op that takes these has here: what is out of range of the whole dim is out of range of these, too, so
  /// that whoever looks it up notices. Nothing: all are in range.
  LocalIndices(LocalBuilder &build, mlir::Value indices, int64_t globalExtent, int64_t localExtent,
               llvm::ArrayRef<spmd::AxisAttr> axes, int64_t outside = 0, std::optional<int64_t> places = std::nullopt);
};

} // namespace cleave::nn

#endif // CLEAVE_LIB_DIALECT_NN_PARTITION_LOCALBUILDER_H
