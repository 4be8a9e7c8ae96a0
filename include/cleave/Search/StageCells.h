//===- StageCells.h - stages and microbatches to look at --------*- C++ -*-===//
//
// Of N devices p stages have N/p each, and m microbatches go through them one after the other. All stages together do the program of one
// microbatch, so that with T for that on N/p devices
//
//   slowest stage takes at least  S = max(T / p, op)     the mean of all stages, and the op that takes longest, which is in one of them
//   a call        takes at least  T + (m - 1) S          the first microbatch goes through all stages, the slowest of which does each other
//   calls follow  by at least     m S
//
// Of a step of training T is what all microbatches take, and the update, which is once: a step takes at least S.
//
// Messages count nothing, and of idle time that of filling and draining. The first is of pipelines each of whose stages has some of the model's main path (MainPath.h), so that it
// waits for the one before it. Where as much as half a stage's work lies beside that path, a call is only known to take what calls follow
// each other by.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SEARCH_STAGECELLS_H
#define CLEAVE_SEARCH_STAGECELLS_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cleave::spmd {

/// Numbers that are looked at, both ends included.
struct CountRange {
  int64_t least = 1, most = 1;

  bool contains(int64_t count) const { return least <= count && count <= most; }
};

struct StageCell {
  int64_t stages = 1, microbatches = 1;

  bool isPipeline() const { return stages > 1; }
  /// What a call takes at least, and how soon calls follow each other, where one microbatch takes `ns` on the devices of a stage, of that
  /// some op at least `largestNs`, and such a share of the work lies beside the main path (`findShareBeside`).
  double boundCall(double ns, double shareBeside, double largestNs = 0) const {
    if (2 * shareBeside * static_cast<double>(stages) > 1)
      return boundSpan(ns, largestNs);
    return ns + static_cast<double>(microbatches - 1) * boundSlowest(ns, largestNs);
  }
  double boundSpan(double ns, double largestNs = 0) const {
    return static_cast<double>(microbatches) * boundSlowest(ns, largestNs);
  }
  double boundSlowest(double ns, double largestNs) const {
    return std::max(ns / static_cast<double>(stages), largestNs);
  }
  bool operator==(const StageCell &other) const { return stages == other.stages && microbatches == other.microbatches; }
};

/// Stages that divide the devices, and for each microbatches that divide the batch; one stage has one microbatch. Few first.
std::vector<StageCell> listStageCells(int64_t devices, int64_t batch, CountRange stages, CountRange microbatches);

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_STAGECELLS_H
