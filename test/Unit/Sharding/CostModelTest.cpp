//===- CostModelTest.cpp - links that differ, and latency -----------------===//
//
// Expected numbers come from the formulas of collectives on nodes with fast links inside and slow ones between:
//
//   all_reduce of N bytes, g ranks in a node, m nodes    2(g-1)/g N over the fast axis, 2(m-1)/m N/g over the slow one
//   ring of p ranks                                      p-1 steps, an all_reduce twice as many; m-1 of them between
//                                                        nodes, the other (g-1) m inside
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/CostModel.h"
#include "ReshardOracle.h"
#include "cleave/Sharding/ShardMoves.h"
#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace cleave::spmd;
using namespace cleave::spmd::test;

namespace {

State makeState(std::vector<AtomList> dims, AtomList partial = {}) {
  State state;
  state.dims.assign(dims.begin(), dims.end());
  for (AtomId atom : partial)
    state.addPartial(atom, ReductionKind::Sum);
  return state;
}

CostModel withLinks(llvm::ArrayRef<LinkCost> links, int64_t perCollective = 0) {
  CostModel model;
  model.links.assign(links.begin(), links.end());
  model.perCollective = perCollective;
  return model;
}

ReshardPlan planBy(const CostModel &model, const AtomMesh &mesh, llvm::ArrayRef<int64_t> shape, const State &from,
                   const State &to) {
  ReshardPlannerOptions options;
  options.costs = model;
  return *ReshardPlanner(mesh, options).plan(shape, 4, from, to);
}

// Axis 0 has 2 ranks, axis 1 has 4 (two atoms).
TEST(CostModelTest, EqualLinksCostOneRing) {
  AtomMesh mesh({2, 4});
  EXPECT_EQ(int64_t(ringCost(mesh, CostModel(), {0, 1, 2}).perPiece), 7 * kCostUnitsPerByte);
  EXPECT_EQ(int64_t(pairwiseCost(mesh, CostModel(), {0, 1, 2}).perPiece), 7 * kCostUnitsPerByte);
  EXPECT_EQ(int64_t(directCost(mesh, CostModel(), {0, 1, 2}, 7).perPiece), kCostUnitsPerByte);
  EXPECT_EQ(ringCost(mesh, CostModel(), {0, 1, 2}).fixed, 0);
}

// Fast over 4 ranks first: 3 pieces of twice the size over axis 1, then 1 piece over axis 0. To each other: 3 ranks are
// near, 4 are far. Atom 1 alone is half of axis 1.
TEST(CostModelTest, TheFastestAxisGoesFirst) {
  AtomMesh mesh({2, 4});
  CostModel model = withLinks({{10, 100}, {1, 7}});
  GroupCost ring = ringCost(mesh, model, {0, 1, 2}), pairs = pairwiseCost(mesh, model, {0, 1, 2}),
            direct = directCost(mesh, model, {0, 1, 2}, 2);
  EXPECT_EQ(int64_t(ring.perPiece), 3 * 2 * 1 + 1 * 10);
  EXPECT_EQ(ring.fixed, 3 * 2 * 7 + 1 * 100);
  EXPECT_EQ(int64_t(pairs.perPiece), 3 * 1 + 4 * 10);
  EXPECT_EQ(pairs.fixed, 3 * 7 + 4 * 100);
  EXPECT_EQ(int64_t(direct.perPiece), 10);
  EXPECT_EQ(direct.fixed, 2 * 100);
  EXPECT_EQ(int64_t(ringCost(mesh, model, {1}).perPiece), 1);
  EXPECT_EQ(ringCost(mesh, model, {1}).fixed, 7);
}

// Peers are the farthest that there are: four behind the slow links, all further ones near. All of them are an all_to_all.
TEST(CostModelTest, EachPeerHasALatency) {
  AtomMesh mesh({2, 4});
  CostModel model = withLinks({{10, 100}, {1, 7}});
  for (int64_t peers = 0; peers < 8; ++peers)
    EXPECT_EQ(directCost(mesh, model, {0, 1, 2}, peers).fixed,
              std::min<int64_t>(peers, 4) * 100 + std::max<int64_t>(peers - 4, 0) * 7);
  EXPECT_EQ(directCost(mesh, model, {0, 1, 2}, 7).fixed, pairwiseCost(mesh, model, {0, 1, 2}).fixed);
  // A ring over as many ranks of one kind of link has as many.
  EXPECT_EQ(directCost(mesh, model, {1, 2}, 3).fixed, ringCost(mesh, model, {1, 2}).fixed);
  // The slowest link may be the one with the least latency.
  CostModel quick = withLinks({{10, 7}, {1, 100}});
  EXPECT_EQ(directCost(mesh, quick, {0, 1, 2}, 4).fixed, 3 * 100 + 7);
}

// N = 8*8*4 bytes on 2 nodes (slow, 50 units a byte) of 4 (fast, 3 units).
TEST(CostModelTest, AnAllReduceGoesThroughNodesInLevels) {
  AtomMesh mesh({2, 4});
  ReshardPlan plan = planBy(withLinks({{50, 11}, {3, 5}}, /*perCollective=*/1000), mesh, {8, 8},
                            makeState({{}, {}}, {0, 1, 2}), makeState({{}, {}}));
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.cost, 2 * 3 * 256 / 4 * 3 + 2 * 1 * 256 / 4 / 2 * 50 + 2 * (3 * 2 * 5 + 1 * 11) + 1000);
  EXPECT_EQ(plan.bytes, 2 * 7 * 256 / 8); // Bytes stay bytes.
}

