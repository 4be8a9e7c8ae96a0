//===- RankGroups.cpp - ranks that differ along some axes -----------------===//
//
// Axis `"a":(p)s` of a=12, written as p * s * q, is the digit `coordinate / q % s`; a rank's coordinate along an axis is
// what is left of it after dividing by the sizes of the axes behind. Both divisions are one stride.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/RankGroups.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>

using namespace llvm;

namespace cleave::spmd {

RankGroups::RankGroups(ArrayRef<int64_t> axisSizes, ArrayRef<SubAxis> axes) {
  SmallVector<int64_t, 4> strides(axisSizes.size());
  for (size_t axis = axisSizes.size(); axis-- > 0; numRanks *= axisSizes[axis])
    strides[axis] = numRanks;
  assert(all_of(axisSizes, [](int64_t size) { return size >= 1; }) && "an axis without devices");
  for (const SubAxis &axis : axes) {
    assert(axisSizes[axis.axis] % (axis.preSize * axis.size) == 0 && "a sub-axis of another axis");
    add({axis.size, strides[axis.axis] * (axisSizes[axis.axis] / (axis.preSize * axis.size))});
  }
}

RankGroups::RankGroups(const AtomMesh &mesh, ArrayRef<AtomId> atoms) : numRanks(mesh.numRanks()) {
  for (AtomId atom : atoms)
    add({mesh.size(atom), mesh.stride(atom)});
}

void RankGroups::add(Digit digit) {
  digits.push_back(digit);
  count *= digit.extent;
}

int64_t RankGroups::indexOf(int64_t rank) const {
  int64_t index = 0;
  for (Digit digit : digits)
    index = index * digit.extent + rank / digit.stride % digit.extent;
  return index;
}

int64_t RankGroups::baseOf(int64_t rank) const {
  int64_t base = rank;
  for (Digit digit : digits)
    base -= rank / digit.stride % digit.extent * digit.stride;
  return base;
}

SmallVector<int64_t> RankGroups::membersOf(int64_t rank) const {
  SmallVector<int64_t> members{baseOf(rank)};
  for (Digit digit : digits) {
    SmallVector<int64_t> finer;
    for (int64_t member : members)
      for (int64_t i = 0; i < digit.extent; ++i)
        finer.push_back(member + i * digit.stride);
    members = std::move(finer);
  }
  return members;
}

void RankGroups::forEachGroup(function_ref<void(ArrayRef<int64_t>)> callback) const {
  for (int64_t rank = 0; rank < numRanks; ++rank)
    if (indexOf(rank) == 0)
      callback(membersOf(rank));
}

} // namespace cleave::spmd
