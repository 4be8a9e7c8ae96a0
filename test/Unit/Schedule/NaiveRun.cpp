#include "NaiveRun.h"

#include <map>
#include <set>
#include <tuple>

using namespace cleave::schedule;

namespace {

/// 'F' or 'G' (gradient of inputs), stage, microbatch.
using Value = std::tuple<char, int, int>;

struct Run {
  explicit Run(const Schedule &schedule)
      : schedule(schedule), at(schedule.programs.size()), store(schedule.programs.size()) {}

  const Schedule &schedule;
  std::vector<size_t> at;
  /// What each rank has, made or received.
  std::vector<std::set<Value>> store;
  std::map<std::tuple<ActionKind, int, int>, int> done;
  bool isWrong = false;

  int getRank(int stage, int microbatch) const {
    for (const Replica &replica : schedule.replicas)
      for (int32_t known : replica.microbatches)
        if (known == microbatch && stage < int(replica.placement.size()))
          return replica.placement[stage];
    return -1;
  }

  bool hasMessages() const {
    for (const std::vector<Action> &program : schedule.programs)
      for (const Action &action : program)
        if (isMessage(action.kind))
          return true;
    return false;
  }

  /// Where a value lies for `rank`: with messages in its own store, else anywhere.
  bool has(int rank, const Value &value) const {
    if (hasMessages())
      return store[rank].count(value);
    for (const std::set<Value> &values : store)
      if (values.count(value))
        return true;
    return false;
  }

  bool isReady(int rank, const Action &action) const {
    int stage = action.stage, i = action.microbatch;
    if (action.kind == ActionKind::W)
      return done.count({ActionKind::I, stage, i});
    if (action.kind != ActionKind::F && !done.count({ActionKind::F, stage, i}))
      return false;
    for (const Channel &channel : schedule.channels) {
      if (action.kind == ActionKind::F && channel.to == stage && !has(rank, {'F', channel.from, i}))
        return false;
      if (action.kind != ActionKind::F && channel.from == stage && !has(rank, {'G', channel.to, i}))
        return false;
    }
    return true;
  }

  void compute(int rank, const Action &action) {
    isWrong |= getRank(action.stage, action.microbatch) != rank;
    ++done[{action.kind, action.stage, action.microbatch}];
    if (action.kind != ActionKind::W)
      store[rank].insert({action.kind == ActionKind::F ? 'F' : 'G', action.stage, action.microbatch});
  }

  bool exchange(int rank, const Action &send) {
    int peer = getRank(send.other, send.microbatch);
    Value value{send.kind == ActionKind::SendF ? 'F' : 'G', send.stage, send.microbatch};
    if (peer < 0 || peer == rank || at[peer] == schedule.programs[peer].size() ||
        !done.count({ActionKind::F, send.stage, send.microbatch}) || !store[rank].count(value))
      return false;
    const Action &recv = schedule.programs[peer][at[peer]];
    if (!isRecv(recv.kind) || getRank(recv.other, recv.microbatch) != rank)
      return false;
    isWrong |= value != Value{recv.kind == ActionKind::RecvF ? 'F' : 'G', recv.other, recv.microbatch};
    bool isChannel = false;
    for (const Channel &channel : schedule.channels)
      isChannel |= send.kind == ActionKind::SendF ? channel.from == send.stage && channel.to == send.other
                                                  : channel.to == send.stage && channel.from == send.other;
    isWrong |= !isChannel || recv.stage != send.other || getRank(recv.stage, recv.microbatch) != peer;
    isWrong |= getRank(send.stage, send.microbatch) != rank;
    isWrong |= !store[peer].insert(value).second && schedule.channels.size() + 1 == size_t(schedule.numStages);
    ++at[rank], ++at[peer];
    return true;
  }

  bool step(int rank) {
    const std::vector<Action> &program = schedule.programs[rank];
    if (at[rank] == program.size())
      return false;
    const Action &action = program[at[rank]];
    if (isSend(action.kind))
      return exchange(rank, action);
    if (isRecv(action.kind))
      return false;
    size_t count = action.isJoined ? 2 : 1;
    for (size_t part = 0; part < count; ++part)
      if (at[rank] + part >= program.size() || !isCompute(program[at[rank] + part].kind) ||
          (count == 2 && program[at[rank] + part].kind == ActionKind::W) ||
          (part == 1 && program[at[rank] + part].isJoined) || !isReady(rank, program[at[rank] + part]))
        return false;
    for (size_t part = 0; part < count; ++part)
      compute(rank, program[at[rank]++]);
    return true;
  }

  bool isComplete() const {
    auto count = [&](ActionKind kind, int stage, int i) {
      auto found = done.find({kind, stage, i});
      return found == done.end() ? 0 : found->second;
    };
    for (int stage = 0; stage < schedule.numStages; ++stage)
      for (int i = 0; i < schedule.numMicrobatches; ++i) {
        int b = count(ActionKind::B, stage, i), input = count(ActionKind::I, stage, i),
            weight = count(ActionKind::W, stage, i);
        bool isBackward = schedule.isForwardOnly
                              ? b + input + weight == 0
                              : (b == 1 && input + weight == 0) || (b == 0 && input == 1 && weight == 1);
        if (count(ActionKind::F, stage, i) != 1 || !isBackward)
          return false;
      }
    return true;
  }
};

} // namespace

bool cleave::schedule::runsRight(const Schedule &schedule) {
  Run run(schedule);
  bool moves = true;
  while (moves) {
    moves = false;
    for (size_t rank = 0; rank < schedule.programs.size(); ++rank)
      while (run.step(int(rank)))
        moves = true;
  }
  for (size_t rank = 0; rank < schedule.programs.size(); ++rank)
    if (run.at[rank] != schedule.programs[rank].size())
      return false;
  return !run.isWrong && run.isComplete();
}
