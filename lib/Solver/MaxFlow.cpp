//===- MaxFlow.cpp - the cheapest way to part two nodes -------------------===//
//
// A round finds how far each node is from the source, and fills up all shortest ways. Then the shortest way that is left is longer, so that
// there are no more rounds than nodes; networks of programs take a few, as most of their ways are short.
//
//===----------------------------------------------------------------------===//
#include "cleave/Solver/MaxFlow.h"

#include <algorithm>
#include <cassert>

using namespace cleave;

MaxFlow::Node MaxFlow::addNode() {
  first.push_back(kNone);
  return first.size() - 1;
}

void MaxFlow::addEdge(Node from, Node to, int64_t capacity) {
  assert(capacity >= 0 && "a capacity is not negative");
  edges.push_back({to, first[from], capacity});
  first[from] = edges.size() - 1;
  edges.push_back({from, first[to], 0});
  first[to] = edges.size() - 1;
}

/// True if the sink can be reached.
bool MaxFlow::findLevels() {
  levels.assign(first.size(), kNone);
  levels[kSource] = 0;
  std::vector<Node> queue{kSource};
  for (size_t next = 0; next < queue.size(); ++next)
    for (uint32_t edge = first[queue[next]]; edge != kNone; edge = edges[edge].next)
      if (Node to = edges[edge].to; edges[edge].left > 0 && levels[to] == kNone) {
        levels[to] = levels[queue[next]] + 1;
        queue.push_back(to);
      }
  return levels[kSink] != kNone;
}

/// One more shortest way, filled up; 0 if there is none. Where a node leads nowhere its edge is never tried again.
int64_t MaxFlow::augment() {
  std::vector<uint32_t> way;
  Node node = kSource;
  while (node != kSink) {
    uint32_t edge = at[node];
    while (edge != kNone && !(edges[edge].left > 0 && levels[edges[edge].to] == levels[node] + 1))
      edge = edges[edge].next;
    at[node] = edge;
    if (edge != kNone) {
      way.push_back(edge);
      node = edges[edge].to;
      continue;
    }
    if (way.empty())
      return 0;
    node = edges[way.back() ^ 1].to;
    at[node] = edges[way.back()].next;
    way.pop_back();
  }
  int64_t flow = kInfinite;
  for (uint32_t edge : way)
    flow = std::min(flow, edges[edge].left);
  for (uint32_t edge : way) {
    edges[edge].left -= flow;
    edges[edge ^ 1].left += flow;
  }
  return flow;
}

int64_t MaxFlow::solve() {
  int64_t total = 0;
  while (total < kInfinite && findLevels()) {
    at = first;
    for (int64_t flow = augment(); flow > 0 && total < kInfinite; flow = augment())
      total = std::min(kInfinite, total + flow);
  }
  return total;
}

llvm::BitVector MaxFlow::getSinkSide() const {
  llvm::BitVector side(first.size());
  side.set(kSink);
  std::vector<Node> queue{kSink};
  for (size_t next = 0; next < queue.size(); ++next)
    for (uint32_t edge = first[queue[next]]; edge != kNone; edge = edges[edge].next)
      if (Node from = edges[edge].to; edges[edge ^ 1].left > 0 && !side.test(from)) {
        side.set(from);
        queue.push_back(from);
      }
  return side;
}
