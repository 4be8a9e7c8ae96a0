//===- CellSearch.h - one mesh, all prices of memory ------------*- C++ -*-===//
//
// Of one mesh with free axes the least time under a limit of stored bytes. A price on each stored byte makes the solver find the
// answer: the higher it is, the more is cut and the more is sent. Answers lie on the front of time and memory:
//
//   price   0      300     1,000   ns per MB
//   time    86.1   88.4    91.1    ms
//   stored  25.6   12.9    6.2     GB
//
// so that the least price whose answer fits is found in few solves. (Lagrangian relaxation: the price is the multiplier of the
// limit; H. Everett, Operations Research 11, 1963.)
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SEARCH_CELLSEARCH_H
#define CLEAVE_SEARCH_CELLSEARCH_H

#include "cleave/Solver/Solver.h"

namespace cleave::spmd {

/// What was decided at one price.
struct CellAnswer {
  /// Nanoseconds for each stored byte.
  double price = 0;
  /// Which of the styles it keeps to; -1: none.
  int style = -1;
  /// See `CellSearch::setValueShare`.
  double valueShare = 0;
  /// What a rank takes by the costs of the solver, the price of memory apart: launches that there are in any case are not in it.
  double ns = 0;
  /// Of parameters and states, on a rank.
  int64_t storedBytes = 0;
  /// These, and the share of values that counts: what its price is of.
  double pricedBytes = 0;
  Decision decision;

  const Decision &getDecision() const { return decision; }
};

/// What free atoms may cut (`SolverOptions::maySplit`).
using SearchStyle = std::function<bool(OpId, FactorId)>;

class CellSearch {
public:
  /// `problem` must outlive this; its storage is decided (`Problem::decideStorage`). Precondition: `options.costs` are times.
  CellSearch(const Problem &problem, SolverOptions options, std::vector<SearchStyle> styles);

  /// From now on each byte that passes through an op counts this share of a stored one: what is alive at the peak, of all that is alive at
  /// some op (`countValues`).
  void setValueShare(double share) { valueShare = share; }
  /// Bytes that a rank reads and writes at all ops together.
  double countValues(const Decision &decision) const;
  /// The least time of what stores at most so many bytes; null if no answer does, or the problem has errors. Answers are kept, so that a
  /// second limit takes few more solves.
  const CellAnswer *find(int64_t mostBytes);
  /// What is found at the highest price of memory. Null where the problem has errors.
  const CellAnswer *findSmallest() { return solve(kMostPrice); }
  /// That answer, and what is found at its price in each style, as far as they differ: costs of a solver leave out launches that there are in
  /// any case, so that of answers that are close another may take less.
  std::vector<const CellAnswer *> findOthers(const CellAnswer &answer);
  /// Of all that were found without a style the next that takes less time, and so more memory; null: none does.
  const CellAnswer *findFaster(const CellAnswer &than) const;
  size_t countSolves() const { return answers.size(); }

private:
  /// Nanoseconds per byte beyond which nothing is worth one.
  static constexpr double kMostPrice = 1e3;

  /// An answer that is too large, and one at a higher price that fits; null: none is known.
  struct Bracket {
    const CellAnswer *fast = nullptr, *small = nullptr;
  };

  const CellAnswer *solve(double price, int style = -1);
  Bracket findBracket(int64_t mostBytes) const;
  bool closeBracket(int64_t mostBytes, Bracket &known);
  int64_t countStored(const Decision &decision) const;

  const Problem &problem;
  SolverOptions options;
  std::vector<SearchStyle> styles;
  double valueShare = 0;
  /// That `find` ended with; 0: it has found none yet.
  double lastPrice = 0;
  std::vector<std::unique_ptr<CellAnswer>> answers;
};

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_CELLSEARCH_H
