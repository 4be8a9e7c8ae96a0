//===- MainPath.h - do stages of a model follow from each other? -*- C++ -*-===//
//
// Where each stage of a pipeline waits for the one before it, a microbatch takes what all stages together do. It does where each has some op
// of one path through the model, along which each op reads what the one before it made:
//
//   x ──▶ q ──▶ attention ──▶ up ──▶ down ──▶ y       a stage of k and v alone, and no other, would run beside q
//     └─▶ k, v ──┘
//
// Two towers that nothing joins have no such path: half of the work is beside any, and stages of them need not wait.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SEARCH_MAINPATH_H
#define CLEAVE_SEARCH_MAINPATH_H

#include "cleave/Solver/Problem.h"

namespace cleave::spmd {

/// What share of the model's operations (of a model without any, of the elements that its ops read and make) lies between two neighbors of its
/// main path, at most: the path is the one where that is least. A stage without an op of the path has no more. Ops stand in their order; 1 where
/// there are none.
double findShareBeside(const Problem &problem);

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_MAINPATH_H
