//===- ExecutorTest.cpp - programs that run -------------------------------===//
//
// Each program is made by hand from kernels in C; what it must give is computed here, by a formula, from the inputs.
//
//===----------------------------------------------------------------------===//
#include "Conformance.h"
#include "Programs.h"

#include <gtest/gtest.h>

using namespace cleave::program;
using namespace cleave::runtime;
using namespace cleave::runtime::test;
using cleave::runtime::Event;

/// y = 2 (2 x + 1) + 2 by two kernels, then a copy.
static Builder makeChain() {
  Builder b;
  uint32_t type = b.addType({4, 8});
  uint32_t kernel = b.addKernel("test_affine", {type, type}, 1, 2);
  uint32_t x = b.addBuffer(BufferKind::Input, 128), y = b.addBuffer(BufferKind::Output, 128);
  uint32_t arena = b.addBuffer(BufferKind::Activations, 256);
  View inX{x, type, {}}, first{arena, type, {}}, second{arena, type, {128, -1}}, inY{y, type, {}};
  b.launch(kernel, {inX, first}, {32, 1}, b.addNode("/a"));
  b.launch(kernel, {first, second}, {32, 2}, b.addNode("/b"));
  b.add(Copy{second, inY}, 0, b.addNode("/c"));
  b.addInput("x", type, inX);
  b.addOutput("y", type, inY);
  return b;
}

TEST(Executor, RunsKernelsAndCopies) {
  auto executor = openProgram(makeChain());
  ASSERT_TRUE(executor);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    std::vector<float> x = makeFloats(32, seed);
    std::vector<Value> outputs;
    ASSERT_EQ(getMessage(executor->run({makeArgument("x", {4, 8}, x)}, outputs)), "");
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].name, "y");
    EXPECT_EQ(outputs[0].shape, (Shape{4, 8}));
    std::vector<float> y = getFloats(outputs[0]);
    for (size_t i = 0; i < 32; ++i)
      EXPECT_EQ(y[i], 4 * x[i] + 4) << i;
  }
  EXPECT_EQ(executor->getPeakBytes(), 512u);
}
