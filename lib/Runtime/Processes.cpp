//===- Processes.cpp - ranks that are processes ---------------------------===//
//
// Rounds of messages: sent when an operation starts, waited for when its result is wanted.
//
//===----------------------------------------------------------------------===//
#include "Processes.h"

#include <sched.h>
#include <thread>

using namespace cleave::runtime;

/// A message on its way may come after its sender's goodbye.
static constexpr double kGrace = 0.5;

ProcessCommunicator::Transfer::~Transfer() = default;

Status ProcessCommunicator::post(const Pending &pending) {
  return send(pending, 0,
              packFirst(pending.operation, pending.digest, pending.group->members.size(), pending.group->index));
}

/// A second round can only begin when the first one is combined, so it is sent here; the deadline holds for each.
Status ProcessCommunicator::complete(const Pending &pending) {
  uint64_t members = pending.group->members.size();
  std::vector<Message> messages;
  if (Status status = receive(pending, 0, messages); !status.isOk())
    return status;
  unpackFirst(pending.operation, messages, pending.group->index);
  if (!hasSecondRound(pending.operation))
    return {};
  Status status = send(pending, 1, packSecond(pending.operation, pending.digest, members, pending.group->index));
  if (status.isOk())
    status = receive(pending, 1, messages);
  if (!status.isOk())
    return status;
  unpackSecond(pending.operation, messages, pending.group->index);
  return {};
}

/// Begins with the next member, so that not all send to the same one at once.
Status ProcessCommunicator::send(const Pending &pending, unsigned number, std::vector<Message> messages) {
  Key key = {pending.group->id, pending.number, number};
  Round &round = rounds[key];
  uint32_t members = uint32_t(messages.size()), own = pending.group->index;
  round.resize(members);
  round[own] = std::make_unique<Transfer>();
  round[own]->in = std::move(messages[own]);
  round[own]->isSent = round[own]->isReceived = true;
  for (uint32_t i = 1; i < members; ++i) {
    uint32_t member = (own + i) % members;
    delay();
    std::string error;
    round[member] = begin(pending.group->members[member], key, std::move(messages[member]), error);
    if (!error.empty())
      return fail(pending, Cause::System, -1, error);
  }
  return {};
}

Status ProcessCommunicator::receive(const Pending &pending, unsigned number, std::vector<Message> &messages) {
  Key key = {pending.group->id, pending.number, number};
  Round &round = rounds[key];
  int64_t began = getNow(), looked = began;
  for (uint64_t turn = 1;; ++turn) {
    int missing = -1;
    if (Status status = advanceAll(pending, round, missing); !status.isOk())
      return status;
    if (missing < 0)
      break;
    if (watch.getFailure().isRaised())
      return watch.getFailure().get();
    if (turn % 64)
      continue;
    int64_t now = getNow();
    rest(now - began);
    if (now - looked < 10000000)
      continue;
    looked = now;
    if (Status status = checkMissing(pending, pending.group->members[missing], began); !status.isOk())
      return status;
  }
  messages.clear();
  for (std::unique_ptr<Transfer> &transfer : round)
    messages.push_back(std::move(transfer->in));
  rounds.erase(key);
  return {};
}

std::optional<std::string> ProcessCommunicator::findTooLarge(int peer, uint64_t bytes) const {
  uint64_t most = largest + kMessageHeader;
  if (bytes <= most)
    return std::nullopt;
  return "rank " + std::to_string(peer) + " announces a message of " + std::to_string(bytes) +
         " bytes, and none of this program has more than " + std::to_string(most);
}

/// Who has waited for long lets others have the core.
void ProcessCommunicator::rest(int64_t nanoseconds) {
  sched_yield();
  if (nanoseconds > 5000000)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

/// Moves everything on once. `missing`: a member that the round still needs; -1 if none.
Status ProcessCommunicator::advanceAll(const Pending &pending, Round &round, int &missing) {
  for (uint32_t member = 0; member < round.size(); ++member) {
    Transfer &transfer = *round[member];
    if (transfer.isSent && transfer.isReceived)
      continue;
    bool wasReceived = transfer.isReceived;
    std::string error;
    advance(transfer, error);
    if (!error.empty())
      return fail(pending, Cause::System, transfer.peer, error);
    if (transfer.isReceived && !wasReceived)
      if (Status status = checkMessage(pending, member, transfer.in); !status.isOk())
        return status;
    if (!transfer.isSent || !transfer.isReceived)
      missing = int(member);
  }
  return {};
}

/// Fails if `peer`, whom a round waits for, has left or is late. Who is silent or gone the watch finds out.
Status ProcessCommunicator::checkMissing(const Pending &pending, int peer, int64_t began) {
  std::string who = "rank " + std::to_string(peer);
  if (watch.getSecondsSinceLeft(peer) > kGrace)
    return fail(pending, Cause::Left, peer, who + " has left");
  if (double(getNow() - began) * 1e-9 < options.deadline)
    return {};
  return fail(pending, Cause::Timeout, peer, who + " did not come within " + formatSeconds(options.deadline));
}

Status ProcessCommunicator::checkMessage(const Pending &pending, uint32_t member, const Message &message) {
  std::optional<std::string> mistake =
      findMismatch(pending.operation, pending.digest, member, pending.group->index, message);
  if (!mistake)
    return {};
  int peer = pending.group->members[member];
  return fail(pending, Cause::Mismatch, peer, "rank " + std::to_string(peer) + " " + *mistake);
}
