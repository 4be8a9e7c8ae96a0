//===- Guards.cpp - kernels between pages that fault ----------------------===//
//
// Operands that overlap are one span, which moves as a whole. Each span has pages of its own, around which nothing may be touched; what
// is left of its pages is full of a pattern, which no store may change. A temporary has pages likewise, from when the kernel takes it
// until the kernel has ended: where it faults, its temporaries are still there to say what the address is.
//
//===----------------------------------------------------------------------===//
#include "Guards.h"
#include "Crash.h"
#include "cleave/Program/Operands.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sys/mman.h>
#include <unistd.h>

using namespace cleave;
using namespace cleave::test;
using program::concat;

/// NaN, as floats.
static constexpr unsigned char kPattern = 0xff;
/// What temporaries hold before they are written, where kPattern was there in another run; 1.4e18 as f32.
static constexpr unsigned char kOtherPattern = 0x5d;

static std::atomic<uint64_t> kernelsSoFar, operandsSoFar, temporariesSoFar;

GuardCounts cleave::test::getGuardCounts() { return {kernelsSoFar, operandsSoFar, temporariesSoFar}; }
std::string cleave::test::describeGuarded() {
  return concat(kernelsSoFar.load(), " kernels with ", operandsSoFar.load(), " operands and ", temporariesSoFar.load(),
                " temporaries ran between guards");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {

enum class End { Behind, Before };

/// Operands that overlap, where the caller has them.
struct Span {
  char *begin, *end;
  uint64_t alignment;
  bool isWritten;
  std::vector<size_t> operands;

  uint64_t getBytes() const { return uint64_t(end - begin); }
};

/// Bytes of the kernel's, with the guards on both sides, full of the pattern.
class Region {
public:
  /// \param rest of the address, divided by `alignment`.
  Region(std::string name, uint64_t bytes, uint64_t alignment, uint64_t rest, End side);
  ~Region() { munmap(memory, room + 2 * page); }
  Region(const Region &) = delete;

  char *getData() const { return data; }
  const std::string &getName() const { return name; }
  /// What is wrong with an access to `address`, or an empty string if it is not in the guards.
  std::string explain(const char *address) const;
  /// What was written around the bytes, or an empty string.
  std::string findStray() const;

private:
  std::string name;
  uint64_t bytes, page = uint64_t(sysconf(_SC_PAGESIZE)), room;
  char *memory, *begin, *data;
};

} // namespace

/// As near to the guard as the alignment lets it.
Region::Region(std::string name, uint64_t bytes, uint64_t alignment, uint64_t rest, End side)
    : name(std::move(name)), bytes(bytes) {
  room = (std::max<uint64_t>(bytes, 1) + alignment + page - 1) / page * page;
  void *mapped = mmap(nullptr, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED || mprotect(static_cast<char *>(mapped) + page, room, PROT_READ | PROT_WRITE) != 0)
    std::perror("no memory between guards"), std::abort();
  memory = static_cast<char *>(mapped);
  begin = memory + page;
  uint64_t gap = side == End::Before ? rest : (room - bytes - rest) / alignment * alignment + rest;
  data = begin + gap;
  std::memset(begin, kPattern, room);
}

std::string Region::explain(const char *address) const {
  if (address < memory || address >= memory + room + 2 * page)
    return "";
  int64_t offset = address - data, behind = offset - int64_t(bytes) + 1;
  return offset < 0 ? concat("byte ", -offset, " in front of ", name)
                    : concat("byte ", behind, " behind the end of ", name);
}

std::string Region::findStray() const {
  const char *end = data + bytes;
  auto isStray = [](char byte) { return static_cast<unsigned char>(byte) != kPattern; };
  const char *before = std::find_if<const char *>(begin, data, isStray),
             *behind = std::find_if<const char *>(end, begin + room, isStray);
  if (before != data || behind != begin + room)
    return concat("writes ", explain(before != data ? before : behind));
  return "";
}

/// Those that share bytes together; operands without any are spans of their own.
static std::vector<Span> findSpans(const std::vector<GuardedOperand> &operands) {
  std::vector<size_t> order(operands.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t x, size_t y) { return std::pair(operands[x].data, x) < std::pair(operands[y].data, y); });
  std::vector<Span> spans;
  size_t last = SIZE_MAX; // the last one of some bytes
  for (size_t index : order) {
    const GuardedOperand &operand = operands[index];
    uint64_t alignment = std::max<uint64_t>(operand.alignment, 1);
    if (operand.bytes == 0 || last == SIZE_MAX || operand.data >= spans[last].end) {
      last = operand.bytes == 0 ? last : spans.size();
      spans.push_back({operand.data, operand.data + operand.bytes, alignment, operand.isWritten, {index}});
      continue;
    }
    Span &span = spans[last];
    span.end = std::max(span.end, operand.data + operand.bytes);
    span.alignment = std::lcm(span.alignment, alignment);
    span.isWritten |= operand.isWritten;
    span.operands.push_back(index);
  }
  return spans;
}

