//===- Communicator.cpp - one rank among others ---------------------------===//
//
// What all communicators have in common: groups, numbers, the order of waiting, checks, and the log.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Communicator.h"

#include <algorithm>
#include <numeric>

using namespace cleave::runtime;

Communicator::Communicator(int rank, int size, Options options) : rank(rank), size(size), options(std::move(options)) {}

Communicator::~Communicator() = default;

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

static std::string formatMembers(const std::vector<int> &members) {
  std::string text = "{";
  for (int member : members)
    text += (text.size() > 1 ? ", " : "") + std::to_string(member);
  return text + "}";
}

void Communicator::enterWorld() {
  std::vector<int> all(size);
  std::iota(all.begin(), all.end(), 0);
  addGroup(std::move(all));
}

void Communicator::addGroup(std::vector<int> members) {
  groups.emplace_back();
  Group &group = groups.back();
  group.id = GroupId(groups.size() - 1);
  group.members = std::move(members);
  group.index = uint32_t(std::find(group.members.begin(), group.members.end(), rank) - group.members.begin());
  if (group.members.empty())
    return;
  getLog().nameGroup(group.id, formatMembers(group.members));
  join(group);
}

Status Communicator::split(const std::vector<int> &members, GroupId &group) {
  std::vector<bool> seen(size);
  for (int member : members) {
    if (member < 0 || member >= size || seen[member])
      return fail(Cause::Invalid, "a group " + formatMembers(members) + " of " + std::to_string(size) + " ranks");
    seen[member] = true;
  }
  if (!members.empty() && !seen[rank])
    return fail(Cause::Invalid, "a group " + formatMembers(members) + " without this rank");
  addGroup(members);
  group = groups.back().id;
  return getFirstFailure();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

std::string Communicator::name(const Pending &pending) {
  return describe(pending.operation) + ", number " + std::to_string(pending.number) + " in group " +
         std::to_string(pending.group->id) + " " + formatMembers(pending.group->members) + getLog().getPlace();
}

Status Communicator::fail(const Pending &pending, Cause cause, int peer, std::string detail) {
  Failure failure;
  failure.cause = cause;
  failure.rank = rank;
  failure.peer = peer;
  failure.operation = name(pending);
  failure.detail = std::move(detail);
  return raise(failure);
}

Status Communicator::fail(Cause cause, std::string detail) {
  Failure failure;
  failure.cause = cause;
  failure.rank = rank;
  failure.detail = std::move(detail);
  return raise(failure);
}

/// What is kept of the operation stays where it is until it is waited for: kinds hold references to it.
Status Communicator::start(const Operation &operation, Ticket &ticket) {
  if (Status first = getFirstFailure(); !first.isOk())
    return first;
  if (operation.group >= groups.size() || groups[operation.group].members.empty())
    return fail(Cause::Invalid, "no group " + std::to_string(operation.group) + " for " + describe(operation));
  Group &group = groups[operation.group];
  Pending next;
  next.operation = operation;
  next.group = &group;
  next.number = group.started + 1;
  if (std::optional<std::string> mistake = findMistake(operation, group.members.size(), group.index))
    return fail(next, Cause::Invalid, -1, *mistake);
  if (group.started - group.finished >= kMaxPending)
    return fail(next, Cause::Invalid, -1, std::to_string(kMaxPending) + " operations of the group are under way");
  next.digest = digest(operation);
  next.logEntry = getLog().begin(operation, next.number);
  delay();
  Pending &kept = group.pending[next.number % kMaxPending] = std::move(next);
  group.started = kept.number;
  ticket = {group.id, kept.number};
  return post(kept);
}

Status Communicator::wait(Ticket ticket) {
  if (Status first = getFirstFailure(); !first.isOk())
    return first;
  if (ticket.group >= groups.size() || ticket.number != groups[ticket.group].finished + 1 ||
      ticket.number > groups[ticket.group].started)
    return fail(Cause::Invalid, "waited for operation " + std::to_string(ticket.number) + " of group " +
                                    std::to_string(ticket.group) + " out of order");
  Group &group = groups[ticket.group];
  Pending &next = group.pending[ticket.number % kMaxPending];
  getLog().mark(next.logEntry, FlightLog::State::Waiting);
  Status status = complete(next);
  getLog().mark(next.logEntry, status.isOk() ? FlightLog::State::Done : FlightLog::State::Failed);
  group.finished = ticket.number;
  return status;
}

Status Communicator::run(const Operation &operation) {
  Ticket ticket;
  Status status = start(operation, ticket);
  return status.isOk() ? wait(ticket) : status;
}
