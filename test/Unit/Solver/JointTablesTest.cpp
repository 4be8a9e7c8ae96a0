//===- JointTablesTest.cpp - a bound on all that could be decided ---------===//
//
// On small random problems all options of all nodes are enumerated: no bound is above the least sum, and no answer of the solver below it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Solver/JointTables.h"
#include "Solved.h"
#include "SumLeast.h"
#include "cleave/Sharding/Cluster.h"
#include "cleave/Solver/Elimination.h"
#include "llvm/ADT/STLExtras.h"
#include <deque>
#include <random>
#include <set>

using namespace cleave::spmd;

namespace {

/// Time on the default cluster, of a graph whose axes are all free.
SolverOptions byTime(GraphBuilder &graph) {
  const AtomMesh &mesh = graph.problem.getMesh();
  ClusterMesh named;
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis) {
    named.names.push_back("axis" + std::to_string(axis));
    named.sizes.push_back(mesh.axisSize(axis));
  }
  for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
    graph.problem.setFree(atom);
  SolverOptions options;
  options.costs = makeCostModel(Cluster(), named, named.names, Optimize::Time);
  return options;
}

/// The least sum of all tables by elimination, at a price of memory; nothing where that would be too wide.
std::optional<int64_t> findLeast(const JointGraph &graph, MemoryPrice price) {
  std::vector<uint16_t> domains;
  std::deque<std::vector<int64_t>> cells;
  std::vector<CostTerm> terms;
  for (uint32_t variable = 0; variable < graph.variables.size(); ++variable) {
    const JointDomain &domain = *graph.variables[variable];
    domains.push_back(domain.size());
    if (domain.size() > 256)
      return std::nullopt;
    std::vector<int64_t> &costs = cells.emplace_back(domain.costs);
    for (auto [cost, bytes] : llvm::zip(costs, domain.storedBytes))
      cost += price.of(bytes);
    terms.push_back({variable, kNoVariable, costs.data()});
  }
  for (const JointEdge &edge : graph.edges) {
    std::vector<int64_t> &all = cells.emplace_back();
    for (uint16_t row : *edge.rows)
      for (uint16_t column : *edge.columns)
        all.push_back(edge.table->cells[size_t(row) * edge.table->columns + column]);
    terms.push_back({edge.from, edge.to, all.data()});
  }
  Minimum minimum = minimize(domains, terms, size_t(1) << 24);
  return minimum.frozen.empty() ? std::optional(minimum.total) : std::nullopt;
}

/// Finds out what all cells cost; none costs less than was said.
void refineAll(const JointTables &tables) {
  for (const JointEdge &edge : tables.getGraph().edges)
    for (size_t cell = 0; cell < edge.table->cells.size(); ++cell) {
      int64_t least = edge.table->cells[cell];
      EXPECT_LE(least, edge.table->refine(cell));
    }
}

/// Products, sums, transposes and merged dims at random, weights stored as is best, now and then a tied state.
GraphBuilder makeRandom(uint32_t seed, std::vector<int64_t> mesh) {
  std::mt19937 random(seed);
  GraphBuilder graph(mesh);
  auto draw = [&] { return int64_t(16) << random() % 8; };
  int64_t rows = draw(), width = draw();
  std::vector<ValueId> values{graph.input({rows, width})};
  unsigned numOps = 2 + random() % 5;
  for (unsigned op = 0; op < numOps; ++op) {
    ValueId value = values[random() % values.size()];
    llvm::ArrayRef<int64_t> shape = graph.problem.shape(value);
    switch (random() % 5) {
    case 0: {
      ValueId weight = graph.parameter({shape[1], draw()});
      if (random() % 2)
        graph.problem.decideStorage(weight);
      values.push_back(graph.einsum("ik,kj->ij", {value, weight}));
      break;
    }
    case 1:
      values.push_back(graph.einsum("ik,jk->ij", {value, value}));
      break;
    case 2:
      values.push_back(graph.normalize({value}, 2));
      break;
    case 3:
      values.push_back(graph.transpose(value, {1, 0}));
      break;
    default:
      values.push_back(graph.add(value, value));
      break;
    }
  }
  graph.problem.addOutput(values.back());
  if (random() % 3 == 0) {
    llvm::ArrayRef<int64_t> shape = graph.problem.shape(values.back());
    ValueId state = graph.input({shape[0], shape[1]});
    graph.problem.decideStorage(state);
    graph.problem.addOutput(values.front());
    OutputId next = graph.problem.addOutput(graph.add(state, values.back()));
    graph.problem.tie(state, next);
  }
  return graph;
}

