//===- Time.h - what a rank takes, as predicted -----------------*- C++ -*-===//
#ifndef CLEAVE_COST_TIME_H
#define CLEAVE_COST_TIME_H

namespace cleave::cost {

/// Nanoseconds of a rank.
struct Time {
  /// If nothing overlaps, the sum of both passes.
  double computeNs = 0, communicationNs = 0;
  /// Of that sum what overlaps with something else.
  double overlappedNs = 0;

  double getNs() const { return computeNs + communicationNs - overlappedNs; }
};

} // namespace cleave::cost

#endif // CLEAVE_COST_TIME_H
