//===- AttentionStatistics.h - what gradients know of rows ------*- C++ -*-===//
//
// Gradients by tiles want to know of each query what the forward has put together of all keys: the logarithm l of the sum of the exponentials
// of its scores, and sum(dY Y), which is what all weights give for the weighted gradients of a row. Rings have these of their steps; others
// from one step that has all keys:
//
//   %s, %l = exec.partial_attention %q, %k, %v part KEYS        %dq, %dk, %dv = exec.attention_grad .. logs %l means (sum dY Y)
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_KERNELS_ATTENTIONSTATISTICS_H
#define CLEAVE_LIB_DIALECT_EXEC_KERNELS_ATTENTIONSTATISTICS_H

#include "AttentionParts.h"
#include "cleave/Dialect/Nn/IR/Bands.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"

namespace cleave::exec {

/// A logarithm of a sum of exponentials below which f32 does not tell how many terms there were.
inline constexpr double kExcludedLog = -1e8;

/// Of a row all of whose keys got a large negative number the logarithm of their exponentials' sum is that number, and not how many there are
/// as well. How many have it, 1 of other rows; null where no numbers are added. `logs`: [.., queries, 1].
mlir::Value countExcluded(nn::Composer &f, mlir::Value mask, const nn::KeyBand &band, mlir::Value logs, int64_t queries,
                          int64_t keys, mlir::Type compute);

/// True if `gradients` are those of `attention`, whose operands may be made again, or repeated for heads that share them.
bool areOf(AttentionGradOp gradients, nn::AttentionOp attention);

/// Gives `gradients` the statistics of their rows. `attention`: the forward, in whose place a step is that tells them; null: a step of their
/// own is in front of them. Precondition: they have none, and the forward is before them in their block.
void giveStatistics(AttentionGradOp gradients, nn::AttentionOp attention, const std::optional<RowsBelow> &rows);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_KERNELS_ATTENTIONSTATISTICS_H
