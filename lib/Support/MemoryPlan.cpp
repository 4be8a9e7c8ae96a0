//===- MemoryPlan.cpp - places for buffers in one arena -------------------===//
//
// Greedy by decreasing size: a buffer goes into the smallest gap that holds it between those that are placed already and
// needed at one of its steps, behind all of them where none does (Pisarchyk and Lee, "Efficient Memory Management for
// Deep Neural Net Inference", 2020, the variant that they found best). What is large is hard to place, and small buffers
// fill the gaps that it leaves.
//
// What that order gets wrong is mended by trying again: the buffer that ends highest was placed too late, so it moves to
// the front. Some order gives a smallest arena if each buffer is put as low as it can (that of the offsets in a smallest
// arena does), so moving buffers towards the front can find one. The attempts are few, and end where the bound is reached.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/MemoryPlan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <numeric>
#include <tuple>

using namespace cleave;

using Buffer = Liveness::Buffer;

namespace {
/// Places one set of buffers in several orders.
class Planner {
public:
  explicit Planner(llvm::ArrayRef<LiveInterval> padded)
      : buffers(padded), overlaps(padded), offsets(padded.size(), kUnplaced), isDense(areMostTogether(padded)) {}

  /// Places all in this order; returns the size of the arena.
  int64_t place(llvm::ArrayRef<Buffer> order);
  llvm::ArrayRef<int64_t> getOffsets() const { return offsets; }
  /// The first buffer that ends where the arena does. Precondition: there is one.
  Buffer findHighest(int64_t bytes) const;

private:
  static constexpr int64_t kUnplaced = -1;

  static bool areMostTogether(llvm::ArrayRef<LiveInterval> buffers);
  int64_t findPlace(Buffer buffer);
  void keepInOrder(Buffer buffer);

  llvm::ArrayRef<LiveInterval> buffers;
  OverlapIndex overlaps;
  std::vector<int64_t> offsets;
  /// Where a buffer meets a great part of all others (a step of training keeps what its forward made), those placed so far are kept in order
  /// and all asked: that takes a third of sorting what is in the way of each, again and again.
  bool isDense;
  std::vector<int64_t> starts;
  std::vector<Buffer> inOrder;
  /// What is in the way of the buffer at hand: start and end.
  std::vector<std::pair<int64_t, int64_t>> taken;
};
} // namespace

/// More than a sixteenth of all pairs, of which the sorted ends of intervals tell how many there are.
bool Planner::areMostTogether(llvm::ArrayRef<LiveInterval> buffers) {
  std::vector<int64_t> firsts, lasts;
  for (const LiveInterval &buffer : buffers) {
    firsts.push_back(buffer.first);
    lasts.push_back(buffer.last);
  }
  llvm::sort(firsts);
  llvm::sort(lasts);
  // Who begins while another one is there meets that one.
  double pairs = 0;
  size_t ended = 0;
  for (size_t begun = 0; begun < firsts.size(); ++begun) {
    while (lasts[ended] < firsts[begun])
      ++ended;
    pairs += static_cast<double>(begun - ended);
  }
  double count = static_cast<double>(buffers.size());
  return pairs > count * count / 32;
}

void Planner::keepInOrder(Buffer buffer) {
  if (buffers[buffer].bytes == 0)
    return;
  auto at = std::distance(starts.begin(), llvm::upper_bound(starts, offsets[buffer]));
  starts.insert(starts.begin() + at, offsets[buffer]);
  inOrder.insert(inOrder.begin() + at, buffer);
}

/// Start of the smallest gap that holds `buffer`, the lowest one of several.
int64_t Planner::findPlace(Buffer buffer) {
  taken.clear();
  if (isDense) {
    for (auto [start, other] : llvm::zip_equal(starts, inOrder))
      if (buffers[other].overlaps(buffers[buffer]))
        taken.push_back({start, start + buffers[other].bytes});
  } else {
    overlaps.forEachOverlap(buffer, [&](Buffer other) {
      if (offsets[other] != kUnplaced && buffers[other].bytes > 0)
        taken.push_back({offsets[other], offsets[other] + buffers[other].bytes});
    });
    llvm::sort(taken);
  }
  int64_t end = 0, best = kUnplaced, bestGap = 0;
  for (auto [from, to] : taken) {
    int64_t gap = from - end;
    if (gap >= buffers[buffer].bytes && (best == kUnplaced || gap < bestGap)) {
      best = end;
      bestGap = gap;
    }
    end = std::max(end, to);
  }
  return best == kUnplaced ? end : best;
}

int64_t Planner::place(llvm::ArrayRef<Buffer> order) {
  llvm::fill(offsets, kUnplaced);
  starts.clear();
  inOrder.clear();
  int64_t bytes = 0;
  for (Buffer buffer : order) {
    offsets[buffer] = findPlace(buffer);
    if (isDense)
      keepInOrder(buffer);
    bytes = std::max(bytes, offsets[buffer] + buffers[buffer].bytes);
  }
  return bytes;
}

Buffer Planner::findHighest(int64_t bytes) const {
  Buffer buffer = 0;
  while (offsets[buffer] + buffers[buffer].bytes != bytes) {
    ++buffer;
    assert(buffer < buffers.size() && "no buffer ends there");
  }
  return buffer;
}

/// All together take less than 2^62 bytes.
[[maybe_unused]] static bool fits(llvm::ArrayRef<LiveInterval> buffers, int64_t alignment) {
  int64_t left = int64_t(1) << 62;
  for (const LiveInterval &buffer : buffers) {
    if (buffer.bytes > left - alignment)
      return false;
    left -= llvm::alignTo(buffer.bytes, alignment);
  }
  return true;
}

MemoryPlan cleave::planMemory(llvm::ArrayRef<LiveInterval> buffers, int64_t alignment) {
  assert(llvm::isPowerOf2_64(alignment) && "not an alignment");
  assert(fits(buffers, alignment) && "the sum of all bytes overflows");
  // Buffers of thousands of layers are all there at once, and each is held against all others.
  const int attempts = buffers.size() > 5000 ? 2 : 16;
  Liveness liveness;
  for (const LiveInterval &buffer : buffers)
    liveness.use(liveness.define(buffer.first, llvm::alignTo(buffer.bytes, alignment)), buffer.last);
  llvm::ArrayRef<LiveInterval> padded = liveness.getIntervals();

  std::vector<Buffer> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order,
             [&](Buffer a, Buffer b) { return std::tuple(-padded[a].bytes, a) < std::tuple(-padded[b].bytes, b); });

  MemoryPlan plan;
  plan.bound = liveness.getPeakBytes();
  Planner planner(padded);
  for (int attempt = 0; attempt < attempts; ++attempt) {
    int64_t bytes = planner.place(order);
    if (attempt == 0 || bytes < plan.bytes) {
      plan.bytes = bytes;
      plan.offsets = planner.getOffsets();
    }
    if (plan.bytes == plan.bound)
      break;
    auto highest = llvm::find(order, planner.findHighest(bytes));
    std::rotate(order.begin(), highest, std::next(highest));
  }
  return plan;
}
