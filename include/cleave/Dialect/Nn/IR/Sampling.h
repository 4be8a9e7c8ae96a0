//===- Sampling.h - which positions a resize reads --------------*- C++ -*-===//
//
// A resize is separable: along each dim that changes, a position of the result is a weighted sum of a few positions of the
// operand, its *taps*.
//
//   x = 2.3, four taps:    1   2 | 3   4        half of them before x, x itself counting as behind
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_SAMPLING_H
#define CLEAVE_DIALECT_NN_IR_SAMPLING_H

#include "cleave/Dialect/Nn/IR/Ops/Resize.h"

namespace cleave::nn {

/// Taps of one dim: per position of the result `count` positions of the operand, all of them inside, and their weights.
struct Taps {
  int64_t count = 1;
  llvm::SmallVector<int64_t> positions;
  llvm::SmallVector<double> weights;
};

/// True if the resize leaves a dim alone.
bool keepsDim(ResizeOp op, unsigned dim);

/// The taps along a dim. Source of the formulas: the ONNX Resize operator, versions 18 and 19.
/// Precondition: the dim has elements, and 1/4 of one at least at its scale.
Taps getTaps(ResizeOp op, unsigned dim);

/// The weight of an element so far from where a sample is taken, before weights are made to add up to 1: of linear interpolation a tent, of
/// cubic the usual two pieces with a free coefficient. Precondition: `mode` is not nearest.
double getSampleWeight(ResizeMode mode, double cubic, double distance);

/// What a rank reads for its positions of a result that is cut along a dim, and how it makes them of that.
struct ShardSampling {
  /// Without its factors.
  spmd::SlidingDim slide;
  /// By the entries of the tables that are its own; else by the op itself, whose coordinates are the same on all ranks.
  bool byTable;
};

/// Nothing where the dim cannot be cut with the result's, or ranks would read more than there is.
std::optional<ShardSampling> getShardSampling(ResizeOp op, unsigned dim);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_SAMPLING_H
