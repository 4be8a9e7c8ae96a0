//===- ShardMoves.cpp - who gives whom what when a sharding changes -------===//
//
// Both questions, where a shard's pieces come from and where they go, are one: a rank has a box under one state; which
// ranks, that differ from it in `moving` atoms only, have a box under the other state that overlaps? Dim by dim, the
// shards that overlap are a run; a shard's number says the digits of its atoms, which make up the partner's rank:
//
//   partner  =  the rank without its moving digits  +  per dim digits * strides  +  digits that split nothing
//
// Where a digit is not moving, the partner's is the rank's own, and shards with another one are passed over.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/ShardMoves.h"
#include "cleave/Sharding/RankGroups.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>

using namespace llvm;

namespace cleave::spmd {

int64_t Box::numElements() const {
  int64_t product = 1;
  for (int64_t extent : extents)
    product *= extent;
  return product;
}

Box shardOf(const AtomMesh &mesh, ArrayRef<int64_t> shape, const State &state, int64_t rank) {
  Box box;
  for (auto [extent, atoms] : zip_equal(shape, state.dims)) {
    int64_t width = shardExtent(mesh, extent, atoms);
    int64_t start = std::min(RankGroups(mesh, atoms).indexOf(rank) * width, extent);
    box.start.push_back(start);
    box.extents.push_back(std::min(width, extent - start));
  }
  return box;
}

ShardMoves::ShardMoves(const AtomMesh &mesh, ArrayRef<int64_t> shape, const State &from, const State &to)
    : mesh(mesh), shape(shape), from(from), to(to) {
  assert(from.rank() == shape.size() && to.rank() == shape.size() && "one extent per dim");
  for (const AtomList &atoms : from.dims)
    moving.append(atoms);
  sort(moving); // so that targets of one piece come in ascending order
}

namespace {
/// The part of one dim that overlaps with one shard of the partner, and what that shard adds to the partner's rank.
struct Overlap {
  int64_t start, extent, rankStep;
};
} // namespace

/// The product of the overlaps, dim by dim.
static void combine(ArrayRef<SmallVector<Overlap, 4>> dims, int64_t partner, Box &box,
                    function_ref<void(int64_t, const Box &)> callback) {
  if (dims.empty())
    return callback(partner, box);
  for (const Overlap &overlap : dims.front()) {
    box.start.push_back(overlap.start);
    box.extents.push_back(overlap.extent);
    combine(dims.drop_front(), partner + overlap.rankStep, box, callback);
    box.start.pop_back();
    box.extents.pop_back();
  }
}

void ShardMoves::forEachPartner(int64_t rank, const State &own, const State &other,
                                function_ref<void(int64_t, const Box &)> callback) const {
  /// What shard number `shard` over `atoms` adds to the partner's rank; nothing if it is none of a partner.
  auto findStep = [&](ArrayRef<AtomId> atoms, int64_t shard) -> std::optional<int64_t> {
    int64_t step = 0;
    for (AtomId atom : reverse(atoms)) {
      int64_t digit = shard % mesh.size(atom);
      shard /= mesh.size(atom);
      if (is_contained(moving, atom))
        step += digit * mesh.stride(atom);
      else if (digit != mesh.coordinate(rank, atom))
        return std::nullopt;
    }
    return step;
  };
  Box box = shardOf(mesh, shape, own, rank), piece;
  if (is_contained(box.extents, 0))
    return;
  SmallVector<SmallVector<Overlap, 4>, 4> dims;
  for (auto [start, extent, whole, atoms] : zip_equal(box.start, box.extents, shape, other.dims)) {
    int64_t width = shardExtent(mesh, whole, atoms), end = start + extent;
    SmallVector<Overlap, 4> &overlaps = dims.emplace_back();
    for (int64_t shard = start / width; shard * width < end; ++shard)
      if (std::optional<int64_t> step = findStep(atoms, shard)) {
        int64_t low = std::max(start, shard * width), high = std::min(end, (shard + 1) * width);
        overlaps.push_back({low, high - low, *step});
      }
  }
  AtomList unsplit;
  copy_if(moving, std::back_inserter(unsplit), [&](AtomId atom) { return !other.splits(atom); });
  SmallVector<int64_t> copies = RankGroups(mesh, unsplit).membersOf(RankGroups(mesh, moving).baseOf(rank));
  combine(dims, 0, piece, [&](int64_t steps, const Box &box) {
    for (int64_t copy : copies)
      callback(copy + steps, box);
  });
}

void ShardMoves::forEachInto(int64_t target, Callback callback) const {
  forEachPartner(target, to, from, [&](int64_t source, const Box &box) { callback({source, target, box}); });
}

void ShardMoves::forEachFrom(int64_t source, Callback callback) const {
  forEachPartner(source, from, to, [&](int64_t target, const Box &box) { callback({source, target, box}); });
}

} // namespace cleave::spmd
