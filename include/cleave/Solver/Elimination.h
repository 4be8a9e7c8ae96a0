//===- Elimination.h - exact minima over sparse graphs ----------*- C++ -*-===//
//
// Minimizes a sum of tables over one or two variables each, by variable elimination:
//
//   a - b - c      eliminate a:  m(b) = min over a of A(a) + AB(a,b), and note the best a for each b
//                  eliminate b:  m(c) = min over b of m(b) + BC(b,c) ...          then read the answer backwards
//
// Next is always the variable with the fewest neighbors, the lowest number on ties; of equal minima the first wins:
// the same input gives the same answer. A variable with n neighbors needs a table over n + 1 variables; where that
// would be larger than a limit, its busiest neighbor is *frozen* at its first option. With the present state as option
// 0, the answer is then no longer the minimum, but never worse than the present.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SOLVER_ELIMINATION_H
#define CLEAVE_SOLVER_ELIMINATION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <memory>
#include <vector>

namespace cleave::spmd {

/// The cost of what must not be; larger sums count as this. All costs lie in [-kForbidden, kForbidden].
inline constexpr int64_t kForbidden = int64_t(1) << 58;
/// Of one table, unless asked for otherwise.
inline constexpr size_t kMostCells = size_t(1) << 17;
inline constexpr uint32_t kNoVariable = ~uint32_t(0);

/// A table over one or two different variables: `cells[first]`, or `cells[first * domains[second] + second]`.
struct CostTerm {
  uint32_t first, second = kNoVariable;
  const int64_t *cells;
};

struct Minimum {
  /// Per variable its option.
  std::vector<uint16_t> options;
  /// The sum at these options.
  int64_t total = 0;
  /// Most neighbors of a variable when it was eliminated.
  unsigned width = 0;
  /// Variables that were frozen; if there are none, the minimum is exact.
  std::vector<uint32_t> frozen;
};

class EliminationOrder;
struct OrderQuestion;

/// Orders in which variables were eliminated, for whoever minimizes sums over one graph again and again: to find one takes as long as to make
/// the sums. The same is found without.
class KnownOrders {
public:
  std::shared_ptr<const EliminationOrder> find(llvm::ArrayRef<uint16_t> domains, const OrderQuestion &question);

private:
  /// Of tables between two million pairs each takes tens of megabytes.
  static constexpr size_t kMost = 6;
  /// The latest first.
  llvm::SmallVector<std::shared_ptr<const EliminationOrder>, kMost> orders;
};

/// `domains` are the numbers of options, 1 to 256. Tables must live until the call returns. Variables in `spared`,
/// ascending, are frozen only where no other neighbor is left to be. Without `mayFreeze` the search ends where a variable would be frozen,
/// with that one as the only thing that is said.
Minimum minimize(llvm::ArrayRef<uint16_t> domains, llvm::ArrayRef<CostTerm> terms, size_t maxCells = kMostCells,
                 llvm::ArrayRef<uint32_t> spared = {}, bool mayFreeze = true, KnownOrders *known = nullptr);

} // namespace cleave::spmd

#endif // CLEAVE_SOLVER_ELIMINATION_H
