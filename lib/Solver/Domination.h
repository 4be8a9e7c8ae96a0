//===- Domination.h - options that cannot be best ---------------*- C++ -*-===//
//
// Before a sum of tables (Elimination.h) is minimized, options that another one of the same variable beats whatever the
// neighbors do:
//
//   option       a    b        beside x: T(a, x) - T(b, x)  =  3, 1, 2 for the options of x
//   own costs    5    4        a - b  >=  (5 - 4) + 1  >  0: never a, since b in its place is better
//
// An option that goes may take the only reason for one of a neighbor's with it, so neighbors are looked at again. What
// is left has the same minimum, in smaller tables: elimination has to freeze less. (Dead-end elimination with the
// criterion of Goldstein, Biophysical Journal 66, 1994.)
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SOLVER_DOMINATION_H
#define CLEAVE_LIB_SOLVER_DOMINATION_H

#include "cleave/Solver/Elimination.h"
#include "llvm/ADT/SmallVector.h"

namespace cleave::spmd {

using KeptOptions = llvm::SmallVector<uint16_t, 8>;

/// Per variable the options that may be best, at least one: that of `preferred` first if it is among them, the others
/// ascending. Of options that are equal whatever the neighbors do, the preferred or the lowest one stays.
std::vector<KeptOptions> findUndominated(llvm::ArrayRef<uint16_t> domains, llvm::ArrayRef<CostTerm> terms,
                                         llvm::ArrayRef<uint16_t> preferred);

/// The minimum, over options that are not dominated; nothing where it would take tables of more cells.
std::optional<Minimum> minimizeUndominated(llvm::ArrayRef<uint16_t> domains, llvm::ArrayRef<CostTerm> terms,
                                           size_t maxCells, KnownOrders *orders = nullptr);

/// Looks for less than `known` has, for which variables were frozen: without dominated options, what is frozen now as
/// `known` has it, and other variables than before. Never worse than `known`; its `frozen` are those of the last try.
Minimum improve(llvm::ArrayRef<uint16_t> domains, llvm::ArrayRef<CostTerm> terms, Minimum known,
                size_t maxCells = kMostCells, KnownOrders *orders = nullptr);

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SOLVER_DOMINATION_H
