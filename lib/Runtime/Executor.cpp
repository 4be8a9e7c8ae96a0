//===- Executor.cpp - runs a program file ---------------------------------===//
//
// What callers see; what happens is in Open.cpp and Run.cpp.
//
//===----------------------------------------------------------------------===//
#include "ExecutorState.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace cleave::runtime;
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

namespace {
/// The bytes of a file in memory of its own: a file that shrinks meanwhile is an error, and no signal.
struct Bytes {
  ~Bytes() {
    if (data != MAP_FAILED)
      munmap(data, size);
  }
  void *data = MAP_FAILED;
  size_t size = 0;
};
} // namespace

static ExecutorError failToRead(const std::string &path, const char *why) {
  return {ErrorKind::Program, concat("cannot read ", quote(path), ": ", why)};
}

static ExecutorStatus readFile(const std::string &path, Bytes &bytes) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return failToRead(path, std::strerror(errno));
  struct stat status;
  ExecutorStatus failed;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
    failed = failToRead(path, "it is no regular file");
  else if (status.st_size == 0)
    failed = failToRead(path, "it is empty");
  else if ((bytes.data = mmap(nullptr, size_t(status.st_size), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) == MAP_FAILED)
    failed = ExecutorError{ErrorKind::Memory,
                           concat("cannot get ", uint64_t(status.st_size), " bytes of memory for ", quote(path))};
  for (bytes.size = 0; !failed && bytes.size < size_t(status.st_size);) {
    ssize_t got = read(file, static_cast<char *>(bytes.data) + bytes.size, size_t(status.st_size) - bytes.size);
    if (got <= 0 && !(got < 0 && errno == EINTR))
      failed = failToRead(path, got < 0 ? std::strerror(errno) : "it has become shorter");
    bytes.size += got > 0 ? size_t(got) : 0;
  }
  bytes.size = status.st_size > 0 ? size_t(status.st_size) : 0;
  close(file);
  return failed;
}

ExecutorStatus Executor::open(const std::string &path, const ExecutorOptions &options,
                              std::unique_ptr<Executor> &executor) {
  Bytes bytes;
  if (ExecutorStatus error = readFile(path, bytes))
    return error;
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  ExecutorStatus error =
      open(std::string_view(static_cast<const char *>(bytes.data), bytes.size), folder, options, executor);
  if (error && error->kind == ErrorKind::Program)
    error->message = concat("cannot run ", quote(path), ": ", error->message);
  return error;
}

ExecutorStatus Executor::open(std::string_view bytes, const std::string &folder, const ExecutorOptions &options,
                              std::unique_ptr<Executor> &executor) {
  auto state = std::make_unique<State>();
  state->options = options;
  uint64_t began = getTicks();
  if (ExecutorStatus error = state->open(bytes, folder))
    return error;
  state->loadSeconds = double(getTicks() - began) * state->clock.getRate() * 1e-9;
  executor.reset(new Executor(std::move(state)));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

ExecutorStatus Executor::run(const std::vector<Argument> &inputs, std::vector<Value> &outputs,
                             const std::vector<std::string> &wanted) {
  return state->run(inputs, outputs, wanted);
}

void Executor::resetStates() {
  for (LocalRank &rank : state->ranks)
    rank.memory->clearStates();
}

void Executor::fail(Cause cause, const std::string &detail) { state->fail(cause, detail); }

const cleave::program::Program &Executor::getProgram() const { return state->program; }
uint32_t Executor::getRank() const { return state->ranks.front().rank; }
double Executor::getLoadSeconds() const { return state->loadSeconds; }
double Executor::getRunSeconds() const { return state->runSeconds; }
uint32_t Executor::getVariant() const { return state->variant; }

uint64_t Executor::getPeakBytes() const {
  uint64_t most = 0;
  for (const LocalRank &rank : state->ranks)
    most = std::max(most, rank.memory->getBytes());
  return most;
}

std::vector<Event> Executor::getEvents() const {
  std::vector<Event> events;
  double rate = state->clock.getRate() * 1e-9;
  auto seconds = [&](uint64_t ticks) { return double(int64_t(ticks - state->runBegan)) * rate; };
  for (const LocalRank &rank : state->ranks)
    for (const TimedStep &step : rank.times)
      events.push_back({rank.rank, step.stream, step.command, seconds(step.begin), seconds(step.end)});
  return events;
}

const cleave::program::List &Executor::getList(uint32_t variant, uint32_t rank) const {
  const program::Program &program = state->program;
  for (size_t role = 0; role < program.roles.size(); ++role)
    for (uint32_t member : program.roles[role].ranks)
      if (member == rank)
        return program.variants[variant].lists[role];
  return program.variants[variant].lists.front();
}