TEST(JointTablesTest, BoundsAreBelowAndAnswersAboveTheLeast) {
  const std::vector<int64_t> meshes[] = {{2}, {2, 2}, {4}};
  unsigned exact = 0, best = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    GraphBuilder graph = makeRandom(seed, meshes[seed % 3]);
    SolverOptions options = byTime(graph);
    MemoryPrice price{seed % 2 ? 0 : int64_t(1) << (30 + seed % 20)};
    options.perStoredByte =
        static_cast<double>(price.numerator) / static_cast<double>(int64_t(1) << MemoryPrice::kShift);
    std::unique_ptr<JointTables> tables = JointTables::create(graph.problem, options);
    ASSERT_TRUE(tables);
    EXPECT_EQ(tables->getNumRelaxed() + tables->getNumDropped(), 0u);
    Solved solved(graph, options);
    const Decision &decision = solved.solver.getDecision();
    std::optional<std::vector<uint16_t>> placed = tables->place(decision);
    ASSERT_TRUE(placed) << seed;
    std::optional<int64_t> cost = tables->costOf(*placed);
    ASSERT_TRUE(cost) << seed;
    int64_t answer = *cost - tables->getConstant();
    for (uint32_t variable = 0; variable < tables->getGraph().variables.size(); ++variable)
      if (const JointDomain &domain = *tables->getGraph().variables[variable]; !domain.storedBytes.empty())
        answer += price.of(domain.storedBytes[(*placed)[variable]]);
    EXPECT_EQ(answer, decision.objective) << seed;
    PassedMessages early = passMessages(tables->getGraph(), price, {.reach = answer});
    refineAll(*tables);
    std::optional<int64_t> least = findLeast(tables->getGraph(), price);
    ASSERT_TRUE(least) << seed;
    EXPECT_LE(early.bound, *least) << seed;
    // Whatever else a decision takes, it takes that op.
    EXPECT_LE(tables->getLargest(), *least) << seed;
    for (const JointEdge &edge : tables->getGraph().edges)
      EXPECT_GE(*llvm::min_element(edge.table->cells), 0) << seed;
    EXPECT_LE(*least, answer) << seed;
    PassedMessages passed = passMessages(tables->getGraph(), price, {.reach = answer});
    EXPECT_LE(passed.bound, *least) << seed;
    EXPECT_EQ(sumLeast(tables->getGraph(), price, passed.messages), passed.bound) << seed;
    exact += *least - passed.bound <= 1e-5 * static_cast<double>(*least);
    best += *least == answer;
  }
  // Passes are no proof, and messages need not meet the least, but on graphs of this size they do.
  EXPECT_EQ(exact, 400u);
  EXPECT_EQ(best, 400u);
}

/// Three products in a row, of which the last two are alike.
GraphBuilder makeLayers(std::vector<int64_t> mesh) {
  GraphBuilder graph(mesh);
  ValueId value = graph.input({256, 512});
  for (int layer = 0; layer < 3; ++layer) {
    ValueId weight = graph.parameter({512, 512});
    graph.problem.decideStorage(weight);
    value = graph.einsum("ik,kj->ij", {value, weight});
  }
  graph.problem.addOutput(value);
  return graph;
}

TEST(JointTablesTest, TheLargestOpTakesWhatItTakesAtLeast) {
  // Of two products the second, of twice the flops, as if it was alone.
  GraphBuilder both({2}), one({2});
  ValueId value = both.einsum("ik,kj->ij", {both.input({256, 512}), both.parameter({512, 512})});
  both.problem.addOutput(both.einsum("ik,kj->ij", {value, both.parameter({512, 1024})}));
  one.problem.addOutput(one.einsum("ik,kj->ij", {one.input({256, 512}), one.parameter({512, 1024})}));
  int64_t largest = JointTables::create(one.problem, byTime(one))->getLargest();
  EXPECT_GT(largest, 0);
  EXPECT_EQ(JointTables::create(both.problem, byTime(both))->getLargest(), largest);
}

TEST(JointTablesTest, EqualLayersShareTables) {
  GraphBuilder graph = makeLayers({2, 2});
  std::unique_ptr<JointTables> tables = JointTables::create(graph.problem, byTime(graph));
  std::set<const JointDomain *> domains(tables->getGraph().variables.begin(), tables->getGraph().variables.end());
  std::set<const JointTable *> distinct;
  for (const JointEdge &edge : tables->getGraph().edges)
    distinct.insert(edge.table);
  EXPECT_LT(domains.size(), tables->getGraph().variables.size());
  EXPECT_LT(distinct.size(), tables->getGraph().edges.size());
}

// Of one op the atoms do what they may, each for itself: 4 choices (none, rows, columns, what is summed over) for two of them.
TEST(JointTablesTest, AtomsAreTogether) {
  GraphBuilder graph = makeLayers({2, 2});
  std::unique_ptr<JointTables> tables = JointTables::create(graph.problem, byTime(graph));
  size_t largest = 0;
  for (const JointDomain *domain : tables->getGraph().variables)
    largest = std::max(largest, domain->size());
  EXPECT_GE(largest, 16u);
}

