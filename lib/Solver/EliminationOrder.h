//===- EliminationOrder.h - which variable goes next, and what is summed then -===//
//
// Which variables are eliminated in which order, which are frozen, and which tables are summed each time follows from which
// variables share tables and from how many options they have, and not from what tables say. So that is found first, as for
// sparse matrices, and sums are made along it (Elimination.cpp):
//
//   step       scope     inputs        makes
//   a          b         A, AB         table 5 over b
//   b          c         B, BC, 5      table 6 over c
//   freeze d   c, e      CD, DE        tables 7 over c and 8 over e: what is left at d's first option
//
// Passes over one graph differ in tables and in some numbers of options, and mostly go the same way. An order is one for other
// numbers of options, too, where each sum that was small enough is so again, each other one is too large again, and the same is
// frozen then. Asking that takes a tenth of the time of finding it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SOLVER_ELIMINATIONORDER_H
#define CLEAVE_LIB_SOLVER_ELIMINATIONORDER_H

#include "Interner.h"
#include "cleave/Solver/Elimination.h"

namespace cleave::spmd {

/// All that an order follows from, but for the numbers of options.
struct OrderQuestion {
  size_t numVariables;
  llvm::ArrayRef<CostTerm> terms;
  size_t maxCells;
  llvm::ArrayRef<uint32_t> spared;
  bool mayFreeze;
};

class EliminationOrder {
public:
  /// Scopes and inputs of a step end where those of the next one begin.
  struct Step {
    uint32_t variable;
    /// Of `getPattern`.
    uint32_t pattern;
    bool isFrozen;
    size_t firstOfScope, firstInput;
  };

  /// Finds it; without `mayFreeze` up to where a variable is frozen.
  EliminationOrder(llvm::ArrayRef<uint16_t> domains, const OrderQuestion &question);

  /// True if the question is the one that this was found for.
  bool answers(const OrderQuestion &question) const;
  /// True if it would be found again for variables of so many options.
  bool holdsFor(llvm::ArrayRef<uint16_t> domains) const;

  size_t numSteps() const { return steps.size() - 1; }
  const Step &step(size_t number) const { return steps[number]; }
  /// The neighbors that the variable has then, ascending.
  llvm::ArrayRef<uint32_t> scope(size_t number) const {
    return llvm::ArrayRef(scopes).slice(steps[number].firstOfScope,
                                        steps[number + 1].firstOfScope - steps[number].firstOfScope);
  }
  /// The tables that are used up: terms, in their order, then those that steps make, as they come. A sum makes one unless its scope is empty,
  /// a frozen variable one of each input that is not its own alone.
  llvm::ArrayRef<uint32_t> inputs(size_t number) const {
    return llvm::ArrayRef(inputTables)
        .slice(steps[number].firstInput, steps[number + 1].firstInput - steps[number].firstInput);
  }
  /// How inputs are laid out: the size of the scope, then for each input how many variables it is over, and which, the slowest first, by their
  /// places in the scope; the step's own is `kOwn`. Equal layers have the same numbers.
  llvm::ArrayRef<uint64_t> getPattern(size_t number) const { return patterns[steps[number].pattern]; }
  static constexpr uint64_t kOwn = ~uint64_t(0);

  size_t numTables() const { return tableCount; }
  llvm::ArrayRef<uint32_t> getFrozen() const { return frozen; }
  /// Of the largest scope of a sum.
  unsigned getWidth() const { return width; }

private:
  friend class OrderFinder;

  /// Why something was frozen: `variable` has these neighbors, and the sum would be too large.
  struct Freeze {
    uint32_t variable;
    size_t firstCandidate;
  };

  // The question.
  size_t numVariables;
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  size_t maxCells;
  std::vector<uint32_t> spared;
  bool mayFreeze;

  std::vector<Step> steps;
  std::vector<uint32_t> scopes, inputTables;
  Interner patterns;
  size_t tableCount = 0;
  std::vector<uint32_t> frozen;
  unsigned width = 0;

  /// For each that is frozen.
  std::vector<Freeze> freezes;
  /// Neighbors of all of `freezes`, and how many neighbors they had.
  std::vector<uint32_t> candidates, degrees;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SOLVER_ELIMINATIONORDER_H
