//===- StateTest.cpp - values, extents and interning of states ------------===//
#include "cleave/Sharding/State.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;
using Shape = llvm::SmallVector<int64_t, 4>;

static const std::vector<std::string> names = {"x", "y"};

TEST(StateTest, PartialAtomsStaySortedAndForgetTheirKindWhenGone) {
  State state = State::replicated(2), plain = state;
  state.addPartial(2, ReductionKind::Max);
  state.addPartial(0, ReductionKind::Max);
  EXPECT_EQ(state.partial, (AtomList{0, 2}));
  EXPECT_TRUE(state.isPartialOver(2));
  EXPECT_FALSE(state.isIdle(2));
  EXPECT_FALSE(state.isReplicated());
  state.removePartial(0);
  state.removePartial(2);
  EXPECT_EQ(state, plain);
  EXPECT_TRUE(state.isReplicated());
}

TEST(StateTest, UnevenShardsAreRoundedUp) {
  AtomMesh mesh({2, 3});
  State state = State::replicated(3);
  state.dims[0] = {0, 1}; // 10 over 6
  state.dims[2] = {};
  EXPECT_EQ(localShape(mesh, {10, 5, 7}, state), (Shape{2, 5, 7}));
  EXPECT_EQ(localBytes(mesh, {10, 5, 7}, 4, state), 2 * 5 * 7 * 4);
  EXPECT_EQ(localBytes(mesh, {0, 5, 7}, 4, state), 0);
  EXPECT_TRUE(isUneven(mesh, {10, 5, 7}, state));
  EXPECT_FALSE(isUneven(mesh, {12, 5, 7}, state));
  EXPECT_FALSE(isUneven(mesh, {0, 5, 7}, state));
}

TEST(StateTest, PrintsLikeAPlan) {
  AtomMesh mesh({2, 4});
  State state = State::replicated(3);
  EXPECT_EQ(toString(mesh, names, state), "[_, _, _]");
  state.dims[1] = {2};
  state.dims[2] = {0};
  state.addPartial(1, ReductionKind::Max);
  EXPECT_EQ(toString(mesh, names, state), R"([_, y:(2)2, x] partial(y:(1)2: max))");
  state = State::replicated(1);
  state.dims[0] = {1, 2, 0};
  EXPECT_EQ(toString(mesh, names, state), R"([[y, x]])");
}

TEST(StateTest, OrderDistinguishesWhatEqualityDistinguishes) {
  State a = State::replicated(2), b = a, c = a, d = a;
  b.dims[0] = {1};
  c.dims[1] = {1};
  d.addPartial(1, ReductionKind::Sum);
  State e = d;
  e.kind = ReductionKind::Max;
  std::vector<State> all = {e, d, c, b, a};
  llvm::sort(all);
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < all.size(); ++j) {
      EXPECT_EQ(all[i] < all[j], i < j);
      EXPECT_EQ(all[i] == all[j], i == j);
    }
}

TEST(StateTest, TableInternsEqualStatesOnce) {
  StateTable table;
  State a = State::replicated(2), b = a;
  b.dims[1] = {3};
  StateId first = table.intern(a), second = table.intern(b);
  EXPECT_EQ(first, 0u);
  EXPECT_EQ(second, 1u);
  EXPECT_EQ(table.intern(State::replicated(2)), first);
  EXPECT_EQ(table.intern(State::replicated(3)), 2u);
  EXPECT_EQ(table[second], b);
  EXPECT_EQ(table.size(), 3u);
}

// The split between dims is part of the value: [{0, 1}, {}] is not [{0}, {1}].
TEST(StateTableTest, SeesTheSplitBetweenDims) {
  State a = State::replicated(2), b = a;
  a.dims[0] = {0, 1};
  b.dims[0] = {0};
  b.dims[1] = {1};
  StateTable table;
  EXPECT_NE(table.intern(a), table.intern(b));
}
