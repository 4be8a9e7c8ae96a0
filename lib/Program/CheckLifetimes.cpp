//===- CheckLifetimes.cpp - who reads and writes which bytes, when --------===//
//
// A rank's list is walked once, with the bytes of each buffer as segments: who wrote them last, who has read them since.
//
//   bytes     0        64           192        256
//   written   | cmd 3  | cmd 7       | nobody   |
//   read by   | cmd 5  |             |          |
//
// A stream knows its own commands, and by events those of other streams (a vector clock: per stream, how far). What a
// command touches must have been written (P28) by a command that its stream knows; what it overwrites must also have been
// read by known ones (P29). At the end outputs are there (P30). Ranks whose views lie alike are walked once.
//
// At both ends of a loop all streams stand still, so that they know of each other all there is; each iteration finds what the first one
// finds, or what the one before it left there. A body that may not run at all leaves nothing: behind it is there what was there
// before.
//
// A view with strides stands for all bytes from its first to its last element: reading one asks for more, writing one
// gives more than it does. So P28 is exact for dense views, and what two streams may do at once is judged strictly.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

using namespace cleave::program;

namespace {

/// Per stream the number of commands of it, counted from 1, that are known to be done.
using Clock = std::array<uint32_t, kMostStreams>;

/// Bytes up to `end` with one history.
struct Segment {
  uint64_t end;
  int32_t writer; ///< a command, or -1: there before the first one
  uint32_t writerStream, writerTime;
  Clock readers; ///< of each stream the last one
};

/// The bytes of a buffer that have been written, by their start.
using Segments = std::map<uint64_t, Segment>;

struct Range {
  uint64_t begin, end;
};

} // namespace

/// Of one list on one rank, which stands for those alike.
class cleave::program::LifetimeCheck {
public:
  LifetimeCheck(Checker &checker, size_t variant, size_t role, uint32_t rank)
      : checker(checker), program(checker.program), variant(variant), role(role), rank(rank),
        buffers(program.roles[role].buffers.size()) {}

  Status check();

private:
  Checker &checker;
  const Program &program;
  size_t variant, role;
  uint32_t rank;
  std::vector<Segments> buffers;
  std::array<Clock, kMostStreams> clocks{};
  std::vector<Clock> events;
  /// Per loop around a command whose body may not run, what there was before it; nothing for others.
  std::vector<std::optional<std::vector<Segments>>> before;

  const std::vector<Command> &getCommands() const { return program.variants[variant].lists[role].commands; }
  Range getRange(const View &view) const {
    uint64_t begin = program.evaluate(view.offset, rank);
    return {begin, begin + getSpanBytes(program.types[view.type])};
  }
  void fill(uint32_t buffer, Range range);
  void fillBefore();
  void split(Segments &segments, uint64_t at);
  Status read(const View &view, size_t index);
  Status write(const View &view, size_t index);
  Status checkKnown(const Segment &segment, uint32_t buffer, size_t index, bool isWrite) const;
  Status checkOutputs();
  Status enterLoop(const Loop &loop);
  void leaveLoop();
  void standStill();
};

/// What is there before the first command.
void LifetimeCheck::fill(uint32_t buffer, Range range) {
  if (range.begin < range.end)
    buffers[buffer][range.begin] = {range.end, -1, 0, 0, {}};
}

/// Callers fill inputs, sessions keep states (zeros at first), and loads fill buffers of weights, each its own bytes.
void LifetimeCheck::fillBefore() {
  const Role &own = program.roles[role];
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (own.buffers[i].kind == BufferKind::Input || own.buffers[i].kind == BufferKind::State)
      fill(i, {0, own.buffers[i].bytes});
  for (const Load &load : own.loads)
    fill(load.target.buffer, getRange(load.target));
}

/// Makes a segment begin at `at`, if one lies around it.
void LifetimeCheck::split(Segments &segments, uint64_t at) {
  auto next = segments.upper_bound(at);
  if (next == segments.begin())
    return;
  auto around = std::prev(next);
  if (around->first == at || around->second.end <= at)
    return;
  segments.emplace_hint(next, at, around->second);
  around->second.end = at;
}

/// Whether the stream of command `index` knows who has written the segment, and, to write, who has read it.
Status LifetimeCheck::checkKnown(const Segment &segment, uint32_t buffer, size_t index, bool isWrite) const {
  uint32_t stream = getCommands()[index].stream;
  const Clock &clock = clocks[stream];
  const char *what = isWrite ? "writes" : "reads";
  if (segment.writer >= 0 && segment.writerStream != stream && clock[segment.writerStream] < segment.writerTime)
    return makeError(what, " bytes of buffer ", buffer, " that command ", segment.writer, " on stream ",
                     segment.writerStream, " writes, and no event orders them (P29)");
  for (uint32_t other = 0; isWrite && other < kMostStreams; ++other)
    if (other != stream && clock[other] < segment.readers[other])
      return makeError(what, " bytes of buffer ", buffer, " that stream ", other,
                       " reads, and no event orders them (P29)");
  return kGood;
}

/// Every byte of it lies in a segment, without a gap; each remembers the reader.
Status LifetimeCheck::read(const View &view, size_t index) {
  auto [begin, end] = getRange(view);
  Segments &segments = buffers[view.buffer];
  split(segments, begin);
  split(segments, end);
  uint32_t stream = getCommands()[index].stream;
  uint64_t at = begin;
  for (auto it = segments.lower_bound(begin); at < end; ++it) {
    if (it == segments.end() || it->first != at)
      return makeError("reads byte ", at, " of buffer ", view.buffer, ", which nothing has written (P28)");
    Status error = checker.spend(1);
    if (!error)
      error = checkKnown(it->second, view.buffer, index, /*isWrite=*/false);
    if (error)
      return error;
    it->second.readers[stream] = clocks[stream][stream];
    at = it->second.end;
  }
  return kGood;
}