//===----------------------------------------------------------------------===//
// Temporaries
//===----------------------------------------------------------------------===//

namespace {

/// Those of the kernel that runs.
class Scratch {
public:
  explicit Scratch(End side) : side(side) {}

  char *take(uint64_t bytes);
  void give(char *data);
  /// As of a region: of the first temporary that says something.
  std::string explain(const char *address) const;
  std::string findStray() const;

private:
  struct Temporary {
    std::unique_ptr<Region> region;
    bool isTaken;
  };
  End side;
  std::vector<Temporary> temporaries;
  /// What was given back and never taken.
  std::string fault;
};

} // namespace

static thread_local Scratch *currentScratch;

/// Remainders of addresses are those of the bytes: where the last one is next to a guard, the first one is aligned to elements as well.
char *Scratch::take(uint64_t bytes) {
  std::string name = concat("temporary ", uint64_t(temporaries.size()), " of ", bytes, " bytes");
  temporaries.push_back({std::make_unique<Region>(std::move(name), bytes, 1, 0, side), true});
  const Region &region = *temporaries.back().region;
  if (side == End::Before)
    std::memset(region.getData(), kOtherPattern, bytes);
  else
    ++temporariesSoFar;
  return region.getData();
}

void Scratch::give(char *data) {
  for (Temporary &temporary : temporaries)
    if (temporary.region->getData() == data && std::exchange(temporary.isTaken, false))
      return;
  fault = "gives back a temporary that it has not";
}

std::string Scratch::explain(const char *address) const {
  for (const Temporary &temporary : temporaries)
    if (std::string text = temporary.region->explain(address); !text.empty())
      return text;
  return "";
}

std::string Scratch::findStray() const {
  for (const Temporary &temporary : temporaries) {
    if (std::string text = temporary.region->findStray(); !text.empty())
      return text;
    if (temporary.isTaken)
      return concat("keeps ", temporary.region->getName());
  }
  return fault;
}

/// A kernel that is called elsewhere has none.
static Scratch &getScratch() {
  if (!currentScratch)
    std::fputs("a kernel with guarded temporaries does not run between guards\n", stderr), std::abort();
  return *currentScratch;
}

char *cleave::test::cleave_take_scratch(uint64_t bytes) { return getScratch().take(bytes); }
void cleave::test::cleave_give_scratch(char *data) { getScratch().give(data); }

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Calls a kernel. False if it ended with a signal, which `guard` then knows.
static bool call(KernelFunction kernel, void **arguments, runtime::CrashGuard &guard) {
  static runtime::CrashHandlers handlers;
  runtime::useAlternateStack();
  runtime::CrashGuard *before = std::exchange(runtime::currentGuard, &guard);
  if (sigsetjmp(guard.jump, 1) == 0) {
    guard.isArmed = 1;
    kernel(arguments);
    guard.isArmed = 0;
  }
  runtime::currentGuard = before;
  return guard.signal == 0;
}

namespace {
/// One run of a kernel.
class Run {
public:
  Run(const std::vector<Span> &spans, End side);
  /// What is wrong, or an empty string.
  std::string call(KernelFunction kernel, const std::vector<GuardedOperand> &operands,
                   const std::vector<void *> &scalars);
  /// What was written elsewhere than in another run, or an empty string.
  std::string compare(const Run &other) const;
  /// Gives callers what has been written.
  void bringBack() const;

private:
  /// What was written that may not be, or an empty string.
  std::string findStray(size_t index) const;

  const std::vector<Span> &spans;
  End side;
  std::vector<std::unique_ptr<Region>> regions;
};
} // namespace

/// Remainders of addresses stay what they are.
Run::Run(const std::vector<Span> &spans, End side) : spans(spans), side(side) {
  for (const Span &span : spans) {
    regions.push_back(std::make_unique<Region>(concat("operand ", uint64_t(span.operands.front())), span.getBytes(),
                                               span.alignment, reinterpret_cast<uintptr_t>(span.begin) % span.alignment,
                                               side));
    if (span.getBytes() > 0)
      std::memcpy(regions.back()->getData(), span.begin, span.getBytes());
  }
}

std::string Run::findStray(size_t index) const {
  const Span &span = spans[index];
  const Region &region = *regions[index];
  std::string fault = region.findStray();
  bool isChanged = !span.isWritten && std::memcmp(region.getData(), span.begin, span.getBytes()) != 0;
  return fault.empty() && isChanged ? concat("writes ", region.getName(), ", which it may only read") : fault;
}

