//===- Bind.cpp - a list of commands, made ready to run -------------------===//
//
// One walk over the list, which knows of each stream what has been started on it and not been waited for.
//
//===----------------------------------------------------------------------===//
#include "Bind.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"

#include <algorithm>
#include <map>

using namespace cleave::runtime;
namespace program = cleave::program;
using program::makeError;

namespace {

class Binder {
public:
  Binder(const BindContext &context, uint32_t variant, BoundList &list)
      : context(context), source(context.program.variants[variant].lists[context.role]), variant(variant), list(list),
        started(source.streams), events(source.events) {}

  program::Status bind();

private:
  /// Bytes that a command reads or writes.
  struct Range {
    const char *begin, *end;
    bool isWritten;
  };
  /// A meeting that is under way.
  struct Started {
    uint32_t meeting, command;
    std::vector<Range> ranges;
  };
  /// A record: behind how many of the meetings of which stream.
  struct Recorded {
    uint32_t stream = 0;
    uint64_t meetings = 0;
  };
  struct Queue {
    std::vector<Started> meetings;
    uint64_t finished = 0;
  };

  program::Status bindCommand(uint32_t command);
  program::Status bindAction(const program::Launch &launch);
  program::Status bindAction(const program::Matmul &matmul) { return bindContraction(matmul, matmul.fallback); }
  program::Status bindAction(const program::Convolution &conv) { return bindContraction(conv, conv.fallback); }
  program::Status bindAction(const program::Attention &attention) {
    return bindContraction(attention, attention.fallback);
  }
  program::Status bindAction(const program::Copy &copy);
  program::Status bindAction(const program::Collective &collective);
  program::Status bindAction(const program::Exchange &exchange);
  program::Status bindAction(const program::Record &record);
  program::Status bindAction(const program::Wait &wait);
  program::Status bindAction(const program::Loop &loop);
  program::Status bindAction(const program::EndLoop &loop);
  void finishAll();
  program::Status bindContraction(const program::Action &action, int32_t kernel);
  program::Status addLaunch(uint32_t kernel, std::vector<void *> arguments, std::vector<void *> scalars);
  program::Result<char *> addReport(uint32_t kernel);
  Step &addStep(Step::Kind kind, size_t index);
  void startMeeting(Meeting meeting);
  void finish(uint32_t stream, uint64_t meetings);
  std::vector<Range> getRanges(const program::Action &action) const;
  void addLooks(const program::Action &action);

  const BindContext &context;
  const program::List &source;
  const uint32_t variant;
  BoundList &list;
  uint32_t command = 0, stream = 0;
  std::vector<Queue> started;
  std::vector<Recorded> events;
  /// Operations of each group that are under way.
  std::map<GroupId, uint64_t> pending;
  /// Loops that have not ended.
  std::vector<size_t> openLoops;
  /// Exchanges so far, by pieces.
  std::map<uint32_t, size_t> exchanges;
};

} // namespace

/// A step at the command that is being bound.
Step &Binder::addStep(Step::Kind kind, size_t index) {
  Step step;
  step.kind = kind;
  step.stream = stream;
  step.command = command;
  step.index = uint32_t(index);
  list.steps.push_back(step);
  return list.steps.back();
}

//===----------------------------------------------------------------------===//
// What a rank does by itself
//===----------------------------------------------------------------------===//

/// A kernel on another stream stands behind what was started there.
program::Status Binder::addLaunch(uint32_t kernel, std::vector<void *> arguments, std::vector<void *> scalars) {
  program::Result<char *> report = addReport(kernel);
  if (!report)
    return report.getError();
  if (*report)
    arguments.push_back(*report);
  arguments.insert(arguments.end(), scalars.begin(), scalars.end());
  finish(stream, started[stream].meetings.size());
  list.arguments.push_back(std::move(arguments));
  BoundLaunch &launch = addStep(Step::Kind::Launch, list.arguments.size() - 1).launch;
  launch.entry = context.kernels[kernel];
  launch.kernel = &context.program.kernels[kernel];
  launch.arguments = list.arguments.back().data();
  launch.report = *report;
  return program::kGood;
}

