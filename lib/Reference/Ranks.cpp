//===- Ranks.cpp - tensors of all ranks ------------------------------------===//
//
// Ranks that hold the same shard share one tensor, so a replicated weight of a large mesh exists once. Of a partial
// sharding, the first rank of each group has the value and the others the identity of the reduction.
//
//===----------------------------------------------------------------------===//
#include "Ranks.h"

#include "Loops.h"
#include "cleave/Dialect/Spmd/IR/ShardBox.h"
#include "cleave/Sharding/RankGroups.h"
#include <limits>
#include <map>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

Tensor cleave::reference::fill(RankedTensorType type, TypedAttr number) {
  Tensor result = Tensor::zeros(type);
  FailureOr<Tensor> one =
      Tensor::fromAttr(DenseElementsAttr::get(RankedTensorType::get({}, type.getElementType()), Attribute(number)));
  MutableArrayRef<char> bytes(const_cast<char *>(result.getBytes().data()), result.getBytes().size());
  for (size_t at = 0; at < bytes.size(); at += one->getBytes().size())
    llvm::copy(one->getBytes(), bytes.begin() + at);
  return result;
}

/// What is seen best where somebody looks at it.
Tensor cleave::reference::makePadding(RankedTensorType type) {
  Builder builder(type.getContext());
  Type element = type.getElementType();
  if (isa<FloatType>(element))
    return fill(type, builder.getFloatAttr(element, std::numeric_limits<double>::quiet_NaN()));
  constexpr int64_t kLarge = 0x55;
  return fill(type, builder.getIntegerAttr(element, element.isInteger(1) ? 1 : kLarge));
}

PerRank cleave::reference::takeShards(const Tensor &global, spmd::ShardingAttr sharding) {
  SmallVector<int64_t> local = sharding.getLocalShape(global.getShape()), zeros(local.size(), 0);
  std::map<SmallVector<int64_t>, Tensor> shards; // by offset
  PerRank result;
  for (int64_t rank = 0, count = sharding.getMesh().getNumRanks(); rank < count; ++rank) {
    spmd::ShardBox box = spmd::getShardBox(sharding, global.getShape(), rank);
    auto [entry, isNew] = shards.try_emplace(box.start);
    if (isNew && global.getShape() == ArrayRef<int64_t>(local)) {
      entry->second = global;
    } else if (isNew) {
      auto type = RankedTensorType::get(local, global.getElementType());
      entry->second = box.isPadded() ? makePadding(type) : Tensor::zeros(type);
      copyBox(box.present, global, box.start, entry->second, zeros);
    }
    result.push_back(entry->second);
  }
  if (!sharding.isPartial())
    return result;
  spmd::RankGroups groups = sharding.getMesh().getRankGroups(sharding.getPartial());
  Tensor nothing = getIdentity(RankedTensorType::get(local, global.getElementType()), sharding.getPartialKind());
  for (auto [rank, shard] : llvm::enumerate(result))
    if (groups.indexOf(rank) != 0)
      shard = nothing;
  return result;
}
