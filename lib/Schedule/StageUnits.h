//===- StageUnits.h - what may be split apart -------------------*- C++ -*-===//
//
// Ops of one cluster become one unit; units stand in an order that is topological again:
//
//   ops of clusters  a  x  b  y   (a, b one cluster)  ->  units {a, b}  x  y
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SCHEDULE_STAGEUNITS_H
#define CLEAVE_LIB_SCHEDULE_STAGEUNITS_H

#include "cleave/Schedule/StageSplit.h"

namespace cleave::schedule {

/// The graph of units.
struct StageUnits {
  /// Op -> unit, and unit -> its ops.
  std::vector<uint32_t> unitOf;
  std::vector<std::vector<uint32_t>> ops;
  /// Unit -> units that use its values, without doubles.
  std::vector<std::vector<uint32_t>> users;
  std::vector<uint32_t> numProducers;

  size_t size() const { return ops.size(); }
};

/// Clusters as units, numbered by their first ops; or each op by itself.
StageUnits makeUnits(const SplitProblem &problem, bool hasClusters);

enum class UnitOrder {
  Given,      ///< of the units that can come next, the one with the first op
  DepthFirst, ///< .., the one that became possible last: a branch is finished before the next one begins
};

/// All units in a topological order; fewer if clusters depend on each other in a cycle.
std::vector<uint32_t> orderUnits(const StageUnits &units, UnitOrder order);

} // namespace cleave::schedule

#endif // CLEAVE_LIB_SCHEDULE_STAGEUNITS_H
