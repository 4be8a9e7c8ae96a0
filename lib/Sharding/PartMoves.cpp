//===- PartMoves.cpp - parts of a concatenation to their places -----------===//
//
// Of all positions member t wants [t * wanted, (t + 1) * wanted), and of a part that begins at `start` among them source s has
// [start + s * shard, start + (s + 1) * shard):
//
//   all of them  |a0 a1 a2 ..|b0    b1    b2 ..|        wanted by t: |---------|
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/PartMoves.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>
#include <set>

using namespace llvm;

void cleave::spmd::forEachPartPiece(ArrayRef<int64_t> parts, int64_t members, int64_t target,
                                    function_ref<void(const PartPiece &)> callback) {
  int64_t all = std::accumulate(parts.begin(), parts.end(), int64_t(0)), wanted = divideCeil(all, members);
  int64_t begin = target * wanted, end = std::min(begin + wanted, all), start = 0, held = 0;
  for (int64_t part : parts) {
    int64_t shard = divideCeil(part, members);
    // From the source on whose piece is the first that ends behind `begin`.
    for (int64_t source = shard ? std::max<int64_t>(begin - start, 0) / shard : members; source < members; ++source) {
      int64_t piece = start + source * shard, first = std::max(begin, piece),
              last = std::min({end, piece + shard, start + part});
      if (first >= last)
        break;
      callback({source, held + first - piece, first - begin, last - first});
    }
    start += part;
    held += shard;
  }
}

/// A shard of a part is an interval of all positions, which may lie with several sources.
void cleave::spmd::forEachSplitPiece(ArrayRef<int64_t> parts, int64_t members, int64_t target,
                                     function_ref<void(const PartPiece &)> callback) {
  int64_t all = std::accumulate(parts.begin(), parts.end(), int64_t(0)), held = divideCeil(all, members);
  int64_t start = 0, made = 0;
  for (int64_t part : parts) {
    int64_t shard = divideCeil(part, members), begin = start + target * shard,
            end = std::min(begin + shard, start + part);
    for (int64_t at = begin; at < end;) {
      int64_t source = at / held, last = std::min(end, (source + 1) * held);
      callback({source, at - source * held, made + at - begin, last - at});
      at = last;
    }
    start += part;
    made += shard;
  }
}

using ForEachPiece = decltype(cleave::spmd::forEachPartPiece);

static int64_t countMost(ForEachPiece forEachPiece, ArrayRef<int64_t> parts, int64_t members) {
  SmallVector<int64_t> sent(members, 0);
  for (int64_t target = 0; target < members; ++target)
    forEachPiece(parts, members, target, [&](const cleave::spmd::PartPiece &piece) {
      if (piece.source != target)
        sent[piece.source] += piece.extent;
    });
  return *max_element(sent);
}

int64_t cleave::spmd::countSentOfParts(ArrayRef<int64_t> parts, int64_t members) {
  return countMost(forEachPartPiece, parts, members);
}

int64_t cleave::spmd::countSentOfSplit(ArrayRef<int64_t> parts, int64_t members) {
  return countMost(forEachSplitPiece, parts, members);
}

static int64_t countMostPeers(ForEachPiece forEachPiece, ArrayRef<int64_t> parts, int64_t members) {
  std::set<std::pair<int64_t, int64_t>> pairs; // source, target
  for (int64_t target = 0; target < members; ++target)
    forEachPiece(parts, members, target, [&](const cleave::spmd::PartPiece &piece) {
      if (piece.source != target)
        pairs.insert({piece.source, target});
    });
  SmallVector<int64_t> targets(members, 0), sources(members, 0);
  for (auto [source, target] : pairs) {
    ++targets[source];
    ++sources[target];
  }
  return std::max(*max_element(targets), *max_element(sources));
}

int64_t cleave::spmd::countPeersOfParts(ArrayRef<int64_t> parts, int64_t members) {
  return countMostPeers(forEachPartPiece, parts, members);
}

int64_t cleave::spmd::countPeersOfSplit(ArrayRef<int64_t> parts, int64_t members) {
  return countMostPeers(forEachSplitPiece, parts, members);
}
