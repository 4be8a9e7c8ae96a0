//===- ObjectiveTest.cpp - states and costs of single ops -----------------===//
//
// Expected numbers are worked out by hand from the table in Objective.h and the formulas in ShardingRule.h.
//
//===----------------------------------------------------------------------===//
#include "Objective.h"
#include "GraphBuilder.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;

namespace {

/// One op of f32 tensors on a mesh; every choice is allowed to every atom.
struct OneOp {
  OneOp(std::vector<int64_t> axes, ShardingRule opRule, std::vector<std::vector<int64_t>> operands,
        std::vector<int64_t> result, CostModel costModel = {})
      : mesh(axes), model(std::move(costModel)), rule(std::move(opRule)), info(rule), planner(mesh, {false, model}),
        costs(planner, states), strategies(mesh, model, states, allAtoms()),
        objective(mesh, model, /*perStoredByte=*/0, /*perValueByte=*/0, states, costs, strategies) {
    Signature signature;
    signature.info = &info;
    signature.isOp = true;
    for (const std::vector<int64_t> &shape : operands)
      signature.operands.push_back(costs.internShape(shape, 4));
    signature.results.push_back(resultShape = costs.internShape(result, 4));
    profile.signature = signatureId = strategies.internSignature(0, signature);
    profile.isOp = true;
    profile.allowed.assign(rule.choices.size(), {~AtomMask(0), ~AtomMask(0)});
  }
  llvm::SmallVector<AtomId, 8> allAtoms() const {
    llvm::SmallVector<AtomId, 8> atoms;
    for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
      atoms.push_back(atom);
    return atoms;
  }
  StrategyId strategy(std::vector<ChoiceId> choices) { return strategies.strategy(signatureId, choices); }
  const Strategy &at(std::vector<ChoiceId> choices) { return strategies[strategy(std::move(choices))]; }
  int64_t costOf(std::vector<ChoiceId> choices) {
    return objective.costOfNode(objective.internProfile(profile), strategy(std::move(choices))).cost;
  }
  Surcharge surcharge(std::vector<ChoiceId> choices) {
    return objective.costOfNode(objective.internProfile(profile), strategy(std::move(choices))).surcharge;
  }