// A state that nothing may split has to be returned replicated, where rows of the product that it becomes would be split for nothing.
TEST(JointTablesTest, TiesHoldEndsTogether) {
  int64_t least[2];
  for (bool isTied : {false, true}) {
    GraphBuilder graph({4});
    ValueId state = graph.input({65536, 3});
    graph.problem.decideStorage(state);
    graph.problem.keepInputDim(state, 0);
    graph.problem.addOutput(graph.pointwise({state}));
    ValueId product = graph.einsum("ik,kj->ij", {graph.input({65536, 1024}), graph.parameter({1024, 3})});
    OutputId next = graph.problem.addOutput(product);
    if (isTied)
      graph.problem.tie(state, next);
    std::unique_ptr<JointTables> tables = JointTables::create(graph.problem, byTime(graph));
    refineAll(*tables);
    least[isTied] = *findLeast(tables->getGraph(), {});
  }
  EXPECT_LT(least[false], least[true]);
}

// What is too much to be tabulated costs no more than before: the bound falls, and stays one. Half of the machines have a cache, into which
// parts may fit that the whole does not.
TEST(JointTablesTest, LimitsMakeBoundsLower) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    GraphBuilder graph = makeRandom(seed, {2, 2});
    SolverOptions options = byTime(graph);
    if (seed % 2) {
      options.costs.cacheBytes = int64_t(1) << (10 + seed % 12);
      options.costs.perCacheByte = options.costs.perMemoryByte / 4;
    }
    std::unique_ptr<JointTables> whole = JointTables::create(graph.problem, options);
    refineAll(*whole);
    std::optional<int64_t> least = findLeast(whole->getGraph(), {});
    unsigned numLower = 0;
    for (JointLimits limits : {JointLimits{8, 1 << 19, 1 << 24}, JointLimits{1, 1 << 19, 1 << 24},
                               JointLimits{1 << 14, 12, 1 << 24}, JointLimits{1 << 14, 1 << 19, 200}}) {
      std::unique_ptr<JointTables> tables = JointTables::create(graph.problem, options, limits);
      EXPECT_EQ(tables->getConstant(), whole->getConstant());
      refineAll(*tables);
      std::optional<int64_t> lower = findLeast(tables->getGraph(), {});
      ASSERT_TRUE(least && lower);
      EXPECT_LE(*lower, *least) << seed;
      numLower += tables->getNumRelaxed() + tables->getNumDropped() > 0;
    }
    EXPECT_GT(numLower, 0u) << seed;
  }
}

// The norm has a launch in any case; products count their own.
TEST(JointTablesTest, KernelsThatThereAreAnyway) {
  GraphBuilder graph({2});
  ValueId x = graph.input({256, 512});
  graph.problem.addOutput(graph.normalize({graph.einsum("ik,kj->ij", {x, graph.parameter({512, 512})})}, 2));
  SolverOptions options = byTime(graph);
  std::unique_ptr<JointTables> tables = JointTables::create(graph.problem, options);
  EXPECT_EQ(tables->getConstant(), options.costs.perLaunch);
  GraphBuilder product({2});
  product.problem.addOutput(product.einsum("ik,kj->ij", {product.input({256, 512}), product.parameter({512, 512})}));
  EXPECT_EQ(JointTables::create(product.problem, byTime(product))->getConstant(), 0);
}

TEST(JointTablesTest, AnnotationsThatContradictHaveNone) {
  GraphBuilder graph({2});
  ValueId x = graph.input({256, 512}, {{0}, {}});
  graph.problem.setAnnotation(x, graph.annotation({{}, {0}}));
  graph.problem.addOutput(graph.pointwise({x}));
  EXPECT_FALSE(JointTables::create(graph.problem, byTime(graph)));
}

// What no option is costs nothing that could be said.
TEST(JointTablesTest, OnlyDecisionsHaveACost) {
  GraphBuilder graph = makeLayers({2});
  std::unique_ptr<JointTables> tables = JointTables::create(graph.problem, byTime(graph));
  std::vector<uint16_t> options(tables->getGraph().variables.size(), 0);
  EXPECT_TRUE(tables->costOf(options));
  options.back() = 1000;
  EXPECT_FALSE(tables->costOf(options));
  options.pop_back();
  EXPECT_FALSE(tables->costOf(options));
}

// The digest follows from all that costs.
TEST(JointTablesTest, OtherTablesHaveAnotherDigest) {
  GraphBuilder one = makeLayers({2, 2}), same = makeLayers({2, 2}), other = makeLayers({4});
  EXPECT_EQ(JointTables::create(one.problem, byTime(one))->getDigest(),
            JointTables::create(same.problem, byTime(same))->getDigest());
  SolverOptions faster = byTime(other);
  faster.costs.perFlop *= 0.5;
  EXPECT_NE(JointTables::create(one.problem, byTime(one))->getDigest(),
            JointTables::create(other.problem, faster)->getDigest());
}

} // namespace
