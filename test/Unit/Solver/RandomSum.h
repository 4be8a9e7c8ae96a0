//===- RandomSum.h - sums of tables, tried out ------------------*- C++ -*-===//
//
// What Elimination.h and Domination.h are held to: small sums, whose minimum is found by trying everything.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_SOLVER_RANDOMSUM_H
#define CLEAVE_TEST_UNIT_SOLVER_RANDOMSUM_H

#include "cleave/Solver/Elimination.h"
#include <random>

namespace cleave::spmd {

/// Tables over a few variables, with the sum at any options.
struct Model {
  std::vector<uint16_t> domains;
  std::vector<std::vector<int64_t>> tables;
  std::vector<std::pair<uint32_t, uint32_t>> scopes;

  void add(uint32_t first, uint32_t second, std::vector<int64_t> cells) {
    scopes.push_back({first, second});
    tables.push_back(std::move(cells));
  }
  std::vector<CostTerm> terms() const {
    std::vector<CostTerm> result;
    for (size_t i = 0; i < tables.size(); ++i)
      result.push_back({scopes[i].first, scopes[i].second, tables[i].data()});
    return result;
  }
  int64_t sum(const std::vector<uint16_t> &options) const {
    int64_t total = 0;
    for (size_t i = 0; i < tables.size(); ++i) {
      auto [first, second] = scopes[i];
      size_t cell = options[first];
      if (second != kNoVariable)
        cell = cell * domains[second] + options[second];
      total += tables[i][cell];
    }
    return total;
  }
  int64_t leastSum() const {
    std::vector<uint16_t> options(domains.size(), 0);
    int64_t least = sum(options);
    for (size_t place = 0; place < options.size();) {
      if (++options[place] == domains[place]) {
        options[place++] = 0;
        continue;
      }
      least = std::min(least, sum(options));
      place = 0;
    }
    return least;
  }
};

/// Costs from -50 to 49; one table in four forbids some cells, never the first.
inline Model randomModel(std::mt19937 &random, unsigned maxVariables, unsigned maxDomain) {
  Model model;
  auto below = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  unsigned numVariables = 1 + below(maxVariables);
  for (unsigned i = 0; i < numVariables; ++i)
    model.domains.push_back(1 + below(maxDomain));
  auto cells = [&](size_t count) {
    std::vector<int64_t> result(count);
    bool forbids = below(4) == 0;
    for (size_t i = 0; i < count; ++i)
      result[i] = forbids && i > 0 && below(3) == 0 ? kForbidden : int64_t(below(100)) - 50;
    return result;
  };
  for (unsigned i = 0; i < numVariables; ++i)
    if (below(2))
      model.add(i, kNoVariable, cells(model.domains[i]));
  for (unsigned count = below(3 * numVariables); count > 0; --count)
    if (unsigned first = below(numVariables), second = below(numVariables); first != second)
      model.add(first, second, cells(size_t(model.domains[first]) * model.domains[second]));
  return model;
}

} // namespace cleave::spmd

#endif // CLEAVE_TEST_UNIT_SOLVER_RANDOMSUM_H
