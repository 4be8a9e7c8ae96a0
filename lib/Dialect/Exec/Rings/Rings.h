//===- Rings.h - attention to keys that go round ----------------*- C++ -*-===//
//
// Which attention can take its keys and values block by block instead of gathered, and its steps.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_RINGS_RINGS_H
#define CLEAVE_LIB_DIALECT_EXEC_RINGS_RINGS_H

#include "../Kernels/AttentionRecognizer.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/GlobalBand.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace cleave::exec {

/// Keys or values on their way from the ranks to attention: gathered along one dim, then moved.
struct GatheredSequence {
  /// An all_gather, or a permute that does the same.
  mlir::Operation *gather = nullptr;
  /// Along which the gather puts shards together, and what one has of it.
  int64_t dim = 0, shard = 0;
  /// Over which it does, major to minor.
  llvm::SmallVector<spmd::AxisAttr> axes;
  /// From the gather to attention, each read by the next one alone; with the place of the sequence in its result.
  llvm::SmallVector<std::pair<mlir::Operation *, int64_t>> moves;
};

/// Gradients of keys or values on their way to the ranks that have them: moved, then added up over ranks and split along one dim.
struct ScatteredSequence {
  /// What a rank's queries give, [batch, key heads, keys, size]; null where nobody wants it.
  mlir::Value from;
  /// From there to the scatter, each read by the next one alone; with the place of the sequence in its result.
  llvm::SmallVector<std::pair<mlir::Operation *, int64_t>> moves;
  spmd::ReduceScatterOp scatter;
};

/// The gradients of an attention, as products, from where they are made to where keys and values are.
struct RingGradient {
  /// That of attention's result, and which of its dims is which of attention's.
  mlir::Value gradient;
  Dims gradientOrder;
  /// That of the queries, and the order in which it is wanted; null where nobody wants it.
  mlir::Value ofQuery;
  Dims queryOrder;
  ScatteredSequence ofKey, ofValue;
  /// Which queries count in the gradients of keys and values; nothing: all.
  std::optional<RowsBelow> rows;
  /// Behind all that they are made of, and before all that reads them.
  mlir::Operation *place = nullptr;
  mlir::Location loc;
  /// What is read by nobody once the three are made otherwise, all in one block.
  llvm::SmallSetVector<mlir::Operation *, 32> dying;
};

/// The softmax of each attention's gradient, by the number of both.
using SoftmaxOf = llvm::DenseMap<int64_t, nn::SoftmaxOp>;
SoftmaxOf findSoftmaxes(mlir::func::FuncOp func);

/// An attention that can be a ring.
struct Ring {
  nn::AttentionOp attention;
  GatheredSequence key, value;
  /// As many have a block of keys and values.
  int64_t ranks = 1;
  /// What attention sees of places, and the model's mask; null if there is none.
  nn::GlobalBand band;
  mlir::Value mask;
  /// In a step of training, what goes round once more on the way back.
  std::optional<RingGradient> gradient;

  int64_t countKeys() { return attention.getKey().getType().getDimSize(2); }
  int64_t countQueries() { return attention.getQuery().getType().getDimSize(2); }
};

/// Nothing where keys or values are not gathered along their sequence, or, with a word in `reason`, where they are and cannot go round.
std::optional<Ring> findRing(nn::AttentionOp attention, const SoftmaxOf &softmaxes, std::string &reason);

/// The products that are the gradients of `attention`, whose weights `softmax` makes again. Nothing, with a word in `reason`, where they are
/// something else, or do not end where keys and values are: in blocks of `shard` over `axes`.
std::optional<RingGradient> findRingGradient(nn::AttentionOp attention, nn::SoftmaxOp softmax, int64_t shard,
                                             llvm::ArrayRef<spmd::AxisAttr> axes, std::string &reason);

/// The steps at which some rank sees some of the block that it has then: the first one, and others, ascending.
llvm::SmallVector<int64_t> findSteps(Ring &ring);

/// Puts the steps in the place of attention, of both gathers, and of what its gradients are made of.
void formRing(Ring &ring);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_RINGS_RINGS_H
