//===- RuleMatchTest.cpp - do operands and results agree? -----------------===//
#include "cleave/Sharding/RuleMatch.h"
#include "gtest/gtest.h"

using namespace cleave::spmd;

namespace {

/// Mesh x=4, y=6: atoms 0, 1 of x (2, 2) and 2, 3 of y (2, 3).
struct RuleMatchTest : testing::Test {
  AtomMesh mesh{{4, 6}};
  std::string error;

  static State state(llvm::ArrayRef<AtomList> dims, AtomList partial = {}, ReductionKind kind = ReductionKind::Sum) {
    State result;
    result.dims.assign(dims.begin(), dims.end());
    for (AtomId atom : partial)
      result.addPartial(atom, kind);
    return result;
  }

  std::optional<RuleMatch> match(const ShardingRule &rule, std::vector<State> operands, std::vector<State> results) {
    llvm::SmallVector<const State *> operandList, resultList;
    for (const State &operand : operands)
      operandList.push_back(&operand);
    for (const State &result : results)
      resultList.push_back(&result);
    return matchRule(mesh, rule, operandList, resultList, error);
  }

  /// ik,kj->ij with i=8, k=12, j=4; linear in either operand.
  static ShardingRule einsum() {
    RuleBuilder b(2, 1);
    auto i = b.addParallel(8), j = b.addParallel(4);
    auto k = b.addReduction(12, ReductionKind::Sum);
    b.operandDim(0, i).operandDim(0, k).operandDim(1, k).operandDim(1, j).resultDim(0, i).resultDim(0, j);
    b.addLinear({0}).addLinear({1});
    return b.rule;
  }

