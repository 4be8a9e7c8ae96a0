//===- Run.cpp - one call of a program ------------------------------------===//
//
// Each rank takes its boxes of the inputs, goes through its steps, and puts its boxes of the outputs where the caller wants
// them: all ranks at once, each on its own thread. Outputs in terms are combined at the end, in the order of their terms.
//
//===----------------------------------------------------------------------===//
#include "ExecutorState.h"
#include "Numbers.h"
#include "Reduce.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

using namespace cleave::runtime;
namespace program = cleave::program;
using program::concat;
using program::quote;

/// How long others may take to come back after a failure.
static constexpr int64_t kGrace = 2000000000;

static ExecutorStatus failArgument(std::string message) {
  return ExecutorError{ErrorKind::Arguments, std::move(message)};
}

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

/// By name; how many there are where it is none of them.
static size_t findTensor(const std::vector<program::Tensor> &tensors, std::string_view name) {
  return size_t(
      std::find_if(tensors.begin(), tensors.end(), [&](const program::Tensor &tensor) { return tensor.name == name; }) -
      tensors.begin());
}

/// Whether a tensor stays between calls.
static bool isState(const program::Variant &variant, size_t tensor, bool isInput) {
  return std::any_of(variant.states.begin(), variant.states.end(), [&](const program::State &state) {
    return (isInput ? int64_t(state.input) : state.output) == int64_t(tensor);
  });
}

static std::string listNames(const std::vector<program::Tensor> &tensors) {
  std::string names;
  for (const program::Tensor &tensor : tensors)
    names += (names.empty() ? "" : ", ") + quote(tensor.name);
  return names.empty() ? "none" : names;
}

/// What variants take for an input: `f32[1, 8] or f32[2, 8]`.
std::string Executor::State::describeShapes(const Argument &input) const {
  std::vector<std::string> shapes;
  for (const program::Variant &variant : program.variants) {
    std::string shape = format(program.types[variant.inputs[findTensor(variant.inputs, input.name)].type]);
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end())
      shapes.push_back(shape);
  }
  std::string text;
  for (const std::string &shape : shapes)
    text += (text.empty() ? "" : " or ") + shape;
  return text;
}

/// By itself: the name, the element type, and whether any variant has the shape.
ExecutorStatus Executor::State::checkInput(const Argument &input, Call &call) const {
  const program::Variant &first = program.variants.front();
  size_t index = findTensor(first.inputs, input.name);
  if (index == first.inputs.size())
    return failArgument(
        concat("the program has no input ", quote(input.name), "; its inputs are ", listNames(first.inputs)));
  if (call.inputs[index])
    return failArgument(concat("input ", quote(input.name), " is given twice"));
  program::Type type{input.type, input.shape, {}};
  bool fits = std::any_of(program.variants.begin(), program.variants.end(), [&](const program::Variant &variant) {
    return program::isAlike(program.types[variant.inputs[index].type], type);
  });
  if (!fits)
    return failArgument(
        concat("input ", quote(input.name), " is ", format(type), ", expected ", describeShapes(input)));
  if (!input.data && program::getBytes(type))
    return failArgument(concat("input ", quote(input.name), " has no data"));
  call.inputs[index] = input.data ? static_cast<const char *>(input.data) : "";
  return std::nullopt;
}

