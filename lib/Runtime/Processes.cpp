//===- Processes.cpp - ranks that are processes ---------------------------===//
//
// Rounds of messages: begun when an operation starts, moved on whenever this rank comes by, waited for when the result is wanted.
//
//===----------------------------------------------------------------------===//
#include "Processes.h"

#include <algorithm>
#include <sched.h>
#include <thread>

using namespace cleave::runtime;

/// A message on its way may come after its sender's goodbye.
static constexpr double kGrace = 0.5;
/// Messages of an operation to one member that are begun and not sent: enough to fill a connection, and no second copy of long operands.
static constexpr size_t kMostSending = 4;
/// How often connections are looked at between kernels, which may take less than a look.
static constexpr int64_t kPause = 20000;
/// Messages whose memory is kept, and how long they may be.
static constexpr size_t kMostSpares = 64, kLongestSpare = (size_t(1) << 18) + kMessageHeader;

ProcessCommunicator::Sending::~Sending() = default;
ProcessCommunicator::Receiving::~Receiving() = default;

std::unique_ptr<ProcessCommunicator::Receiving> ProcessCommunicator::expect(int peer, Key key) {
  auto receiving = std::make_unique<Receiving>();
  receiving->peer = peer;
  receiving->key = key;
  return receiving;
}

Message ProcessCommunicator::takeSpare() {
  if (spares.empty())
    return {};
  Message message = std::move(spares.back());
  spares.pop_back();
  return message;
}

void ProcessCommunicator::keepSpare(Message message) {
  if (spares.size() < kMostSpares && message.capacity() <= kLongestSpare)
    spares.push_back(std::move(message));
}

std::optional<std::string> ProcessCommunicator::findTooLarge(int peer, uint64_t bytes) const {
  uint64_t most = largest + kMessageHeader;
  if (bytes <= most)
    return std::nullopt;
  return "rank " + std::to_string(peer) + " announces a message of " + std::to_string(bytes) +
         " bytes, and none of this program has more than " + std::to_string(most);
}

//===----------------------------------------------------------------------===//
// Moving on
//===----------------------------------------------------------------------===//

/// Sends what needs nothing of others. Of a long operand that is a few messages: the rest is packed when these are through, out of memory that
/// belongs to the operation until then.
Status ProcessCommunicator::post(const Pending &pending) {
  UnderWay &operation = underWay.emplace_back();
  operation.pending = &pending;
  operation.messages = countMessages(pending.operation, pending.group->members.size());
  operation.rounds.resize(hasSecondRound(pending.operation) ? 2 : 1);
  for (Round &round : operation.rounds)
    round.lines.resize(pending.group->members.size());
  return sendSome(operation, 0);
}

/// Begins with the next member, so that not all send to the same one at once. Of a second round what is combined by now.
Status ProcessCommunicator::sendSome(UnderWay &operation, size_t round) {
  const Pending &pending = *operation.pending;
  uint32_t own = pending.group->index, members = uint32_t(pending.group->members.size());
  uint64_t ready = round == 0 ? operation.messages : operation.rounds[0].done;
  for (uint32_t i = 1; i < members; ++i) {
    uint32_t member = (own + i) % members;
    Line &line = operation.rounds[round].lines[member];
    std::string error;
    for (auto &sending : line.sending)
      if (!sending->isSent && error.empty())
        move(*sending, error);
    while (!line.sending.empty() && line.sending.front()->isSent) {
      keepSpare(std::move(line.sending.front()->message));
      line.sending.pop_front();
    }
    while (error.empty() && line.begun < ready && line.sending.size() < kMostSending) {
      delay();
      Letter letter = operation.getLetter(round, line.begun++);
      letter.to = member;
      Message message = takeSpare();
      pack(pending.operation, pending.digest, letter, message);
      Key key = {pending.group->id, pending.number, unsigned(round)};
      line.sending.push_back(send(pending.group->members[member], key, std::move(message), error));
      if (line.sending.back()->isSent) {
        keepSpare(std::move(line.sending.back()->message));
        line.sending.pop_back();
      }
    }
    if (!error.empty())
      return fail(pending, Cause::System, pending.group->members[member], error);
  }
  return {};
}

