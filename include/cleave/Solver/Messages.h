//===- Messages.h - a bound on all decisions --------------------*- C++ -*-===//
//
// The least of each table by itself adds up to no more than the least sum of all tables. Taking something from one table and giving it to
// a neighbor changes no sum, but what the least cells add up to; what is moved is a *message*, and good messages make the bound as large
// as the minimum, or nearly:
//
//   node a  0 4     edge  a\b  0  1     node b  3 0        least cells 0 + 0 + 0 = 0; the minimum is 2: a = 0, b = 1
//                          0   0  2
//                          1   5  0
//   to b by column: 0 2, once the edge has taken a's 0 4:  3+0 0+2, whose least is 2; the edge keeps 0 at least
//
// Messages are found by going over the nodes forwards and backwards: sequential tree-reweighted message passing (V. Kolmogorov, IEEE
// PAMI 28, 2006). A node hands each neighbor that comes later what is least for each of its rows, less what that neighbor told it, and
// shares itself out between them. No pass makes the bound lower. All is in integers and rounded down: any messages give a bound, so
// rounding costs a unit here and there and proves nothing that is false.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SOLVER_MESSAGES_H
#define CLEAVE_SOLVER_MESSAGES_H

#include "cleave/Solver/JointTables.h"

namespace cleave::spmd {

/// What a stored byte costs: units for 2^40 of them.
struct MemoryPrice {
  static constexpr unsigned kShift = 40;
  int64_t numerator = 0;

  /// Rounded down, and no more than what is forbidden. Precondition: none is negative.
  int64_t of(int64_t bytes) const {
    return static_cast<int64_t>(std::min<__int128>((__int128(numerator) * bytes) >> kShift, kForbiddenCell));
  }
};

/// What has moved from an edge to the nodes at its ends, by row and by column; negative where it moved from them.
struct EdgeMessage {
  std::vector<int64_t> toRows, toColumns;
};
/// By edge.
using Messages = std::vector<EdgeMessage>;

struct PassOptions {
  unsigned mostPasses = 200;
  /// Passes end as soon as the bound is that close to `reach`, or does not come closer any more.
  double tolerance = 1e-6;
  /// What some decision takes, the price of memory included; no bound is above it.
  int64_t reach = kForbiddenCell;
};

struct PassedMessages {
  Messages messages;
  /// Where passes could go on from.
  Messages unfinished;
  /// The sum of the least cells, the constant not included.
  int64_t bound = 0;
  unsigned passes = 0;
  /// What the messages advise, an option for each variable; may be far from the best, and forbidden.
  std::vector<uint16_t> options;
};

/// Makes exact what may be the least cell of an edge behind these messages, and all that is no more than `margin` above it, as far as it is known.
/// How many cells: where there were none, nothing that is not exact makes the bound lower.
size_t refineLeast(const JointGraph &graph, const Messages &messages, int64_t margin);

/// Begins with `start` if that is given (`PassedMessages::unfinished`, of tables of the same sizes).
PassedMessages passMessages(const JointGraph &graph, MemoryPrice price, const PassOptions &options = {},
                            const Messages *start = nullptr);

} // namespace cleave::spmd

#endif // CLEAVE_SOLVER_MESSAGES_H
