//===- Together.cpp - what processes tell each other around a call --------===//
//
//   open    how large a message may be ─▶ barrier
//   call    digest of what each was given ─▶ are all alike? ─▶ steps
//   after   what their clocks say ─▶ events, bytes, uses of libraries of all ─▶ rank 0, in its own time
//
// Threads of one process see all of it anyway.
//
//===----------------------------------------------------------------------===//
#include "ClockOffset.h"
#include "ExecutorState.h"
#include "cleave/Program/Digest.h"
#include "cleave/Program/Operands.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace cleave::runtime;
namespace program = cleave::program;
using program::concat;
using program::quote;

/// What ranks say to each other beside meetings is no longer.
static constexpr uint64_t kLeastMessage = 1 << 16;
/// Of an error of another rank; the rest is cut off.
static constexpr size_t kErrorBytes = 512;

static ExecutorStatus fail(ErrorKind kind, std::string message) { return ExecutorError{kind, std::move(message)}; }

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// The most that any meeting of the program, or one of its outputs on the way to rank 0, needs.
uint64_t Executor::State::findLargestMessage(const LocalRank &rank) const {
  uint64_t most = std::max(kLeastMessage, (program.variants.front().inputs.size() + 1) * sizeof(uint64_t));
  for (uint32_t variant = 0; variant < program.variants.size(); ++variant) {
    for (const Meeting &meeting : rank.lists[variant].meetings)
      for (const Operation &operation : meeting.operations)
        most = std::max(most, getLargestMessage(operation));
    const std::vector<program::Tensor> &outputs = program.variants[variant].outputs;
    for (uint32_t output = 0; output < outputs.size(); ++output)
      for (uint32_t term = 0; term < outputs[output].terms; ++term) {
        std::vector<Piece> pieces = findGatherPieces(program, variant, output, term, rank.rank);
        most = std::max(most, getLargestMessage(exchange(kWorld, program.types[outputs[output].type].element, nullptr,
                                                         nullptr, pieces)));
      }
  }
  return most;
}

//===----------------------------------------------------------------------===//
// Before a call
//===----------------------------------------------------------------------===//

/// Of each input that is given, by its number: type, shape and all elements; 0 where it is not. Then which outputs are wanted.
std::vector<uint64_t> Executor::State::digestCall(const std::vector<Argument> &inputs, const Call &call) const {
  const std::vector<program::Tensor> &tensors = program.variants.front().inputs;
  std::vector<uint64_t> digests(tensors.size() + 1);
  for (const Argument &input : inputs) {
    size_t index = 0;
    while (tensors[index].name != input.name)
      ++index;
    program::Type type{input.type, input.shape, {}};
    std::string_view elements(static_cast<const char *>(input.data), input.data ? program::getBytes(type) : 0);
    std::string text = concat(format(type), " ", program::hashBytes(elements));
    digests[index] = std::max<uint64_t>(program::hashBytes(text), 1);
  }
  // Of several entries one may take what another one does.
  std::string wanted = concat(call.variant, ":");
  for (bool isWanted : call.isWanted)
    wanted += isWanted ? '1' : '0';
  digests.back() = program::hashBytes(wanted);
  return digests;
}

/// `rank 0: 0123456789abcdef, rank 1: ..`
static std::string formatDigests(const std::vector<uint64_t> &all, size_t begin, size_t stride) {
  std::string table;
  for (size_t at = begin, rank = 0; at < all.size(); at += stride, ++rank) {
    char text[64];
    std::snprintf(text, sizeof(text), "%srank %zu: %016llx", rank ? ", " : "", rank,
                  static_cast<unsigned long long>(all[at]));
    table += text;
  }
  return table;
}

