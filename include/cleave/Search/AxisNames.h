//===- AxisNames.h - what found axes are called -----------------*- C++ -*-===//
//
// Cells have an axis for each kind of link. What was found cuts batches along some of its atoms and weights along others: each run of atoms
// that do mostly the same becomes an axis, called by what it cuts.
//
//   link=8: atoms 2 2 2    the first cuts batches, the others columns of weights    ──▶    data=2, model=4
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SEARCH_AXISNAMES_H
#define CLEAVE_SEARCH_AXISNAMES_H

#include "cleave/Search/DimClasses.h"
#include "cleave/Solver/Solver.h"

namespace cleave::spmd {

struct NamedAxis {
  std::string name;
  int64_t size = 1;
};

/// Axes whose atoms are those of the problem's mesh, in their order. None goes on over the beginning of an axis of that whose number is among
/// `borders`, where other links begin. Names differ.
std::vector<NamedAxis> nameAxes(const Problem &problem, const DimClasses &classes, const Decision &decision,
                                llvm::ArrayRef<unsigned> borders);

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_AXISNAMES_H
