//===- ReshardPlannerTest.cpp - known traps, with exact steps -------------===//
//
// Each trap by itself: the steps word for word, and the bytes by hand. Every plan is carried out, too.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/ReshardPlanner.h"
#include "ReshardOracle.h"
#include <algorithm>
#include <ctime>
#include <gtest/gtest.h>
#include <random>

using namespace cleave::spmd;
using namespace cleave::spmd::test;

namespace {

using Ints = std::vector<int64_t>;

const std::vector<std::string> axisNames = {"x", "y", "z", "w"};

State makeState(std::vector<AtomList> dims, AtomList partial = {}, ReductionKind kind = ReductionKind::Sum) {
  State state;
  state.dims.assign(dims.begin(), dims.end());
  for (AtomId atom : partial)
    state.addPartial(atom, kind);
  return state;
}

std::string text(const AtomMesh &mesh, const ReshardPlan &plan) {
  std::string result;
  llvm::raw_string_ostream os(result);
  printPlan(os, mesh, axisNames, plan);
  return result;
}

//===----------------------------------------------------------------------===//
// Traps, one by one. Bytes are worked out by hand: N = all bytes of the tensor.
//===----------------------------------------------------------------------===//

struct Planned {
  std::string steps;
  int64_t bytes;
};

Planned planOn(const Ints &axes, const Ints &shape, const State &from, const State &to, bool useIdleAtoms = false) {
  AtomMesh mesh(axes);
  std::optional<ReshardPlan> plan = ReshardPlanner(mesh, {useIdleAtoms}).plan(shape, 1, from, to);
  if (!plan)
    return {"impossible", -1};
  EXPECT_EQ(simulate(mesh, shape, 1, from, to, *plan), "");
  return {text(mesh, *plan), plan->bytes};
}

TEST(ReshardPlannerTest, EqualStatesNeedNothing) {
  Planned plan = planOn({2, 2}, {8, 8}, makeState({{0}, {1}}), makeState({{0}, {1}}));
  EXPECT_EQ(plan.steps, "");
  EXPECT_EQ(plan.bytes, 0);
}

// On 1024 ranks, each sends 1023/1024 of twice the tensor: exact for 2^38 bytes (2^48 units), and for 2^43 bytes, whose
// product with twice the ranks and the units of a byte leaves 64 bits, as dear as can be.
TEST(ReshardPlannerTest, LargeTensorsOnLargeMeshesHaveCosts) {
  AtomMesh mesh({1024});
  AtomList all = mesh.atomsOf(0);
  State partial = makeState({{}}, all), replicated = makeState({{}});
  auto costOf = [&](int64_t extent) { return ReshardPlanner(mesh).plan({extent}, 8, partial, replicated)->cost; };
  EXPECT_EQ(costOf(int64_t(1) << 35), 2 * ((int64_t(1) << 48) - (int64_t(1) << 38)));
  EXPECT_EQ(costOf(int64_t(1) << 40), kImpossibleCost);
}

// A dim that loses and gains at once is no all_to_all. N = 64, every rank holds 16 and two of four swap theirs.
TEST(ReshardPlannerTest, SwappedAxesAreOnePermute) {
  Planned plan = planOn({2, 2}, {8, 8}, makeState({{0}, {1}}), makeState({{1}, {0}}));
  EXPECT_EQ(plan.steps, R"(exchange [y, x])");
  EXPECT_EQ(plan.bytes, 16);
}

// What an all_to_all sets free is split before the next collective: x cannot take its place in dim 0 while z is there,
// and then does, so that y is gathered in halves. N = 64: half of 16, then 8. Splitting x elsewhere first costs a
// collective.
TEST(ReshardPlannerTest, SlicesAreTakenBehindAnAllToAll) {
  Planned plan = planOn({2, 2, 2}, {4, 4, 4}, makeState({{2}, {}, {1}}), makeState({{0}, {2}, {}}));
  EXPECT_EQ(plan.steps, R"(all_to_all [_, z, y], slice [x, z, y], all_gather [x, z, _])");
  EXPECT_EQ(plan.bytes, 16);
}

// Rows on 3 x 2 to columns on 3, of 48 x 48: over links of one speed neighbors exchange what is missing. Where x has slow links, rows go
// to columns of both axes, 5/6 of 384 bytes, and only then y, over its fast ones, is gathered: the exchange would send 2/3 of 768 over x.
TEST(ReshardPlannerTest, WhatIsGatheredOverFastLinksGoesAlongOverSlowOnes) {
  AtomMesh mesh({3, 2});
  State rows = makeState({{0, 1}, {}}), columns = makeState({{}, {0}});
  EXPECT_EQ(planOn({3, 2}, {48, 48}, rows, columns).steps, "exchange [_, x]");
  ReshardPlannerOptions options;
  options.costs.links = {{1000 * kCostUnitsPerByte, 0}, {kCostUnitsPerByte, 0}};
  std::optional<ReshardPlan> plan = ReshardPlanner(mesh, options).plan({48, 48}, 1, rows, columns);
  ASSERT_TRUE(plan);
  EXPECT_EQ(simulate(mesh, {48, 48}, 1, rows, columns, *plan), "");
  EXPECT_EQ(text(mesh, *plan), "all_to_all [_, [x, y]], all_gather [_, x]");
  EXPECT_EQ(plan->bytes, 5 * 64 + 384);
}

// The same on 2 x 4: some ranks need nothing of what they hold, so the busiest sends its 8 of 64 elements.
TEST(ReshardPlannerTest, SwappedAxesOfDifferentSizeAreOneExchange) {
  Planned plan = planOn({2, 4}, {8, 8}, makeState({{0}, {1, 2}}), makeState({{1, 2}, {0}}));
  EXPECT_EQ(plan.steps, R"(exchange [y, x])");
  EXPECT_EQ(plan.bytes, 8);
}

TEST(ReshardPlannerTest, ReversedAxesOfOneDimAreOnePermute) {
  Planned plan = planOn({2, 2}, {8, 8}, makeState({{0, 1}, {}}), makeState({{1, 0}, {}}));
  EXPECT_EQ(plan.steps, R"(exchange [[y, x], _])");
  EXPECT_EQ(plan.bytes, 16);
}

// [x|-] to [-|y]: split before gathering. N/4 each, x of 2 gathers N/4 from the other.
TEST(ReshardPlannerTest, SlicesComeBeforeGathers) {
  Planned plan = planOn({2, 2}, {8, 8}, makeState({{0}, {}}), makeState({{}, {1}}));
  EXPECT_EQ(plan.steps, R"(slice [x, y], all_gather [_, y])");
  EXPECT_EQ(plan.bytes, 16);
}

TEST(ReshardPlannerTest, SeveralAxesLeaveInOneGather) {
  Planned plan = planOn({2, 2, 2}, {8, 8}, makeState({{0, 1, 2}, {}}), makeState({{0}, {}}));
  EXPECT_EQ(plan.steps, R"(all_gather [x, _])");
  EXPECT_EQ(plan.bytes, 3 * 8);
  plan = planOn({2, 2, 2}, {8, 8}, makeState({{0, 1}, {2}}), makeState({{0}, {}}));
  EXPECT_EQ(plan.steps, R"(all_gather [x, _])");
  EXPECT_EQ(plan.bytes, 3 * 8);
}

// Gathers pop from the minor end: x cannot leave [x, y] without y, so every rank gets its half from point to point.
TEST(ReshardPlannerTest, MajorAxisCannotBeGatheredAlone) {
  Planned plan = planOn({2, 2}, {8, 8}, makeState({{0, 1}, {}}), makeState({{1}, {}}));
  EXPECT_EQ(plan.steps, R"(exchange [y, _])");
  EXPECT_EQ(plan.bytes, 32);
}

TEST(ReshardPlannerTest, MovedAxisIsOneAllToAll) {
  Planned plan = planOn({4}, {8, 8}, makeState({{0, 1}, {}}), makeState({{}, {0, 1}}));
  EXPECT_EQ(plan.steps, R"(all_to_all [_, x])");
  EXPECT_EQ(plan.bytes, 12); // 3/4 of 16
}

// x can leave [y, x] before y is gathered, which would make the all_to_all twice as large.
TEST(ReshardPlannerTest, AllToAllComesBeforeGather) {
  Planned plan = planOn({2, 2}, {8, 8}, makeState({{1, 0}, {}}), makeState({{}, {0}}));
  EXPECT_EQ(plan.steps, R"(all_to_all [y, x], all_gather [_, x])");
  EXPECT_EQ(plan.bytes, 8 + 16);
}

// x cannot leave [x, y] before y. All in one exchange: a rank sends its 16 to two ranks, but for the 8 it keeps.
TEST(ReshardPlannerTest, BlockedAxisIsExchangedRatherThanGathered) {
  Planned plan = planOn({2, 2}, {8, 8}, makeState({{0, 1}, {}}), makeState({{}, {0}}));
  EXPECT_EQ(plan.steps, R"(exchange [_, x])");
  EXPECT_EQ(plan.bytes, 2 * 16 - 8);
}

// All of 4 x 4: gathering x would send 48; split over y first, every rank has 4, sends it on and gathers 12.
TEST(ReshardPlannerTest, ReplacedAxisIsSplitFirst) {
  Planned plan = planOn({4, 4}, {64}, makeState({{0, 1}}), makeState({{2, 3}}));
  EXPECT_EQ(plan.steps, R"(slice [[x, y]], exchange [y])");
  EXPECT_EQ(plan.bytes, 16);
}

TEST(ReshardPlannerTest, PartialSumBecomesShardByOneReduceScatter) {
  Planned plan = planOn({4, 2}, {8, 8}, makeState({{0, 1}, {}}, {2}), makeState({{0, 1}, {2}}));
  EXPECT_EQ(plan.steps, R"(reduce_scatter [x, y])");
  EXPECT_EQ(plan.bytes, 8); // half of 16
}

TEST(ReshardPlannerTest, SeveralAxesReduceInOneAllReduce) {
  Planned plan = planOn({2, 2, 2}, {8, 8}, makeState({{0}, {}}, {1, 2}), makeState({{0}, {}}));
  EXPECT_EQ(plan.steps, R"(all_reduce [x, _])");
  EXPECT_EQ(plan.bytes, 2 * 24); // 2 * 3/4 of 32
}

TEST(ReshardPlannerTest, SeveralAxesScatterInOneReduceScatter) {
  Planned plan = planOn({2, 2}, {8, 8}, makeState({{}, {}}, {0, 1}), makeState({{0}, {1}}));
  EXPECT_EQ(plan.steps, R"(reduce_scatter [x, y])");
  EXPECT_EQ(plan.bytes, 48); // 3/4 of 64
}

// What the target does not split is reduced on the smaller shard that the other axis leaves.
TEST(ReshardPlannerTest, ScatterComesBeforeAllReduce) {
  Planned plan = planOn({2, 4}, {8, 8}, makeState({{}, {}}, {0, 1, 2}), makeState({{0}, {}}));
  EXPECT_EQ(plan.steps, R"(reduce_scatter [x, _] partial(y: sum), all_reduce [x, _])");
  EXPECT_EQ(plan.bytes, 32 + 48); // half of 64, then 2 * 3/4 of 32
}

TEST(ReshardPlannerTest, ReplicatedValueBecomesPartialForNothing) {
  Planned plan = planOn({2, 2}, {8, 8}, makeState({{0}, {}}), makeState({{0}, {}}, {1}));
  EXPECT_EQ(plan.steps, R"(make_partial [x, _] partial(y: sum))");
  EXPECT_EQ(plan.bytes, 0);
}

TEST(ReshardPlannerTest, ReplicatedValueIsSplitForNothing) {
  Planned plan = planOn({2, 2}, {8, 8}, makeState({{}, {}}), makeState({{1, 0}, {}}));
  EXPECT_EQ(plan.steps, R"(slice [[y, x], _])");
  EXPECT_EQ(plan.bytes, 0);
}

// Terms are exchanged like whole values, and stay partial.
TEST(ReshardPlannerTest, KeptPartialMovesWithTheValue) {
  Planned plan = planOn({2, 2, 2}, {8, 8}, makeState({{0}, {1}}, {2}), makeState({{1}, {0}}, {2}));
  EXPECT_EQ(plan.steps, R"(exchange [y, x] partial(z: sum))");
  EXPECT_EQ(plan.bytes, 16);
}

// Eight copies reduce an eighth each and gather it: 7/8 of 8 and 7/8 of 64 / 8 twice, not 7/8 of 64.
TEST(ReshardPlannerTest, IdleAxisSharesTheReductionWhenAllowed) {
  State from = makeState({{}, {}}, {0, 1, 2}), to = makeState({{0, 1, 2}, {}});
  Planned alone = planOn({8, 8}, {8, 8}, from, to);
  EXPECT_EQ(alone.steps, R"(reduce_scatter [x, _])");
  EXPECT_EQ(alone.bytes, 56);
  Planned shared = planOn({8, 8}, {8, 8}, from, to, /*useIdleAtoms=*/true);
  EXPECT_EQ(shared.steps, R"(slice [_, y] partial(x: sum), reduce_scatter [x, y], all_gather [x, _])");
  EXPECT_EQ(shared.bytes, 7 + 7);
}

// Groups of two gain nothing from idle axes, so the plan stays one collective.
TEST(ReshardPlannerTest, IdleAxisIsLeftAloneWhereItSavesNothing) {
  Planned plan = planOn({2, 8}, {8, 8}, makeState({{}, {}}, {0}), makeState({{}, {}}), /*useIdleAtoms=*/true);
  EXPECT_EQ(plan.steps, "all_reduce [_, _]");
  EXPECT_EQ(plan.bytes, 64);
}

// Terms of a maximum are no terms of a sum, not even over the same axis: 2 * 1/2 of 8, and the result is a sum's term.
TEST(ReshardPlannerTest, ADifferentReductionKindIsReducedFirst) {
  for (AtomId atom : {0, 1}) {
    Planned plan = planOn({2, 2}, {8}, makeState({{}}, {0}, ReductionKind::Max), makeState({{}}, {atom}));
    EXPECT_EQ(plan.steps, std::string("all_reduce [_], make_partial [_] partial(") + (atom ? "y" : "x") + ": sum)");
    EXPECT_EQ(plan.bytes, 8);
  }
}

// 10 rows over 4 ranks are shards of 3, which do not nest in the halves of 5: no slice and no gather leads there.
TEST(ReshardPlannerTest, ShardsThatDoNotNestAreExchanged) {
  Planned finer = planOn({2, 2}, {10}, makeState({{0}}), makeState({{0, 1}}));
  EXPECT_EQ(finer.steps, R"(exchange [[x, y]])");
  EXPECT_EQ(finer.bytes, 1); // row 5, from the second half to the second quarter
}

// All four shards gathered are 12 rows, two of them padding; each rank sends its 3 three times.
TEST(ReshardPlannerTest, PaddingIsPaidFor) {
  Planned plan = planOn({2, 2}, {10}, makeState({{0, 1}}), makeState({{}}));
  EXPECT_EQ(plan.steps, "all_gather [_]");
  EXPECT_EQ(plan.bytes, 9);
}

TEST(ReshardPlannerTest, EmptyTensorsCostNothing) {
  Planned plan = planOn({2, 2}, {0, 8}, makeState({{0}, {1}}), makeState({{1}, {0}}));
  EXPECT_EQ(plan.bytes, 0);
}

TEST(ReshardPlannerTest, StepsNameTheAtomsThatMove) {
  AtomMesh mesh({2, 4});
  auto plan = ReshardPlanner(mesh).plan({8, 8}, 4, makeState({{1, 2}, {}}), makeState({{}, {1, 2}}));
  ASSERT_EQ(plan->steps.size(), 1u);
  EXPECT_EQ(plan->steps[0].atoms, (AtomList{1, 2}));
  EXPECT_EQ(plan->numCollectives(), 1u);
  plan = ReshardPlanner(mesh).plan({8, 8}, 4, makeState({{0}, {1}}, {2}), makeState({{1}, {0}}, {2}));
  ASSERT_EQ(plan->steps.size(), 1u);
  EXPECT_EQ(plan->steps[0].atoms, (AtomList{0, 1}));
}

//===----------------------------------------------------------------------===//
// The memory of costs, and time
//===----------------------------------------------------------------------===//

TEST(ReshardCostsTest, RemembersEachReshardOnce) {
  AtomMesh mesh({2, 2});
  ReshardPlanner planner(mesh);
  StateTable states;
  StateId rows = states.intern(makeState({{0}, {}})), columns = states.intern(makeState({{}, {0}}));
  StateId sum = states.intern(makeState({{}, {}}, {0}));
  StateId largest = states.intern(makeState({{}, {}}, {1}, ReductionKind::Max));
  ReshardCosts costs(planner, states);
  ShapeId shape = costs.internShape({8, 8}, 4), wider = costs.internShape({8, 16}, 4);
  EXPECT_NE(shape, wider);
  EXPECT_EQ(costs.internShape({8, 8}, 4), shape);
  EXPECT_NE(costs.internShape({8, 8}, 2), shape);
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_EQ(costs.cost(shape, rows, columns), 64 * kCostUnitsPerByte); // half of 128 bytes
    EXPECT_EQ(costs.cost(wider, rows, columns), 128 * kCostUnitsPerByte);
    EXPECT_EQ(costs.cost(shape, rows, rows), 0);
    EXPECT_EQ(costs.cost(shape, sum, largest), 256 * kCostUnitsPerByte); // an all_reduce over two ranks
    EXPECT_EQ(costs.size(), 2u);                                         // both shapes are so many of [2, 2]
  }
  EXPECT_EQ(costs.plan(shape, rows, columns)->bytes, 64);
}

