//===- LocalBuilder.h - builds per-device forms -----------------*- C++ -*-===//
//
// Arithmetic on local tensors, written as formulas. Positions are i64; "global" positions are local ones plus the
// offset of the rank's shard.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_NN_PARTITION_LOCALBUILDER_H
#define CLEAVE_LIB_DIALECT_NN_PARTITION_LOCALBUILDER_H

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"

namespace cleave::nn {

using Shape = llvm::ArrayRef<int64_t>;

class LocalBuilder {
public:
  explicit LocalBuilder(spmd::PartitionContext &context)
      : context(context), builder(context.builder), loc(context.loc) {}

  /// A scalar constant; `value` is converted to the element type.
  mlir::Value constant(double value, mlir::Type elementType);
  mlir::Value position(int64_t value);
  mlir::Value zero(mlir::Type elementType) { return constant(0, elementType); }
  mlir::Value zeroLike(mlir::Value value) { return zero(getElementType(value)); }

  mlir::Value add(mlir::Value lhs, mlir::Value rhs) { return AddOp::create(builder, loc, lhs, rhs); }
  mlir::Value sub(mlir::Value lhs, mlir::Value rhs) { return SubOp::create(builder, loc, lhs, rhs); }
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs) { return MulOp::create(builder, loc, lhs, rhs); }
  mlir::Value div(mlir::Value lhs, mlir::Value rhs) { return DivOp::create(builder, loc, lhs, rhs); }
  mlir::Value both(mlir::Value lhs, mlir::Value rhs) { return AndOp::create(builder, loc, lhs, rhs); }
  mlir::Value isEqual(mlir::Value lhs, mlir::Value rhs) { return EqOp::create(builder, loc, lhs, rhs); }
  mlir::Value isLess(mlir::Value lhs, mlir::Value rhs) { return LtOp::create(builder, loc, lhs, rhs); }
  mlir::Value isAtMost(mlir::Value lhs, mlir::Value rhs) { return LeOp::create(builder, loc, lhs, rhs); }
  mlir::Value isAtLeast(mlir::Value lhs, mlir::Value rhs) { return GeOp::create(builder, loc, lhs, rhs); }
  mlir::Value exp(mlir::Value value) { return ExpOp::create(builder, loc, value); }
  mlir::Value log(mlir::Value value) { return LogOp::create(builder, loc, value); }
  mlir::Value sqrt(mlir::Value value) { return SqrtOp::create(builder, loc, value); }
  mlir::Value select(mlir::Value condition, mlir::Value lhs, mlir::Value rhs) {
    return SelectOp::create(builder, loc, condition, lhs, rhs);
  }

  /// The value itself if it has that element type already.
  mlir::Value convert(mlir::Value value, mlir::Type elementType);
  /// In f32, or f64 for f64: what statistics are computed in.
  mlir::Value widen(mlir::Value value);
  mlir::Value reshape(mlir::Value value, Shape shape);
  mlir::Value broadcast(mlir::Value value, Shape shape);
  mlir::Value reduce(ReduceKind kind, mlir::Value value, llvm::ArrayRef<int64_t> dims);
  mlir::Value einsum(mlir::Value lhs, mlir::Value rhs, llvm::StringRef equation);
  /// `size` elements along `dim` from `start` on.
  mlir::Value slice(mlir::Value value, int64_t dim, int64_t start, int64_t size);

  /// Positions `start + step * i` of a dim of `size` elements, as a tensor of `rank` dims that are 1 except `dim`.
  mlir::Value positions(int64_t size, int64_t start, int64_t step, int64_t rank, int64_t dim);
  /// First element of the rank's shard of a dim cut over `axes`, of which each shard has `localExtent` elements.
  mlir::Value shardOffset(llvm::ArrayRef<spmd::AxisAttr> axes, int64_t localExtent);
  /// Global positions of a local dim: `positions` plus `shardOffset`, which is nothing without axes.
  mlir::Value globalPositions(llvm::ArrayRef<spmd::AxisAttr> axes, int64_t localExtent, int64_t rank, int64_t dim);

  /// What changes nothing in a reduction, as a scalar: 0, 1, or the least or greatest number (0 for a mean).
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

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
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
