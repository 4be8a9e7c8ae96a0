//===- ServeWantsTest.cpp - copies of one value for all its users ---------===//
//
// Values of 8x8 f32 on one axis of 4 (atoms 0 and 1) or 2x2: 256 bytes in all.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/ServeWants.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;

namespace {

struct Served {
  Served(std::vector<int64_t> axes, std::vector<AtomList> have, std::vector<std::vector<AtomList>> wants)
      : mesh(axes), planner(mesh), costs(planner, states) {
    llvm::SmallVector<StateId> ids;
    for (const std::vector<AtomList> &want : wants)
      ids.push_back(intern(want));
    steps = serveWants(costs, costs.internShape({8, 8}, 4), intern(have), ids, intern({{}, {}}));
    for (const ServedWant &step : steps)
      bytes += step.cost / kCostUnitsPerByte;
  }
  StateId intern(const std::vector<AtomList> &dims) {
    State state;
    state.dims.assign(dims.begin(), dims.end());
    return states.intern(state);
  }

  AtomMesh mesh;
  StateTable states;
  ReshardPlanner planner;
  ReshardCosts costs;
  llvm::SmallVector<ServedWant, 2> steps;
  int64_t bytes = 0;
};

// [x|y] is wanted as [-|y] and whole: 64 bytes are gathered over x, and the result of that over y, 128.
TEST(ServeWantsTest, StartsFromACopyMadeBefore) {
  Served served({2, 2}, {{0}, {1}}, {{{}, {}}, {{}, {1}}});
  ASSERT_EQ(served.steps.size(), 2u);
  EXPECT_EQ(served.steps[0].want, 1u);
  EXPECT_EQ(served.steps[0].source, 0u);
  EXPECT_EQ(served.steps[1].want, 0u);
  EXPECT_EQ(served.steps[1].source, 1u);
  EXPECT_EQ(served.bytes, 64 + 128);
}

// [-|x] is wanted as [x|-] and whole. An all_to_all (48) would be the cheapest first step, but the gather (192) makes
// the other one a slice.
TEST(ServeWantsTest, MakesADearCopyFirstWhereTheOthersAreSlicesOfIt) {
  Served served({4}, {{}, {0, 1}}, {{{0, 1}, {}}, {{}, {}}});
  ASSERT_EQ(served.steps.size(), 2u);
  EXPECT_EQ(served.steps[0].want, 1u);
  EXPECT_EQ(served.steps[1].want, 0u);
  EXPECT_EQ(served.steps[1].cost, 0);
  EXPECT_EQ(served.bytes, 192);
}

// Rows on 8 ranks are wanted on 2, by the last atom and by the middle one. Each takes 32 bytes to their place and a gather of 3 times 32, 128
// in all; the whole takes 7/8 of 256, and both are slices of it.
TEST(ServeWantsTest, MakesTheReplicatedFirstWhereTheOthersAreSlicesOfIt) {
  Served served({8}, {{0, 1, 2}, {}}, {{{2}, {}}, {{1}, {}}});
  ASSERT_EQ(served.steps.size(), 3u);
  EXPECT_EQ(served.steps[0].want, 2u);
  for (const ServedWant &step : llvm::ArrayRef<ServedWant>(served.steps).drop_front()) {
    EXPECT_EQ(step.source, 1u);
    EXPECT_EQ(step.cost, 0);
  }
  EXPECT_EQ(served.bytes, 224);
  EXPECT_EQ(Served({8}, {{0, 1, 2}, {}}, {{{2}, {}}}).bytes, 128);
  EXPECT_EQ(Served({8}, {{0, 1, 2}, {}}, {{{1}, {}}}).bytes, 128);
}

TEST(ServeWantsTest, NothingWantedNeedsNothing) { EXPECT_TRUE(Served({4}, {{0, 1}, {}}, {}).steps.empty()); }

} // namespace