std::string Run::call(KernelFunction kernel, const std::vector<GuardedOperand> &operands,
                      const std::vector<void *> &scalars) {
  std::vector<void *> arguments(operands.size());
  for (size_t i = 0; i < spans.size(); ++i)
    for (size_t operand : spans[i].operands)
      arguments[operand] = regions[i]->getData() + (operands[operand].data - spans[i].begin);
  arguments.insert(arguments.end(), scalars.begin(), scalars.end());
  runtime::CrashGuard guard;
  Scratch scratch(side);
  Scratch *before = std::exchange(currentScratch, &scratch);
  bool isAlive = ::call(kernel, arguments.data(), guard);
  currentScratch = before;
  auto *address = static_cast<char *>(guard.address);
  std::string fault = isAlive ? scratch.findStray() : scratch.explain(address);
  for (size_t i = 0; i < regions.size() && fault.empty(); ++i)
    fault = isAlive ? findStray(i) : regions[i]->explain(address);
  if (isAlive || fault.empty())
    return isAlive ? fault : concat("ends with ", guard.describe());
  return concat("touches ", fault);
}

std::string Run::compare(const Run &other) const {
  for (size_t i = 0; i < spans.size(); ++i)
    if (std::memcmp(regions[i]->getData(), other.regions[i]->getData(), spans[i].getBytes()) != 0)
      return concat("operand ", uint64_t(spans[i].operands.front()), " gets other bytes where operands lie elsewhere");
  return "";
}

void Run::bringBack() const {
  for (size_t i = 0; i < spans.size(); ++i)
    if (spans[i].isWritten)
      std::memcpy(spans[i].begin, regions[i]->getData(), spans[i].getBytes());
}

std::string cleave::test::runBetweenGuards(KernelFunction kernel, const std::vector<GuardedOperand> &operands,
                                           const std::vector<void *> &scalars) {
  std::vector<Span> spans = findSpans(operands);
  ++kernelsSoFar;
  operandsSoFar += operands.size();
  Run atEnd(spans, End::Behind), atBegin(spans, End::Before);
  std::string fault = atEnd.call(kernel, operands, scalars);
  if (fault.empty())
    fault = atBegin.call(kernel, operands, scalars);
  if (fault.empty())
    fault = atEnd.compare(atBegin);
  atEnd.bringBack();
  return fault;
}

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

void GuardLog::add(const std::string &kernel, const std::string &fault) {
  std::lock_guard<std::mutex> lock(mutex);
  if (first.empty())
    first = concat("kernel ", program::quote(kernel), " ", fault);
}

std::string GuardLog::get() {
  std::lock_guard<std::mutex> lock(mutex);
  return first;
}

namespace {
class GuardedHost final : public runtime::Device {
public:
  GuardedHost(const program::Program &program, GuardLog &log) : host(runtime::makeHost()), program(program), log(log) {}

  void launch(const runtime::BoundLaunch &launch, uint32_t) override {
    std::vector<GuardedOperand> operands;
    for (const program::Parameter &parameter : launch.kernel->parameters)
      operands.push_back({static_cast<char *>(launch.arguments[operands.size()]),
                          program::getSpanBytes(program.types[parameter.type]),
                          parameter.access != program::Access::Read, parameter.alignment});
    void **scalars = launch.arguments + operands.size();
    std::string fault = runBetweenGuards(reinterpret_cast<KernelFunction>(launch.entry), operands,
                                         {scalars, scalars + launch.kernel->scalars});
    if (!fault.empty())
      log.add(launch.kernel->name, fault);
  }

  std::optional<std::string> findMissing(const program::Target &target) const override {
    return host->findMissing(target);
  }
  program::Result<char *> allocate(uint64_t bytes, uint64_t alignment, program::Memory memory, bool isMet) override {
    return host->allocate(bytes, alignment, memory, isMet);
  }
  uint64_t getFreeBytes() const override { return host->getFreeBytes(); }
  program::Result<uint32_t> load(const program::Object &object, const std::string &name) override {
    return host->load(object, name);
  }
  program::Result<runtime::KernelEntry> find(uint32_t code, const std::string &entry) override {
    return host->find(code, entry);
  }
  void copy(const runtime::BoxCopy &box, const char *source, char *target, uint32_t stream) override {
    host->copy(box, source, target, stream);
  }

private:
  std::unique_ptr<runtime::Device> host;
  const program::Program &program;
  GuardLog &log;
};
} // namespace

std::unique_ptr<runtime::Device> cleave::test::makeGuardedHost(const program::Program &program, GuardLog &log) {
  return std::make_unique<GuardedHost>(program, log);
}
