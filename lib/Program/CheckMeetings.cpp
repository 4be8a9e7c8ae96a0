//===- CheckMeetings.cpp - do all ranks come to an end? -------------------===//
//
// A *meeting* is what several ranks do together: a collective of one group, or an exchange among ranks that its pieces
// connect. The lists of all ranks are run, without doing anything, by the most patient of executors: it goes through a
// rank's list in order; a command of stream 0 is done before the next one is looked at, those of other streams queue up
// behind each other; a meeting is done when all of its ranks have come. What ends here ends on every executor that
// waits for less, such as one whose streams all run by themselves.
//
// Meetings of one group are told apart by their order alone. So their commands stand on one stream (P31), and the n-th of
// each member must be alike (P31); whoever waits in the end waits for ever (P32). Linear in ranks times commands.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"

#include <algorithm>
#include <map>

using namespace cleave::program;

namespace {

/// The stream of one rank.
struct Stand {
  uint32_t rank, stream;
};

struct Meeting {
  size_t size = 0;           ///< ranks that take part
  std::vector<Stand> stands; ///< that have come
  size_t command = 0;        ///< of the first of them
};

/// Commands of a list, by stream, and where an event is recorded.
struct Streams {
  std::vector<std::vector<uint32_t>> commands;
  std::vector<uint32_t> places;  ///< of each command in its stream
  std::vector<uint32_t> records; ///< by event
  std::vector<bool> areInLoop;   ///< by command
};

} // namespace

/// Of one variant.
class cleave::program::MeetingCheck {
public:
  MeetingCheck(Checker &checker, size_t variant)
      : checker(checker), program(checker.program), variant(variant), roleOf(getRoles(program)), issued(program.ranks),
        done(size_t(program.ranks) * kMostStreams), isWaiting(done.size()), streams(program.roles.size()) {}

  Status check();

private:
  Checker &checker;
  const Program &program;
  size_t variant;
  std::vector<uint32_t> roleOf;
  /// Per rank how far the list has been looked through.
  std::vector<uint32_t> issued;
  /// Per rank and stream how many commands are done.
  std::vector<uint32_t> done;
  /// Per rank and stream whether it has come to a meeting.
  std::vector<bool> isWaiting;
  /// Commands issued, and done, by anybody.
  uint64_t progress = 0;
  std::vector<Streams> streams;
  /// Groups come first, then pieces; per set and group one meeting at a time.
  std::vector<std::vector<Meeting>> meetings;
  /// Per set of groups, its members and which group each is in, by rank.
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> groupOf;
  /// Ranks that may be able to go on.
  std::vector<uint32_t> ready;

  const List &getList(uint32_t role) const { return program.variants[variant].lists[role]; }
  static size_t at(uint32_t rank, uint32_t stream) { return size_t(rank) * kMostStreams + stream; }
  void finish(uint32_t rank, uint32_t stream) {
    ++done[at(rank, stream)];
    ++progress;
  }
  Spot getSpot(uint32_t rank, size_t command) const { return {variant, roleOf[rank], command}; }
  /// The set of meetings that a command belongs to; nothing for those that ranks do alone.
  std::optional<size_t> getSet(const Action &action) const;
  Status sortCommands();
  void prepareMeetings();
  Meeting *findMeeting(size_t set, uint32_t rank);
  Status meet(size_t set, uint32_t rank, uint32_t stream, size_t index);
  bool isRecorded(uint32_t rank, uint32_t event);
  Status advance(uint32_t rank);
  Status advanceStream(uint32_t rank, uint32_t stream);
  Status checkEnd();
  std::string tellWhy(uint32_t rank, size_t index);
};

/// Groups are numbered as in the program, pieces behind them.
std::optional<size_t> MeetingCheck::getSet(const Action &action) const {
  if (const auto *collective = std::get_if<Collective>(&action))
    return collective->groups;
  if (const auto *exchange = std::get_if<Exchange>(&action))
    return program.groups.size() + exchange->pieces;
  return std::nullopt;
}

