//===- Threads.cpp - ranks that are threads of one process ----------------===//
//
// Waiting: a rank spins for a while, then sleeps until a gate opens, and looks up every few milliseconds: whether another
// rank has failed, and who is missing and why. What is done behind the gates is in ThreadGroup.cpp.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Threads.h"
#include "ThreadGroup.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <map>
#include <sched.h>

using namespace cleave::runtime;

/// How often a sleeper looks up.
static constexpr unsigned kTickMilliseconds = 20;
/// Spinning pays off only while every rank has a core.
static constexpr unsigned kSpins = 4000, kSpinsIfCrowded = 200;

//===----------------------------------------------------------------------===//
// What ranks share
//===----------------------------------------------------------------------===//

namespace {

/// What others may read of a rank at any time.
struct RankState {
  FlightLog log;
  std::atomic<bool> hasLeft{false};
};

/// Lives as long as any of its ranks: one that was late may come back after a failure.
struct World {
  World(int size, const Options &options) : options(options), ranks(size) {}

  std::string getRecord() const;
  void raise(const Failure &failure);
  std::shared_ptr<ThreadGroup> getGroup(GroupId id, const std::vector<int> &ranks);

  const Options options;
  std::vector<RankState> ranks;
  FirstFailure failure;

private:
  std::mutex mutex;
  /// By id and first member.
  std::map<std::pair<GroupId, int>, std::shared_ptr<ThreadGroup>> groups;
};

} // namespace

std::string World::getRecord() const {
  std::string text;
  int64_t now = getNow();
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    text += ranks[rank].log.getText(int(rank), now);
  return text;
}

void World::raise(const Failure &first) {
  failure.raise(first, [&](Failure &failure) {
    if (options.recordFolder.empty())
      return;
    Status written = writeRecord(options.recordFolder, failure.getMessage() + "\n" + getRecord());
    if (!written.isOk())
      failure.detail += "; " + written.getFailure().detail;
  });
}

std::shared_ptr<ThreadGroup> World::getGroup(GroupId id, const std::vector<int> &ranks) {
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<ThreadGroup> &group = groups[{id, ranks.front()}];
  if (!group)
    group = std::make_shared<ThreadGroup>(ranks);
  return group;
}

//===----------------------------------------------------------------------===//
// One rank
//===----------------------------------------------------------------------===//

namespace {

class ThreadCommunicator final : public Communicator {
public:
  ThreadCommunicator(int rank, int size, std::shared_ptr<World> world);
  ~ThreadCommunicator() override { world->ranks[rank].hasLeft.store(true, std::memory_order_release); }

  void beat() override { getLog().beat(); }
  Status advance() override { return advanceOthers(); }

private:
  void join(const Group &group) override;
  Status post(const Pending &pending) override;
  Status complete(const Pending &pending) override;
  Status raise(const Failure &failure) override;
  Status getFirstFailure() const override { return world->failure.get(); }
  FlightLog &getLog() override { return world->ranks[rank].log; }

  /// An operation that was posted, and is not carried out yet.
  struct Posted {
    ThreadGroup *group;
    const Pending *pending;
  };
  Status carryOut(const Pending &pending, ThreadGroup &group);
  Status advanceOthers();
  Status pass(const Pending &pending, ThreadGroup &group, ThreadGroup::Stage &stage);
  Status findMissing(const Pending &pending, ThreadGroup &group, ThreadGroup::Stage &stage, int64_t began);

  std::shared_ptr<World> world;
  /// By group id.
  std::vector<std::shared_ptr<ThreadGroup>> shared;
  /// In the order of their start.
  std::vector<Posted> posted;
  unsigned spins;
};

} // namespace

ThreadCommunicator::ThreadCommunicator(int rank, int size, std::shared_ptr<World> itsWorld)
    : Communicator(rank, size, itsWorld->options), world(std::move(itsWorld)) {
  // The cores that this process may use, which a container or `taskset` makes fewer than there are.
  cpu_set_t set;
  int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  spins = size <= cores ? kSpins : kSpinsIfCrowded;
  enterWorld();
}

void ThreadCommunicator::join(const Group &group) {
  shared.resize(group.id + 1);
  shared[group.id] = world->getGroup(group.id, group.members);
}

Status ThreadCommunicator::raise(const Failure &failure) {
  world->raise(failure);
  return world->failure.get();
}

