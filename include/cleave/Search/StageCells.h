//===- StageCells.h - stages and microbatches to look at --------*- C++ -*-===//
//
// Of N devices p stages have N/p each, and m microbatches go through them one after the other. All stages together do the program of one
// microbatch, so that with T for that on N/p devices
//
//   a call        takes at least  T (1 + (m - 1) / p)    the first microbatch goes through all stages, the slowest of which, at least
//   calls follow  by at least     T m / p                the mean, does each other one
//
// Messages and idle time count nothing. The first is of pipelines each of whose stages has some of the model's main path (MainPath.h), so that it
// waits for the one before it. Where as much as half a stage's work lies beside that path, a call is only known to take what calls follow
// each other by.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SEARCH_STAGECELLS_H
#define CLEAVE_SEARCH_STAGECELLS_H

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
  /// What a call takes at least, and how soon calls follow each other, where one microbatch takes `ns` on the devices of a stage, and such a
  /// share of the work lies beside the main path (`findShareBeside`).
  double boundCall(double ns, double shareBeside) const {
    if (2 * shareBeside * static_cast<double>(stages) > 1)
      return boundSpan(ns);
    return ns * (1 + static_cast<double>(microbatches - 1) / static_cast<double>(stages));
  }
  double boundSpan(double ns) const { return ns * static_cast<double>(microbatches) / static_cast<double>(stages); }
  bool operator==(const StageCell &other) const { return stages == other.stages && microbatches == other.microbatches; }
};

/// Stages that divide the devices, and for each microbatches that divide the batch; one stage has one microbatch. Few first.
std::vector<StageCell> listStageCells(int64_t devices, int64_t batch, CountRange stages, CountRange microbatches);

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_STAGECELLS_H
