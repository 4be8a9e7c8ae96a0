//===- Schedule.h - what each rank of a pipeline does -----------*- C++ -*-===//
//
// A model is split into *stages*, numbered along the graph; a batch into *microbatches*. A *rank* is a coordinate on the
// pipeline axis. A *schedule* is one ordered list of actions per rank:
//
//   rank 0   F0 SEND  F1 SEND           stage 0 runs on rank 0, stage 1 on rank 1
//   rank 1      RECV F0  RECV F1
//
// Every stage does one F (forward) of every microbatch, and in training one B (backward), or one I (gradients of
// inputs) and one W (gradients of weights), B = I + W. A schedule is data: generators, a search or a file make it, one
// checker (Check.h) and one simulator (Simulate.h) serve all of them. No IR.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SCHEDULE_SCHEDULE_H
#define CLEAVE_SCHEDULE_SCHEDULE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cleave::schedule {

/// In the order of their words: F B I W SEND_F RECV_F SEND_B RECV_B UNSHARD RESHARD REDUCE_GRAD.
enum class ActionKind : uint8_t { F, B, I, W, SendF, RecvF, SendB, RecvB, Unshard, Reshard, ReduceGrad, Update };

/// `SEND_F`: the word of tables and reports.
llvm::StringRef getWord(ActionKind kind);
std::optional<ActionKind> parseActionKind(llvm::StringRef word);

inline bool isCompute(ActionKind kind) { return kind <= ActionKind::W; }
inline bool isSend(ActionKind kind) { return kind == ActionKind::SendF || kind == ActionKind::SendB; }
inline bool isRecv(ActionKind kind) { return kind == ActionKind::RecvF || kind == ActionKind::RecvB; }
inline bool isMessage(ActionKind kind) { return isSend(kind) || isRecv(kind); }

/// One step of a rank, 16 bytes: there may be millions.
struct Action {
  ActionKind kind = ActionKind::F;
  /// This action and the next one run as one (OVERLAP_F_B); the next one's flag is clear. Both are F, B or I.
  bool isJoined = false;
  /// The stage that computes; of a SEND the sender's, of a RECV the receiver's.
  int32_t stage = 0;
  /// -1 for UNSHARD, RESHARD, REDUCE_GRAD and UPDATE.
  int32_t microbatch = -1;
  /// Of a message: the stage at the other end. Of REDUCE_GRAD: position in `Schedule::reductions`, or -1. Otherwise -1.
  int32_t other = -1;

  bool operator==(const Action &that) const {
    return kind == that.kind && isJoined == that.isJoined && stage == that.stage && microbatch == that.microbatch &&
           other == that.other;
  }
};

/// `0F1`, `0SEND_F1`, `2REDUCE_GRAD`: how tables and messages write an action.
std::string getText(const Action &action);

/// A way to place all stages, and the microbatches that take it. One of them, except for schedules that run two ways
/// through the ranks (DualPipe, Chimera), whose ranks hold a copy of the parameters per replica.
struct Replica {
  /// Stage -> rank.
  std::vector<int32_t> placement;
  std::vector<int32_t> microbatches;
};

/// What stage `from` hands to stage `to`: all values of the pair in one message per microbatch; backwards, their
/// gradients. Precondition: from < to. A hop within a rank has no message.
struct Channel {
  int32_t from = 0, to = 0;
  /// Time that a message takes beside its bytes, between different ranks.
  double latency = 0;
  /// Per microbatch.
  int64_t bytes = 0;
  /// Names of the values, for people.
  std::vector<std::string> values;
};

/// Gradients of parameters that several ranks hold, reduced once.
struct Reduction {
  std::string name;
  std::vector<int32_t> ranks;
};

struct Schedule {
  /// `1f1b`: the generator's word, or where the table came from.
  std::string name;
  int32_t numRanks = 0, numStages = 0, numMicrobatches = 0;
  bool isForwardOnly = false;
  /// Their microbatches are disjoint and together all.
  std::vector<Replica> replicas;
  /// By (to, from), none twice. By default s -> s + 1.
  std::vector<Channel> channels;
  std::vector<Reduction> reductions;
  /// Rank -> its actions in program order.
  std::vector<std::vector<Action>> programs;
  /// Rank -> versions of its weights that it keeps; empty where nobody said: one.
  std::vector<int32_t> weightVersions;

  /// The rank on which `stage` runs `microbatch`; -1 if no replica has it.
  int32_t getRank(int32_t stage, int32_t microbatch) const {
    assert(size_t(microbatch) < replicaOf.size() && "replicas have not been indexed");
    return replicas[replicaOf[microbatch]].placement[stage];
  }
  /// Precondition of `getRank`: called since `replicas` last changed.
  void indexReplicas();
  /// Whether what `microbatch` hands over on one of the channels is a message.
  bool isBetweenRanks(const Channel &channel, int32_t microbatch) const {
    return getRank(channel.from, microbatch) != getRank(channel.to, microbatch);
  }
  /// No rank sends or receives: messages are to be placed yet (Messages.h).
  bool isComputeOnly() const;

private:
  std::vector<int32_t> replicaOf;
};

/// Where stages stand: `linear` (one stage a rank), `loop` (s mod p), `v` (0..p-1, p-1..0), `wave` (v, repeated).
enum class Placement : uint8_t { Linear, Loop, V, Wave };
llvm::StringRef getWord(Placement placement);
std::optional<Placement> parsePlacement(llvm::StringRef word);
/// True if a rank may have so many stages: 1 for Linear, 2 for V, an even number for Wave, any for Loop.
bool mayHaveChunks(Placement placement, int32_t chunks);
/// Stage -> rank of `ranks * chunks` stages. Precondition: `mayHaveChunks`.
std::vector<int32_t> placeStages(Placement placement, int32_t ranks, int32_t chunks);

/// Gives ranks other numbers: what stands on `rank` is on `numbers[rank]` then. Precondition: a permutation of the ranks.
void renumberRanks(Schedule &schedule, llvm::ArrayRef<int32_t> numbers);

/// A schedule with one replica, its default channels and empty programs.
Schedule makeSchedule(llvm::StringRef name, std::vector<int32_t> placement, int32_t ranks, int32_t microbatches);

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_SCHEDULE_H