// Axes beyond the list are like `anyLink`; costs are told as bytes over the fastest link.
TEST(CostModelTest, LinksThatAreNotListed) {
  AtomMesh mesh({2, 2});
  CostModel model = withLinks({{20, 0}});
  model.anyLink = {5, 1};
  EXPECT_EQ(int64_t(ringCost(mesh, model, {1}).perPiece), 5);
  EXPECT_TRUE(model.hasLatency());
  EXPECT_EQ(model.toBytes(199), 9);
  EXPECT_FALSE(CostModel().hasLatency());
  CostModel nearLatency = withLinks({{20, 0}});
  nearLatency.nearLinks = {{{2, {5, 1}}}};
  EXPECT_TRUE(nearLatency.hasLatency());
  EXPECT_EQ(CostModel().toBytes(3 * kCostUnitsPerByte + 1), 3);
}

// Sums over both axes, wanted split over one of them: scattered first, only half of it is reduced over the other. Where
// beginning a collective is dear, one all_reduce of everything is better, though it sends half as much again.
TEST(CostModelTest, LatencyMakesOneCollectiveOfTwo) {
  AtomMesh mesh({2, 2});
  State from = makeState({{}, {}}, {0, 1}), to = makeState({{0}, {}});
  ReshardPlan two = planBy(withLinks({}, 63 * kCostUnitsPerByte), mesh, {8, 8}, from, to);
  EXPECT_EQ(two.numCollectives(), 2u);
  EXPECT_EQ(two.bytes, 128 + 128);
  ReshardPlan one = planBy(withLinks({}, 129 * kCostUnitsPerByte), mesh, {8, 8}, from, to);
  EXPECT_EQ(one.numCollectives(), 1u);
  EXPECT_EQ(one.bytes, 2 * 3 * 256 / 4);
}

// [x|-] to [y|-]: split over y within each half of x, then gathered over x; only links of x are used. An exchange would
// send as much, but over both axes.
TEST(CostModelTest, ASlowAxisIsLeftAlone) {
  AtomMesh mesh({2, 2});
  State overX = makeState({{0}, {}}), overY = makeState({{1}, {}});
  int64_t fast = planBy(withLinks({{1, 0}, {10, 0}}), mesh, {8, 8}, overX, overY).cost,
          slow = planBy(withLinks({{10, 0}, {1, 0}}), mesh, {8, 8}, overX, overY).cost;
  EXPECT_LT(fast, slow);
}

//===----------------------------------------------------------------------===//
// Every plan is counted as its steps say, and no model is better served by another's plan
//===----------------------------------------------------------------------===//

/// What the ranks of `axis` among `atoms` are.
int64_t ranksAlong(const AtomMesh &mesh, unsigned axis, llvm::ArrayRef<AtomId> atoms) {
  int64_t ranks = 1;
  for (AtomId atom : atoms)
    ranks *= mesh.axisOf(atom) == axis ? mesh.size(atom) : 1;
  return ranks;
}

/// Others that a rank sends to, or gets from, at most: by the moves.
int64_t countPeers(const AtomMesh &mesh, llvm::ArrayRef<int64_t> shape, const State &from, const State &to) {
  ShardMoves moves(mesh, shape, from, to);
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (int64_t target = 0; target < mesh.numRanks(); ++target)
    moves.forEachInto(target, [&](const Piece &piece) { pairs.insert({piece.source, piece.target}); });
  std::map<int64_t, int64_t> sent, got;
  int64_t most = 0;
  for (auto [source, target] : pairs)
    if (source != target)
      most = std::max({most, ++sent[source], ++got[target]});
  return most;
}

