//===- Launches.h - what is sent makes two kernels of one -------*- C++ -*-===//
//
// However an op is cut, each rank launches it once; what changes with a decision is which ops may share a kernel, for what
// has been sent is read by another kernel than the one that made it:
//
//   product ─▶ add ─▶ product              2 kernels: the sum is made on the product's tiles
//   product ─▶ all_reduce ─▶ add ─▶ ..     3, a launch more
//   product ─▶ add ─▶ norm                 2: a norm walks whole rows, which tiles are not
//   product ─▶ all_reduce ─▶ add ─▶ norm   2: now the sum is made with the norm
//
// The rules are those of exec-form-kernels (Clusters.h there) as far as a rule tells what an op is.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SOLVER_LAUNCHES_H
#define CLEAVE_LIB_SOLVER_LAUNCHES_H

#include "SearchGraph.h"

namespace cleave::spmd {

class Launches {
public:
  explicit Launches(const SearchGraph &graph);

  /// True if ranks launch a kernel more where something is sent along this edge.
  bool splitsKernel(EdgeId edge) const { return splits[edge]; }

private:
  std::vector<char> splits;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SOLVER_LAUNCHES_H
