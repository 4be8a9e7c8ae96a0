//===- SearchMemoryTest.cpp - the same decisions, with less work ----------===//
//
// Decisions with a memory are held against those without one: whatever is the same must be, and what differs in anything that is decided by
// must not be taken for the same.
//
//===----------------------------------------------------------------------===//
#include "cleave/Solver/SearchMemory.h"
#include "Solved.h"
#include "cleave/Sharding/Cluster.h"
#include <functional>
#include <random>
#include <set>

using namespace cleave::spmd;

namespace {

/// x [rows, 64] times w1, times w2, by time; axes are free.
struct Mlp {
  explicit Mlp(std::vector<int64_t> mesh, int64_t rows = 256) : graph(mesh) {
    x = graph.input({rows, 64});
    first = graph.parameter({64, 256});
    second = graph.parameter({256, 64});
    ValueId y = graph.einsum("ik,kj->ij", {graph.pointwise({graph.einsum("ik,kj->ij", {x, first})}), second});
    graph.problem.addOutput(y);
    for (AtomId atom = 0; atom < graph.problem.getMesh().numAtoms(); ++atom)
      graph.problem.setFree(atom);
  }

  GraphBuilder graph;
  ValueId x, first, second;
};

SolverOptions makeOptions(std::shared_ptr<SearchMemory> memory) {
  SolverOptions options;
  options.costs = CostModel::create(Optimize::Time);
  options.memory = std::move(memory);
  return options;
}

void expectSame(const Decision &lhs, const Decision &rhs) {
  EXPECT_EQ(lhs.objective, rhs.objective);
  EXPECT_EQ(lhs.wireBytes, rhs.wireBytes);
  EXPECT_EQ(lhs.choices, rhs.choices);
  ASSERT_EQ(lhs.valueStates.size(), rhs.valueStates.size());
  for (auto [left, right] : llvm::zip(lhs.valueStates, rhs.valueStates))
    EXPECT_EQ(lhs.states[left], rhs.states[right]);
}

TEST(SearchMemoryTest, EqualProblemsAreLookedUp) {
  auto memory = std::make_shared<SearchMemory>();
  Mlp first({2, 4}), again({2, 4});
  Solved alone(first.graph), made(first.graph, makeOptions(memory));
  EXPECT_TRUE(memory->find(again.graph.problem, makeOptions(memory)));
  Solved looked(again.graph, makeOptions(memory));
  Solved without(again.graph, makeOptions(nullptr));
  expectSame(made.solver.getDecision(), without.solver.getDecision());
  expectSame(looked.solver.getDecision(), without.solver.getDecision());
}

// Who asks why gets the same answer.
TEST(SearchMemoryTest, WhatIsLookedUpIsExplained) {
  auto memory = std::make_shared<SearchMemory>();
  Mlp mlp({2, 4});
  Solved made(mlp.graph, makeOptions(memory)), looked(mlp.graph, makeOptions(memory));
  std::vector<CauseLink> chain = made.solver.explain(0, 0, 0), other = looked.solver.explain(0, 0, 0);
  ASSERT_EQ(chain.size(), other.size());
  EXPECT_FALSE(chain.empty());
  EXPECT_EQ(chain.front().id, other.front().id);
  EXPECT_EQ(made.solver.getReached(0, 0), looked.solver.getReached(0, 0));
}

// One thing is another each time.
TEST(SearchMemoryTest, OtherProblemsAreNot) {
  SearchMemory memory;
  SolverOptions options = makeOptions(nullptr);
  Mlp known({2, 4});
  memory.keep(known.graph.problem, options, Decision());
  using Change = std::function<void(GraphBuilder &)>;
  Mlp same({2, 4});
  EXPECT_TRUE(memory.find(same.graph.problem, options));
  EXPECT_FALSE(memory.find(Mlp({2, 4}, 128).graph.problem, options));
  EXPECT_FALSE(memory.find(Mlp({4, 2}).graph.problem, options));
  EXPECT_FALSE(memory.find(Mlp({8}).graph.problem, options));
  for (const Change &change : std::vector<Change>{
           [](GraphBuilder &graph) { graph.problem.setAnnotation(0, graph.annotation({{0}, {}})); },
           [](GraphBuilder &graph) { graph.problem.decideStorage(1); },
           [](GraphBuilder &graph) { graph.problem.setParameter(0); },
           [](GraphBuilder &graph) { graph.problem.keepEven(64); },
           [](GraphBuilder &graph) { graph.problem.keepInputEven(0, 0); },
           [](GraphBuilder &graph) { graph.problem.keepInputDim(0, 0); },
           [](GraphBuilder &graph) { graph.problem.keepOutputEven(0, 0); },
           [](GraphBuilder &graph) { graph.problem.hold(0, 0); },
           [](GraphBuilder &graph) { graph.problem.addOutput(0); },
           [](GraphBuilder &graph) { graph.problem.setFree(0); },
       }) {
    Mlp changed({2, 4});
    change(changed.graph);
    EXPECT_FALSE(memory.find(changed.graph.problem, options));
  }
  Mlp stored({2, 4}), tied({2, 4});
  stored.graph.problem.decideStorage(0);
  memory.keep(stored.graph.problem, options, Decision());
  tied.graph.problem.decideStorage(0);
  EXPECT_TRUE(memory.find(tied.graph.problem, options));
  tied.graph.problem.tie(0, 0);
  EXPECT_FALSE(memory.find(tied.graph.problem, options));
}

TEST(SearchMemoryTest, OtherOptionsAreNot) {
  SearchMemory memory;
  const SolverOptions options = makeOptions(nullptr);
  Mlp mlp({2, 4});
  memory.keep(mlp.graph.problem, options, Decision());
  using Change = std::function<void(SolverOptions &)>;
  for (const Change &change : std::vector<Change>{
           [](SolverOptions &one) { one.maxRounds = 1; },
           [](SolverOptions &one) { one.maxOpsForPairs = 1; },
           [](SolverOptions &one) { one.keepParameters = true; },
           [](SolverOptions &one) { one.lookForFewerBytes = true; },
           [](SolverOptions &one) { one.perStoredByte = 1; },
           [](SolverOptions &one) { one.perValueByte = 1; },
           [](SolverOptions &one) { one.maySplit = [](OpId, FactorId) { return true; }; },
           [](SolverOptions &one) { one.costs = CostModel::create(Optimize::Bytes); },
           [](SolverOptions &one) { ++one.costs.perLaunch; },
           [](SolverOptions &one) { one.costs.anyLink.latency += 1; },
           [](SolverOptions &one) { one.costs.links.push_back({1, 1}); },
           [](SolverOptions &one) { one.costs.nearLinks.push_back({{2, {1, 1}}}); },
       }) {
    SolverOptions other = options;
    change(other);
    EXPECT_FALSE(memory.find(mlp.graph.problem, other));
  }
}

// What is only known of some factors, or of one price, shares what reshards cost all the same.
TEST(SearchMemoryTest, CostsAreShared) {
  auto memory = std::make_shared<SearchMemory>();
  Mlp mlp({2, 4});
  SolverOptions options = makeOptions(memory);
  Solved first(mlp.graph, options);
  std::shared_ptr<PlannedCosts> planned = memory->costsOn(mlp.graph.problem.getMesh(), options.costs);
  size_t numPlanned = planned->size();
  EXPECT_GT(numPlanned, 0u);
  options.maySplit = [](OpId, FactorId) { return true; };
  Solved second(mlp.graph, options);
  EXPECT_EQ(planned->size(), numPlanned);
  expectSame(first.solver.getDecision(), second.solver.getDecision());
  EXPECT_NE(memory->costsOn(AtomMesh({2, 2}), options.costs), planned);
  ++options.costs.perCollective;
  EXPECT_NE(memory->costsOn(mlp.graph.problem.getMesh(), options.costs), planned);
}

// Who raises the price of memory until an answer fits searches once more from what bytes decide, which are the same at all prices.
TEST(SearchMemoryTest, PricesShareWhatBytesDecide) {
  auto memory = std::make_shared<SearchMemory>();
  auto make = [](int64_t rows) {
    Mlp mlp({4, 2}, rows);
    mlp.graph.problem.decideStorage(mlp.first);
    mlp.graph.problem.decideStorage(mlp.second);
    return mlp;
  };
  Mlp mlp = make(256), other = make(64);
  SolverOptions byBytes = makeOptions(nullptr);
  byBytes.costs = CostModel::create(Optimize::Bytes);
  EXPECT_FALSE(memory->findBeginning(mlp.graph.problem, byBytes));
  std::set<int64_t> stored;
  for (double price : {0.0, 1e-3, 1.0, 10.0, 1e3}) {
    for (const Mlp *one : {&mlp, &other}) {
      SolverOptions with = makeOptions(memory), without = makeOptions(nullptr);
      with.perStoredByte = without.perStoredByte = price;
      Solved shared(one->graph, with), alone(one->graph, without);
      expectSame(shared.solver.getDecision(), alone.solver.getDecision());
      stored.insert(shared.solver.getDecision().objective);
    }
  }
  EXPECT_GT(stored.size(), 4u) << "prices do not matter here";
  ASSERT_TRUE(memory->findBeginning(mlp.graph.problem, byBytes));
  EXPECT_TRUE(memory->findBeginning(other.graph.problem, byBytes));
  EXPECT_FALSE(memory->findBeginning(Mlp({2, 4}).graph.problem, byBytes));
  EXPECT_FALSE(memory->findBeginning(mlp.graph.problem, makeOptions(nullptr)));
}

// Parts of an axis that are called axes are the same parts, over the same links: costs are theirs, whoever asked first.
TEST(SearchMemoryTest, AxesOverOneLinkAreOne) {
  SearchMemory memory;
  CostModel costs = CostModel::create(Optimize::Time);
  costs.links = {{4096, 9000}, {1024, 100}, {1024, 100}};
  AtomMesh mesh({4, 4, 2}), other({4, 8});
  CostModel otherCosts = costs;
  otherCosts.links.pop_back();
  std::shared_ptr<PlannedCosts> planned = memory.costsOn(mesh, costs);
  EXPECT_EQ(memory.costsOn(other, otherCosts), planned);
  EXPECT_NE(memory.costsOn(AtomMesh({4, 2, 4}), otherCosts), planned); // its last axis is as any link
  EXPECT_EQ(memory.costsOn(AtomMesh({6, 4}), CostModel()), memory.costsOn(AtomMesh({6, 4}), CostModel()));
  EXPECT_NE(memory.costsOn(AtomMesh({6, 4}), CostModel()), memory.costsOn(AtomMesh({24}), CostModel()));
  EXPECT_EQ(memory.costsOn(AtomMesh({4, 6}), CostModel()), memory.costsOn(AtomMesh({24}), CostModel()));
  ReshardPlanner planner(mesh, {false, costs});
  std::mt19937 random(3);
  auto draw = [&] {
    State state = State::replicated(2);
    for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
      if (unsigned place = random() % 4; place < 2)
        state.dims[place].push_back(atom);
      else if (place == 2)
        state.addPartial(atom, ReductionKind::Sum);
    return state;
  };
  for (int trial = 0; trial < 2000; ++trial) {
    State from = draw(), to = draw();
    llvm::SmallVector<int64_t, 2> shape{int64_t(32) << random() % 4, int64_t(12) << random() % 8};
    EXPECT_EQ(planned->cost(planned->internShape(shape, 4), planned->internState(from), planned->internState(to)),
              planner.plan(shape, 4, from, to)->cost);
  }
}

} // namespace
