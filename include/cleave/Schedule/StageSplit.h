//===- StageSplit.h - where a model is split into stages --------*- C++ -*-===//
//
// Ops stand in a topological order; S - 1 boundaries make S stages of it. The best ones are those whose slowest stage is
// fastest (`Throughput`), and among these the ones over which the fewest bytes are sent.
//
//   ops      a  b  c | d  e | f  g  h        boundaries 3 and 5
//   time     3  1  4 | 1  5 | 9  2  6        stages 8, 6, 17: the bottleneck is 17
//
// Exact over the positions considered (all of them up to `maxPositions`, else in each of as many stretches of equal time
// the one of least crossing bytes), by dynamic programming over (stages, position). The answer carries a bound that holds
// for every order of the ops.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SCHEDULE_STAGESPLIT_H
#define CLEAVE_SCHEDULE_STAGESPLIT_H

#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace cleave::schedule {

/// One op, or ops that are one already. Times and bytes are those of one microbatch on one rank.
struct SplitOp {
  int64_t ns = 0;
  /// What stays until the op's gradient is computed (nothing in inference), and what is needed only while it runs.
  int64_t savedBytes = 0, temporaryBytes = 0;
  /// Positions in `SplitProblem::parameterBytes`.
  std::vector<uint32_t> parameters;
  /// Ops of one cluster are never split apart; -1: none.
  int32_t cluster = -1;
  /// For messages.
  std::string name;
};

/// A value that an op makes and others use. Inputs of the model are no values: callers hand them to every rank. One
/// without bytes is never sent: stages make it by themselves.
struct SplitValue {
  int64_t bytes = 0;
  uint32_t producer = 0;
  std::vector<uint32_t> users;
  std::string name;
};

struct SplitProblem {
  /// In a topological order.
  std::vector<SplitOp> ops;
  std::vector<SplitValue> values;
  std::vector<int64_t> parameterBytes;
  /// Ops of each list run on one rank.
  std::vector<std::vector<uint32_t>> together;
};

enum class SplitObjective : uint8_t {
  Throughput, ///< the slowest stage
  Latency,    ///< of all microbatches: sum of stages and links + (m - 1) * the slowest
};

struct SplitOptions {
  /// Stage -> rank; as many stages as it has entries.
  std::vector<int32_t> placement;
  SplitObjective objective = SplitObjective::Throughput;
  int64_t microbatches = 1;
  /// Of a hop between two ranks. 0 bytes a nanosecond: bytes take no time.
  double latencyNs = 0, bytesPerNs = 0;
  /// A rank computes while it sends: a link is a bottleneck of its own, not part of its stage.
  bool overlapsSends = true;
  /// A value that a later stage uses passes every rank between; otherwise it goes there directly.
  bool relays = false;
  /// Bytes per rank; 0: no limit. Microbatches in flight per stage (1F1B: p - r); empty: 1,
  /// as for models so far.
  int64_t memoryLimit = 0;
  std::vector<int64_t> inFlight;
  /// Per rank, where these differ (empty: they do not): what it does in a time of what times of ops stand for, above 0; and its own limit,
  /// as `memoryLimit`, which counts as well.
  std::vector<double> speeds;
  std::vector<int64_t> memoryLimits;
  uint32_t maxPositions = 2000;

  double getSpeed(int32_t rank) const { return speeds.empty() ? 1 : speeds[rank]; }
  /// Bytes that a rank may hold: the lower of both limits; 0: any number.
  int64_t getLimit(int32_t rank) const;
};

/// A value that travels between ranks, once per microbatch.
struct StageSend {
  uint32_t value = 0;
  int32_t to = 0;
  int64_t bytes = 0;
};

struct StageSummary {
  uint32_t numOps = 0;
  /// Time of its ops, and of its busiest link.
  int64_t ns = 0, linkNs = 0;
  int64_t parameterBytes = 0;
  /// Parameters, saved values of all microbatches in flight, temporaries.
  int64_t memoryBytes = 0;
  std::vector<StageSend> sends;
};

struct StageSplit {
  /// Op -> stage; edges go forward, and every stage has an op.
  std::vector<int32_t> stageOf;
  std::vector<StageSummary> stages;
  /// Bytes that cross each of the S - 1 boundaries: values made before it and used behind it, each once.
  std::vector<int64_t> crossingBytes;
  /// The slowest stage or link; no split of these ops into S stages is below `boundNs` = max(largest op or cluster,
  /// sum / S); of ranks that differ, the largest on the fastest, and the sum over the sum of the speeds of stages.
  int64_t bottleneckNs = 0, boundNs = 0;
};

struct Schedule;
/// By stage, the most microbatches whose forward a rank has done and whose W it has not: 1f1b p - s, gpipe m. Of several ways the most of any.
std::vector<int64_t> countInFlight(const Schedule &table);

/// The best boundaries. Error: more stages than ops that can be split apart; nothing fits (the least limit with
/// which one of the splits considered would; a limit with which one would, where ranks have several stages); ops
/// that must stay together have others between them (names them).
llvm::Expected<StageSplit> splitStages(const SplitProblem &problem, const SplitOptions &options);

/// What a given assignment costs, in the same terms. Error: an edge that goes backward (names the path), a stage without
/// ops, more memory than the limit. Precondition: a stage below `placement.size()` per op.
llvm::Expected<StageSplit> describeStages(const SplitProblem &problem, const SplitOptions &options,
                                          std::vector<int32_t> stageOf);

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_STAGESPLIT_H