  /// 24 = [4, 6] as one dim, split into two.
  static ShardingRule split() {
    RuleBuilder b(1, 1);
    auto major = b.addParallel(4), minor = b.addParallel(6);
    b.operandDim(0, llvm::ArrayRef<FactorId>{*major, *minor}).resultDim(0, major).resultDim(0, minor);
    return b.rule;
  }
};

TEST_F(RuleMatchTest, ReplicatedOpsDoNothing) {
  auto result = match(einsum(), {state({{}, {}}), state({{}, {}})}, {state({{}, {}})});
  ASSERT_TRUE(result);
  for (unsigned choice : result->choices)
    EXPECT_EQ(choice, 0u);
}

TEST_F(RuleMatchTest, ReadsSplitsOffTheStates) {
  // i over x, k over the 3 of y: the result is partial over it.
  auto result = match(einsum(), {state({{0, 1}, {3}}), state({{3}, {}})}, {state({{0, 1}, {}}, {3})});
  ASSERT_TRUE(result) << error;
  EXPECT_EQ(result->splits[0], (AtomList{0, 1}));
  EXPECT_EQ(result->splits[1], AtomList());
  EXPECT_EQ(result->splits[2], AtomList{3});
  EXPECT_EQ(result->choices[0], 1u);
  EXPECT_EQ(result->choices[2], 0u);
  EXPECT_EQ(result->choices[3], 3u);
}

TEST_F(RuleMatchTest, PartialOperandsPassThroughLinearOps) {
  EXPECT_TRUE(match(einsum(), {state({{}, {}}, {2}), state({{}, {}})}, {state({{}, {}}, {2})})) << error;
  EXPECT_TRUE(match(einsum(), {state({{}, {}}), state({{}, {}}, {2})}, {state({{}, {}}, {2})})) << error;
}

TEST_F(RuleMatchTest, RefusesWhatNoChoiceDoes) {
  // Bilinear is not linear.
  EXPECT_FALSE(match(einsum(), {state({{}, {}}, {2}), state({{}, {}}, {2})}, {state({{}, {}}, {2})}));
  // A maximum of products is not the product of maxima.
  EXPECT_FALSE(match(einsum(), {state({{}, {}}, {2}, ReductionKind::Max), state({{}, {}})},
                     {state({{}, {}}, {2}, ReductionKind::Max)}));
  // A split contracting dim leaves partial sums, whether the result says so or not.
  EXPECT_FALSE(match(einsum(), {state({{}, {2}}), state({{2}, {}})}, {state({{}, {}})}));
  EXPECT_EQ(error, "no choice of the op's sharding rule gives these shardings of operands and results over one axis");
  // Nothing makes a whole product partial.
  EXPECT_FALSE(match(einsum(), {state({{}, {}}), state({{}, {}})}, {state({{}, {}}, {2})}));
}

TEST_F(RuleMatchTest, TensorsMustSplitAFactorAlike) {
  EXPECT_FALSE(match(einsum(), {state({{}, {2}}), state({{3}, {}})}, {state({{}, {}})}));
  EXPECT_EQ(error, "operand 1 shards a dim differently than another operand or result does");
  EXPECT_FALSE(match(einsum(), {state({{0, 1}, {}}), state({{}, {}})}, {state({{1, 0}, {}})}));
  EXPECT_FALSE(match(einsum(), {state({{0}, {}}), state({{}, {}})}, {state({{}, {}})}));
}

TEST_F(RuleMatchTest, MajorFactorsFillFirst) {
  auto result = match(split(), {state({{0, 1, 2, 3}})}, {state({{0, 1}, {2, 3}})});
  ASSERT_TRUE(result) << error;
  EXPECT_EQ(result->splits[0], (AtomList{0, 1}));
  EXPECT_EQ(result->splits[1], (AtomList{2, 3}));
  // The major factor is half full: nothing may split the minor one.
  EXPECT_FALSE(match(split(), {state({{0, 3}})}, {state({{0}, {3}})}));
  EXPECT_EQ(error, "operand 0 splits a dim into pieces that the op cannot take");
  EXPECT_TRUE(match(split(), {state({{2}})}, {state({{2}, {}})})) << error;
}

TEST_F(RuleMatchTest, PairsAreSplitTogether) {
  RuleBuilder b(1, 1);
  std::optional<FactorId> in = b.addFactor(8), out = b.addFactor(8);
  b.operandDim(0, in).resultDim(0, out);
  b.addChoice({{*in, *out}, {}, std::nullopt}).addChoice({{*out}, {}, std::nullopt});
  auto both = match(b.rule, {state({{0}})}, {state({{0}})});
  ASSERT_TRUE(both) << error;
  EXPECT_EQ(both->choices[0], 1u);
  auto rows = match(b.rule, {state({{}})}, {state({{0}})});
  ASSERT_TRUE(rows) << error;
  EXPECT_EQ(rows->choices[0], 2u);
  EXPECT_FALSE(match(b.rule, {state({{0}})}, {state({{}})}));
}

// k=12 on 24 ranks, j=4 on 6: the last shards are padded. A part of a dim is not.
TEST_F(RuleMatchTest, DimsOfOneFactorNeedNotDivide) {
  auto result =
      match(einsum(), {state({{}, {2, 3, 0, 1}}), state({{2, 3, 0, 1}, {}})}, {state({{}, {}}, {0, 1, 2, 3})});
  ASSERT_TRUE(result) << error;
  EXPECT_EQ(result->splits[2], (AtomList{2, 3, 0, 1}));
  EXPECT_TRUE(match(einsum(), {state({{}, {}}), state({{}, {2, 3}})}, {state({{}, {2, 3}})})) << error;
  EXPECT_FALSE(match(split(), {state({{2, 3}})}, {state({{2, 3}, {}})}));
  EXPECT_EQ(error, "operand 0 splits a dim into pieces that the op cannot take");
}

// 9 positions and 8 on 2 ranks: 5 and 4 of the operand, 4 and 4 of the result.
TEST_F(RuleMatchTest, NeighborsExchangeWhatDoesNotDivide) {
  RuleBuilder b(1, 1);
  SlidingDim slide = b.addSliding(9, 8);
  b.operandDim(0, std::optional(slide.input)).resultDim(0, std::optional(slide.result));
  InnerCost cost;
  cost.kind = InnerCost::Kind::Exchange;
  cost.slides.push_back(slide);
  b.addInner(cost);
  EXPECT_TRUE(match(b.rule, {state({{0}})}, {state({{0}})})) << error;
  EXPECT_FALSE(match(b.rule, {state({{0}})}, {state({{}})}));
}

TEST_F(RuleMatchTest, DimsWithoutFactorsStayReplicated) {
  RuleBuilder b(1, 1);
  b.operandDim(0, llvm::ArrayRef<FactorId>()).resultDim(0, llvm::ArrayRef<FactorId>());
  EXPECT_TRUE(match(b.rule, {state({{}})}, {state({{}})}));
  EXPECT_FALSE(match(b.rule, {state({{0}})}, {state({{0}})}));
  EXPECT_EQ(error, "operand 0 splits a dim that the op needs whole");
}

} // namespace
