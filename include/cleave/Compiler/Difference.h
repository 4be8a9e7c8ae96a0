//===- Difference.h - how far results are apart -----------------*- C++ -*-===//
#ifndef CLEAVE_COMPILER_DIFFERENCE_H
#define CLEAVE_COMPILER_DIFFERENCE_H

#include <cstdint>

namespace cleave {

/// Tolerances for comparing: |a - b| <= rtol * |b| + atol * largest |b| + ofRow * largest |b| in the row, along the
/// last dim; a tensor with one element a row is one row.
struct Tolerance {
  double rtol = 0, atol = 0, ofRow = 0;
};
/// Where floats are stored as bf16 on the way, and nothing else is known of what that does (Check.h).
constexpr Tolerance kNarrowTolerance{0, 0, 2e-2};
/// For what computes products of f32 in three of bf16: each is off by 2^-16 at the most.
constexpr Tolerance kSplitTolerance{0, 0, 2e-4};
/// How far two tensors are apart.
struct Difference {
  double largest = 0;      ///< largest |got - want|
  double inTolerances = 0; ///< largest |got - want| divided by what is allowed there
  int64_t position = -1;   ///< row-major index of the first element out of tolerance; -1: none
  int64_t nans = 0;        ///< elements that are NaN on both sides
};

/// How far all of a tensor is from another one.
struct Spread {
  double rms = 0, largest = 0;       ///< of |got - want|
  double rmsOfWanted = 0, scale = 0; ///< root mean square and largest of |want|
  bool isFinite = true;              ///< what is not finite is so in `want` or in `other`, too
};

} // namespace cleave

#endif // CLEAVE_COMPILER_DIFFERENCE_H
