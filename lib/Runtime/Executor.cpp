//===- Executor.cpp - runs a program file ---------------------------------===//
//
// What callers see; what happens is in Open.cpp and Run.cpp.
//
//===----------------------------------------------------------------------===//
#include "ExecutorState.h"
#include "cleave/Runtime/Files.h"

#include <algorithm>

using namespace cleave::runtime;
namespace program = cleave::program;
using cleave::program::concat;
using cleave::program::quote;

Executor::Executor(std::unique_ptr<State> state) : state(std::move(state)) {}

/// After a failure a rank may not have come back: its memory must stay.
Executor::~Executor() {
  if (state && state->isAbandoned)
    (void)state.release();
}

Executor::State::~State() {
  // Threads use everything, communicators the memory of each other.
  threads.reset();
  ranks.clear();
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

/// The file is mapped: of what may be large, its weights, each byte is read once, into where it is wanted.
ExecutorStatus Executor::open(const std::string &path, const ExecutorOptions &options,
                              std::unique_ptr<Executor> &executor) {
  auto file = std::make_shared<FileBytes>();
  if (program::Status error = file->map(path))
    return ExecutorError{ErrorKind::Program, error->message};
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  ExecutorStatus error = open(file->get(), folder, file, options, executor);
  // What processes say is that of all of them, whose paths may differ.
  if (error && error->kind == ErrorKind::Program && !getTraits(options.ranks).areProcesses())
    error->message = concat("cannot run ", quote(path), ": ", error->message);
  return error;
}

ExecutorStatus Executor::open(std::string_view bytes, const std::string &folder, const ExecutorOptions &options,
                              std::unique_ptr<Executor> &executor) {
  return open(bytes, folder, nullptr, options, executor);
}

ExecutorStatus Executor::open(std::string_view bytes, const std::string &folder, std::shared_ptr<const FileBytes> file,
                              const ExecutorOptions &options, std::unique_ptr<Executor> &executor) {
  auto state = std::make_unique<State>();
  state->options = options;
  uint64_t began = getTicks();
  if (ExecutorStatus error = state->open(bytes, folder, std::move(file)))
    return error;
  state->loadSeconds = double(getTicks() - began) * state->clock.getRate() * 1e-9;
  executor.reset(new Executor(std::move(state)));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

ExecutorStatus Executor::run(const std::vector<Argument> &inputs, std::vector<Value> &outputs,
                             const std::vector<std::string> &wanted, const std::string &entry) {
  return state->run(inputs, outputs, wanted, entry.empty() ? state->program.variants.front().entry : entry);
}

ExecutorStatus Executor::resetStates() { return state->resetStates(); }
ExecutorStatus Executor::saveStates(const std::string &path, const std::map<std::string, std::string> &metadata) {
  return state->saveStates(path, metadata);
}
ExecutorStatus Executor::loadStates(const std::string &path, bool onlyParameters,
                                    std::map<std::string, std::string> *metadata) {
  return state->loadStates(path, onlyParameters, metadata);
}

void Executor::fail(Cause cause, const std::string &detail) { state->fail(cause, detail); }

void Executor::leave(const std::string &why) { state->ranks.front().communicator->leave(why); }

bool Executor::hasFailed() const { return state->isStopped.load() || state->ranks.front().communicator->hasFailed(); }
/// The first failure counts, so that this one changes nothing.
std::string Executor::getFailure() const {
  return state->ranks.front().communicator->fail(Cause::Aborted, "stopped").getMessage();
}

const cleave::program::Program &Executor::getProgram() const { return state->program; }
uint32_t Executor::getRank() const { return state->ranks.front().rank; }
double Executor::getLoadSeconds() const { return state->gathered ? state->gathered->loadSeconds : state->loadSeconds; }
double Executor::getRunSeconds() const { return state->runSeconds; }
std::optional<double> Executor::getDeviceSeconds() const {
  std::optional<double> most;
  for (const LocalRank &rank : state->ranks)
    most = std::max(most, rank.deviceSeconds);
  return most;
}
uint32_t Executor::getVariant() const { return state->variant; }

uint64_t Executor::getPeakBytes() const {
  uint64_t most = 0;
  for (uint64_t bytes : getPeakBytesOfRanks())
    most = std::max(most, bytes);
  return most;
}

std::vector<uint64_t> Executor::getPeakBytesOfRanks() const {
  if (state->gathered)
    return state->gathered->peakBytes;
  std::vector<uint64_t> bytes;
  for (const LocalRank &rank : state->ranks)
    bytes.push_back(rank.memory->getBytes());
  return bytes;
}

void cleave::runtime::addUse(std::vector<LibraryUse> &all, const LibraryUse &use) {
  auto same = std::find_if(all.begin(), all.end(), [&](const LibraryUse &other) { return other.name == use.name; });
  if (same == all.end()) {
    all.push_back(use);
    return;
  }
  same->calls += use.calls;
  same->fallbacks += use.fallbacks;
  same->workspace = std::max(same->workspace, use.workspace);
  if (same->reason.empty())
    same->reason = use.reason;
}

void cleave::runtime::addUse(WindowUse &all, const WindowUse &use) {
  all.collectives += use.collectives;
  all.without += use.without;
  if (all.reason.empty())
    all.reason = use.reason;
}

std::vector<LibraryUse> Executor::getLibraries() const {
  std::vector<LibraryUse> all;
  if (state->gathered)
    return state->gathered->libraries;
  for (const auto &device : state->devices)
    for (const LibraryUse &use : device->getLibraries())
      addUse(all, use);
  return all;
}

WindowUse Executor::getWindows() const {
  WindowUse all;
  if (state->gathered)
    return state->gathered->windows;
  for (const auto &device : state->devices)
    addUse(all, device->getWindows());
  return all;
}

/// Ticks become seconds only here.
std::vector<Event> Executor::getEvents() const {
  std::vector<Event> events;
  if (state->gathered)
    return state->gathered->events;
  double rate = state->clock.getRate() * 1e-9;
  auto seconds = [&](uint64_t ticks) { return double(int64_t(ticks - state->eventsBegan)) * rate; };
  for (const LocalRank &rank : state->ranks)
    for (const TimedStep &step : rank.times)
      events.push_back({rank.rank, step.stream, step.command, step.part, seconds(step.begin), seconds(step.end),
                        step.laterRuns, double(step.laterTicks) * rate});
  return events;
}

std::vector<RankClock> Executor::getClocks() const {
  return state->gathered ? state->gathered->clocks : std::vector<RankClock>();
}

const cleave::program::List &Executor::getList(uint32_t variant, uint32_t rank) const {
  const program::Program &program = state->program;
  for (size_t role = 0; role < program.roles.size(); ++role)
    for (uint32_t member : program.roles[role].ranks)
      if (member == rank)
        return program.variants[variant].lists[role];
  return program.variants[variant].lists.front();
}