/// Unpacks messages once all members' are there, number by number: terms combine in the order of the group, whoever comes first.
Status ProcessCommunicator::receiveSome(UnderWay &operation, size_t number, bool &hasMoved) {
  const Pending &pending = *operation.pending;
  Round &round = operation.rounds[number];
  std::vector<const Message *> messages(round.lines.size());
  for (; round.done < operation.messages; ++round.done) {
    Letter letter = operation.getLetter(number, round.done);
    bool areThere = true;
    for (uint32_t member = 0; member < round.lines.size(); ++member) {
      if (member == letter.to)
        continue;
      std::unique_ptr<Receiving> &receiving = round.lines[member].receiving;
      int peer = pending.group->members[member];
      if (!receiving)
        receiving = expect(peer, {pending.group->id, pending.number, unsigned(number)});
      messages[member] = &receiving->message;
      if (receiving->isThere)
        continue;
      std::string error;
      move(*receiving, error);
      if (!error.empty())
        return fail(pending, Cause::System, peer, error);
      letter.from = member;
      areThere &= receiving->isThere;
      if (!receiving->isThere)
        continue;
      if (auto mistake = findMismatch(pending.operation, pending.digest, letter, receiving->message))
        return fail(pending, Cause::Mismatch, peer, "rank " + std::to_string(peer) + " " + *mistake);
    }
    if (!areThere)
      return {};
    delay();
    unpack(pending.operation, letter, messages);
    for (Line &line : round.lines)
      if (line.receiving)
        keepSpare(std::move(std::exchange(line.receiving, nullptr)->message));
    hasMoved = true;
  }
  return {};
}

/// A member that an operation still needs something of, in its first round if in any: nothing of the second can come before. -1 if none.
int ProcessCommunicator::findMissing(const UnderWay &operation) {
  int missing = -1;
  for (const Round &round : operation.rounds) {
    for (uint32_t member = 0; member < round.lines.size() && round.done < operation.messages; ++member)
      if (const Line &line = round.lines[member];
          member != operation.pending->group->index && !(line.receiving && line.receiving->isThere))
        missing = int(member);
    if (missing >= 0)
      return missing;
  }
  for (const Round &round : operation.rounds)
    for (uint32_t member = 0; member < round.lines.size(); ++member)
      if (const Line &line = round.lines[member];
          member != operation.pending->group->index && (!line.sending.empty() || line.begun < operation.messages))
        missing = int(member);
  return missing;
}

/// What one round has combined the next one sends, so as long as something comes there is more to do.
Status ProcessCommunicator::advanceOne(UnderWay &operation) {
  for (bool hasMoved = true; hasMoved;) {
    hasMoved = false;
    for (size_t round = 0; round < operation.rounds.size(); ++round) {
      if (Status status = sendSome(operation, round); !status.isOk())
        return status;
      if (Status status = receiveSome(operation, round, hasMoved); !status.isOk())
        return status;
    }
  }
  operation.isDone = findMissing(operation) < 0;
  return {};
}

/// All of them, also while one is waited for: another rank may wait for its part of another operation, of this group or of one that it shares
/// with others, and whoever is in its way would be waited for without end.
Status ProcessCommunicator::advanceAll() {
  moveConnections();
  for (UnderWay &operation : underWay)
    if (!operation.isDone)
      if (Status status = advanceOne(operation); !status.isOk())
        return status;
  return {};
}

/// A look costs a few system calls, which kernels of microseconds would feel. What another rank has raised ends this one here already.
Status ProcessCommunicator::advance() {
  int64_t now = getNow();
  if (underWay.empty() || now - advancedAt < kPause)
    return {};
  if (watch.getFailure().isRaised())
    return watch.getFailure().get();
  Status status = advanceAll();
  advancedAt = getNow();
  return status;
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

/// The deadline holds for each round.
Status ProcessCommunicator::complete(const Pending &pending) {
  auto own = std::find_if(underWay.begin(), underWay.end(),
                          [&](const UnderWay &operation) { return operation.pending == &pending; });
  int64_t began = getNow(), looked = began;
  bool hasCombined = false;
  for (uint64_t turn = 1; !own->isDone; ++turn) {
    if (Status status = advanceAll(); !status.isOk())
      return status;
    if (own->isDone)
      break;
    if (watch.getFailure().isRaised())
      return watch.getFailure().get();
    if (turn % 64)
      continue;
    int64_t now = getNow();
    if (bool combined = own->rounds.front().done == own->messages; combined != hasCombined) {
      hasCombined = combined;
      began = now;
    }
    rest(now - began);
    if (now - looked < 10000000)
      continue;
    looked = now;
    if (Status status = checkMissing(pending, pending.group->members[findMissing(*own)], began); !status.isOk())
      return status;
  }
  underWay.erase(own);
  return {};
}

/// Who has waited for long lets others have the core.
void ProcessCommunicator::rest(int64_t nanoseconds) {
  sched_yield();
  if (nanoseconds > 5000000)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

/// Fails if `peer`, whom an operation waits for, has left or is late. Who is silent or gone the watch finds out.
Status ProcessCommunicator::checkMissing(const Pending &pending, int peer, int64_t began) {
  std::string who = "rank " + std::to_string(peer);
  if (watch.getSecondsSinceLeft(peer) > kGrace) {
    std::string why = watch.getWhyLeft(peer);
    return fail(pending, Cause::Left, peer, who + " has left" + (why.empty() ? "" : ": " + why));
  }
  if (double(getNow() - began) * 1e-9 < options.deadline)
    return {};
  return fail(pending, Cause::Timeout, peer, who + " did not come within " + formatSeconds(options.deadline));
}
