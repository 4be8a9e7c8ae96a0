//===- Conformance.h - what every communicator must do ----------*- C++ -*-===//
//
// One suite for all kinds of communicators. Each rank runs it with its own communicator, knows what every other rank gives
// (elements follow from seed, rank and place), and holds its whole output buffer, with what lies around and between the
// parts, against that.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_RUNTIME_CONFORMANCE_H
#define CLEAVE_TEST_UNIT_RUNTIME_CONFORMANCE_H

#include "cleave/Runtime/Communicator.h"

namespace cleave::runtime::test {

/// What one rank has done and seen.
struct Tally {
  uint64_t operations = 0, elements = 0, wrong = 0;
  /// Follows from all bits of all outputs: equal in equal runs.
  uint64_t outputs = 0;
  /// What went wrong first; empty if nothing.
  std::string error;
};

/// Sizes of a mesh's axes: {4}, {2, 3}.
using Mesh = std::vector<int>;
int getNumRanks(const Mesh &mesh);
/// `2x3`
std::string getName(const Mesh &mesh);

/// How much is tried. Brief: two element types. Full: all of them. Large: operands of 4 MB, too.
enum class Scope { Brief, Full, Large };

/// Every operation on the groups along each axis and along all of them: sizes around all thresholds, in place and not,
/// several under way at once.
void checkConformance(Communicator &communicator, const Mesh &mesh, Scope scope, Tally &tally);

/// A function for `Options::delay`: now and then a short sleep or a yield, as `seed` says. May be called by all ranks.
std::function<void(int rank)> makeDelays(uint64_t seed);

} // namespace cleave::runtime::test

#endif // CLEAVE_TEST_UNIT_RUNTIME_CONFORMANCE_H
