//===- ServeWants.h - copies of one value for all its users -----*- C++ -*-===//
//
// Users of one value that want the same state share one reshard, and a copy may be made from a copy made before. The
// solver counts bytes by this routine, and the passes insert reshards by it: what is counted is what is sent.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_SERVEWANTS_H
#define CLEAVE_SHARDING_SERVEWANTS_H

#include "cleave/Sharding/ReshardPlanner.h"

namespace cleave::spmd {

/// One copy.
struct ServedWant {
  /// Index of the want that it serves; the number of wants: none, it is the whole value, from which others are made.
  unsigned want = 0;
  /// What it is made from: 0 is the value itself, k the k-th copy.
  unsigned source = 0;
  int64_t cost = 0;
};

/// In which order, and from what, to make a copy of a value of `shape` for each of `wants`: always the cheapest one
/// left, the first want and then the earliest source on ties; or another want first, or the `whole` value where nobody wants
/// it, if that makes all together cheaper. Preconditions: `wants` are distinct, none is `have`.
llvm::SmallVector<ServedWant, 2> serveWants(ReshardCosts &costs, ShapeId shape, StateId have,
                                            llvm::ArrayRef<StateId> wants, StateId replicated);

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_SERVEWANTS_H
