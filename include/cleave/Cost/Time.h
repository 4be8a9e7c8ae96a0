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

/// Nanoseconds of one call of a pipeline.
struct RanksTime {
  /// From the first start of any rank to the last end.
  double callNs = 0;
  /// The longest time from a rank's first start to its last end: what a call takes where calls follow each other.
  double spanNs = 0;
};

} // namespace cleave::cost

#endif // CLEAVE_COST_TIME_H
