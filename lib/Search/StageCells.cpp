//===- StageCells.cpp - stages and microbatches to look at ----------------===//
//
// What divides evenly, few first: of pipelines that take the same, the one with fewer parts is begun sooner.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/StageCells.h"

#include <algorithm>

using namespace cleave::spmd;

std::vector<StageCell> cleave::spmd::listStageCells(int64_t devices, int64_t batch, CountRange stages,
                                                    CountRange microbatches) {
  std::vector<StageCell> cells;
  if (stages.contains(1))
    cells.emplace_back();
  for (int64_t count = std::max<int64_t>(2, stages.least); count <= std::min(devices, stages.most); ++count)
    for (int64_t parts = microbatches.least; parts <= std::min(batch, microbatches.most); ++parts)
      if (devices % count == 0 && batch % parts == 0)
        cells.push_back({count, parts});
  return cells;
}
