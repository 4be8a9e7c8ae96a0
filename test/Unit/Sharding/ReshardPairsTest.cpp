//===- ReshardPairsTest.cpp - all reshards on small meshes ----------------===//
//
// The planner is held against an exhaustive search for its costs and against a simulation for its meaning, over all
// pairs of states.
//
//===----------------------------------------------------------------------===//
#include "ReshardOracle.h"
#include "cleave/Sharding/ReshardPlanner.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;
using namespace cleave::spmd::test;

namespace {

using Ints = std::vector<int64_t>;

const std::vector<std::string> axisNames = {"x", "y", "z", "w"};

std::string text(const AtomMesh &mesh, const ReshardPlan &plan) {
  std::string result;
  llvm::raw_string_ostream os(result);
  printPlan(os, mesh, axisNames, plan);
  return result;
}

std::string describe(const AtomMesh &mesh, const State &from, const State &to) {
  return toString(mesh, axisNames, from) + " -> " + toString(mesh, axisNames, to);
}

struct MeshAndShape {
  Ints axes, shape;
  /// Every how many-th plan is carried out; all are counted.
  unsigned simulateEvery = 1;
};

void PrintTo(const MeshAndShape &value, std::ostream *os) {
  *os << "mesh " << testing::PrintToString(value.axes) << " shape " << testing::PrintToString(value.shape);
}

class AllPairs : public testing::TestWithParam<MeshAndShape> {
protected:
  void comparePlans(bool useIdleAtoms);
};

// Steps of one kind that follow each other should have been one.
bool hasMergeableSteps(const ReshardPlan &plan) {
  for (size_t i = 1; i < plan.steps.size(); ++i)
    if (plan.steps[i].kind == plan.steps[i - 1].kind && plan.steps[i].kind != ReshardStepKind::AllToAll)
      return true;
  return false;
}

// Without help from idle atoms the search may not newly split an atom that both ends leave whole.
AtomList idleOnBothSides(const AtomMesh &mesh, const State &from, const State &to) {
  AtomList idle;
  for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
    if (from.isIdle(atom) && !to.splits(atom))
      idle.push_back(atom);
  return idle;
}

// An all_reduce is rounded up to a unit, so sums of several may differ by as many units.
constexpr int64_t rounding = 4;

void AllPairs::comparePlans(bool useIdleAtoms) {
  const MeshAndShape &param = GetParam();
  AtomMesh mesh(param.axes);
  ReshardPlanner planner(mesh, {useIdleAtoms});
  ExhaustiveSearch search(mesh, param.shape, 4);
  const std::vector<State> &states = search.states();
  size_t pairs = 0, dearer = 0;
  for (size_t from = 0; from < states.size(); ++from) {
    std::map<AtomList, Ints> least;
    for (size_t to = 0; to < states.size(); ++to) {
      SCOPED_TRACE(describe(mesh, states[from], states[to]));
      AtomList forbidden = useIdleAtoms ? AtomList() : idleOnBothSides(mesh, states[from], states[to]);
      if (!least.count(forbidden))
        least[forbidden] = search.distancesFrom(from, forbidden);
      std::optional<ReshardPlan> plan = planner.plan(param.shape, 4, states[from], states[to]);
      ASSERT_TRUE(plan);
      ASSERT_GE(plan->cost, least[forbidden][to] - rounding);
      ASSERT_FALSE(hasMergeableSteps(*plan)) << text(mesh, *plan);
      dearer += plan->cost > least[forbidden][to] + rounding;
      if (++pairs % param.simulateEvery == 0)
        ASSERT_EQ(simulate(mesh, param.shape, 4, states[from], states[to], *plan), "") << text(mesh, *plan);
    }
  }
  EXPECT_EQ(dearer, 0u) << "of " << pairs << " plans are not minimal";
  RecordProperty("pairs", std::to_string(pairs));
  RecordProperty("dearer", std::to_string(dearer));
}

TEST_P(AllPairs, NoSequenceOfCollectivesIsCheaper) { comparePlans(/*useIdleAtoms=*/false); }
TEST_P(AllPairs, NoSequenceThatUsesIdleAxesIsCheaper) { comparePlans(/*useIdleAtoms=*/true); }

// Links of one axis are a thousand times slower than others'; with one axis there is nothing to compare.
ReshardPlannerOptions withSlowAxis(const AtomMesh &mesh, unsigned slow) {
  ReshardPlannerOptions options;
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
    options.costs.links.push_back({axis == slow ? 1000 * kCostUnitsPerByte : kCostUnitsPerByte, 0});
  return options;
}

// Carries out every `param.simulateEvery`-th plan between two of the states; `pairs` counts them, of several planners.
void expectRightContents(const MeshAndShape &param, const AtomMesh &mesh, const ReshardPlannerOptions &options,
                         const std::vector<State> &states, int64_t elementBytes, unsigned &pairs) {
  ReshardPlanner planner(mesh, options);
  for (const State &from : states)
    for (const State &to : states) {
      if (++pairs % param.simulateEvery)
        continue;
      SCOPED_TRACE(describe(mesh, from, to));
      std::optional<ReshardPlan> plan = planner.plan(param.shape, elementBytes, from, to);
      ASSERT_TRUE(plan);
      ASSERT_EQ(simulate(mesh, param.shape, elementBytes, from, to, *plan), "") << text(mesh, *plan);
    }
}

// Where links differ there are more ways, of which nothing is claimed but that they end where they should.
TEST_P(AllPairs, EveryPlanOverLinksThatDifferEndsWithTheRightContents) {
  const MeshAndShape &param = GetParam();
  AtomMesh mesh(param.axes);
  std::vector<State> states = ExhaustiveSearch(mesh, param.shape, 4).states();
  unsigned pairs = 0;
  for (unsigned slow = 0; slow < mesh.numAxes(); ++slow)
    expectRightContents(param, mesh, withSlowAxis(mesh, slow), states, 4, pairs);
}

INSTANTIATE_TEST_SUITE_P(SmallMeshes, AllPairs,
                         testing::Values(MeshAndShape{{4}, {8, 4}}, MeshAndShape{{4}, {16}},
                                         MeshAndShape{{2, 2}, {8, 4}}, MeshAndShape{{2, 2}, {4, 4, 4}},
                                         MeshAndShape{{6}, {12, 6}}, MeshAndShape{{2, 3}, {6, 18}},
                                         MeshAndShape{{2, 3}, {36}}, MeshAndShape{{3, 2}, {12, 12}},
                                         // 35 ranks and 1,225 elements: every 20th plan is carried out.
                                         MeshAndShape{{5, 7}, {35, 35}, 20}, MeshAndShape{{2, 2, 2}, {8, 8}, 5},
                                         // Some states do not divide, and some dims take few atoms.
                                         MeshAndShape{{2, 2, 2}, {4, 2}, 5}, MeshAndShape{{2, 2, 2}, {2, 4, 2}, 11},
                                         MeshAndShape{{2, 2, 3}, {12, 6}, 11}));

// Shards that do not divide: no claim about the least cost, but every plan must do what it says.
class UnevenPairs : public testing::TestWithParam<MeshAndShape> {};

TEST_P(UnevenPairs, EveryPlanEndsWithTheRightContents) {
  const MeshAndShape &param = GetParam();
  AtomMesh mesh(param.axes);
  // All lists of atoms, whether they divide the shape or not.
  std::vector<State> states = allStates(mesh, Ints(param.shape.size(), mesh.numRanks()), true);
  unsigned pairs = 0;
  for (const ReshardPlannerOptions &options :
       {ReshardPlannerOptions{false}, ReshardPlannerOptions{true}, withSlowAxis(mesh, 0)})
    expectRightContents(param, mesh, options, states, 2, pairs);
}

INSTANTIATE_TEST_SUITE_P(SmallMeshes, UnevenPairs,
                         testing::Values(MeshAndShape{{4}, {10, 3}}, MeshAndShape{{2, 2}, {7}},
                                         MeshAndShape{{2, 3}, {10, 5}}, MeshAndShape{{2, 2}, {1, 5}},
                                         MeshAndShape{{6}, {7, 4}}, MeshAndShape{{2, 2, 2}, {10, 7}, 7},
                                         MeshAndShape{{2, 2, 2}, {12, 3}, 7}, MeshAndShape{{5, 7}, {36, 9}, 7}));

} // namespace
