//===- GlobalBand.h - what a mask of places was made of ---------*- C++ -*-===//
//
// Attention to all keys by a rank that has some of the queries hides keys by a mask of places that the rank knows. The local op
// remembers the band that this mask stands for, as the attribute `nn.band`:
//
//   {axes = [#spmd.axis<"seq">], high = 0 : i64, masked}      causal, queries cut over seq, and a mask of the model's
//   {axes = [#spmd.axis<"seq">]}                              nothing is hidden by places, and the mask is the op's own
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_GLOBALBAND_H
#define CLEAVE_DIALECT_NN_IR_GLOBALBAND_H

#include "cleave/Dialect/Nn/IR/Ops/Attention.h"

namespace cleave::nn {

struct GlobalBand {
  /// Of places of queries and keys on all ranks.
  KeyBand band;
  /// The axes that cut the queries' sequence, major to minor.
  llvm::SmallVector<spmd::AxisAttr> queryAxes;
  /// The mask is what the model masks and the band.
  bool isMasked = false;

  /// Null where queries are whole: then band and mask are those of the op itself.
  static std::optional<GlobalBand> get(AttentionOp op);
  void setOn(AttentionOp op) const;
  static void removeFrom(AttentionOp op);
  /// The mask without the band; null if there is none. Precondition: `op` has this band, and the mask that it was given by partition.
  mlir::Value getGivenMask(AttentionOp op) const;
};

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_GLOBALBAND_H
