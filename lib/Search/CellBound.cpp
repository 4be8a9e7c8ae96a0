//===- CellBound.cpp - a bound under a limit of memory --------------------===//
//
// At every price of memory there is a bound, and between prices at which messages advise more and less than fits lies the best one. The price
// is raised by steps until less is advised, and then bisected by its logarithm. Messages of one price are where the next begins.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/Certificate.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace cleave::spmd;
using namespace llvm;

namespace {
/// Units for 2^40 bytes, where prices begin and end.
constexpr int64_t kFirstPrice = int64_t(1) << 28, kLastPrice = int64_t(1) << 61;
/// Beyond that a limit costs more than any time.
constexpr int64_t kMostUnits = int64_t(1) << 53;
constexpr int64_t kStep = 16;
constexpr unsigned kBisections = 10, kPassesAtFirst = 60;
/// Of finding out cells: rounds, passes of one, and which part of the bound a cell may be from the least.
constexpr unsigned kRounds = 60, kPassesOfRound = 10;
constexpr int64_t kMargin = 1000;
} // namespace

/// More than there is counts as no limit would, at a price.
int64_t cleave::spmd::limitBytes(const Certificate &certificate, const StageCell &stages) {
  int64_t bytes = 0;
  bool isMore = llvm::MulOverflow(certificate.memoryBytes, stages.stages, bytes);
  return isMore ? std::numeric_limits<int64_t>::max() : bytes;
}

__int128 cleave::spmd::limitUnits(MemoryPrice price, int64_t mostBytes) {
  return (__int128(price.numerator) * mostBytes + ((__int128(1) << MemoryPrice::kShift) - 1)) >> MemoryPrice::kShift;
}

// What a price of memory takes off the bound, and parameters whose storage is not decided add to it, is the same for all decisions, so that
// messages know nothing of it. The last passes are at the best price, as many as are worth it.
CellBound cleave::spmd::boundCell(const JointTables &tables, int64_t mostBytes, int64_t reach) {
  CellBound best;
  best.bound = -kForbiddenCell;
  Messages unfinished;
  unsigned passes = 0;
  // The bound at a price, and what its messages advise to store.
  auto tryPrice = [&](MemoryPrice price, unsigned mostPasses) {
    PassOptions options;
    options.mostPasses = mostPasses;
    int64_t taken =
        static_cast<int64_t>(limitUnits(price, mostBytes)) - price.of(tables.getFixedBytes()) - tables.getConstant();
    options.reach = reach < kForbiddenCell ? reach + taken : kForbiddenCell;
    PassedMessages passed;
    // What costs nothing so far is found out as far as it matters; messages of half a truth need not be good ones.
    for (unsigned round = 0, isRefined = false; round < kRounds; ++round) {
      options.mostPasses = isRefined ? mostPasses : kPassesOfRound;
      passed = passMessages(tables.getGraph(), price, options, unfinished.empty() ? nullptr : &unfinished);
      unfinished = std::move(passed.unfinished);
      passes += passed.passes;
      bool isReached = passed.bound >= options.reach || isRefined;
      isRefined = refineLeast(tables.getGraph(), passed.messages, std::abs(passed.bound) / kMargin) == 0;
      if (isReached && isRefined)
        break;
    }
    if (passed.bound - taken > best.bound)
      best = {price, passed.bound - taken, std::move(passed.messages)};
    return tables.countStored(passed.options);
  };
  int64_t stored = tryPrice({}, PassOptions().mostPasses);
  if (mostBytes > 0 && stored > mostBytes && best.bound < reach) {
    int64_t low = kFirstPrice / kStep, high = kFirstPrice;
    while (high < kLastPrice && limitUnits({high}, mostBytes) < kMostUnits &&
           tryPrice({high}, kPassesAtFirst) > mostBytes) {
      low = high;
      high *= kStep;
    }
    for (unsigned round = 0; round < kBisections; ++round) {
      auto middle = static_cast<int64_t>(std::sqrt(static_cast<double>(low)) * std::sqrt(static_cast<double>(high)));
      (tryPrice({middle}, kPassesAtFirst) > mostBytes ? low : high) = middle;
    }
    tryPrice(MemoryPrice(best.price), PassOptions().mostPasses);
  }
  best.passes = passes;
  return best;
}
