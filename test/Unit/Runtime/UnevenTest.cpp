//===- UnevenTest.cpp - shards that end behind their tensor ---------------===//
//
// Each rank copies its shard of x to an output, once as a shard of y, whose padding nobody gets, and once as a box of its own of z, where
// the padding shows: it must be zeros, whatever was there before.
//
//===----------------------------------------------------------------------===//
#include "Programs.h"
#include <gtest/gtest.h>

using namespace cleave::program;
using namespace cleave::runtime;
using namespace cleave::runtime::test;

namespace {

/// Where the shards of `rows` rows on `ranks` ranks begin, and how many rows there are of each.
struct Shards {
  Shards(int64_t rows, int64_t ranks) : size((rows + ranks - 1) / ranks) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      starts.push_back(std::min(rank * size, rows));
      present.push_back(std::min(size, rows - starts.back()));
      boxes.push_back(rank * size);
    }
  }
  int64_t size;
  Shape starts, present, boxes;
};

/// Variants of 5 rows and of as many as divide, in the same buffers.
Builder makeUneven(uint32_t ranks) {
  Builder b(ranks);
  Shards uneven(5, ranks);
  int64_t size = uneven.size, all = size * ranks;
  uint32_t local = b.addType({size, 3}), y = b.addType({5, 3}), z = b.addType({all, 3});
  uint64_t bytes = uint64_t(size) * 12;
  View in{b.addBuffer(BufferKind::Input, bytes), local, {}}, out{b.addBuffer(BufferKind::Output, bytes), local, {}},
      box{b.addBuffer(BufferKind::Output, bytes), local, {}};
  Number start{0, b.addColumn(uneven.starts)}, present{0, b.addColumn(uneven.present)},
      own{0, b.addColumn(uneven.boxes)};
  b.add(Copy{in, out});
  b.add(Copy{in, box});
  std::vector<Number> held{present, {3, -1}};
  b.addInput("x", y, in, {start, {}}).places[0].present = held;
  b.addOutput("y", y, out, {start, {}}).places[0].present = held;
  b.addOutput("z", z, box, {own, {}});
  Variant even = b.variant();
  even.inputs[0].type = even.outputs[0].type = z;
  for (Tensor *tensor : {&even.inputs[0], &even.outputs[0]}) {
    tensor->places[0].starts[0] = own;
    tensor->places[0].present.clear();
  }
  b.program.variants.push_back(even);
  return b;
}

TEST(Uneven, PaddingIsZerosAndIsNotHandedOut) {
  for (uint32_t ranks : {2u, 3u, 4u}) {
    Builder program = makeUneven(ranks);
    auto executor = openProgram(program);
    ASSERT_TRUE(executor);
    int64_t all = program.program.types[2].shape[0];
    std::vector<float> full = makeFloats(size_t(all) * 3, 7), x = makeFloats(15, 8);
    for (float &element : full)
      element += 100;
    for (int call = 0; call < 2; ++call) {
      std::vector<Value> outputs;
      ASSERT_EQ(getMessage(executor->run({makeArgument("x", {all, 3}, full)}, outputs)), "");
      EXPECT_EQ(getFloats(outputs[0]), full);
      ASSERT_EQ(getMessage(executor->run({makeArgument("x", {5, 3}, x)}, outputs)), "");
      EXPECT_EQ(outputs[0].shape, (Shape{5, 3}));
      EXPECT_EQ(getFloats(outputs[0]), x);
      std::vector<float> padded = x;
      padded.resize(size_t(all) * 3, 0);
      EXPECT_EQ(getFloats(outputs[1]), padded) << ranks << " ranks";
    }
  }
}

} // namespace