  AtomMesh mesh;
  CostModel model;
  StateTable states;
  ShardingRule rule;
  RuleInfo info;
  ReshardPlanner planner;
  ReshardCosts costs;
  Strategies strategies;
  Objective objective;
  SignatureId signatureId = 0;
  ShapeId resultShape = 0;
  Profile profile;
};

/// 8x16 . 16x32; choices: none, cut i, cut k, cut j, partial lhs, partial rhs.
OneOp matmul(std::vector<int64_t> axes, CostModel model = {}) {
  return OneOp(axes, einsumRule("ik,kj->ij", {{8, 16}, {16, 32}}), {{8, 16}, {16, 32}}, {8, 32}, std::move(model));
}
enum : ChoiceId { kReplicated, kSplitI, kSplitK, kSplitJ, kPartialLhs };

TEST(ObjectiveTest, CuttingTheContractedFactorMakesThePartialResult) {
  OneOp op = matmul({2});
  StrategyId strategy = op.strategy({kSplitK});
  const State &lhs = op.states[op.strategies.operandState(strategy, 0)],
              &rhs = op.states[op.strategies.operandState(strategy, 1)],
              &result = op.states[op.strategies.resultState(strategy, 0)];
  EXPECT_TRUE(lhs.dims[0].empty());
  EXPECT_EQ(lhs.dims[1], AtomList{0});
  EXPECT_EQ(rhs.dims[0], AtomList{0});
  EXPECT_TRUE(result.dims[0].empty() && result.dims[1].empty());
  EXPECT_EQ(result.partial, AtomList{0});
  EXPECT_TRUE(op.at({kSplitK}).keepsPartial);
}

TEST(ObjectiveTest, AtomsOfOneFactorKeepTheirOrder) {
  OneOp op = matmul({2, 2});
  EXPECT_EQ(op.states[op.strategies.resultState(op.strategy({kSplitI, kSplitI}), 0)].dims[0], (AtomList{0, 1}));
}

TEST(ObjectiveTest, RefusesWhatDoesNotDivide) {
  OneOp op = matmul({3});
  EXPECT_TRUE(op.at({kReplicated}).isValid);
  EXPECT_FALSE(op.at({kSplitI}).isValid);
  OneOp twice = matmul({16});
  EXPECT_FALSE(twice.at({kSplitI, kSplitI, kSplitI, kSplitI}).isValid); // 8 rows, 16 shards.
  EXPECT_TRUE(twice.at({kSplitI, kSplitI, kSplitI, kReplicated}).isValid);
}

TEST(ObjectiveTest, RefusesAMinorFactorUnderAMajorThatIsNotFull) {
  RuleBuilder rule(1, 1);
  std::optional<FactorId> major = rule.addParallel(4), minor = rule.addParallel(8);
  rule.operandDim(0, major).operandDim(0, minor).resultDim(0, llvm::ArrayRef<FactorId>{*major, *minor});
  OneOp op({2, 4}, rule.rule, {{4, 8}}, {32});
  EXPECT_FALSE(op.at({2, 0, 0}).isValid);
  EXPECT_FALSE(op.at({1, 2, 0}).isValid);
  EXPECT_TRUE(op.at({2, 1, 1}).isValid);
  EXPECT_EQ(op.states[op.strategies.resultState(op.strategy({2, 1, 1}), 0)].dims[0], (AtomList{1, 2, 0}));
}

TEST(ObjectiveTest, RefusesToMixKindsOfPartialResults) {
  RuleBuilder rule(1, 1);
  std::optional<FactorId> dim = rule.addParallel(8);
  rule.operandDim(0, dim).resultDim(0, dim).addLinear({0}, ReductionKind::Sum).addLinear({0}, ReductionKind::Max);
  OneOp op({2, 2}, rule.rule, {{8}}, {8});
  EXPECT_TRUE(op.at({2, 2}).isValid);
  EXPECT_FALSE(op.at({2, 3}).isValid);
}

// Softmax over 32 columns on 4 ranks: 2 all_reduces of one f32 per row, 8 rows: 2 * 2 * 3/4 * 8 * 4 bytes.
TEST(ObjectiveTest, StatisticsCostTheirAllReduces) {
  RuleBuilder rule(1, 1);
  std::optional<FactorId> rows = rule.addParallel(8), columns = rule.addParallel(32);
  rule.operandDim(0, rows).operandDim(0, columns).resultDim(0, rows).resultDim(0, columns);
  InnerCost cost{InnerCost::Kind::AllReduce, {*columns}, 2, {*rows}, 1, 4};
  rule.addInner(cost);
  OneOp op({2, 2}, rule.rule, {{8, 32}}, {8, 32});
  EXPECT_EQ(op.at({2, 2}).innerBytes, 96);
  EXPECT_EQ(op.at({2, 2}).innerUnits, 96 * kCostUnitsPerByte);
  EXPECT_EQ(op.at({1, 2}).innerBytes, 32); // 2 * 2 * 1/2 * 4 rows * 4 bytes.
  EXPECT_EQ(op.at({1, 1}).innerBytes, 0);
}

// Each of 4 ranks gathers 8 elements of 4 bytes from the 3 others.
TEST(ObjectiveTest, GathersInsideCostWhatTheOthersSend) {
  RuleBuilder rule(1, 1);
  std::optional<FactorId> rows = rule.addParallel(8), columns = rule.addParallel(32);
  rule.operandDim(0, rows).operandDim(0, columns).resultDim(0, rows).resultDim(0, columns);
  rule.addInner({InnerCost::Kind::AllGather, {*columns}, 1, {*rows}, 1, 4});
  OneOp op({4}, rule.rule, {{8, 32}}, {8, 32});
  EXPECT_EQ(op.at({2, 2}).innerBytes, 3 * 8 * 4);
}

// 2*8*16*32 = 8192 flops: 64 bytes for computing; split by 2 that is half. 1024 result bytes, nothing in excess.
TEST(ObjectiveTest, ComputeCostsAByteFor128Flops) {
  OneOp op = matmul({2});
  EXPECT_EQ(op.costOf({kReplicated}), 64 * kCostUnitsPerByte);
  EXPECT_EQ(op.costOf({kSplitI}), 32 * kCostUnitsPerByte);
  EXPECT_EQ(op.costOf({kSplitK}), 32 * kCostUnitsPerByte - kCostUnitsPerByte / 32); // Keeps a partial.
}

// If propagation splits by 2, repeating costs 1/64 byte for each flop beyond 1.25 * 4096, and writing 512 bytes more
// 2.
TEST(ObjectiveTest, RepeatingWhatIsSplitIsDear) {
  OneOp op = matmul({2});
  op.profile.split = op.profile.wide = 2;
  EXPECT_EQ(op.costOf({kReplicated}), (64 + 48 + 2) * kCostUnitsPerByte);
  EXPECT_EQ(op.costOf({kSplitI}), 32 * kCostUnitsPerByte);
  OneOp bytes = matmul({2}, CostModel::create(Optimize::Bytes));
  bytes.profile.split = bytes.profile.wide = 2;
  EXPECT_EQ(bytes.costOf({kReplicated}), 64 + 768 + 2);
}

// A byte over links takes as long as 64 flops, and first as 64 bytes of memory, then as one: 8192 flops and (128 + 512 +
// 256) * 4 bytes, or half of the flops with a half of the left side and of the result. Repeating is no more expensive than it is.
TEST(ObjectiveTest, TimeIsTheLongerOfFlopsAndMemory) {
  CostModel model;
  model.perNs = kCostUnitsPerByte;
  model.perFlop = kCostUnitsPerByte / 64.0;
  model.perRepeatedFlop = 0;
  model.perMemoryByte = kCostUnitsPerByte / 64.0;
  OneOp op = matmul({2}, model);
  op.profile.split = op.profile.wide = 2;
  EXPECT_EQ(op.costOf({kReplicated}), 128 * kCostUnitsPerByte);
  EXPECT_EQ(op.costOf({kSplitI}), 64 * kCostUnitsPerByte);
  op.model.perMemoryByte = kCostUnitsPerByte * 1.0;
  EXPECT_EQ(op.costOf({kReplicated}), (8 * 16 + 16 * 32 + 8 * 32) * 4 * kCostUnitsPerByte);
  EXPECT_EQ(op.costOf({kSplitI}), (4 * 16 + 16 * 32 + 4 * 32) * 4 * kCostUnitsPerByte);
  // What the kernel makes of its left side itself, and what it goes on with, costs no memory.
  op.profile.inside = 1;
  EXPECT_EQ(op.costOf({kSplitI}), (16 * 32 + 4 * 32) * 4 * kCostUnitsPerByte);
  op.profile.isKept = true;
  EXPECT_EQ(op.costOf({kSplitI}), 16 * 32 * 4 * kCostUnitsPerByte);
}

// What one kernel reads and writes at the rate of the cache, four times as fast: fits with split rows, and not with whole ones.
TEST(ObjectiveTest, WhatFitsIntoTheCacheIsCheaper) {
  CostModel model;
  model.perNs = kCostUnitsPerByte;
  model.perFlop = model.perRepeatedFlop = 0;
  model.perMemoryByte = kCostUnitsPerByte;
  model.perCacheByte = kCostUnitsPerByte / 4.0;
  model.cacheBytes = (4 * 16 + 16 * 32 + 4 * 32) * 4;
  OneOp op = matmul({2}, model);
  EXPECT_EQ(op.costOf({kReplicated}), (8 * 16 + 16 * 32 + 8 * 32) * 4 * kCostUnitsPerByte);
  EXPECT_EQ(op.costOf({kSplitI}), (4 * 16 + 16 * 32 + 4 * 32) * kCostUnitsPerByte);
  // What the kernel makes of its left side itself does not count for what fits either.
  op.model.cacheBytes = (16 * 32 + 4 * 32) * 4;
  op.profile.inside = 1;
  EXPECT_EQ(op.costOf({kSplitI}), (16 * 32 + 4 * 32) * kCostUnitsPerByte);
}

// Leaving the factor that the atom came to: 1/3 * 1/2 of 512 result, 512 lhs and 1024 rhs bytes. Without a weight among
// them the smallest counts for each of the three.
TEST(ObjectiveTest, LeavingTheUncontestedFactorIsCharged) {
  OneOp op = matmul({2});
  op.profile.calm = 1;
  op.profile.allowed[kSplitJ] = {0, 1};
  EXPECT_NEAR(op.costOf({kSplitJ}) / double(kCostUnitsPerByte), 32 + 3 * 512 / 6.0, 0.01);
  op.profile.parameters = 2; // The right side is a weight: it does not count.
  EXPECT_NEAR(op.costOf({kSplitJ}) / double(kCostUnitsPerByte), 32 + (512 + 512) / 6.0, 0.01);
}

TEST(ObjectiveTest, FallbacksAndTornAxesAreSurcharged) {
  OneOp op = matmul({4});
  EXPECT_EQ(op.surcharge({kSplitI, kSplitI}), 0);
  EXPECT_EQ(op.surcharge({kSplitI, kSplitJ}), 25); // Each could take the whole axis.
  op.profile.allowed[kSplitJ] = {0, ~AtomMask(0)};
  EXPECT_EQ(op.surcharge({kSplitJ, kSplitJ}), 10);
}

// [x|-] -> whole of 8x32 f32 on 2 ranks: 512 bytes, half a byte for being a reshard.
TEST(ObjectiveTest, ReshardsCostTheirBytesAndSurcharges) {
  OneOp op = matmul({2});
  State sharded = State::replicated(2), replicated = sharded, partial = sharded;
  sharded.dims[0] = {0};
  partial.addPartial(0, ReductionKind::Sum);
  StateId from = op.states.intern(sharded), to = op.states.intern(replicated), sum = op.states.intern(partial);
  auto costOf = [&](StateId source, StateId target, Surcharge surcharge, bool moves) {
    return op.objective.costOfEdge(op.resultShape, source, target, 0, surcharge, {moves, false});
  };
  EXPECT_EQ(costOf(from, from, 25, true), 0);
  EXPECT_EQ(costOf(from, to, 0, false), 512 * kCostUnitsPerByte + kCostUnitsPerByte / 2);
  EXPECT_EQ(costOf(from, to, 10, false), 512 * kCostUnitsPerByte * 11 / 10 + kCostUnitsPerByte / 2);
  EXPECT_EQ(costOf(from, to, 0, true), 512 * kCostUnitsPerByte * 64 + kCostUnitsPerByte / 2);
  EXPECT_EQ(costOf(to, from, 0, false), 0);                    // A slice.
  EXPECT_EQ(costOf(to, sum, 0, false), kCostUnitsPerByte / 8); // A select.
}

/// Of the product's result: replicated, and [x|-].
struct ReplicatedAndSplit {
  explicit ReplicatedAndSplit(OneOp &op) : replicated(op.states.intern(State::replicated(2))) {
    State rows = State::replicated(2);
    rows.dims[0] = {0};
    sharded = op.states.intern(rows);
  }
  StateId replicated, sharded;
};

// Whole to [x|-] and back, 8x32 f32 on 2 ranks, by time: a launch where one kernel becomes two; a launch, and what is moved read and
// written, where it is moved before it is sent, and before it is split where parts have to be put together. What is more than can be counted
// is dear, and no gift.
TEST(ObjectiveTest, WhatIsSentOrSplitMayTakeAKernelMore) {
  CostModel model;
  model.perNs = kCostUnitsPerByte;
  model.perMemoryByte = kCostUnitsPerByte / 4.0;
  model.perLaunch = 100 * kCostUnitsPerByte;
  model.perReshard = 0;
  OneOp op = matmul({2}, model);
  auto [replicated, sharded] = ReplicatedAndSplit(op);
  auto costOf = [&](StateId from, StateId to, EdgeTraits traits) {
    return op.objective.costOfEdge(op.resultShape, from, to, 0, 0, traits);
  };
  EdgeTraits splits, moves, joins;
  splits.splitsKernel = moves.movesFirst = joins.movesFirst = joins.joinsFirst = true;
  constexpr int64_t sent = 512 * kCostUnitsPerByte, launch = 100 * kCostUnitsPerByte;
  EXPECT_EQ(costOf(replicated, replicated, splits), 0);
  EXPECT_EQ(costOf(replicated, sharded, splits), launch);
  EXPECT_EQ(costOf(replicated, sharded, moves), 0);
  EXPECT_EQ(costOf(replicated, sharded, joins), launch + 2 * 1024 / 4 * kCostUnitsPerByte);
  EXPECT_EQ(costOf(sharded, replicated, splits), sent + launch);
  EXPECT_EQ(costOf(sharded, replicated, moves), sent + launch + 2 * 512 / 4 * kCostUnitsPerByte);
  op.model.perMemoryByte = 1e18;
  EXPECT_EQ(costOf(replicated, sharded, joins), kForbidden / 8);
}

// The same, of what stayed in one kernel: it is read then, and written where nobody else has it stored.
TEST(ObjectiveTest, WhatIsSentOrSplitGoesThroughMemory) {
  CostModel model;
  model.perNs = kCostUnitsPerByte;
  model.perMemoryByte = kCostUnitsPerByte / 4.0;
  model.perReshard = 0;
  OneOp op = matmul({2}, model);
  auto [replicated, sharded] = ReplicatedAndSplit(op);
  auto costOf = [&](StateId from, StateId to, bool isKept) {
    EdgeTraits traits;
    traits.sharesKernel = true;
    traits.isKept = isKept;
    return op.objective.costOfEdge(op.resultShape, from, to, 0, 0, traits);
  };
  constexpr int64_t unit = kCostUnitsPerByte;
  EXPECT_EQ(costOf(replicated, replicated, true), 0);
  EXPECT_EQ(costOf(replicated, sharded, false), 512 / 4 * unit);
  EXPECT_EQ(costOf(replicated, sharded, true), (512 + 1024) / 4 * unit);
  EXPECT_EQ(costOf(sharded, replicated, true), (512 + (512 + 1024) / 4) * unit);
}

// Terms of a sum become terms of a maximum by way of the whole value, 8x32 f32: an all_reduce, half a byte for being
// a reshard, and a select.
TEST(ObjectiveTest, AnotherKindOfPartialCostsTheReduction) {
  OneOp op = matmul({2});
  State sum = State::replicated(2), max = sum;
  sum.addPartial(0, ReductionKind::Sum);
  max.addPartial(0, ReductionKind::Max);
  EXPECT_EQ(op.objective.costOfEdge(op.resultShape, op.states.intern(sum), op.states.intern(max), 0, 0, {}),
            1024 * kCostUnitsPerByte + kCostUnitsPerByte / 2 + kCostUnitsPerByte / 8);
}

} // namespace
