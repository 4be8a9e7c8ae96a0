//===- PageLayers.h - a graph whose equal layers are one --------*- C++ -*-===//
#ifndef CLEAVE_LIB_COMPILER_PAGELAYERS_H
#define CLEAVE_LIB_COMPILER_PAGELAYERS_H

#include "cleave/Pipelines/ProgramGraph.h"

namespace cleave {

/// Ops that follow each other and belong together: those of a layer, in one direction of a step, in one stage.
struct PageLayer {
  /// Ops [first, last) of the graph.
  unsigned first = 0, last = 0;
  unsigned part = 0;
  /// The layer that it repeats, by number among all; its own where it is the first of its kind.
  unsigned like = 0;
  /// `layers.3`, or what its ops have in common.
  std::string title;
  /// Layers that it reads from, by number.
  std::vector<unsigned> reads;
};

/// In the order of the program. `blocks`: by node the layer of those that repeat, from 1 (`ModelStructure::numberNodes`).
std::vector<PageLayer> foldLayers(const ProgramGraph &graph, const std::map<std::string, unsigned> &blocks);

} // namespace cleave

#endif // CLEAVE_LIB_COMPILER_PAGELAYERS_H