/// Each process has read its inputs by itself: they are compared as programs are, and so is whether they could be taken. An
/// error of one is that of all, who go on with the next call. `own` is what is wrong with the call on this rank.
ExecutorStatus Executor::State::compareCalls(const std::vector<Argument> &inputs, const Call &call,
                                             ExecutorStatus own) {
  Communicator &communicator = *ranks.front().communicator;
  size_t size = size_t(communicator.getSize());
  std::vector<uint64_t> digests(program.variants.front().inputs.size() + 1), all(size);
  if (!own)
    digests = digestCall(inputs, call);
  std::string_view bytes(reinterpret_cast<const char *>(digests.data()), digests.size() * sizeof(uint64_t));
  uint64_t digest = own ? 0 : std::max<uint64_t>(program::hashBytes(bytes), 1);
  auto gather = [&](ElementType type, const void *from, void *to, size_t count) {
    return communicator.run(allGather(kWorld, type, from, to, Tiling::contiguous(count)));
  };
  Status status = gather(ElementType::UI64, &digest, all.data(), 1);
  if (!status.isOk())
    return ::fail(ErrorKind::Ranks, status.getMessage());
  if (digest && std::all_of(all.begin(), all.end(), [&](uint64_t other) { return other == digest; }))
    return std::nullopt;
  if (auto first = std::find(all.begin(), all.end(), 0); first != all.end()) {
    std::vector<char> text(kErrorBytes), texts(kErrorBytes * size);
    if (own)
      std::strncpy(text.data(), own->message.c_str(), kErrorBytes - 1);
    status = gather(ElementType::UI8, text.data(), texts.data(), kErrorBytes);
    // What all say alike is said as if there were one.
    bool isAlike = std::all_of(all.begin(), all.end(), [](uint64_t other) { return other == 0; });
    std::string said = texts.data() + kErrorBytes * size_t(first - all.begin());
    if (status.isOk() && !(own && isAlike))
      return ::fail(ErrorKind::Arguments, concat("rank ", first - all.begin(), ": ", program::printable(said)));
    return status.isOk() ? own : ::fail(ErrorKind::Ranks, status.getMessage());
  }
  std::vector<uint64_t> each(digests.size() * size);
  status = gather(ElementType::UI64, digests.data(), each.data(), digests.size());
  if (!status.isOk())
    return ::fail(ErrorKind::Ranks, status.getMessage());
  size_t index = 0;
  auto differs = [&](size_t input) {
    for (size_t at = input; at < each.size(); at += digests.size())
      if (each[at] != each[input])
        return true;
    return false;
  };
  while (index + 1 < digests.size() && !differs(index))
    ++index;
  std::string what = index + 1 == digests.size() ? "ranks want different outputs: "
                                                 : concat("ranks were given different inputs ",
                                                          quote(program.variants.front().inputs[index].name), ": ");
  return ::fail(ErrorKind::Arguments, what + formatDigests(each, index, digests.size()));
}

//===----------------------------------------------------------------------===//
// After a call
//===----------------------------------------------------------------------===//

namespace {
/// Values behind each other, between processes of one version.
class Packer {
public:
  template <typename T> void add(const T &value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
  }
  void add(const std::string &text) {
    add(text.size());
    bytes += text;
  }
  std::string bytes;
};

class Unpacker {
public:
  explicit Unpacker(std::string_view bytes) : bytes(bytes) {}
  template <typename T> T take() {
    T value = {};
    if (bytes.size() >= sizeof(T)) {
      std::memcpy(&value, bytes.data(), sizeof(T));
      bytes.remove_prefix(sizeof(T));
    }
    return value;
  }
  std::string takeText() {
    size_t size = std::min(take<size_t>(), bytes.size());
    std::string text(bytes.substr(0, size));
    bytes.remove_prefix(size);
    return text;
  }
  bool isAtEnd() const { return bytes.empty(); }

private:
  std::string_view bytes;
};
} // namespace

namespace {
/// What a process has by its own clock, in nanoseconds: where its events begin, and the meetings that compare clocks.
struct OwnTimes {
  int64_t eventsBegan = 0;
  std::vector<MeetingTimes> meetings;
};
} // namespace

/// What this process has to tell.
static std::string pack(const Executor &executor, const OwnTimes &times) {
  Packer packer;
  packer.add(times.eventsBegan);
  for (const MeetingTimes &meeting : times.meetings)
    packer.add(meeting);
  packer.add(executor.getPeakBytes());
  packer.add(executor.getLoadSeconds());
  WindowUse windows = executor.getWindows();
  packer.add(windows.collectives);
  packer.add(windows.without);
  packer.add(windows.reason);
  std::vector<LibraryUse> libraries = executor.getLibraries();
  packer.add(libraries.size());
  for (const LibraryUse &use : libraries) {
    packer.add(use.name);
    packer.add(use.calls);
    packer.add(use.fallbacks);
    packer.add(use.reason);
    packer.add(use.workspace);
  }
  for (const Event &event : executor.getEvents())
    packer.add(event);
  return std::move(packer.bytes);
}

/// `rank` is whose bytes they are; its events are put into the time of the hub, whose are `hub`.
static void unpack(std::string_view bytes, uint32_t rank, const OwnTimes &hub, Gathered &all) {
  Unpacker unpacker(bytes);
  OwnTimes own;
  own.eventsBegan = unpacker.take<int64_t>();
  for (size_t i = 0; i < hub.meetings.size(); ++i)
    own.meetings.push_back(unpacker.take<MeetingTimes>());
  ClockOffset clock = rank == 0 ? ClockOffset{0, 0} : measureOffset(hub.meetings, own.meetings);
  all.clocks.push_back({rank, double(clock.offset) * 1e-9, double(clock.error) * 1e-9});
  const double shift = double(own.eventsBegan - clock.offset - hub.eventsBegan) * 1e-9;
  all.peakBytes.push_back(unpacker.take<uint64_t>());
  all.loadSeconds = std::max(all.loadSeconds, unpacker.take<double>());
  WindowUse windows;
  windows.collectives = unpacker.take<decltype(windows.collectives)>();
  windows.without = unpacker.take<decltype(windows.without)>();
  windows.reason = unpacker.takeText();
  addUse(all.windows, windows);
  for (size_t libraries = unpacker.take<size_t>(); libraries > 0; --libraries) {
    LibraryUse use;
    use.name = unpacker.takeText();
    use.calls = unpacker.take<decltype(use.calls)>();
    use.fallbacks = unpacker.take<decltype(use.fallbacks)>();
    use.reason = unpacker.takeText();
    use.workspace = unpacker.take<decltype(use.workspace)>();
    addUse(all.libraries, use);
  }
  while (!unpacker.isAtEnd()) {
    Event event = unpacker.take<Event>();
    event.begin += shift;
    event.end += shift;
    all.events.push_back(event);
  }
}

