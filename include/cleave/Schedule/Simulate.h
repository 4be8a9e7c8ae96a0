//===- Simulate.h - how long a schedule takes, and what it holds -*- C++ -*-===//
//
// Ranks go through their programs in order. An action starts when its rank is free and its operands are there:
//
//   F(s, i)   after F of every stage that has a channel to s       I(s, i), B(s, i)   after F(s, i), and after I or B of
//   W(s, i)   after I(s, i)                                                           every stage that s has a channel to
//
// A hop between ranks adds its channel's latency and bytes / bandwidth; sends do not block (with `rendezvous` they wait
// for the other end's turn). Where a program has no messages, hops take their time all the same. One queue of ranks:
// O(actions + messages).
//
// Source of both bubbles: 1 - busy / (p * makespan), and 1 - busy / (p * span) with span = max over ranks of the time
// from a rank's first start to its last end (Qi et al., Zero Bubble Pipeline Parallelism, 2024).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SCHEDULE_SIMULATE_H
#define CLEAVE_SCHEDULE_SIMULATE_H

#include "cleave/Schedule/Schedule.h"
#include "llvm/Support/Error.h"

namespace cleave::schedule {

/// Times of stages (any unit, one for all), and memory (any unit, one for all).
struct Costs {
  /// Per stage, for one microbatch.
  std::vector<double> forward, inputGrad, weightGrad;
  /// Per stage, once a step: the update of its weights, so far as it needs gradients of no other stage, and the reduction of its gradients over
  /// other axes, which the rank does not wait for but to update. Empty: none.
  std::vector<double> update, reduction;
  /// Time of a joined pair of F and B of one microbatch each; the sum of its parts if negative.
  double overlap = -1;
  /// Bytes per unit of time of a hop; 0: bytes take no time.
  double bandwidth = 0;
  /// Per stage: what F takes, and what I and W add (negative: release). B adds both.
  std::vector<double> memoryForward, memoryInputGrad, memoryWeightGrad;
  /// Without gradients: what a byte of a message takes, from its RECV to the end of the F that it is for.
  double memoryByte = 0;
  /// Per rank; empty: no limit.
  std::vector<double> memoryLimit;
  std::string unit = "1";

  /// How the memory of its rank changes with an action.
  double getMemoryChange(const Action &action) const;
  /// What a rank may hold: its limit and a billionth of it, as limits are often multiples of what stages take, and sums
  /// of many shares are not exact. Infinite without a limit.
  double getMemoryLimit(int32_t rank) const;
  /// Time of a message between ranks.
  double getHop(const Channel &channel) const;

  /// F, I and W of a rank's whole share, of which each of `chunks` stages has its part; memory 1, 0, -1 likewise.
  static Costs uniform(int32_t stages, int32_t chunks, double forward = 1, double inputGrad = 1, double weightGrad = 1);
};

/// When an action runs.
struct Interval {
  double start = 0, end = 0;
};

/// What is held at the worst moment, per rank.
struct Peak {
  /// Stages whose F is done and whose B or I (`live`), or B or W (`held`), is not.
  std::vector<int32_t> live, held;
  /// In the units of `Costs`.
  std::vector<double> memory;
};

struct Simulation {
  /// As `Schedule::programs`; the parts of a joined pair have the same interval, messages of asynchronous ones none.
  std::vector<std::vector<Interval>> times;
  /// Per rank: time in computation, first start, last end (0 without actions).
  std::vector<double> busy, start, end;
  double makespan = 0, span = 0, bubbleMakespan = 0, bubbleSpan = 0;
  Peak peak;
  /// Hops between ranks, each counted once.
  int64_t messages = 0;
};

enum class MessageMode : uint8_t { Async, Rendezvous };
inline constexpr llvm::StringLiteral kMessageModeWords[] = {"async", "rendezvous"};

/// Runs the programs of all ranks in time. With `Rendezvous`, programs without messages run with those that `addMessages`
/// places, and ranks meet at a REDUCE_GRAD of a group. Error: what blocks, an action of each rank in the cycle.
/// Precondition: `costs` has an entry per stage; stages and microbatches of actions exist, and have a rank.
llvm::Expected<Simulation> simulate(const Schedule &schedule, const Costs &costs,
                                    MessageMode mode = MessageMode::Async);

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_SIMULATE_H
