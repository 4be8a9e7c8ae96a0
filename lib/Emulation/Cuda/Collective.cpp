//===- Collective.cpp - one rank's part of a collective -------------------===//
//
//   post: all have read what came before, so the own part may be written ──▶ collect: all have posted, so theirs may be read
//
// Each rank computes its own result, in the order of ranks. What was posted must be one call: another kind, count, type or
// reduction is an error that names both ranks.
//
// Every rank reads the parts of all, which for n ranks is n times what a clever algorithm moves. In return there is no leader
// whose death would matter, no order in which ranks must come, and the same code for threads and for processes.
//
//===----------------------------------------------------------------------===//
#include "../Halves.h"
#include "Comm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

using namespace cleave::cuda;
using namespace cleave::emulation;

/// As Cleave's own messages call element types.
static const char *getName(NcclType type) {
  static constexpr const char *names[] = {"i8", "ui8", "i32", "ui32", "i64", "ui64", "f16", "f32", "f64", "bf16"};
  return unsigned(type) < std::size(names) ? names[unsigned(type)] : "elements of no known type";
}

uint64_t cleave::cuda::getBytes(NcclType type) {
  static constexpr uint64_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return unsigned(type) < std::size(bytes) ? bytes[unsigned(type)] : 0;
}

std::string Call::describe() const {
  static constexpr const char *kinds[] = {"nothing", "all_reduce", "reduce_scatter", "all_gather", "send", "recv"};
  static constexpr const char *reductions[] = {"sum", "prod", "max", "min"};
  std::string text = kinds[unsigned(kind)];
  if (kind == CallKind::AllReduce || kind == CallKind::ReduceScatter)
    text += std::string(" ") + (unsigned(reduction) < 4 ? reductions[unsigned(reduction)] : "of no known kind");
  text += " of " + std::to_string(count) + " " + getName(type);
  for (auto [what, at] : {std::pair("input", input), std::pair("output", output)})
    if (at >= 0)
      text += std::string(", ") + what + " at " + std::to_string(at) + " of a window";
  return text;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

template <typename T> static bool isNaN(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(value);
  else
    return false;
}

/// A NaN on either side wins: that of the left one is kept, and a comparison that fails takes the right one.
template <typename T> static T combineTwo(NcclReduction reduction, T a, T b) {
  switch (reduction) {
  case NcclReduction::Sum:
    return T(a + b);
  case NcclReduction::Prod:
    return T(a * b);
  case NcclReduction::Max:
    return isNaN(a) || a > b ? a : b;
  case NcclReduction::Min:
    return isNaN(a) || a < b ? a : b;
  }
  return a;
}

/// Element by element through all ranks, so that each sum is rounded as `store` says, once.
template <typename T, typename Load, typename Store>
static void combineAs(NcclReduction reduction, const char *terms, uint64_t stride, uint32_t ranks, char *result,
                      uint64_t count, uint64_t bytes, Load load, Store store) {
  for (uint64_t i = 0; i < count; ++i) {
    T sum = load(terms + i * bytes);
    for (uint32_t rank = 1; rank < ranks; ++rank)
      sum = combineTwo<T>(reduction, sum, load(terms + rank * stride + i * bytes));
    store(result + i * bytes, sum);
  }
}

/// Integers are unsigned where they wrap around, and signed where they are compared.
template <typename T>
static void combinePlain(NcclReduction reduction, const char *terms, uint64_t stride, uint32_t ranks, char *result,
                         uint64_t count) {
  combineAs<T>(
      reduction, terms, stride, ranks, result, count, sizeof(T),
      [](const char *at) {
        T value;
        memcpy(&value, at, sizeof value);
        return value;
      },
      [](char *at, T value) { memcpy(at, &value, sizeof value); });
}

/// f16 and bf16: as NCCL's own kernels, sums are f32.
template <float (*toFloat)(uint16_t), uint16_t (*fromFloat)(float)>
static void combineHalves(NcclReduction reduction, const char *terms, uint64_t stride, uint32_t ranks, char *result,
                          uint64_t count) {
  combineAs<float>(
      reduction, terms, stride, ranks, result, count, 2,
      [](const char *at) {
        uint16_t half;
        memcpy(&half, at, sizeof half);
        return toFloat(half);
      },
      [](char *at, float value) {
        uint16_t half = fromFloat(value);
        memcpy(at, &half, sizeof half);
      });
}

void cleave::cuda::combine(NcclReduction reduction, NcclType type, const char *terms, uint64_t stride, uint32_t ranks,
                           char *result, uint64_t count) {
  bool wraps = reduction == NcclReduction::Sum || reduction == NcclReduction::Prod;
  auto run = [&](auto function) { function(reduction, terms, stride, ranks, result, count); };
  switch (type) {
  case NcclType::I8:
    return wraps ? run(combinePlain<uint8_t>) : run(combinePlain<int8_t>);
  case NcclType::UI8:
    return run(combinePlain<uint8_t>);
  case NcclType::I32:
    return wraps ? run(combinePlain<uint32_t>) : run(combinePlain<int32_t>);
  case NcclType::UI32:
    return run(combinePlain<uint32_t>);
  case NcclType::I64:
    return wraps ? run(combinePlain<uint64_t>) : run(combinePlain<int64_t>);
  case NcclType::UI64:
    return run(combinePlain<uint64_t>);
  case NcclType::F16:
    return run(combineHalves<halfToFloat, floatToHalf>);
  case NcclType::F32:
    return run(combinePlain<float>);
  case NcclType::F64:
    return run(combinePlain<double>);
  case NcclType::BF16:
    return run(combineHalves<bf16ToFloat, floatToBf16>);
  }
}

//===----------------------------------------------------------------------===//
// The command
//===----------------------------------------------------------------------===//

namespace {
/// One rank's side: it keeps its number, so that all members mean the same collective whatever streams they use.
class Collective {
public:
  Collective(const MemberRef &member, const Call &call, const void *input, void *output)
      : member(member), call(call), input(static_cast<const char *>(input)), output(static_cast<char *>(output)),
        number(++member->collectives) {}

  /// Posts, then waits for all, compares what they posted, and computes.
  Progress run() {
    if (member->isAborted)
      return Progress::Done;
    if (!isPosted)
      return post();
    const Room &room = *member->room;
    for (uint32_t rank = 0; rank < room.size; ++rank)
      if (room.getSeat(rank).posted < number)
        return Progress::Blocked;
    for (uint32_t rank = 0; rank < room.size; ++rank)
      if (!(room.getSeat(rank).call == call))
        return failMember(*member, NcclResult::InvalidUsage,
                          "rank " + std::to_string(room.rank) + " calls " + call.describe() + " where rank " +
                              std::to_string(rank) + " calls " + room.getSeat(rank).call.describe() + ", number " +
                              std::to_string(number) + " of their communicator");
    if (!collect())
      return failMember(*member, NcclResult::SystemError, "cannot read what another rank wrote");
    room.getSeat(room.rank).read = number;
    return Progress::Done;
  }

private:
  /// A scatter gives a part for each rank.
  uint64_t getInputCount() const {
    return call.kind == CallKind::ReduceScatter ? call.count * member->getSize() : call.count;
  }
  /// Nobody may still be reading what was there before.
  Progress post() {
    const Room &room = *member->room;
    for (uint32_t rank = 0; rank < room.size; ++rank)
      if (room.getSeat(rank).read + 1 < number)
        return Progress::Blocked;
    if (!room.write(room.rank, input, getInputCount() * getBytes(call.type)))
      return failMember(*member, NcclResult::SystemError, "no room on the disk for what others are to read");
    Seat &seat = room.getSeat(room.rank);
    seat.call = call;
    seat.posted = number;
    isPosted = true;
    return Progress::Moved;
  }
  /// Others may go on to the next collective as soon as all have read this one.
  bool collect() {
    const Room &room = *member->room;
    uint64_t bytes = call.count * getBytes(call.type);
    if (call.kind == CallKind::AllGather) {
      for (uint32_t rank = 0; rank < room.size; ++rank)
        if (!room.read(rank, 0, output + rank * bytes, bytes))
          return false;
      return true;
    }
    uint64_t offset = call.kind == CallKind::ReduceScatter ? room.rank * bytes : 0;
    std::vector<char> terms(room.size * bytes);
    for (uint32_t rank = 0; rank < room.size; ++rank)
      if (!room.read(rank, offset, terms.data() + rank * bytes, bytes))
        return false;
    combine(call.reduction, call.type, terms.data(), bytes, room.size, output, call.count);
    return true;
  }

  MemberRef member;
  Call call;
  const char *input;
  char *output;
  uint64_t number;
  bool isPosted = false;
};
} // namespace

MakeStep cleave::cuda::makeCollective(const MemberRef &member, const Call &call, const void *input, void *output,
                                      bool hangs) {
  return [=]() -> Step {
    auto collective = std::make_shared<Collective>(member, call, input, output);
    return [=] { return hangs && !member->isAborted ? Progress::Blocked : collective->run(); };
  };
}
