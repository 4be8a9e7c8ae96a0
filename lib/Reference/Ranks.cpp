//===- Ranks.cpp - ranks of a mesh, their groups and shards ---------------===//
#include "Ranks.h"

#include "Loops.h"
#include <map>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

Digits::Digits(spmd::MeshAttr mesh, ArrayRef<Attribute> axes) {
  SmallVector<int64_t> strides = getRowMajorStrides(mesh.getSizes());
  for (Attribute attr : axes) {
    auto axis = cast<spmd::AxisAttr>(attr);
    unsigned index = *mesh.findAxis(axis.getName());
    int64_t extent = axis.getExtent(mesh);
    int64_t below = mesh.getSizes()[index] / (axis.getPreSize() * extent); // product of the more-minor digits
    digits.push_back({extent, strides[index] * below});
  }
}

int64_t Digits::getIndex(int64_t rank) const {
  int64_t index = 0;
  for (Digit digit : digits)
    index = index * digit.extent + rank / digit.stride % digit.extent;
  return index;
}

int64_t Digits::getCount() const {
  int64_t count = 1;
  for (Digit digit : digits)
    count *= digit.extent;
  return count;
}

int64_t Digits::getBase(int64_t rank) const {
  int64_t base = rank;
  for (Digit digit : digits)
    base -= rank / digit.stride % digit.extent * digit.stride;
  return base;
}

std::vector<SmallVector<int64_t>> cleave::reference::getGroups(int64_t numRanks, const Digits &digits) {
  std::vector<SmallVector<int64_t>> groups;
  std::vector<int64_t> groupOfBase(numRanks, -1);
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    int64_t &group = groupOfBase[digits.getBase(rank)];
    if (group < 0) {
      group = groups.size();
      groups.emplace_back(digits.getCount());
    }
    groups[group][digits.getIndex(rank)] = rank;
  }
  return groups;
}

SmallVector<int64_t> cleave::reference::getCroppedShape(ArrayRef<int64_t> global, spmd::ShardingAttr sharding,
                                                        int64_t rank) {
  SmallVector<int64_t> shape = sharding.getLocalShape(global), offset = sharding.getOffset(global, rank);
  for (size_t dim = 0; dim < shape.size(); ++dim)
    shape[dim] = std::min(shape[dim], std::max<int64_t>(global[dim] - offset[dim], 0));
  return shape;
}

PerRank cleave::reference::takeShards(const Tensor &global, spmd::ShardingAttr sharding) {
  SmallVector<int64_t> local = sharding.getLocalShape(global.getShape()), zeros(local.size(), 0);
  std::map<SmallVector<int64_t>, Tensor> shards; // by offset
  PerRank result;
  for (int64_t rank = 0, count = sharding.getMesh().getNumRanks(); rank < count; ++rank) {
    SmallVector<int64_t> offset = sharding.getOffset(global.getShape(), rank);
    auto [entry, isNew] = shards.try_emplace(offset);
    if (isNew && global.getShape() == ArrayRef<int64_t>(local)) {
      entry->second = global;
    } else if (isNew) {
      entry->second = Tensor::zeros(RankedTensorType::get(local, global.getElementType()));
      copyBox(getCroppedShape(global.getShape(), sharding, rank), global, offset, entry->second, zeros);
    }
    result.push_back(entry->second);
  }
  if (!sharding.isPartial())
    return result;
  SmallVector<Attribute> axes(sharding.getPartial().begin(), sharding.getPartial().end());
  Digits digits(sharding.getMesh(), axes);
  Tensor nothing = getIdentity(RankedTensorType::get(local, global.getElementType()), sharding.getPartialKind());
  for (auto [rank, shard] : llvm::enumerate(result))
    if (digits.getIndex(rank) != 0)
      shard = nothing;
  return result;
}
