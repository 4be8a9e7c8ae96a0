//===- ShardingRuleTest.cpp - building, asking and printing rules ---------===//
#include "cleave/Sharding/ShardingRule.h"
#include "cleave/Sharding/WindowMoves.h"

#include <gtest/gtest.h>

using namespace cleave::spmd;

namespace {

std::string print(const ShardingRule &rule) {
  std::string text;
  llvm::raw_string_ostream(text) << rule;
  return text;
}

/// A batched dot `bik,bkj->bij` of sizes b=8, i=16, k=32, j=4; its factors are named i, j, k, l in this order.
ShardingRule makeDot() {
  RuleBuilder builder(2, 1);
  auto b = builder.addParallel(8), i = builder.addParallel(16);
  auto k = builder.addReduction(32, ReductionKind::Sum), j = builder.addParallel(4);
  builder.operandDim(0, b).operandDim(0, i).operandDim(0, k);
  builder.operandDim(1, b).operandDim(1, k).operandDim(1, j);
  builder.resultDim(0, b).resultDim(0, i).resultDim(0, j);
  return builder.rule;
}

TEST(ShardingRuleTest, ADotPrintsLikeAnEinsum) {
  EXPECT_EQ(print(makeDot()), "([i,j,k],[i,k,l])->([i,j,l]) {i=8,j=16,k=32,l=4} reduce={k}");
}

TEST(ShardingRuleTest, TheFirstChoiceIsNone) {
  ShardingRule rule = makeDot();
  ASSERT_EQ(rule.choices.size(), 5u);
  EXPECT_TRUE(rule.choices.front().isNone());
  for (FactorId factor = 0; factor < 4; ++factor)
    EXPECT_EQ(rule.findSingleSplit(factor), factor + 1);
  EXPECT_EQ(rule.findSingleSplit(4), -1);
}

TEST(ShardingRuleTest, AFactorIsParallelOrReducedOrNeither) {
  ShardingRule rule = makeDot();
  EXPECT_TRUE(rule.isParallel(0));
  EXPECT_FALSE(rule.isReduction(0));
  EXPECT_TRUE(rule.isReduction(2));
  EXPECT_FALSE(rule.isParallel(2));
  RuleBuilder replicated(1, 1);
  FactorId factor = replicated.addFactor(6);
  EXPECT_FALSE(replicated.rule.isParallel(factor));
  EXPECT_FALSE(replicated.rule.isReduction(factor));
}

TEST(ShardingRuleTest, DimsOfSizeOneHaveNoFactor) {
  RuleBuilder builder(1, 1);
  auto one = builder.addParallel(1), rows = builder.addParallel(4);
  EXPECT_FALSE(one);
  EXPECT_FALSE(builder.addReduction(1, ReductionKind::Max));
  builder.operandDim(0, one).operandDim(0, rows).resultDim(0, rows);
  EXPECT_EQ(print(builder.rule), "([1,i])->([i]) {i=4}");
}

TEST(ShardingRuleTest, AReshapeMergesFactors) {
  RuleBuilder builder(1, 1);
  auto major = builder.addParallel(2), minor = builder.addParallel(3);
  builder.operandDim(0, major).operandDim(0, minor).resultDim(0, llvm::ArrayRef<FactorId>{*major, *minor});
  EXPECT_EQ(print(builder.rule), "([i,j])->([ij]) {i=2,j=3}");
}

// 10 heads of 64 on 4 ranks are 3 heads each, and no even split of 640 columns.
TEST(ShardingRuleTest, AFactorWithDimsOfItsOwnMayBeSplitUnevenly) {
  RuleBuilder builder(1, 1);
  auto rows = builder.addParallel(7), heads = builder.addParallel(10), size = builder.addParallel(64);
  builder.operandDim(0, rows).operandDim(0, llvm::ArrayRef<FactorId>{*heads, *size});
  builder.resultDim(0, rows).resultDim(0, heads).resultDim(0, size);
  EXPECT_TRUE(builder.rule.allowsUneven(*rows));
  EXPECT_FALSE(builder.rule.allowsUneven(*heads));
  EXPECT_FALSE(builder.rule.allowsUneven(*size));
}

// But neighbors may exchange what does not line up: 160 columns each, of which the ranks want 192, 192, 192 and 64. The last one
// sends columns 480 to 576.
TEST(ShardingRuleTest, PiecesOfAReshapeThatDoNotLineUpAreExchanged) {
  Regroup split{/*factor=*/0, /*isOperand=*/true, /*grain=*/64};
  EXPECT_EQ(countSentElements(split.getWindow(10, 4)), 96);
  // The other way round rank 0 has columns 160 to 192 of rank 1, rank 1 those from 320 to 384, and rank 2 those from 480 to 576.
  Regroup merged{/*factor=*/0, /*isOperand=*/false, /*grain=*/64};
  EXPECT_EQ(countSentElements(merged.getWindow(10, 4)), 96);
  EXPECT_EQ(countSentElements(merged.getWindow(10, 5)), 0);
  EXPECT_TRUE(Regroup::isNeeded(10, {2, 2}));
  EXPECT_TRUE(Regroup::isNeeded(10, {3}));
  EXPECT_FALSE(Regroup::isNeeded(10, {2, 5}));
  // Two heads on four ranks are half a head each: all divides.
  EXPECT_FALSE(Regroup::isNeeded(2, {2, 2}));
}

TEST(ShardingRuleTest, FactorsThatNoChoiceSplitsAreReplicated) {
  RuleBuilder builder(1, 1);
  auto rows = builder.addParallel(4);
  std::optional<FactorId> columns = builder.addFactor(5);
  builder.operandDim(0, rows).operandDim(0, columns).resultDim(0, rows).resultDim(0, columns);
  builder.rule.orderedFactors.push_back(*columns);
  EXPECT_EQ(print(builder.rule), "([i,j])->([i,j]) {i=4,j=5} replicate={j} ordered={j}");
}

TEST(ShardingRuleTest, LinearOpsSayInWhichOperands) {
  RuleBuilder builder(2, 1);
  auto rows = builder.addParallel(4);
  builder.operandDim(0, rows).operandDim(1, rows).resultDim(0, rows).addLinear({0, 1});
  EXPECT_EQ(print(builder.rule), "([i],[i])->([i]) {i=4} linear(sum)={0,1}");
  const Choice &linear = builder.rule.choices.back();
  EXPECT_FALSE(linear.isNone());
  EXPECT_EQ(linear.partial, std::optional<ReductionKind>(ReductionKind::Sum));
}

TEST(ShardingRuleTest, AReductionMayTakeAPartialBiasAlong) {
  RuleBuilder builder(2, 1);
  FactorId k = *builder.addReduction(8, ReductionKind::Sum, {1});
  const Choice &sharded = builder.rule.choices[builder.rule.findSingleSplit(k)];
  EXPECT_EQ(sharded.partialOperands.size(), 1u);
  EXPECT_EQ(sharded.partialOperands.front(), 1);
  EXPECT_EQ(sharded.partial, std::optional<ReductionKind>(ReductionKind::Sum));
}

TEST(ShardingRuleTest, AnOpThatMustBeReplicatedSaysWhy) {
  RuleBuilder builder(1, 1);
  builder.rule.mustReplicate = "draws random numbers";
  EXPECT_EQ(print(builder.rule), "([])->([]) {} must_replicate=\"draws random numbers\"");
}

// i to z are 18 letters; then come i1, j1, ...
TEST(ShardingRuleTest, NamesGoOnAfterTheAlphabet) {
  RuleBuilder builder(1, 1);
  for (int factor = 0; factor < 20; ++factor)
    builder.operandDim(0, builder.addParallel(2));
  EXPECT_EQ(print(builder.rule).substr(0, 46), "([i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,i1,j1])-");
}

} // namespace