/// Sorts each list by stream, and sees that what meets the same ranks stands on one of them: streams run beside each other,
/// so that of meetings on two nobody could say which is the first (P31).
Status MeetingCheck::sortCommands() {
  for (uint32_t role = 0; role < program.roles.size(); ++role) {
    const List &list = getList(role);
    Streams &sorted = streams[role];
    sorted.commands.resize(list.streams);
    sorted.records.resize(list.events);
    std::map<size_t, uint32_t> streamOf;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < list.commands.size(); ++i) {
      const Command &command = list.commands[i];
      sorted.places.push_back(static_cast<uint32_t>(sorted.commands[command.stream].size()));
      sorted.commands[command.stream].push_back(i);
      depth += std::holds_alternative<Loop>(command.action) - std::holds_alternative<EndLoop>(command.action);
      sorted.areInLoop.push_back(depth > 0);
      if (const auto *record = std::get_if<Record>(&command.action))
        sorted.records[record->event] = i;
      if (std::optional<size_t> set = getSet(command.action))
        if (uint32_t other = streamOf.emplace(*set, command.stream).first->second; other != command.stream)
          return addPlace(checker.locate({variant, role, i}),
                          makeError("meets ranks that it also meets on stream ", other, " (P31)"));
    }
  }
  return kGood;
}

/// Who takes part in what. Only ranks that are named are kept: a file of many small groups stays small.
void MeetingCheck::prepareMeetings() {
  for (const Groups &groups : program.groups) {
    auto &members = groupOf.emplace_back();
    for (size_t i = 0; i < groups.ranks.size(); ++i)
      members.push_back({groups.ranks[i], static_cast<uint32_t>(i / groups.size)});
    std::sort(members.begin(), members.end());
    Meeting meeting;
    meeting.size = groups.size;
    meetings.emplace_back(groups.ranks.size() / groups.size, meeting);
  }
  for (const Pieces &pieces : program.pieces) {
    auto &members = groupOf.emplace_back();
    std::vector<Meeting> &made = meetings.emplace_back();
    for (const std::vector<uint32_t> &ranks : getMeetings(pieces)) {
      for (uint32_t rank : ranks)
        members.push_back({rank, static_cast<uint32_t>(made.size())});
      made.emplace_back().size = ranks.size();
    }
    std::sort(members.begin(), members.end());
  }
}

/// The meeting of a set that a rank goes to next; null if it takes no part. (Ranks of collectives all do, P21.)
Meeting *MeetingCheck::findMeeting(size_t set, uint32_t rank) {
  auto it = std::lower_bound(groupOf[set].begin(), groupOf[set].end(), std::make_pair(rank, uint32_t(0)));
  return it == groupOf[set].end() || it->first != rank ? nullptr : &meetings[set][it->second];
}

/// The element type that an exchange moves.
static Element getElement(const Program &program, const Exchange &exchange) {
  const std::optional<View> &view = exchange.operand ? exchange.operand : exchange.result;
  return view ? program.types[view->type].element : Element::F32;
}

/// Whether two members do the same.
static bool areAlike(const Program &program, const Action &a, const Action &b) {
  if (a.index() != b.index())
    return false;
  if (const auto *exchange = std::get_if<Exchange>(&a))
    return getElement(program, *exchange) == getElement(program, std::get<Exchange>(b));
  const auto &x = *std::get_if<Collective>(&a), &y = *std::get_if<Collective>(&b);
  auto fit = [&](const std::vector<View> &a, const std::vector<View> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const View &a, const View &b) {
      return isAlike(program.types[a.type], program.types[b.type]);
    });
  };
  return x.kind == y.kind && x.reduction == y.reduction && x.gather == y.gather && x.slice == y.slice &&
         fit(x.operands, y.operands) && fit(x.results, y.results);
}

/// A rank comes to a meeting, or is there already. The last one ends it for all.
Status MeetingCheck::meet(size_t set, uint32_t rank, uint32_t stream, size_t index) {
  Meeting *found = findMeeting(set, rank);
  if (!found)
    finish(rank, stream);
  if (!found || isWaiting[at(rank, stream)])
    return kGood;
  Meeting &meeting = *found;
  const Action &action = getList(roleOf[rank]).commands[index].action;
  if (meeting.stands.empty()) {
    meeting.command = index;
  } else {
    uint32_t first = meeting.stands.front().rank;
    const Action &other = getList(roleOf[first]).commands[meeting.command].action;
    // Lists of several roles may run bodies differently often, and would wait for each other for ever.
    for (auto [member, command] : {std::make_pair(rank, index), std::make_pair(first, meeting.command)})
      if (roleOf[first] != roleOf[rank] && streams[roleOf[member]].areInLoop[command])
        return addPlace(checker.locate(getSpot(member, command), member),
                        makeError("meets ranks of another role in a loop (P33)"));
    if (!areAlike(program, action, other))
      return addPlace(checker.locate(getSpot(rank, index), rank),
                      makeError("meets rank ", first, " at its command ", meeting.command, " (", getWord(other),
                                "), which is not alike (P31)"));
  }
  meeting.stands.push_back({rank, stream});
  isWaiting[at(rank, stream)] = true;
  if (meeting.stands.size() < meeting.size)
    return kGood;
  for (const Stand &stand : meeting.stands) {
    finish(stand.rank, stand.stream);
    isWaiting[at(stand.rank, stand.stream)] = false;
    if (stand.rank != rank)
      ready.push_back(stand.rank);
  }
  meeting.stands.clear();
  return kGood;
}