/// Each launch has a place of its own, so that what is reported says which one it was. All are got with the first.
program::Result<char *> Binder::addReport(uint32_t kernel) {
  if (!context.program.kernels[kernel].reports)
    return static_cast<char *>(nullptr);
  if (!list.reports) {
    auto reports = [&](const program::Command &command) {
      int64_t of = program::findKernel(command.action);
      return of >= 0 && context.program.kernels[of].reports;
    };
    size_t count = std::count_if(source.commands.begin(), source.commands.end(), reports);
    program::Result<char *> memory =
        context.device.allocate(count * sizeof(Report), alignof(Report), program::Memory::Device, false);
    if (!memory)
      return memory;
    list.reports = *memory;
  }
  list.reporters.push_back(command);
  return list.reports + (list.reporters.size() - 1) * sizeof(Report);
}

program::Status Binder::bindAction(const program::Launch &launch) {
  std::vector<void *> arguments;
  for (const program::View &view : launch.operands)
    arguments.push_back(context.addresses.get(view));
  std::vector<int64_t> scalars;
  for (const program::Number &number : launch.scalars)
    scalars.push_back(context.program.evaluate(number, context.rank));
  list.scalars.push_back(std::move(scalars));
  std::vector<void *> numbers;
  for (int64_t &scalar : list.scalars.back())
    numbers.push_back(&scalar);
  return addLaunch(launch.kernel, std::move(arguments), std::move(numbers));
}

/// A contraction: what a library of the device does, or the kernel that says the same.
program::Status Binder::bindContraction(const program::Action &action, int32_t kernel) {
  std::vector<char *> addresses;
  for (const program::Operand &operand : program::getOperands(context.program, action))
    addresses.push_back(context.addresses.get(operand.view));
  if (std::optional<uint32_t> call = context.device.prepare(context.program, action, addresses)) {
    addStep(Step::Kind::Call, *call);
    return program::kGood;
  }
  if (kernel < 0)
    return makeError("has no fallback kernel, and this device no library for it");
  return addLaunch(uint32_t(kernel), {addresses.begin(), addresses.end()}, {});
}

/// Both sides may have strides.
program::Status Binder::bindAction(const program::Copy &copy) {
  finish(stream, started[stream].meetings.size());
  const program::Type &from = context.program.types[copy.source.type], &to = context.program.types[copy.target.type];
  list.copies.push_back({planCopy(program::getElementBytes(from.element), from.shape, from.strides, to.strides),
                         context.addresses.get(copy.source), context.addresses.get(copy.target)});
  addStep(Step::Kind::Copy, list.copies.size() - 1);
  return program::kGood;
}

/// What the command writes, if it is floats.
void Binder::addLooks(const program::Action &action) {
  for (const program::Operand &operand : program::getOperands(context.program, action)) {
    const program::Type &type = context.program.types[operand.view.type];
    if (operand.access == program::Access::Read || type.element > program::Element::F64)
      continue;
    BoxCopy box = planCopy(program::getElementBytes(type.element), type.shape, type.strides, {});
    list.looks.push_back({type.element, {box, context.addresses.get(operand.view), nullptr}});
    addStep(Step::Kind::Look, list.looks.size() - 1);
  }
}

//===----------------------------------------------------------------------===//
// Meetings
//===----------------------------------------------------------------------===//

/// Waits for the first `meetings` of a stream.
void Binder::finish(uint32_t which, uint64_t meetings) {
  if (context.queue)
    return;
  Queue &queue = started[which];
  for (; queue.finished < meetings; ++queue.finished) {
    const Started &next = queue.meetings[queue.finished];
    Step &step = addStep(Step::Kind::Finish, next.meeting);
    step.stream = which;
    step.command = next.command;
    for (const Operation &operation : list.meetings[next.meeting].operations)
      --pending[operation.group];
    if (context.findsNan)
      addLooks(source.commands[next.command].action);
  }
}

std::vector<Binder::Range> Binder::getRanges(const program::Action &action) const {
  std::vector<Range> ranges;
  for (const program::Operand &operand : program::getOperands(context.program, action)) {
    const char *begin = context.addresses.get(operand.view);
    uint64_t bytes = program::getSpanBytes(context.program.types[operand.view.type]);
    ranges.push_back({begin, begin + bytes, operand.access != program::Access::Read});
  }
  return ranges;
}