Status ThreadCommunicator::post(const Pending &pending) {
  ThreadGroup &group = *shared[pending.group->id];
  if (group.ranks != pending.group->members)
    return fail(pending, Cause::Mismatch, group.ranks.front(),
                "rank " + std::to_string(group.ranks.front()) + " has other members in this group");
  group.post(pending.group->index, pending.number, pending.digest, pending.operation);
  delay();
  posted.push_back({&group, &pending});
  group.posted.arrive(pending.group->index, pending.number);
  return {};
}

/// What this rank has to do of an operation that all have posted: once.
Status ThreadCommunicator::carryOut(const Pending &pending, ThreadGroup &group) {
  auto own = std::find_if(posted.begin(), posted.end(), [&](const Posted &other) { return other.pending == &pending; });
  if (own == posted.end())
    return {};
  posted.erase(own);
  if (auto mismatch = group.findMismatch(pending.group->index, pending.number)) {
    int peer = group.ranks[mismatch->first];
    return fail(pending, Cause::Mismatch, peer, "rank " + std::to_string(peer) + " " + mismatch->second);
  }
  delay();
  group.carryOut(pending.group->index, pending.number);
  if (group.isSmall(pending.operation))
    return {};
  delay();
  group.done.arrive(pending.group->index, pending.number);
  return {};
}

/// While this rank waits for something, others may wait for its share of what it has started: two ranks may wait for
/// operations of two groups in different orders. Those of one group are carried out in their order.
Status ThreadCommunicator::advanceOthers() {
  for (size_t i = 0; i < posted.size();) {
    auto [group, pending] = posted[i];
    bool isFirst = std::none_of(posted.begin(), posted.begin() + int64_t(i),
                                [group = group](const Posted &other) { return other.group == group; });
    if (!isFirst || !group->posted.gate.isOpen(pending->number)) {
      ++i;
      continue;
    }
    if (Status status = carryOut(*pending, *group); !status.isOk())
      return status;
  }
  return {};
}

Status ThreadCommunicator::complete(const Pending &pending) {
  ThreadGroup &group = *shared[pending.group->id];
  if (Status status = pass(pending, group, group.posted); !status.isOk())
    return status;
  if (Status status = carryOut(pending, group); !status.isOk())
    return status;
  return group.isRead(pending.group->index, pending.operation) ? pass(pending, group, group.done) : Status();
}

/// Returns when the gate is open for the operation, or why it never will be.
Status ThreadCommunicator::pass(const Pending &pending, ThreadGroup &group, ThreadGroup::Stage &stage) {
  if (stage.gate.spin(pending.number, spins))
    return {};
  int64_t began = getNow();
  for (;;) {
    stage.gate.sleep(pending.number, kTickMilliseconds);
    if (stage.gate.isOpen(pending.number))
      return {};
    if (world->failure.isRaised())
      return world->failure.get();
    beat();
    if (Status status = advanceOthers(); !status.isOk())
      return status;
    if (Status status = findMissing(pending, group, stage, began); !status.isOk())
      return status;
  }
}

/// Fails if a member that has not arrived has left, is silent for too long, or just late for too long.
Status ThreadCommunicator::findMissing(const Pending &pending, ThreadGroup &group, ThreadGroup::Stage &stage,
                                       int64_t began) {
  int64_t now = getNow();
  for (uint32_t index = 0; index < group.ranks.size(); ++index) {
    int peer = group.ranks[index];
    const RankState &state = world->ranks[peer];
    // In this order: who has arrived and then left is not missing.
    bool hasLeft = state.hasLeft.load(std::memory_order_acquire);
    double silent = double(now - state.log.getLastBeat()) * 1e-9;
    if (stage.hasArrived(index, pending.number))
      continue;
    std::string who = "rank " + std::to_string(peer), last = state.log.getLast();
    last = last.empty() ? "; it has not come to any operation" + state.log.getPlace()
                        : "; the last that it came to is " + last;
    if (hasLeft)
      return fail(pending, Cause::Left, peer, who + " has left" + last);
    if (silent > options.silence)
      return fail(pending, Cause::Stopped, peer,
                  who + " has given no sign of life for " + formatSeconds(silent) + last);
    if (double(now - began) * 1e-9 > options.deadline)
      return fail(pending, Cause::Timeout, peer,
                  who + " did not come within " + formatSeconds(options.deadline) + last);
  }
  return {};
}

std::vector<std::unique_ptr<Communicator>> cleave::runtime::makeThreads(int size, const Options &options) {
  assert(size >= 1 && "no ranks");
  Options complete = options;
  if (complete.silence <= 0)
    complete.silence = complete.deadline;
  auto world = std::make_shared<World>(size, complete);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(std::make_unique<ThreadCommunicator>(rank, size, world));
  return ranks;
}