State drawState(const AtomMesh &mesh, unsigned rank, std::mt19937 &random) {
  State state = State::replicated(rank);
  auto kind = random() % 4 == 0 ? ReductionKind::Max : ReductionKind::Sum;
  AtomList atoms;
  for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
    atoms.push_back(atom);
  std::shuffle(atoms.begin(), atoms.end(), random);
  for (AtomId atom : atoms)
    if (unsigned place = random() % (rank + 2); place < rank)
      state.dims[place].push_back(atom);
    else if (place == rank)
      state.addPartial(atom, kind);
  return state;
}

// Costs tensors of sizes drawn at random, of extents that divide, that do so in part, and of 0, between two states. Returns how many
// were compared.
size_t compareCosts(const ReshardPlanner &planner, StateTable &states, ReshardCosts &costs, std::mt19937 &random) {
  const Ints extents = {0, 1, 2, 3, 4, 6, 7, 8, 12, 24, 36, 40, 100, 4096, 50257};
  unsigned rank = 1 + random() % 3;
  State from = drawState(planner.getMesh(), rank, random), to = drawState(planner.getMesh(), rank, random);
  for (int tensor = 0; tensor < 20; ++tensor) {
    llvm::SmallVector<int64_t, 4> shape;
    for (unsigned dim = 0; dim < rank; ++dim)
      shape.push_back(extents[random() % extents.size()]);
    int64_t bytes = int64_t(1) << random() % 4;
    std::optional<ReshardPlan> plan = planner.plan(shape, bytes, from, to);
    EXPECT_TRUE(plan &&
                costs.cost(costs.internShape(shape, bytes), states.intern(from), states.intern(to)) == plan->cost)
        << toString(planner.getMesh(), axisNames, from) << " to " << toString(planner.getMesh(), axisNames, to)
        << ", extents " << testing::PrintToString(Ints(shape.begin(), shape.end())) << " of " << bytes;
  }
  return from == to ? 0 : 20;
}