/// Each input by itself, then which are missing, then the variant that has all of the shapes.
ExecutorStatus Executor::State::pickVariant(const std::vector<Argument> &inputs, Call &call) const {
  const program::Variant &first = program.variants.front();
  call.inputs.assign(first.inputs.size(), nullptr);
  for (const Argument &input : inputs)
    if (ExecutorStatus error = checkInput(input, call))
      return error;
  for (size_t i = 0; i < first.inputs.size(); ++i)
    if (!call.inputs[i] && !isState(first, i, /*isInput=*/true))
      return failArgument(concat("input ", quote(first.inputs[i].name), " is missing; it is ",
                                 describeShapes({first.inputs[i].name, {}, {}, nullptr})));
  // Inputs are those of all entries; which function runs is asked for by name.
  bool isThere = false;
  for (call.variant = 0; call.variant < program.variants.size(); ++call.variant) {
    const std::vector<program::Tensor> &tensors = program.variants[call.variant].inputs;
    if (program.variants[call.variant].entry != call.entry)
      continue;
    isThere = true;
    bool fits = std::all_of(inputs.begin(), inputs.end(), [&](const Argument &input) {
      return program.types[tensors[findTensor(tensors, input.name)].type].shape == input.shape;
    });
    if (fits)
      return std::nullopt;
  }
  if (!isThere)
    return failArgument(concat("the program has no entry ", quote(call.entry)));
  std::string shapes;
  for (const Argument &input : inputs)
    shapes +=
        concat(shapes.empty() ? "" : ", ", quote(input.name), " ", format(program::Type{input.type, input.shape, {}}));
  return failArgument(concat("no variant of the program takes ", shapes, " together"));
}

/// What shapes, counts or branches of the program were computed from must be what is given: other elements want another program.
ExecutorStatus Executor::State::checkValues(const Call &call) const {
  const program::Variant &variant = program.variants[call.variant];
  for (size_t i = 0; i < variant.inputs.size(); ++i) {
    const program::Tensor &input = variant.inputs[i];
    if (call.inputs[i] && !input.value.empty() &&
        std::memcmp(call.inputs[i], input.value.data(), input.value.size()) != 0)
      return failArgument(
          concat("input ", quote(input.name),
                 " has another value than the one that the program was compiled for, and shapes or other "
                 "parts of the program depend on it: compile the model again, with these inputs"));
  }
  return std::nullopt;
}