/// Meets all others a few times, each process with a look at its clock before and behind.
Status Executor::State::compareClocks(std::vector<std::pair<uint64_t, uint64_t>> &ticks) {
  std::vector<uint64_t> all(size_t(ranks.front().communicator->getSize()));
  for (size_t i = 0; i < kClockMeetings; ++i) {
    uint64_t sent = getTicks();
    Status status =
        ranks.front().communicator->run(allGather(kWorld, ElementType::UI64, &sent, all.data(), Tiling::contiguous(1)));
    if (!status.isOk())
      return status;
    ticks.emplace_back(sent, getTicks());
  }
  return {};
}

/// Sizes first, so that every rank knows how long messages are before one comes.
ExecutorStatus Executor::gatherResults() {
  if (!state->areProcesses())
    return std::nullopt;
  Communicator &communicator = *state->ranks.front().communicator;
  std::vector<std::pair<uint64_t, uint64_t>> ticks;
  Status status = state->compareClocks(ticks);
  if (!status.isOk())
    return ::fail(ErrorKind::Ranks, status.getMessage());
  // One rate for all: two readings of it differ by more than clocks do.
  const double rate = state->clock.getRate();
  OwnTimes times;
  times.eventsBegan = state->clock.getTime(state->eventsBegan, rate);
  for (auto [sent, received] : ticks)
    times.meetings.push_back({state->clock.getTime(sent, rate), state->clock.getTime(received, rate)});
  std::string own = pack(*this, times);
  uint64_t bytes = own.size(), sum = 0;
  std::vector<uint64_t> sizes(size_t(communicator.getSize()));
  status = communicator.run(allGather(kWorld, ElementType::UI64, &bytes, sizes.data(), Tiling::contiguous(1)));
  if (status.isOk()) {
    communicator.expectMessages(std::max(*std::max_element(sizes.begin(), sizes.end()), state->largestMessage));
    status = communicator.run(barrier(kWorld));
  }
  std::vector<Piece> pieces;
  for (uint32_t rank = 0; rank < sizes.size(); ++rank) {
    Piece piece{rank, 0, 1, sizes[rank], 0, sizes[rank], sum, sizes[rank]};
    if (state->isHub() || int(rank) == communicator.getRank())
      pieces.push_back(piece);
    sum += sizes[rank];
  }
  std::string whole(state->isHub() ? sum : 0, 0);
  if (status.isOk())
    status = communicator.run(exchange(kWorld, ElementType::UI8, own.data(), whole.data(), pieces));
  // Nobody may be behind with what is longer.
  if (status.isOk())
    status = communicator.run(barrier(kWorld));
  communicator.expectMessages(state->largestMessage);
  if (!status.isOk())
    return ::fail(ErrorKind::Ranks, status.getMessage());
  if (!state->isHub())
    return std::nullopt;
  state->gathered.emplace();
  sum = 0;
  for (uint32_t rank = 0; rank < sizes.size(); ++rank) {
    unpack(std::string_view(whole).substr(sum, sizes[rank]), rank, times, *state->gathered);
    sum += sizes[rank];
  }
  return std::nullopt;
}

/// A few at a time, so that no message is longer than those of the program.
/// A text of up to kErrorBytes.
Status Executor::State::tellAll(std::string &text) {
  if (!areProcesses())
    return {};
  Communicator &communicator = *ranks.front().communicator;
  std::vector<char> own(kErrorBytes), all(kErrorBytes * size_t(communicator.getSize()));
  text.copy(own.data(), kErrorBytes - 1);
  Status status =
      communicator.run(allGather(kWorld, ElementType::UI8, own.data(), all.data(), Tiling::contiguous(kErrorBytes)));
  text = all.data();
  return status;
}

ExecutorStatus Executor::takeLargest(std::vector<double> &values) {
  constexpr size_t most = kLeastMessage / sizeof(double);
  for (size_t at = 0; state->areProcesses() && at < values.size(); at += most) {
    size_t count = std::min(most, values.size() - at);
    Status status = state->ranks.front().communicator->run(
        allReduce(kWorld, Reduction::Max, ElementType::F64, &values[at], &values[at], count));
    if (!status.isOk())
      return ::fail(ErrorKind::Ranks, status.getMessage());
  }
  return std::nullopt;
}
