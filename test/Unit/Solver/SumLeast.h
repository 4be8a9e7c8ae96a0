//===- SumLeast.h - what least cells add up to, for tests -------*- C++ -*-===//
#ifndef CLEAVE_TEST_UNIT_SOLVER_SUMLEAST_H
#define CLEAVE_TEST_UNIT_SOLVER_SUMLEAST_H

#include "cleave/Solver/Messages.h"
#include "llvm/ADT/STLExtras.h"

namespace cleave::spmd {

/// Cell by cell, with nothing of what makes messages.
inline __int128 sumLeast(const JointGraph &graph, MemoryPrice price, const Messages &messages) {
  __int128 sum = 0;
  for (size_t variable = 0; variable < graph.variables.size(); ++variable) {
    const JointDomain &domain = *graph.variables[variable];
    std::optional<__int128> least;
    for (size_t option = 0; option < domain.size(); ++option) {
      __int128 cost = domain.costs[option];
      if (!domain.storedBytes.empty())
        cost += price.of(domain.storedBytes[option]);
      for (auto [edge, message] : llvm::zip(graph.edges, messages)) {
        cost += edge.from == variable ? message.toRows[(*edge.rows)[option]] : 0;
        cost += edge.to == variable ? message.toColumns[(*edge.columns)[option]] : 0;
      }
      least = std::min(least.value_or(cost), cost);
    }
    sum += *least;
  }
  for (auto [edge, message] : llvm::zip(graph.edges, messages)) {
    std::optional<__int128> least;
    for (uint32_t row = 0; row < edge.table->rows; ++row)
      for (uint32_t column = 0; column < edge.table->columns; ++column) {
        __int128 cell = edge.table->cells[size_t(row) * edge.table->columns + column];
        cell -= __int128(message.toRows[row]) + message.toColumns[column];
        least = std::min(least.value_or(cell), cell);
      }
    sum += *least;
  }
  return sum;
}

} // namespace cleave::spmd

#endif // CLEAVE_TEST_UNIT_SOLVER_SUMLEAST_H
