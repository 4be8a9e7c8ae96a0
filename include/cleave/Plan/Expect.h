//===- Expect.h - what a plan expects of its program ------------*- C++ -*-===//
//
//   expect: {bytes: <= 1.9GB, memory: <= 8GB, time: <= 5ms, all_reduce: 2 per block, no: [permute over data]}
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PLAN_EXPECT_H
#define CLEAVE_PLAN_EXPECT_H

#include "cleave/Plan/Pipeline.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace cleave::spmd {

/// One entry of `expect`: what the partitioned program may send, store and take.
struct PlanBound {
  enum class Of {
    Bytes,  ///< sent by a rank
    Memory, ///< of a rank, at once
    Time,   ///< of a rank, as predicted, in nanoseconds
    Count,  ///< collectives of a kind
  };
  Of of = Of::Bytes;
  /// A word of `getPlanKinds`, and the axis that those counted go over; empty: any.
  std::string kind, axis;
  /// Those alone that send what is made of weights, or gradients of these.
  enum class What { Any, Weights, Gradients };
  What what = What::Any;
  /// `number` at most, or exactly; of each of the layers that repeat.
  bool isMost = true, isPerBlock = false;
  int64_t number = 0;
  PlanPlace place;

  /// `bytes <= 1.9GB` as it is written.
  std::string text;
};

/// The kinds of collectives that a plan can count, as reports call them.
llvm::SmallVector<llvm::StringRef> getPlanKinds();

} // namespace cleave::spmd

#endif // CLEAVE_PLAN_EXPECT_H
