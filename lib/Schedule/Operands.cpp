//===- Operands.cpp - what an action waits for ----------------------------===//
//
// Deadlocks are explained from any blocked rank: each waits for one other, so that following them must come round to a
// rank seen before, and what lies between the two visits is the cycle; or it ends at a rank that has run out of actions.
//
//===----------------------------------------------------------------------===//
#include "Operands.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave::schedule;

Operands::Operands(const Schedule &schedule)
    : microbatches(schedule.numMicrobatches), count(int64_t(schedule.numStages) * schedule.numMicrobatches),
      channels(schedule.channels), incoming(schedule.numStages), outgoing(schedule.numStages) {
  for (auto [index, channel] : llvm::enumerate(channels)) {
    incoming[channel.to].push_back(static_cast<int32_t>(index));
    outgoing[channel.from].push_back(static_cast<int32_t>(index));
  }
}

Fact Operands::getResult(const Action &action) const {
  switch (action.kind) {
  case ActionKind::F:
    return getForward(action.stage, action.microbatch);
  case ActionKind::B:
  case ActionKind::I:
    return getGradient(action.stage, action.microbatch);
  default:
    return -1;
  }
}

Action Operands::findAction(const Schedule &schedule, Fact fact) const {
  Action action;
  action.kind = fact < count ? ActionKind::F : ActionKind::B;
  action.stage = static_cast<int32_t>(fact % count / microbatches);
  action.microbatch = static_cast<int32_t>(fact % microbatches);
  for (const Action &candidate : schedule.programs[schedule.getRank(action.stage, action.microbatch)])
    if (isCompute(candidate.kind) && getResult(candidate) == fact)
      action.kind = candidate.kind;
  return action;
}

// Gradients go against the channel: the receiver's stage is its source.
int32_t Operands::findChannel(const Action &message) const {
  bool isAtSource = message.kind == ActionKind::SendF || message.kind == ActionKind::RecvB;
  std::pair<int32_t, int32_t> ends(message.other, message.stage);
  if (isAtSource)
    std::swap(ends.first, ends.second);
  auto isBefore = [](const Channel &channel, const std::pair<int32_t, int32_t> &ends) {
    return std::pair(channel.to, channel.from) < std::pair(ends.second, ends.first);
  };
  const Channel *found = llvm::lower_bound(channels, ends, isBefore);
  if (found == channels.end() || std::pair(found->from, found->to) != ends)
    return -1;
  return static_cast<int32_t>(found - channels.begin());
}

double Operands::getWaiting(const Schedule &schedule, const Costs &costs, const Action &action) const {
  auto getBytes = [&](int32_t channel) { return static_cast<double>(channels[channel].bytes); };
  double bytes = 0;
  if (costs.memoryByte == 0)
    return 0;
  if (int32_t channel = action.kind == ActionKind::RecvF ? findChannel(action) : -1; channel >= 0)
    bytes = getBytes(channel);
  if (action.kind == ActionKind::F)
    for (int32_t channel : incoming[action.stage])
      bytes += schedule.isBetweenRanks(channels[channel], action.microbatch) ? getBytes(channel) : 0;
  return bytes * costs.memoryByte;
}

void Operands::visitMessages(const Schedule &schedule, const Action &action,
                             llvm::function_ref<void(const Action &, const Action &)> visit) const {
  if (getResult(action) < 0)
    return;
  bool isForward = action.kind == ActionKind::F;
  int32_t rank = schedule.getRank(action.stage, action.microbatch);
  for (int32_t channel : isForward ? outgoing[action.stage] : incoming[action.stage]) {
    int32_t other = isForward ? channels[channel].to : channels[channel].from;
    if (schedule.getRank(other, action.microbatch) == rank)
      continue;
    Action send{isForward ? ActionKind::SendF : ActionKind::SendB, false, action.stage, action.microbatch, other};
    Action recv{isForward ? ActionKind::RecvF : ActionKind::RecvB, false, other, action.microbatch, action.stage};
    visit(send, recv);
  }
}

/// `rank 0 at action 3, '0F1', which waits for '1B0' of rank 1`.
static std::string describeBlocked(const Schedule &schedule, int32_t rank, const Blocked &blocked) {
  std::string text = llvm::formatv("rank {0} at action {1}, '{2}', waits for ", rank, blocked.position + 1,
                                   getText(schedule.programs[rank][blocked.position]));
  if (blocked.missing)
    text += llvm::formatv("'{0}' of ", getText(*blocked.missing));
  return text + llvm::formatv("rank {0}", blocked.rank).str();
}

std::string cleave::schedule::describeDeadlock(const Schedule &schedule, llvm::function_ref<bool(int32_t)> isBlocked,
                                               llvm::function_ref<Blocked(int32_t)> describe) {
  // More than this is no help to anybody.
  constexpr size_t most = 64;
  int32_t rank = 0;
  while (!isBlocked(rank))
    ++rank;
  std::vector<int32_t> path, place(schedule.numRanks, -1);
  for (; place[rank] < 0; rank = describe(rank).rank) {
    place[rank] = static_cast<int32_t>(path.size());
    path.push_back(rank);
    if (int32_t next = describe(rank).rank; !isBlocked(next))
      return describeBlocked(schedule, rank, describe(rank)) + ", which has ended";
  }
  llvm::ArrayRef<int32_t> cycle = llvm::ArrayRef(path).drop_front(place[rank]);
  std::string text = "deadlock: ";
  llvm::ListSeparator separator("; ");
  for (int32_t member : cycle.take_front(most))
    text += std::string(llvm::StringRef(separator)) + describeBlocked(schedule, member, describe(member));
  return cycle.size() > most ? text + llvm::formatv("; and {0} more", cycle.size() - most).str() : text;
}