// What is taken over from another tensor, or from other atoms, is what a plan of its own costs.
TEST(ReshardCostsTest, AreThoseOfThePlans) {
  // Without latencies, with those of all links, with those of near ones alone, of blocks that are parts of an axis or lie across its atoms;
  // the same tensors each time.
  size_t numCosted[4] = {}, numPlanned[4] = {};
  for (const Ints &axes : {Ints{2, 4}, Ints{6, 2}, Ints{3, 3}, Ints{8}, Ints{2, 3, 5}, Ints{24}})
    for (int late = 0; late < 4; ++late) {
      ReshardPlannerOptions options;
      options.costs.anyLink.latency = late % 2 == 1 ? 100'000 : 0;
      if (late >= 2)
        for (int64_t size : axes)
          options.costs.nearLinks.push_back(
              {{late == 2 || size % 4 != 0 ? size : size / (size % 3 == 0 ? 3 : 2), {kCostUnitsPerByte / 4, 30'000}}});
      AtomMesh mesh(axes);
      ReshardPlanner planner(mesh, options);
      StateTable states;
      ReshardCosts costs(planner, states);
      std::mt19937 random(5);
      for (int round = 0; round < 60; ++round)
        numCosted[late] += compareCosts(planner, states, costs, random);
      numPlanned[late] += costs.size();
    }
  // What one of the extents does not divide is planned for itself.
  for (int late = 0; late < 4; ++late)
    EXPECT_LT(numPlanned[late] * 10, numCosted[late] * 9);
}

// Atoms over equal links are told apart by their order alone, and what begins a dim on both sides makes the tensor smaller.
TEST(ReshardCostsTest, KnowEqualReshards) {
  AtomMesh mesh({4, 4, 4});
  ReshardPlannerOptions options;
  options.costs.links = {{kCostUnitsPerByte, 500}, {kCostUnitsPerByte, 500}, {3 * kCostUnitsPerByte, 500}};
  ReshardPlanner planner(mesh, options);
  StateTable states;
  ReshardCosts costs(planner, states);
  ShapeId shape = costs.internShape({64, 128}, 4), half = costs.internShape({64, 128}, 2);
  auto cost = [&](ShapeId of, const State &from, const State &to) {
    int64_t found = costs.cost(of, states.intern(from), states.intern(to));
    EXPECT_EQ(found, planner.plan(costs.shape(of), costs.elementBytes(of), from, to)->cost);
    return found;
  };
  int64_t moved = cost(shape, makeState({{0}, {}}), makeState({{}, {0}}));
  EXPECT_EQ(cost(shape, makeState({{1}, {}}), makeState({{}, {1}})), moved);
  EXPECT_EQ(cost(shape, makeState({{2}, {}}), makeState({{}, {2}})), moved); // of another axis, over as fast a link
  EXPECT_EQ(cost(half, makeState({{}, {3}}, {0}), makeState({{}, {3}}, {0})), 0);
  // A rank of the other atom has half of it, of elements of half the bytes a fourth; what begins a collective is paid each time.
  int64_t begun = options.costs.links[0].latency;
  EXPECT_EQ(cost(shape, makeState({{3, 0}, {}}), makeState({{3}, {0}})) - begun, (moved - begun) / 2);
  EXPECT_EQ(cost(half, makeState({{3, 0}, {}}), makeState({{3}, {0}})) - begun, (moved - begun) / 4);
  EXPECT_EQ(cost(half, makeState({{1, 2}, {}}), makeState({{1}, {2}})) - begun, (moved - begun) / 4);
  EXPECT_EQ(costs.size(), 2u); // with something in front, and without
  EXPECT_EQ(cost(shape, makeState({{4}, {}}), makeState({{}, {4}})) - begun, 3 * (moved - begun)); // slower
  cost(shape, makeState({{4, 0}, {}}), makeState({{4}, {0}})); // behind what is slower
  cost(shape, makeState({{}, {0}}), makeState({{0}, {}}));     // the other way round
  EXPECT_EQ(costs.size(), 5u);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CLEAVE_SLOW_BUILD 1
#endif
#endif

// Plans on 16,384 ranks: the best of three runs of each, so that a busy machine does not decide.
TEST(ReshardPlannerTest, LargeMeshesArePlannedInMicroseconds) {
#ifdef CLEAVE_SLOW_BUILD
  GTEST_SKIP() << "no times from an instrumented build";
#endif
  AtomMesh mesh({16, 8, 16, 8});
  ReshardPlanner planner(mesh, {/*useIdleAtoms=*/true});
  AtomList x = mesh.atomsOf(0u), y = mesh.atomsOf(1u), z = mesh.atomsOf(2u), w = mesh.atomsOf(3u);
  auto joined = [](AtomList a, const AtomList &b) {
    a.append(b);
    return a;
  };
  std::vector<State> states = {makeState({x, y, z}),
                               makeState({z, x, y}),
                               makeState({joined(x, y), joined(z, w), {}}),
                               makeState({joined(w, z), joined(y, x), {}}),
                               makeState({joined(joined(x, y), joined(z, w)), {}, {}}),
                               makeState({joined(joined(w, z), joined(y, x)), {}, {}}),
                               makeState({{}, {}, {}}, joined(x, y)),
                               makeState({{}, w, {}}, joined(x, y)),
                               makeState({{}, {}, {}})};
  double total = 0, slowest = 0;
  unsigned pairs = 0;
  for (const State &from : states)
    for (const State &to : states)
      for (const Ints &shape : {Ints{16384, 16384, 1024}, Ints{16383, 10000, 999}}) {
        double best = 1;
        for (int run = 0; run < 3; ++run) {
          std::clock_t begin = std::clock(); // of a processor: others may be busy
          ASSERT_TRUE(planner.plan(shape, 4, from, to));
          best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
        }
        total += best;
        slowest = std::max(slowest, best);
        ++pairs;
      }
  RecordProperty("mean_us", std::to_string(total / pairs * 1e6));
  RecordProperty("slowest_us", std::to_string(slowest * 1e6));
  EXPECT_LT(slowest, 5e-3);
}

} // namespace
