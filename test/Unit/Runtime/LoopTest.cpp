//===- LoopTest.cpp - loops of programs that run --------------------------===//
//
// How often a body runs is seen in what it makes: each iteration is x := 2 x + 1, so that n of them make 2^n (x + 1) - 1.
//
//===----------------------------------------------------------------------===//
#include "Conformance.h"
#include "RunnableSamples.h"

#include <cmath>
#include <gtest/gtest.h>
#include <optional>

using namespace cleave::program;
using namespace cleave::runtime;
using namespace cleave::runtime::test;

namespace {
/// What stands around the body of a program, outermost first; conditions are inputs, `go` and `again`.
struct LoopForm {
  int64_t count = -1;
  bool hasCondition = false;
};
} // namespace

static Builder makeLoops(const std::vector<LoopForm> &loops) {
  Builder b;
  uint32_t type = b.addType({4}), flag = b.addType({}, Element::I1);
  uint32_t kernel = b.addKernel("test_affine", {type, type}, 1, 2), x = b.addBuffer(BufferKind::Input, 16);
  uint32_t go = b.addBuffer(BufferKind::Input, 1), again = b.addBuffer(BufferKind::Input, 1);
  uint32_t arena = b.addBuffer(BufferKind::Activations, 64), y = b.addBuffer(BufferKind::Output, 16);
  View inX{x, type, {}}, inGo{go, flag, {}}, inAgain{again, flag, {}}, made{arena, type, {}}, carried{y, type, {}};
  int32_t node = b.addNode("/loop");
  b.add(Copy{inX, carried}, 0, node);
  for (const LoopForm &loop : loops)
    b.add(Loop{loop.count, loop.hasCondition ? std::optional(inGo) : std::nullopt}, 0, node);
  b.launch(kernel, {carried, made}, {4, 1}, node);
  b.add(Copy{made, carried}, 0, node);
  for (size_t i = loops.size(); i-- > 0;)
    b.add(EndLoop{loops[i].hasCondition ? std::optional(inAgain) : std::nullopt}, 0, node);
  b.addInput("x", type, inX);
  b.addInput("go", flag, inGo);
  b.addInput("again", flag, inAgain);
  b.addOutput("y", type, carried);
  return b;
}

/// The message of an error, or how many iterations there were, of two calls: a call knows nothing of the one before it.
static std::string runLoops(const std::vector<LoopForm> &loops, bool go = false, bool again = false) {
  auto executor = openProgram(makeLoops(loops));
  if (!executor)
    return "not opened";
  std::string result;
  for (int call = 0; call < 2; ++call) {
    std::vector<float> x = {0, 1, float(call), -3};
    std::vector<Value> outputs;
    std::string message = getMessage(executor->run(
        {makeArgument("x", {4}, x), {"go", ElementType::I1, {}, &go}, {"again", ElementType::I1, {}, &again}},
        outputs));
    if (!message.empty())
      return message;
    float times = getFloats(outputs[0])[0] + 1;
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(getFloats(outputs[0])[i], times * (x[i] + 1) - 1) << i;
    result += (call ? " " : "") + std::to_string(int(std::log2(times)));
  }
  return result;
}

TEST(Loop, RunsAsOftenAsItCounts) {
  EXPECT_EQ(runLoops({{5}}), "5 5");
  EXPECT_EQ(runLoops({{1}}), "1 1");
  EXPECT_EQ(runLoops({{0}}), "0 0");
}

// The condition of the first iteration is read in front of it, that of the others behind the one before.
TEST(Loop, RunsWhileItsConditionHolds) {
  EXPECT_EQ(runLoops({{-1, true}}, false, true), "0 0");
  EXPECT_EQ(runLoops({{-1, true}}, true, false), "1 1");
  EXPECT_EQ(runLoops({{4, true}}, true, true), "4 4");
  EXPECT_EQ(runLoops({{0, true}}, true, true), "0 0");
}

// An inner loop counts anew in each iteration of the outer one.
TEST(Loop, RunsInALoop) {
  EXPECT_EQ(runLoops({{3}, {2}}), "6 6");
  EXPECT_EQ(runLoops({{3}, {0}}), "0 0");
  EXPECT_EQ(runLoops({{2}, {3}, {2}}), "12 12");
  EXPECT_EQ(runLoops({{3}, {2, true}}, true, false), "3 3");
}

TEST(Loop, OneWithoutAnEndIsAnError) {
  std::string message = runLoops({{-1, true}}, true, true);
  EXPECT_NE(message.find("the loop has not ended after 1048576 iterations"), std::string::npos) << message;
  EXPECT_NE(message.find("/loop"), std::string::npos) << message;
}
