//===- ClassColoring.h - which classes of dims are cut ----------*- C++ -*-===//
//
// An axis cuts whole classes (DimClasses.h) or leaves them whole. Of a layer as transformers have it:
//
//   x [tokens, R]   up [R, W]   down [W, R]
//
//   W cut      up by columns, down by rows; down's result is summed: one all_reduce of tokens x R
//   R cut      up by rows, down by columns: an all_reduce of tokens x W, statistics of norms
//   both cut   never: an op is cut along one factor, and would have to gather what has the other
//   none       each rank computes everything
//
// One variable a class, cut or whole, and one an op: along which of its cut factors. The least sum of these is met by elimination:
// operations that stay repeated first, far behind it what is sent, and weights that stay repeated.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SEARCH_CLASSCOLORING_H
#define CLEAVE_SEARCH_CLASSCOLORING_H

#include "cleave/Search/DimClasses.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace cleave::spmd {

struct ClassColoring {
  /// The classes that are cut.
  std::vector<char> isSplit;
  /// By op the factor along which it is cut; -1: none.
  std::vector<FactorId> factors;
  /// Share of all floating-point operations that is split.
  double splitShare = 0;
};

/// Colors the classes for which `maySplit` holds, for `ranks` ranks; others stay whole. Whether their extents divide is up to `maySplit`.
ClassColoring colorClasses(const Problem &problem, const DimClasses &classes, int64_t ranks,
                           llvm::function_ref<bool(DimClassId)> maySplit);

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_CLASSCOLORING_H
