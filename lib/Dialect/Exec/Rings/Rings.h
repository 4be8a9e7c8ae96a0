//===- Rings.h - attention to keys that go round ----------------*- C++ -*-===//
//
// Which attention can take its keys and values block by block instead of gathered, and its steps.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_RINGS_RINGS_H
#define CLEAVE_LIB_DIALECT_EXEC_RINGS_RINGS_H

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/GlobalBand.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"

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

/// An attention that can be a ring.
struct Ring {
  nn::AttentionOp attention;
  GatheredSequence key, value;
  /// As many have a block of keys and values.
  int64_t ranks = 1;
  /// What attention sees of places, and the model's mask; null if there is none.
  nn::GlobalBand band;
  mlir::Value mask;

  int64_t countKeys() { return attention.getKey().getType().getDimSize(2); }
  int64_t countQueries() { return attention.getQuery().getType().getDimSize(2); }
};

/// Nothing where keys or values are not gathered along their sequence, or, with a word in `reason`, where they are and cannot go round.
std::optional<Ring> findRing(nn::AttentionOp attention, std::string &reason);

/// The steps at which some rank sees some of the block that it has then: the first one, and others, ascending.
llvm::SmallVector<int64_t> findSteps(Ring &ring);

/// Puts the steps in the place of attention and of both gathers.
void formRing(Ring &ring);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_RINGS_RINGS_H