/// Commands of a stream are done in order: a meeting waits for those before it that touch the same bytes. Others may be
/// under way beside it, as many of a group as that allows; one more waits for the oldest of the stream.
void Binder::startMeeting(Meeting meeting) {
  if (meeting.operations.empty())
    return;
  if (context.queue) {
    list.meetings.push_back(std::move(meeting));
    addStep(Step::Kind::Start, list.meetings.size() - 1);
    return;
  }
  GroupId group = meeting.operations.front().group;
  Queue &queue = started[stream];
  std::vector<Range> ranges = getRanges(source.commands[command].action);
  auto clashes = [&](const Started &other) {
    for (const Range &a : ranges)
      for (const Range &b : other.ranges)
        if (other.command != command && (a.isWritten || b.isWritten) && a.begin < b.end && b.begin < a.end)
          return true;
    return false;
  };
  for (uint64_t next = queue.meetings.size(); next > queue.finished; --next)
    if (clashes(queue.meetings[next - 1]))
      finish(stream, next);
  while (pending[group] + meeting.operations.size() > kMaxPending && queue.finished < queue.meetings.size())
    finish(stream, queue.finished + 1);
  pending[group] += meeting.operations.size();
  meeting.tickets.resize(meeting.operations.size());
  list.meetings.push_back(std::move(meeting));
  addStep(Step::Kind::Start, list.meetings.size() - 1);
  queue.meetings.push_back({uint32_t(list.meetings.size() - 1), command, std::move(ranges)});
  if (stream == 0)
    finish(0, queue.meetings.size());
}

program::Status Binder::bindAction(const program::Collective &collective) {
  Meeting meeting;
  if (program::Status error = bindCollective(context, collective, meeting))
    return error;
  // More tensors than may be under way at once are several meetings, one behind the other.
  while (!context.queue && meeting.operations.size() > kMaxPending) {
    Meeting rest = meeting;
    rest.operations.assign(meeting.operations.begin() + kMaxPending, meeting.operations.end());
    rest.packs.clear();
    meeting.operations.resize(kMaxPending);
    meeting.unpacks.clear();
    startMeeting(std::move(meeting));
    meeting = std::move(rest);
  }
  startMeeting(std::move(meeting));
  return program::kGood;
}

program::Status Binder::bindAction(const program::Exchange &exchange) {
  Meeting meeting;
  if (program::Status error = bindExchange(context, variant, exchange, exchanges[exchange.pieces]++, meeting))
    return error;
  startMeeting(std::move(meeting));
  return program::kGood;
}

/// On the host nothing is done: what the event stands behind is known.
program::Status Binder::bindAction(const program::Record &record) {
  if (context.queue)
    addStep(Step::Kind::Record, record.event);
  events[record.event] = {stream, started[stream].meetings.size()};
  return program::kGood;
}

/// What a rank did by itself is done; meetings may have to be waited for.
program::Status Binder::bindAction(const program::Wait &wait) {
  if (context.queue)
    addStep(Step::Kind::Wait, wait.event);
  finish(events[wait.event].stream, events[wait.event].meetings);
  return program::kGood;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void Binder::finishAll() {
  for (uint32_t which = 0; which < started.size(); ++which)
    finish(which, started[which].meetings.size());
}

/// What was started before is done, so that an iteration begins as the first one does.
program::Status Binder::bindAction(const program::Loop &loop) {
  finishAll();
  openLoops.push_back(list.loops.size());
  BoundLoop &bound = list.loops.emplace_back();
  bound.count = loop.count;
  bound.first = loop.condition ? context.addresses.get(*loop.condition) : nullptr;
  addStep(Step::Kind::Loop, openLoops.back());
  bound.begin = list.steps.size();
  return program::kGood;
}

program::Status Binder::bindAction(const program::EndLoop &loop) {
  finishAll();
  BoundLoop &bound = list.loops[openLoops.back()];
  bound.again = loop.condition ? context.addresses.get(*loop.condition) : nullptr;
  addStep(Step::Kind::EndLoop, openLoops.back());
  bound.end = list.steps.size();
  openLoops.pop_back();
  return program::kGood;
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

program::Status Binder::bindCommand(uint32_t index) {
  const program::Command &next = source.commands[index];
  command = index;
  stream = next.stream;
  if (program::Status error = std::visit([&](const auto &action) { return bindAction(action); }, next.action))
    return error;
  bool meets = std::holds_alternative<program::Collective>(next.action) ||
               std::holds_alternative<program::Exchange>(next.action);
  if (context.findsNan && (!meets || context.queue))
    addLooks(next.action);
  return program::kGood;
}

program::Status Binder::bind() {
  for (uint32_t index = 0; index < source.commands.size(); ++index)
    if (program::Status error = bindCommand(index))
      return makeError("command ", index, " (", program::getWord(source.commands[index].action), ") ", error->message);
  finishAll();
  return program::kGood;
}

program::Status cleave::runtime::bind(const BindContext &context, uint32_t variant, BoundList &list) {
  return Binder(context, variant, list).bind();
}