/// Room for the wanted outputs, in the caller's hands.
ExecutorStatus Executor::State::prepareOutputs(std::vector<Value> &outputs, const std::vector<std::string> &wanted,
                                               Call &call) {
  const program::Variant &variant = program.variants[call.variant];
  std::vector<size_t> indices;
  for (size_t i = 0; i < variant.outputs.size(); ++i)
    if (wanted.empty() && !isState(variant, i, /*isInput=*/false))
      indices.push_back(i);
  for (const std::string &name : wanted) {
    indices.push_back(findTensor(variant.outputs, name));
    if (indices.back() == variant.outputs.size())
      return failArgument(
          concat("the program has no output ", quote(name), "; its outputs are ", listNames(variant.outputs)));
  }
  call.outputs.assign(variant.outputs.size(), nullptr);
  call.isWanted.assign(variant.outputs.size(), false);
  outputs.resize(isHub() ? indices.size() : 0);
  terms.resize(std::max(terms.size(), variant.outputs.size()));
  for (size_t i = 0; i < indices.size(); ++i) {
    const program::Tensor &tensor = variant.outputs[indices[i]];
    const program::Type &type = program.types[tensor.type];
    call.isWanted[indices[i]] = true;
    if (!isHub())
      continue;
    Value &value = outputs[i];
    value.name = tensor.name;
    value.type = type.element;
    value.shape = type.shape;
    value.data.resize(program::getBytes(type));
    call.outputs[indices[i]] = value.data.data();
    if (tensor.terms == 1)
      continue;
    terms[indices[i]].resize(tensor.terms);
    for (std::vector<char> &term : terms[indices[i]])
      term.resize(program::getBytes(type));
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// A call
//===----------------------------------------------------------------------===//

/// A rank that does not come back soon after a failure is given up: nothing that it may use is ever freed.
ExecutorStatus Executor::State::run(const std::vector<Argument> &inputs, std::vector<Value> &outputs,
                                    const std::vector<std::string> &wanted, const std::string &entry) {
  if (ExecutorStatus error = checkExhausted())
    return error;
  runBegan = getTicks();
  call = std::make_unique<Call>();
  call->entry = entry;
  ExecutorStatus error = pickVariant(inputs, *call);
  if (!error)
    error = checkValues(*call);
  if (!error)
    error = checkIndices(*call);
  if (!error)
    error = prepareOutputs(outputs, wanted, *call);
  gathered.reset();
  if (areProcesses())
    error = compareCalls(inputs, *call, std::move(error));
  if (error)
    return error;
  eventsBegan = areProcesses() ? getTicks() : runBegan;
  variant = call->variant;
  call->statuses.resize(ranks.size());
  job = [this](size_t local) { call->statuses[local] = runRank(ranks[local], *call); };
  int64_t failedAt = 0;
  isAbandoned = !threads->run(job, [&] {
    failedAt = isStopped.load() && !failedAt ? getNow() : failedAt;
    return !failedAt || getNow() - failedAt < kGrace;
  });
  runSeconds = double(getTicks() - runBegan) * clock.getRate() * 1e-9;
  if (ExecutorStatus error = checkExhausted())
    return error;
  if (isStopped.load())
    return ExecutorError{ErrorKind::Ranks, ranks.front().communicator->fail(Cause::Aborted, "stopped").getMessage()};
  combineTerms(*call);
  return std::nullopt;
}

void Executor::State::fail(Cause cause, const std::string &detail) {
  (void)ranks.front().communicator->fail(cause, detail);
  isStopped.store(true);
}

/// Inputs, steps, outputs. Whatever fails stops the others at their next command.
Status Executor::State::runRank(LocalRank &rank, Call &call) {
  rank.log->work();
  const program::Variant &source = program.variants[call.variant];
  for (const TensorBox &box : rank.inputs[call.variant]) {
    const program::Tensor &tensor = source.inputs[box.tensor];
    if (!call.inputs[box.tensor])
      continue;
    if (box.term > 0) {
      program::Type type = {program.types[tensor.type].element, box.shape, box.strides};
      std::vector<char> neutral(program::getSpanBytes(type));
      fillNeutral(type, tensor.reduction, neutral.data());
      rank.device->write(box.address, neutral.data(), neutral.size());
    } else {
      // Another variant may have left its elements there.
      if (box.isPadded) {
        std::vector<char> zeros(program::getSpanBytes({program.types[tensor.type].element, box.shape, box.strides}));
        rank.device->write(box.address, zeros.data(), zeros.size());
      }
      rank.device->upload(box.box, call.inputs[box.tensor] + box.offset, box.address);
    }
  }
  Status status = runList(rank);
  if (status.isOk() && rank.queue)
    status = readReports(rank);
  currentGuard = nullptr;
  if (status.isOk())
    status = gather(rank, call);
  if (!status.isOk())
    isStopped.store(true);
  rank.log->rest();
  return status;
}

/// The loop that everything is about: per command a look at a flag, an entry in the log, and a call.
template <bool kKeepsTimes> Status Executor::State::runSteps(LocalRank &rank, const BoundList &list) {
  rank.times.clear();
  rank.open.clear();
  rank.readTimes = 0;
  rank.mostTimes = 2 * LocalRank::kMostTimes;
  CrashGuard &guard = rank.guard;
  if (handlers) {
    useAlternateStack();
    currentGuard = &guard;
    if (sigsetjmp(guard.jump, 1))
      return rank.communicator->fail(Cause::Aborted,
                                     rank.log->getPlace() + ": the kernel ended with " + guard.describe());
  }
  auto tell = [&](const Step &step) -> uint64_t { return rank.queue ? rank.queue->mark(step.stream) : getTicks(); };
  for (size_t next = 0; next < list.steps.size();) {
    const Step &step = list.steps[next++];
    if (isStopped.load(std::memory_order_relaxed))
      return rank.communicator->fail(Cause::Aborted, "stopped");
    if (!rank.open.empty())
      if (Status status = advance(rank); !status.isOk())
        return status;
    [[maybe_unused]] uint64_t begin = kKeepsTimes ? tell(step) : 0;
    rank.log->begin(variant, step.command);
    if (step.kind == Step::Kind::Launch) {
      guard.isArmed = 1;
      rank.device->launch(step.launch, step.stream);
      guard.isArmed = 0;
      if (step.launch.report && !rank.queue && reinterpret_cast<const Report *>(step.launch.report)->places)
        return failReported(rank, *reinterpret_cast<const Report *>(step.launch.report));
    } else if (step.kind == Step::Kind::Loop || step.kind == Step::Kind::EndLoop) {
      if (Status status = runLoop(rank, list, step, next); !status.isOk())
        return status;
    } else if (Status status = runStep(rank, list, step); !status.isOk()) {
      return status;
    }
    if (rank.queue && rank.queue->getFailure())
      return failDevice(rank, rank.queue->getFailure()->message);
    if constexpr (kKeepsTimes) {
      rank.times.push_back(
          {step.stream, step.command, step.kind == Step::Kind::Finish ? Part::Finish : Part::Whole, begin, tell(step)});
      if (step.kind == Step::Kind::EndLoop && rank.times.size() > rank.mostTimes)
        if (Status status = addUpTimes(rank); !status.isOk())
          return status;
    }
  }
  return {};
}

/// With a queue: the first time as it stands, since memory may have to be got on the way; from the second on as a graph.
Status Executor::State::runList(LocalRank &rank) {
  const BoundList &list = rank.lists[variant];
  rank.iterations.resize(list.loops.size());
  rank.deviceSeconds.reset();
  if (rank.queue)
    rank.queue->clearMarks();
  // What a graph does next cannot depend on data.
  bool isKept = rank.queue && options.usesGraphs && !options.keepsTimes && !options.findsNan && list.loops.empty();
  bool isGraph = isKept && rank.hasRun[variant];
  rank.hasRun[variant] = true;
  if (isGraph && rank.graphs[variant])
    return replay(rank, *rank.graphs[variant]);
  if (isGraph)
    rank.queue->beginGraph();
  rank.marksBegan = getTicks();
  if (Status status = options.keepsTimes ? runSteps<true>(rank, list) : runSteps<false>(rank, list); !status.isOk())
    return status;
  if (!isGraph)
    return readMarks(rank);
  program::Result<uint32_t> graph = rank.queue->endGraph();
  if (!graph)
    return failDevice(rank, graph.getError().message);
  rank.graphs[variant] = *graph;
  return replay(rank, *graph);
}

Status Executor::State::replay(LocalRank &rank, uint32_t graph) {
  if (!options.timesDevices) {
    rank.queue->replay(graph);
    return settle(rank);
  }
  uint32_t begin = rank.queue->mark(0);
  rank.queue->replay(graph);
  uint32_t end = rank.queue->mark(0);
  if (Status status = settle(rank); !status.isOk())
    return status;
  program::Result<double> seconds = rank.queue->measure(begin, end);
  if (!seconds)
    return failDevice(rank, seconds.getError().message);
  rank.deviceSeconds = *seconds;
  return {};
}

/// The others hear why before they notice that this rank has given up.
Status Executor::State::failDevice(LocalRank &rank, const std::string &detail) {
  Status status = rank.communicator->fail(Cause::Aborted, concat(rank.log->getPlace(), ": ", detail));
  rank.queue->abort();
  return status;
}

/// Waits until a queue is empty: as long as the deadline says, and nobody fails.
Status Executor::State::settle(LocalRank &rank) {
  int64_t began = getNow();
  while (rank.queue) {
    program::Result<bool> isDone = rank.queue->poll();
    // A device does not say which of its commands it was; who looks for NaN waits for each.
    if (!isDone)
      return failDevice(rank,
                        isDone.getError().message + (options.findsNan ? "" : ", in this command or one before it"));
    if (*isDone)
      break;
    if (isStopped.load(std::memory_order_relaxed) || rank.communicator->hasFailed())
      return failDevice(rank, "stopped");
    if (double(getNow() - began) * 1e-9 > options.communication.deadline)
      return failDevice(rank, "the device was not done within " + formatSeconds(options.communication.deadline));
    std::this_thread::yield();
  }
  return {};
}

/// All but launches.
Status Executor::State::runStep(LocalRank &rank, const BoundList &list, const Step &step) {
  Device &device = *rank.device;
  switch (step.kind) {
  case Step::Kind::Look:
    return look(rank, list, step);
  case Step::Kind::Call:
    device.call(step.index, step.stream);
    return {};
  case Step::Kind::Record:
    device.record(step.index, step.stream);
    return {};
  case Step::Kind::Wait:
    device.wait(step.index, step.stream);
    return {};
  case Step::Kind::Copy:
    device.copy(list.copies[step.index].box, list.copies[step.index].source, list.copies[step.index].target,
                step.stream);
    return {};
  default:
    return runMeeting(rank, list, step);
  }
}

/// Reads the condition, which waits for all that was put into a queue, and says which step is next.
Status Executor::State::runLoop(LocalRank &rank, const BoundList &list, const Step &step, size_t &next) {
  const BoundLoop &loop = list.loops[step.index];
  bool begins = step.kind == Step::Kind::Loop;
  int64_t &iteration = rank.iterations[step.index];
  iteration = begins ? 0 : iteration + 1;
  if (Status status = settle(rank); !status.isOk())
    return status;
  char goesOn = 1;
  if (const char *condition = begins ? loop.first : loop.again)
    rank.device->download({{}, 1}, condition, &goesOn);
  if (loop.count >= 0 && iteration >= loop.count)
    goesOn = 0;
  if (goesOn && loop.count < 0 && iteration == program::kMostIterations)
    return rank.communicator->fail(Cause::Aborted, concat(rank.log->getPlace(), ": the loop has not ended after ",
                                                          program::kMostIterations, " iterations"));
  next = goesOn ? loop.begin : loop.end;
  return {};
}

static void copyAll(Device &device, const std::vector<BoundCopy> &copies, uint32_t stream) {
  for (const BoundCopy &copy : copies)
    device.copy(copy.box, copy.source, copy.target, stream);
}

/// What has been started moves on while this rank is busy with its own: between commands, as nobody has a core to spare for it.
Status Executor::State::advance(LocalRank &rank) {
  if (!options.keepsTimes)
    return rank.communicator->advance();
  // Of looks that found nothing to do there would be one for each command.
  static constexpr double kLeast = 2000;
  uint64_t begin = getTicks();
  Status status = rank.communicator->advance();
  uint64_t end = getTicks();
  if (double(end - begin) * clock.getRate() >= kLeast)
    rank.times.push_back({rank.open.front()->stream, rank.open.front()->command, Part::Advance, begin, end});
  return status;
}

/// One end of a meeting. A queue gets all of it where it starts.
Status Executor::State::runMeeting(LocalRank &rank, const BoundList &list, const Step &step) {
  // Tickets are the call's own.
  Meeting &meeting = const_cast<Meeting &>(list.meetings[step.index]);
  bool starts = step.kind == Step::Kind::Start;
  if (starts)
    copyAll(*rank.device, meeting.packs, step.stream);
  if (rank.queue) {
    rank.queue->meet(meeting.operations, step.stream);
    copyAll(*rank.device, meeting.unpacks, step.stream);
    return {};
  }
  for (size_t i = 0; i < meeting.operations.size(); ++i) {
    Status status = starts ? rank.communicator->start(meeting.operations[i], meeting.tickets[i])
                           : rank.communicator->wait(meeting.tickets[i]);
    if (!status.isOk())
      return status;
  }
  if (starts) {
    rank.open.push_back(&step);
    return {};
  }
  rank.open.erase(
      std::find_if(rank.open.begin(), rank.open.end(), [&](const Step *other) { return other->index == step.index; }));
  copyAll(*rank.device, meeting.unpacks, step.stream);
  return {};
}

//===----------------------------------------------------------------------===//
// Looking for NaN
//===----------------------------------------------------------------------===//

template <typename T> static bool hasNan(const std::vector<char> &elements) {
  for (size_t at = 0; at < elements.size(); at += sizeof(T)) {
    T element;
    std::memcpy(&element, elements.data() + at, sizeof(T));
    if (std::isnan(load(element)))
      return true;
  }
  return false;
}

/// Elements are gathered first, wherever they lie: only who looks for NaN pays for it.
Status Executor::State::look(LocalRank &rank, const BoundList &list, const Step &step) {
  const Look &look = list.looks[step.index];
  if (Status status = settle(rank); !status.isOk())
    return status;
  std::vector<char> elements(look.view.box.getBytes());
  rank.device->download(look.view.box, look.view.source, elements.data());
  bool isFound = look.type == ElementType::F16    ? hasNan<Half>(elements)
                 : look.type == ElementType::BF16 ? hasNan<BFloat>(elements)
                 : look.type == ElementType::F32  ? hasNan<float>(elements)
                                                  : hasNan<double>(elements);
  return isFound ? rank.communicator->fail(Cause::Aborted, rank.log->getPlace() + ": its result has a NaN") : Status();
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

/// Where the boxes of an output go: to the caller, or to its term. Null where this process does not get them.
char *Executor::State::getWhole(Call &call, uint32_t output, uint32_t term) {
  if (!call.outputs[output])
    return nullptr;
  bool isInTerms = program.variants[call.variant].outputs[output].terms > 1;
  return isInTerms ? terms[output][term].data() : call.outputs[output];
}

/// Thread ranks write where the caller reads; processes send to rank 0.
Status Executor::State::gather(LocalRank &rank, Call &call) {
  const std::vector<TensorBox> &boxes = rank.outputs[call.variant];
  if (!areProcesses()) {
    for (const TensorBox &box : boxes)
      if (call.isWanted[box.tensor])
        rank.device->download(box.box, box.address, getWhole(call, box.tensor, box.term) + box.offset);
    return {};
  }
  const std::vector<program::Tensor> &outputs = program.variants[call.variant].outputs;
  for (uint32_t output = 0; output < outputs.size(); ++output)
    for (uint32_t term = 0; call.isWanted[output] && term < outputs[output].terms; ++term) {
      std::vector<Piece> pieces = findGatherPieces(program, call.variant, output, term, rank.rank);
      auto own = std::find_if(boxes.begin(), boxes.end(),
                              [&](const TensorBox &box) { return box.tensor == output && box.term == term; });
      const char *address = own == boxes.end() ? nullptr : own->address;
      ElementType type = program.types[outputs[output].type].element;
      std::vector<char> fetched;
      if (address && rank.queue) {
        fetched.resize(program::getSpanBytes({type, own->shape, own->strides}));
        rank.device->download({{}, fetched.size()}, address, fetched.data());
        address = fetched.data();
      }
      Status status = rank.communicator->run(exchange(kWorld, type, address, getWhole(call, output, term), pieces));
      if (!status.isOk())
        return status;
    }
  return {};
}

/// Left to right, as all reductions.
void Executor::State::combineTerms(Call &call) {
  const std::vector<program::Tensor> &outputs = program.variants[call.variant].outputs;
  for (uint32_t output = 0; output < outputs.size(); ++output) {
    const program::Tensor &tensor = outputs[output];
    if (tensor.terms == 1 || !call.outputs[output])
      continue;
    const program::Type &type = program.types[tensor.type];
    std::vector<const char *> sources;
    for (const std::vector<char> &term : terms[output])
      sources.push_back(term.data());
    reduce(tensor.reduction, type.element, sources, call.outputs[output],
           program::getBytes(type) / program::getElementBytes(type.element));
  }
}
