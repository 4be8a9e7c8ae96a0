//===- Trace.h - what was chosen among what, and why ------------*- C++ -*-===//
#ifndef CLEAVE_LIB_SOLVER_TRACE_H
#define CLEAVE_LIB_SOLVER_TRACE_H

#include "CoordinateDescent.h"

namespace cleave::spmd {

/// Writes one pass, after it was done, to `options.trace.os`: what it saved, and per node that had a choice its
/// candidates with their costs, the least first. `saved` in units.
void traceDescent(const SolverOptions &options, const SearchGraph &graph, const StateTable &states,
                  const Strategies &strategies, const CoordinateDescent &descent, const DescentUnit &unit,
                  int64_t saved);

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SOLVER_TRACE_H