/// An event has no state of its own: it is recorded once its stream has got past the one command that does it (P23).
bool MeetingCheck::isRecorded(uint32_t rank, uint32_t event) {
  const Streams &sorted = streams[roleOf[rank]];
  uint32_t record = sorted.records[event];
  uint32_t stream = getList(roleOf[rank]).commands[record].stream;
  return issued[rank] > record && done[at(rank, stream)] > sorted.places[record];
}

/// Does what a stream can do of the commands that have been issued to it.
Status MeetingCheck::advanceStream(uint32_t rank, uint32_t stream) {
  const std::vector<uint32_t> &commands = streams[roleOf[rank]].commands[stream];
  const uint32_t &place = done[at(rank, stream)];
  for (uint64_t before = progress - 1; before != progress;) {
    before = progress;
    if (place == commands.size() || commands[place] >= issued[rank])
      return kGood;
    const Action &action = getList(roleOf[rank]).commands[commands[place]].action;
    const auto *wait = std::get_if<Wait>(&action);
    if (std::optional<size_t> set = getSet(action)) {
      if (Status error = meet(*set, rank, stream, commands[place]))
        return error;
    } else if (!wait || isRecorded(rank, wait->event)) {
      finish(rank, stream);
    }
  }
  return kGood;
}

/// Goes on with a rank until it has to wait.
Status MeetingCheck::advance(uint32_t rank) {
  const List &list = getList(roleOf[rank]);
  const std::vector<uint32_t> &first = streams[roleOf[rank]].commands[0];
  for (uint64_t before = progress - 1; before != progress;) {
    before = progress;
    for (uint32_t stream = 0; stream < list.streams; ++stream)
      if (Status error = advanceStream(rank, stream))
        return error;
    uint32_t next = done[at(rank, 0)];
    bool isIdle = next == first.size() || first[next] >= issued[rank];
    if (isIdle && issued[rank] < list.commands.size()) {
      ++issued[rank];
      ++progress;
    }
  }
  return kGood;
}

/// What a rank waits for at a command.
std::string MeetingCheck::tellWhy(uint32_t rank, size_t index) {
  const Action &action = getList(roleOf[rank]).commands[index].action;
  size_t set = *getSet(action);
  const Meeting &meeting = *findMeeting(set, rank);
  for (const auto &[member, group] : groupOf[set]) {
    bool isHere = std::any_of(meeting.stands.begin(), meeting.stands.end(),
                              [rank = member](const Stand &stand) { return stand.rank == rank; });
    if (isHere || &meetings[set][group] != &meeting)
      continue;
    size_t next = issued[member], end = getList(roleOf[member]).commands.size();
    return concat("waits for ever for rank ", member, ", which is at its ",
                  next == end ? std::string("end") : concat("command ", next - 1));
  }
  return "waits for ever";
}

/// P32: nobody waits.
Status MeetingCheck::checkEnd() {
  for (uint32_t rank = 0; rank < program.ranks; ++rank) {
    const Streams &sorted = streams[roleOf[rank]];
    for (uint32_t stream = 0; stream < sorted.commands.size(); ++stream)
      if (uint32_t place = done[at(rank, stream)]; place < sorted.commands[stream].size()) {
        uint32_t index = sorted.commands[stream][place];
        const Action &action = getList(roleOf[rank]).commands[index].action;
        if (std::holds_alternative<Wait>(action))
          continue; // what it waits for stands behind a meeting
        return addPlace(checker.locate(getSpot(rank, index), rank), makeError(tellWhy(rank, index), " (P32)"));
      }
  }
  return kGood;
}

/// Everybody goes as far as they can; whoever a meeting sets free goes on later. Each command is done once, and a rank is
/// looked at again only after it has come on: linear.
Status MeetingCheck::check() {
  if (Status error = sortCommands())
    return error;
  prepareMeetings();
  for (uint32_t rank = program.ranks; rank-- > 0;)
    ready.push_back(rank);
  while (!ready.empty()) {
    uint32_t rank = ready.back();
    ready.pop_back();
    if (Status error = advance(rank))
      return error;
  }
  return checkEnd();
}

Status Checker::checkMeetings() {
  for (size_t variant = 0; variant < program.variants.size(); ++variant)
    if (Status error = MeetingCheck(*this, variant).check())
      return error;
  return kGood;
}
