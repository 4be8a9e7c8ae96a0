//===- ShardBox.cpp - a rank's box of a tensor ----------------------------===//
//
// Shards have one extent, which is rounded up: 7 rows on 4 ranks are shards of 2.
//
//   rank 0 [0 1]   rank 1 [2 3]   rank 2 [4 5]   rank 3 [6 -]       starts 0, 2, 4, 6; present 2, 2, 2, 1
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/ShardBox.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

ShardBox cleave::spmd::getShardBox(ShardingAttr sharding, ArrayRef<int64_t> shape, int64_t rank) {
  SmallVector<int64_t> whole(shape);
  if (!sharding)
    return {SmallVector<int64_t>(shape.size(), 0), whole, whole};
  ShardBox box{sharding.getOffset(shape, rank), {}, sharding.getLocalShape(shape)};
  for (auto [extent, start, most] : llvm::zip_equal(shape, box.start, box.extents))
    box.present.push_back(std::clamp<int64_t>(extent - start, 0, most));
  return box;
}
