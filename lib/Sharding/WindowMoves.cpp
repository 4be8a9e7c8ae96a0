//===- WindowMoves.cpp - who gives whom what of its edges -----------------===//
//
// Dims do not know of each other: a box is the product of its intervals, and so is what of it lies in a shard. So what a
// member sends is
//
//   sent  =  prod over dims of covered  -  prod over dims of own
//
// where covered adds up, over all intervals of a dim, what they share with the member's shard, and own is what its own
// interval does. Members that have the same numbers in a dim are counted once.
//
// Members that something goes to, or comes from, are counted by the same formula: covered is how many pieces of a dim share a position with
// the member's, and own is 1 where the member is among these.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/WindowMoves.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <array>
#include <set>

using namespace llvm;
using namespace cleave::spmd;

namespace {
/// What an interval and a shard share.
struct WindowOverlap {
  int64_t shard, from, to, extent;
};
/// What goes on along the dims so far.
struct WindowBox {
  int64_t source = 0;
  SmallVector<int64_t, 4> from, to, extents;
};
} // namespace

/// Runs of the dim one after the other, as often as it repeats.
static void forEachWrapped(const DimWindow &dim, int64_t piece, function_ref<void(const WindowOverlap &)> callback) {
  int64_t end = std::min(piece * dim.step + dim.high, dim.end), whole = dim.size();
  for (int64_t at = std::max(dim.startOf(piece), dim.first); at < end;) {
    int64_t from = (at % whole + whole) % whole, shard = from / dim.extent;
    int64_t count = std::min(end - at, std::min((shard + 1) * dim.extent, whole) - from);
    callback({shard, from, at, count});
    at += count;
  }
}

/// A position beyond the ends, seen in a mirror on the last position there is, or as that position itself.
static int64_t bringInside(const DimWindow &dim, int64_t at) {
  int64_t last = dim.size() - 1;
  if (dim.beyond == Beyond::Nearest || last == 0)
    return std::clamp<int64_t>(at, 0, last);
  int64_t inPeriod = (at % (2 * last) + 2 * last) % (2 * last);
  return std::min(inPeriod, 2 * last - inPeriod);
}

/// In ascending order of where it goes. Beyond the ends position by position: all are the same one, or come backwards.
static void forEachOverlap(const DimWindow &dim, int64_t piece, function_ref<void(const WindowOverlap &)> callback) {
  if (piece >= dim.takers)
    return;
  if (dim.beyond == Beyond::Wrap)
    return forEachWrapped(dim, piece, callback);
  int64_t begin = std::max(dim.startOf(piece), dim.first), end = std::min(piece * dim.step + dim.high, dim.end),
          whole = dim.size();
  if (whole == 0)
    return;
  auto callBeyond = [&](int64_t first, int64_t last) {
    for (int64_t to = dim.beyond == Beyond::Fill ? last : first; to < last; ++to) {
      int64_t from = bringInside(dim, to);
      callback({from / dim.extent, from, to, 1});
    }
  };
  callBeyond(begin, std::min<int64_t>(end, 0));
  for (int64_t at = std::max<int64_t>(begin, 0), last = std::min(end, whole); at < last;) {
    int64_t shard = at / dim.extent, next = std::min(last, (shard + 1) * dim.extent);
    callback({shard, at, at, next - at});
    at = next;
  }
  callBeyond(std::max(begin, whole), end);
}

static void combineWindows(ArrayRef<DimWindow> dims, ArrayRef<int64_t> pieces, WindowBox &box,
                           function_ref<void(const WindowPiece &)> callback) {
  if (dims.empty())
    return callback({box.source, box.from, box.to, box.extents});
  int64_t before = box.source;
  forEachOverlap(dims.front(), pieces.front(), [&](const WindowOverlap &overlap) {
    box.source = before * dims.front().pieces + overlap.shard;
    box.from.push_back(overlap.from);
    box.to.push_back(overlap.to);
    box.extents.push_back(overlap.extent);
    combineWindows(dims.drop_front(), pieces.drop_front(), box, callback);
    box.from.pop_back();
    box.to.pop_back();
    box.extents.pop_back();
  });
  box.source = before;
}

void cleave::spmd::forEachWindowPiece(ArrayRef<DimWindow> dims, int64_t target,
                                      function_ref<void(const WindowPiece &)> callback) {
  SmallVector<int64_t, 4> pieces(dims.size());
  for (size_t dim = dims.size(); dim-- > 0; target /= dims[dim].pieces)
    pieces[dim] = target % dims[dim].pieces;
  WindowBox box;
  combineWindows(dims, pieces, box, callback);
}

namespace {
/// Elements of a shard along one dim: that intervals cover, one by one, and that its own does.
struct Share {
  int64_t covered = 0, own = 0;
  bool operator<(const Share &other) const { return std::pair(covered, own) < std::pair(other.covered, other.own); }
};
} // namespace

/// The shares that occur along a dim.
static std::set<Share> findShares(const DimWindow &dim) {
  SmallVector<Share> shares(dim.pieces);
  for (int64_t piece = 0; piece < dim.pieces; ++piece)
    forEachOverlap(dim, piece, [&](const WindowOverlap &overlap) {
      shares[overlap.shard].covered += overlap.extent;
      if (overlap.shard == piece)
        shares[overlap.shard].own += overlap.extent;
    });
  return {shares.begin(), shares.end()};
}

/// The same of pieces and not of positions: those that a piece gets from, and those that get from it.
static std::array<std::set<Share>, 2> findPartners(const DimWindow &dim) {
  std::set<std::pair<int64_t, int64_t>> pairs; // source, target
  for (int64_t piece = 0; piece < dim.pieces; ++piece)
    forEachOverlap(dim, piece, [&](const WindowOverlap &overlap) { pairs.insert({overlap.shard, piece}); });
  SmallVector<Share> sources(dim.pieces), targets(dim.pieces);
  for (auto [source, target] : pairs) {
    ++sources[target].covered;
    ++targets[source].covered;
    if (source == target)
      sources[source].own = targets[source].own = 1;
  }
  return {std::set<Share>(sources.begin(), sources.end()), std::set<Share>(targets.begin(), targets.end())};
}

static int64_t countMost(ArrayRef<std::set<Share>> dims, int64_t covered, int64_t own) {
  if (dims.empty())
    return covered - own;
  int64_t most = 0;
  for (const Share &share : dims.front())
    most = std::max(most, countMost(dims.drop_front(), covered * share.covered, own * share.own));
  return most;
}

int64_t cleave::spmd::countSentElements(ArrayRef<DimWindow> dims) {
  if (any_of(dims, [](const DimWindow &dim) { return dim.size() == 0; }))
    return 0;
  SmallVector<std::set<Share>, 4> shares;
  for (const DimWindow &dim : dims)
    shares.push_back(findShares(dim));
  return countMost(shares, 1, 1);
}

int64_t cleave::spmd::countPeers(ArrayRef<DimWindow> dims) {
  if (any_of(dims, [](const DimWindow &dim) { return dim.size() == 0; }))
    return 0;
  SmallVector<std::set<Share>, 4> sources, targets;
  for (const DimWindow &dim : dims) {
    auto [from, to] = findPartners(dim);
    sources.push_back(std::move(from));
    targets.push_back(std::move(to));
  }
  return std::max(countMost(sources, 1, 1), countMost(targets, 1, 1));
}