/// One segment takes the place of what lay there, so that the number of segments grows by three a command at most.
Status LifetimeCheck::write(const View &view, size_t index) {
  auto [begin, end] = getRange(view);
  if (begin == end)
    return kGood;
  Segments &segments = buffers[view.buffer];
  split(segments, begin);
  split(segments, end);
  auto it = segments.lower_bound(begin);
  for (; it != segments.end() && it->first < end; it = segments.erase(it)) {
    Status error = checker.spend(1);
    if (!error)
      error = checkKnown(it->second, view.buffer, index, /*isWrite=*/true);
    if (error)
      return error;
  }
  uint32_t stream = getCommands()[index].stream;
  segments.emplace_hint(it, begin, Segment{end, static_cast<int32_t>(index), stream, clocks[stream][stream], {}});
  return kGood;
}

/// P30, once everything is done.
Status LifetimeCheck::checkOutputs() {
  for (const Tensor &output : program.variants[variant].outputs)
    for (const Place &place : output.places) {
      if (place.role != role)
        continue;
      auto [at, end] = getRange(place.view);
      const Segments &segments = buffers[place.view.buffer];
      auto it = segments.upper_bound(at);
      for (it = it == segments.begin() ? it : std::prev(it); at < end; ++it) {
        if (it == segments.end() || it->first > at || it->second.end <= at)
          return makeError("output ", quote(output.name), ": byte ", at, " of buffer ", place.view.buffer, " on rank ",
                           rank, " is never written (P30)");
        at = it->second.end;
      }
    }
  return kGood;
}

void LifetimeCheck::standStill() {
  Clock all{};
  for (const Clock &clock : clocks)
    for (uint32_t stream = 0; stream < kMostStreams; ++stream)
      all[stream] = std::max(all[stream], clock[stream]);
  clocks.fill(all);
}

Status LifetimeCheck::enterLoop(const Loop &loop) {
  before.emplace_back();
  if (!loop.condition && loop.count > 0)
    return kGood;
  size_t segments = 0;
  for (const Segments &buffer : buffers)
    segments += buffer.size();
  before.back() = buffers;
  return checker.spend(segments);
}

/// Who has touched what there was before is known to all by now.
void LifetimeCheck::leaveLoop() {
  if (before.back())
    buffers = std::move(*before.back());
  before.pop_back();
}

/// A command reads before it writes, so that one in place finds what others have left.
Status LifetimeCheck::check() {
  fillBefore();
  events.resize(program.variants[variant].lists[role].events);
  for (size_t i = 0; i < getCommands().size(); ++i) {
    const Command &command = getCommands()[i];
    Clock &clock = clocks[command.stream];
    ++clock[command.stream];
    if (const auto *record = std::get_if<Record>(&command.action))
      events[record->event] = clock;
    if (const auto *wait = std::get_if<Wait>(&command.action))
      for (uint32_t stream = 0; stream < kMostStreams; ++stream)
        clock[stream] = std::max(clock[stream], events[wait->event][stream]);
    if (std::holds_alternative<Loop>(command.action) || std::holds_alternative<EndLoop>(command.action))
      standStill();
    std::vector<Operand> operands = getOperands(program, command.action);
    Status error;
    for (const Operand &operand : operands)
      if (!error && operand.access != Access::Write)
        error = read(operand.view, i);
    for (const Operand &operand : operands)
      if (!error && operand.access != Access::Read)
        error = write(operand.view, i);
    if (const auto *loop = std::get_if<Loop>(&command.action); loop && !error)
      error = enterLoop(*loop);
    if (std::holds_alternative<EndLoop>(command.action) && !error)
      leaveLoop();
    if (error)
      return addPlace(checker.locate({variant, role, i}, rank), error);
  }
  return checkOutputs();
}

/// The columns that views of a list depend on.
static std::set<int32_t> findColumns(const Program &program, const Variant &variant, size_t role) {
  std::set<int32_t> columns;
  for (const Command &command : variant.lists[role].commands)
    for (const Operand &operand : getOperands(program, command.action))
      columns.insert(operand.view.offset.column);
  for (const Tensor &output : variant.outputs)
    for (const Place &place : output.places)
      if (place.role == role)
        columns.insert(place.view.offset.column);
  columns.erase(-1);
  return columns;
}

/// Data-parallel ranks differ in what they compute, not in where: of thousands of ranks a few classes are walked.
Status Checker::checkLifetimes() {
  for (size_t variant = 0; variant < program.variants.size(); ++variant)
    for (size_t role = 0; role < program.roles.size(); ++role) {
      std::set<int32_t> columns = findColumns(program, program.variants[variant], role);
      std::set<std::vector<int64_t>> seen;
      if (Status error = spend(columns.size() * program.roles[role].ranks.size()))
        return error;
      for (uint32_t rank : program.roles[role].ranks) {
        std::vector<int64_t> places;
        for (int32_t column : columns)
          places.push_back(program.evaluate({0, column}, rank));
        if (seen.insert(std::move(places)).second)
          if (Status error = LifetimeCheck(*this, variant, role, rank).check())
            return error;
      }
    }
  return kGood;
}