/// The cost of a step on a mesh of two axes, level by level as the head of CostModel.h says.
int64_t costOf(const AtomMesh &mesh, const CostModel &model, llvm::ArrayRef<int64_t> shape, const State &before,
               const ReshardStep &step) {
  unsigned near = model.link(1).perByte < model.link(0).perByte, far = 1 - near;
  int64_t g = ranksAlong(mesh, near, step.atoms), m = ranksAlong(mesh, far, step.atoms);
  LinkCost fast = model.link(near), slow = model.link(far);
  int64_t held = localBytes(mesh, shape, 4, before), kept = localBytes(mesh, shape, 4, step.after);
  int64_t steps = (g - 1) * m * fast.latency + (m - 1) * slow.latency;
  // So many messages, the latest first; of g m - 1 others g - 1 are near.
  auto messages = [&](int64_t peers) {
    int64_t far = (m - 1) * g, near = g - 1;
    if (fast.latency > slow.latency)
      return std::min(peers, near) * fast.latency + std::max<int64_t>(peers - near, 0) * slow.latency;
    return std::min(peers, far) * slow.latency + std::max<int64_t>(peers - far, 0) * fast.latency;
  };
  switch (step.kind) {
  case ReshardStepKind::Slice:
  case ReshardStepKind::MakePartial:
    return 0;
  case ReshardStepKind::AllReduce:
    return 2 * (g - 1) * held / g * fast.perByte + 2 * (m - 1) * held / g / m * slow.perByte + 2 * steps +
           model.perCollective;
  case ReshardStepKind::ReduceScatter:
    return (g - 1) * m * kept * fast.perByte + (m - 1) * kept * slow.perByte + steps + model.perCollective;
  case ReshardStepKind::AllGather:
    return (g - 1) * m * held * fast.perByte + (m - 1) * held * slow.perByte + steps + model.perCollective;
  case ReshardStepKind::AllToAll:
    return (g - 1) * held / (g * m) * fast.perByte + (m - 1) * g * held / (g * m) * slow.perByte + messages(g * m - 1) +
           model.perCollective;
  case ReshardStepKind::Exchange:
    return step.bytes * std::max(g > 1 ? fast.perByte : 0, m > 1 ? slow.perByte : 0) +
           messages(countPeers(mesh, shape, before, step.after)) + model.perCollective;
  }
  return 0;
}

int64_t costOf(const AtomMesh &mesh, const CostModel &model, llvm::ArrayRef<int64_t> shape, State now,
               const ReshardPlan &plan) {
  int64_t cost = 0;
  for (const ReshardStep &step : plan.steps) {
    cost += costOf(mesh, model, shape, now, step);
    now = step.after;
  }
  return cost;
}

class EveryModel : public testing::TestWithParam<CostModel> {};

TEST_P(EveryModel, PlansEveryPairAsWellAsAnyOther) {
  AtomMesh mesh({2, 4});
  const std::vector<int64_t> shape{16, 16};
  std::vector<State> states = allStates(mesh, shape, /*withPartial=*/true);
  for (const State &from : states)
    for (const State &to : states) {
      ReshardPlan plan = planBy(GetParam(), mesh, shape, from, to),
                  byBytes = planBy(CostModel(), mesh, shape, from, to);
      ASSERT_EQ(plan.cost, costOf(mesh, GetParam(), shape, from, plan))
          << toString(mesh, {"x", "y"}, from) << " -> " << toString(mesh, {"x", "y"}, to);
      ASSERT_LE(plan.cost, costOf(mesh, GetParam(), shape, from, byBytes));
      if (plan.steps.size() != byBytes.steps.size())
        ASSERT_EQ(simulate(mesh, shape, 4, from, to, plan), "");
    }
}

INSTANTIATE_TEST_SUITE_P(CostModelTest, EveryModel,
                         testing::Values(CostModel(), withLinks({{1000, 0}, {100, 0}}),
                                         withLinks({{100, 0}, {1000, 0}}), withLinks({{64, 9000}, {64, 9000}}, 50000),
                                         withLinks({{7, 100}, {640, 20000}}, 3000)));

} // namespace
