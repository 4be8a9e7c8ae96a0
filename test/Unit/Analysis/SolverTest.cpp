//===- SolverTest.cpp - known cases, byte by byte -------------------------===//
//
// Bytes follow from closed formulas: N = all bytes of a tensor, n ranks in a group; all_reduce 2(n-1)/n N, all_gather
// and reduce_scatter (n-1)/n N. All tensors are f32.
//
//===----------------------------------------------------------------------===//
#include "cleave/Analysis/Solver.h"
#include "GraphBuilder.h"
#include "cleave/Analysis/ServeWants.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;

namespace {

/// Solves, and names what there is to ask.
struct Solved {
  explicit Solved(const GraphBuilder &builder, SolverOptions options = {})
      : graph(builder), solver(graph.problem, options) {
    EXPECT_TRUE(solver.solve());
  }
  int64_t bytes() const { return solver.getDecision().wireBytes; }
  State value(ValueId id) const { return solver.getDecision().states[solver.getDecision().valueStates[id]]; }
  State output(OutputId id) const { return solver.getDecision().states[solver.getDecision().outputStates[id]]; }
  State operand(OpId op, unsigned index) const {
    return solver.getDecision().states[solver.getDecision().operandStates[graph.problem.firstOperand(op) + index]];
  }
  State result(OpId op) const {
    return solver.getDecision().states[solver.getDecision().resultStates[graph.problem.firstResult(op)]];
  }

  const GraphBuilder &graph;
  Solver solver;
};

void addOutput(GraphBuilder &graph, ValueId value, const DimAxes &dims) {
  Wish wish = graph.wish(dims);
  graph.problem.addOutput(value, &wish);
}

//===----------------------------------------------------------------------===//
// Reference cases of tensor, data and context parallelism
//===----------------------------------------------------------------------===//

// Column-parallel, then row-parallel, on mesh data=2, model=4: one all_reduce of the local activation [4, 64].
TEST(SolverTest, MegatronMlpNeedsOneAllReduce) {
  GraphBuilder graph({2, 4});
  ValueId x = graph.input({8, 64}, {{0}, {}});
  ValueId hidden = graph.pointwise({graph.einsum("ik,kj->ij", {x, graph.parameter({64, 256}, {{}, {1}})})});
  ValueId y = graph.einsum("ik,kj->ij", {hidden, graph.parameter({256, 64}, {{1}, {}})});
  addOutput(graph, y, {{0}, {}});
  Solved solved(graph);
  EXPECT_EQ(solved.bytes(), 2 * 3 * (4 * 64 * 4) / 4);
  EXPECT_EQ(solved.value(hidden), graph.state({{0}, {1}}));
  EXPECT_TRUE(solved.result(2).isPartialOver(1) && solved.result(2).isPartialOver(2));
  EXPECT_TRUE(solved.solver.getDecision().forced.empty());
}

TEST(SolverTest, DataParallelSendsNothing) {
  GraphBuilder graph({4});
  ValueId x = graph.input({8, 64}, {{0}, {}});
  ValueId hidden = graph.normalise({graph.einsum("ik,kj->ij", {x, graph.parameter({64, 256})})}, 2);
  graph.problem.addOutput(graph.einsum("ik,kj->ij", {hidden, graph.parameter({256, 64})}));
  Solved solved(graph);
  EXPECT_EQ(solved.bytes(), 0);
  EXPECT_EQ(solved.output(0), graph.state({{0}, {}}));
}

// Sequence parallelism: the activation between blocks is cut over the sequence, so each block gathers once and
// scatters once: 2 * 3/4 of [2, 16, 64].
TEST(SolverTest, SequenceParallelGathersAndScatters) {
  GraphBuilder graph({4});
  ValueId x = graph.input({2, 16, 64}, {{}, {0}, {}});
  ValueId normed = graph.normalise({x, graph.parameter({64})}, 2);
  ValueId hidden = graph.pointwise({graph.einsum("bsk,kj->bsj", {normed, graph.parameter({64, 256}, {{}, {0}})})});
  ValueId y = graph.einsum("bsk,kj->bsj", {hidden, graph.parameter({256, 64}, {{0}, {}})});
  addOutput(graph, graph.add(x, y), {{}, {0}, {}});
  EXPECT_EQ(Solved(graph).bytes(), 2 * 3 * (2 * 16 * 64 * 4) / 4);
}

// Vocabulary-parallel embedding: masked local look-up, one all_reduce of [2, 8, 64]; the table is never gathered.
TEST(SolverTest, VocabularyParallelEmbeddingReducesItsResult) {
  GraphBuilder graph({4});
  ValueId table = graph.parameter({1024, 64}, {{0}, {}}), ids = graph.input({2, 8});
  RuleBuilder rule(2, 1);
  auto looked = rule.addReduction(1024, ReductionKind::Sum), width = rule.addParallel(64), batch = rule.addParallel(2),
       sequence = rule.addParallel(8);
  rule.operandDim(0, looked).operandDim(0, width).operandDim(1, batch).operandDim(1, sequence);
  rule.resultDim(0, batch).resultDim(0, sequence).resultDim(0, width);
  ValueId y = graph.op(rule.rule, {table, ids}, {2, 8, 64});
  addOutput(graph, y, {{}, {}, {}});
  EXPECT_EQ(Solved(graph).bytes(), 2 * 3 * (2 * 8 * 64 * 4) / 4);
}

// 4 query heads per key head and 2 key heads on 4 ranks: half of the axis cuts key heads, the other half groups.
TEST(SolverTest, SplitsAnAxisOverKeyHeadsAndGroups) {
  GraphBuilder graph({4});
  ValueId query = graph.input({16, 8, 64}, {{}, {0}, {}}); // [sequence, heads, width]
  ValueId key = graph.input({16, 2, 64});
  ValueId grouped = graph.splitDim(query, 1, 2);
  graph.problem.addOutput(graph.einsum("skgd,tkd->kgst", {grouped, key}));
  Solved solved(graph);
  EXPECT_EQ(solved.bytes(), 0);
  State half = State::replicated(4);
  half.dims[0] = {0};
  half.dims[1] = {1};
  EXPECT_EQ(solved.result(1), half);
}

// The linear op after a row-parallel dot takes its terms: one reduction, after the add.
TEST(SolverTest, ReducesAfterLinearOps) {
  GraphBuilder graph({4});
  ValueId x = graph.input({8, 64}, {{}, {0}}), w = graph.parameter({64, 32}, {{0}, {}}),
          v = graph.parameter({64, 32}, {{0}, {}});
  ValueId sum = graph.add(graph.einsum("ik,kj->ij", {x, w}), graph.einsum("ik,kj->ij", {x, v}));
  addOutput(graph, sum, {{}, {}});
  Solved solved(graph);
  EXPECT_EQ(solved.bytes(), 2 * 3 * (8 * 32 * 4) / 4);
  EXPECT_TRUE(solved.operand(2, 0).isPartial());
}

//===----------------------------------------------------------------------===//
// Behaviours of the field's best systems
//===----------------------------------------------------------------------===//

// 8x32 [x|y] . 32x16 [y|-] -> [x|-] on x=4, y=2: local dot, one all_reduce over y of the local [2, 16].
TEST(SolverTest, RowParallelDotReducesOnce) {
  GraphBuilder graph({4, 2});
  ValueId a = graph.input({8, 32}, {{0}, {1}}), b = graph.input({32, 16}, {{1}, {}});
  addOutput(graph, graph.einsum("ik,kj->ij", {a, b}), {{0}, {}});
  EXPECT_EQ(Solved(graph).bytes(), 2 * 1 * (2 * 16 * 4) / 2);
}

// The same into [x|y]: one reduce_scatter.
TEST(SolverTest, RowParallelDotScattersIntoACutResult) {
  GraphBuilder graph({4, 2});
  ValueId a = graph.input({8, 32}, {{0}, {1}}), b = graph.input({32, 16}, {{1}, {}});
  addOutput(graph, graph.einsum("ik,kj->ij", {a, b}), {{0}, {1}});
  EXPECT_EQ(Solved(graph).bytes(), (2 * 16 * 4) / 2);
}

// 8x32 [x|y] . 32x16 [-|y] -> [x|y]: gather the left side over y: each rank sends its [2, 16].
TEST(SolverTest, ContractingAgainstTheOutputGathersTheLeftSide) {
  GraphBuilder graph({4, 2});
  ValueId a = graph.input({8, 32}, {{0}, {1}}), b = graph.input({32, 16}, {{}, {1}});
  addOutput(graph, graph.einsum("ik,kj->ij", {a, b}), {{0}, {1}});
  EXPECT_EQ(Solved(graph).bytes(), 2 * 16 * 4);
}

// A . A with A and the result [x|y] on x=4, y=2: A is gathered over y for the left side (512 bytes of [4, 8]) and over
// x for the right one (3 * [4, 8]).
TEST(SolverTest, ASquareDotGathersBothSides) {
  GraphBuilder graph({4, 2});
  ValueId a = graph.input({16, 16}, {{0}, {1}});
  addOutput(graph, graph.einsum("ik,kj->ij", {a, a}), {{0}, {1}});
  EXPECT_EQ(Solved(graph).bytes(), 4 * 8 * 4 + 3 * 4 * 8 * 4);
}

// 8x8 [a|-] . [-|ba] -> free on a=2, b=2: the result is [a|b]; the right side is put right before, 32 of its 64 bytes
// at least.
TEST(SolverTest, ATieGoesToTheLeftSide) {
  GraphBuilder graph({2, 2});
  ValueId a = graph.input({8, 8}, {{0}, {}}), b = graph.input({8, 8}, {{}, {1, 0}});
  graph.problem.addOutput(graph.einsum("ik,kj->ij", {a, b}));
  Solved solved(graph);
  EXPECT_EQ(solved.output(0), graph.state({{0}, {1}}));
}

// arg [a|-] -> sine -> two adds -> cosines, wished [-|a]: one all_to_all of [2, 8] on 4 ranks serves both.
TEST(SolverTest, UsersShareOneReshard) {
  GraphBuilder graph({4});
  ValueId sine = graph.pointwise({graph.input({8, 8}, {{0}, {}})});
  for (int use = 0; use < 2; ++use)
    addOutput(graph, graph.pointwise({graph.pointwise({sine, sine}, {{0, 1}})}), {{}, {0}});
  EXPECT_EQ(Solved(graph).bytes(), 3 * (2 * 8 * 4) / 4);
}

// A dot partial over both axes, added to itself, then wanted [a|-]: not more than one all_reduce over both axes.
TEST(SolverTest, ReducesASelfAddOnce) {
  GraphBuilder graph({2, 2});
  ValueId x = graph.input({8, 64}, {{}, {0, 1}}), w = graph.input({64, 16}, {{0, 1}, {}});
  ValueId dot = graph.einsum("ik,kj->ij", {x, w});
  addOutput(graph, graph.add(dot, dot), {{}, {}});
  EXPECT_EQ(Solved(graph).bytes(), 2 * 3 * (8 * 16 * 4) / 4);
}

//===----------------------------------------------------------------------===//
// Open dims, constraints, how inputs are stored
//===----------------------------------------------------------------------===//

TEST(SolverTest, AFreeInputIsStoredAsItsUsersWantIt) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{0}, {}}), y = graph.input({8, 16});
  graph.problem.addOutput(graph.add(x, y));
  EXPECT_EQ(Solved(graph).value(y), graph.state({{0}, {}}));
}

TEST(SolverTest, AnInputWithUnlikeUsersIsStoredWhole) {
  GraphBuilder graph({2});
  ValueId y = graph.input({8, 16});
  graph.problem.addOutput(graph.add(graph.input({8, 16}, {{0}, {}}), y));
  graph.problem.addOutput(graph.add(graph.input({8, 16}, {{}, {0}}), y));
  Solved solved(graph);
  EXPECT_TRUE(solved.value(y).isReplicated());
  EXPECT_EQ(solved.bytes(), 0);
}

// The input is wished [data?, _]; its users also cut dim 0 over model, so it is stored that way. A closed one is not.
TEST(SolverTest, AnOpenDimIsCutFurtherAndAClosedOneIsNot) {
  for (bool isOpen : {true, false}) {
    GraphBuilder graph({2, 2});
    ValueId x = graph.input({8, 16});
    Wish wish = graph.wish({{0}, {}});
    wish.dims[0].isOpen = isOpen;
    graph.problem.setWish(x, wish);
    graph.problem.addOutput(graph.add(x, graph.input({8, 16}, {{0, 1}, {}})));
    Solved solved(graph);
    EXPECT_EQ(solved.value(x), graph.state(isOpen ? DimAxes{{0, 1}, {}} : DimAxes{{0}, {}}));
    EXPECT_EQ(solved.bytes(), 0);
  }
}

TEST(SolverTest, ReplicatedAxesDoNotCutOpenDims) {
  GraphBuilder graph({2, 2});
  ValueId x = graph.input({8, 16});
  Wish wish = graph.wish({{0}, {}});
  wish.dims[0].isOpen = true;
  wish.replicated = {1};
  graph.problem.setWish(x, wish);
  graph.problem.addOutput(graph.add(x, graph.input({8, 16}, {{0, 1}, {}})));
  EXPECT_EQ(Solved(graph).value(x), graph.state({{0}, {}}));
}

// An open output takes what comes; a closed one is gathered: each of 2 ranks sends its half of 512 bytes.
TEST(SolverTest, OpenOutputsTakeWhatComes) {
  for (bool isOpen : {true, false}) {
    GraphBuilder graph({2});
    ValueId y = graph.pointwise({graph.input({8, 16}, {{0}, {}})});
    Wish wish = graph.wish({{}, {}});
    wish.dims[0].isOpen = isOpen;
    graph.problem.addOutput(y, &wish);
    Solved solved(graph);
    EXPECT_EQ(solved.output(0), graph.state(isOpen ? DimAxes{{0}, {}} : DimAxes{{}, {}}));
    EXPECT_EQ(solved.bytes(), isOpen ? 0 : 256);
  }
}

// A constraint in the middle holds for all that follows, whatever comes before.
TEST(SolverTest, AConstraintHoldsForItsUsers) {
  GraphBuilder graph({2});
  ValueId x = graph.pointwise({graph.input({8, 16}, {{0}, {}})});
  ValueId pinned = graph.problem.addValue({8, 16}, 4);
  OpId constraint = graph.problem.addConstraint(x, pinned);
  graph.problem.setWish(pinned, graph.wish({{}, {0}}));
  ValueId y = graph.pointwise({pinned});
  graph.problem.addOutput(y);
  Solved solved(graph);
  EXPECT_EQ(solved.value(pinned), graph.state({{}, {0}}));
  EXPECT_EQ(solved.operand(constraint, 0), graph.state({{}, {0}}));
  EXPECT_EQ(solved.value(y), graph.state({{}, {0}}));
  EXPECT_EQ(solved.bytes(), (4 * 16 * 4) / 2); // One all_to_all.
}

TEST(SolverTest, AWishInsideIsKept) {
  GraphBuilder graph({2});
  ValueId hidden = graph.pointwise({graph.input({8, 16}, {{0}, {}})});
  graph.problem.setWish(hidden, graph.wish({{}, {}}));
  graph.problem.addOutput(graph.pointwise({hidden}));
  Solved solved(graph);
  EXPECT_TRUE(solved.value(hidden).isReplicated());
  EXPECT_EQ(solved.bytes(), 256);
}

//===----------------------------------------------------------------------===//
// Wishes for partial values
//===----------------------------------------------------------------------===//

/// Partial over one axis.
State partialState(const GraphBuilder &graph, const DimAxes &dims, unsigned axis, ReductionKind kind) {
  State state = graph.state(dims);
  for (AtomId atom : graph.problem.getMesh().atomsOf(axis))
    state.addPartial(atom, kind);
  return state;
}

// A product wished partial is one whose contracted dim is cut: each rank multiplies half, and nothing is sent.
TEST(SolverTest, APartialProductCutsWhatItSumsOver) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}), w = graph.parameter({16, 32});
  ValueId y = graph.einsum("ik,kj->ij", {x, w});
  graph.problem.setWish(y, graph.partialWish({{}, {}}, {0}));
  graph.problem.addOutput(y);
  Solved solved(graph);
  State terms = partialState(graph, {{}, {}}, 0, ReductionKind::Sum);
  EXPECT_EQ(solved.result(0), terms);
  EXPECT_EQ(solved.output(0), terms);
  EXPECT_EQ(solved.value(x), graph.state({{}, {0}}));
  EXPECT_EQ(solved.value(w), graph.state({{0}, {}}));
  EXPECT_EQ(solved.bytes(), 0);
  std::vector<CauseLink> chain = solved.solver.explain(0, 1, 0);
  ASSERT_EQ(chain.size(), 2u);
  EXPECT_EQ(chain[1].kind, CauseLink::Kind::Wish);
  EXPECT_EQ(chain[1].id, 0u);
}

// An op that sums nothing stays whole, and its result is made partial for nothing, of any kind.
TEST(SolverTest, AWholeValueIsMadePartial) {
  for (ReductionKind kind : {ReductionKind::Sum, ReductionKind::Prod, ReductionKind::Max, ReductionKind::Min}) {
    GraphBuilder graph({2});
    ValueId x = graph.input({8, 16}, {{}, {}}), y = graph.pointwise({x});
    graph.problem.setWish(y, graph.partialWish({{}, {}}, {0}, kind));
    graph.problem.addOutput(y);
    Solved solved(graph);
    EXPECT_TRUE(solved.result(0).isReplicated());
    EXPECT_EQ(solved.value(y), partialState(graph, {{}, {}}, 0, kind));
    EXPECT_EQ(solved.bytes(), 0);
  }
}

// [8, 16] . [16, 32] partial, . [32, 4], then whole: the reduction waits for the smaller product.
TEST(SolverTest, AReductionWaitsBehindAPartialWish) {
  GraphBuilder graph({4});
  ValueId x = graph.input({8, 16}), w = graph.parameter({16, 32}), v = graph.parameter({32, 4}, {{}, {}});
  ValueId y = graph.einsum("ik,kj->ij", {x, w});
  graph.problem.setWish(y, graph.partialWish({{}, {}}, {0}));
  addOutput(graph, graph.einsum("ik,kj->ij", {y, v}), {{}, {}});
  Solved solved(graph);
  EXPECT_EQ(solved.bytes(), 2 * 3 * (8 * 4 * 4) / 4);
}

// A constraint to a partial value, and one to a cut value behind it: make terms for nothing, scatter them.
TEST(SolverTest, ConstraintsMakeAndEndPartialValues) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{}, {}});
  ValueId terms = graph.constrain(graph.pointwise({x}), graph.partialWish({{}, {}}, {0}, ReductionKind::Max));
  ValueId cut = graph.constrain(terms, graph.wish({{}, {0}}));
  addOutput(graph, graph.pointwise({cut}), {{}, {0}});
  Solved solved(graph);
  EXPECT_EQ(solved.value(terms), partialState(graph, {{}, {}}, 0, ReductionKind::Max));
  EXPECT_EQ(solved.value(cut), graph.state({{}, {0}}));
  EXPECT_EQ(solved.bytes(), 8 * 16 * 4 / 2);
}

// Two users that are not linear, and want the value whole, share one reduction.
TEST(SolverTest, UsersOfAPartialValueShareItsReduction) {
  for (bool isInput : {false, true}) {
    GraphBuilder graph({4});
    ValueId x = graph.input({8, 16});
    if (!isInput)
      x = graph.pointwise({x});
    graph.problem.setWish(x, graph.partialWish({{}, {}}, {0}));
    addOutput(graph, graph.pointwise({x}), {{}, {}});
    addOutput(graph, graph.pointwise({x}), {{}, {}});
    Solved solved(graph);
    EXPECT_EQ(solved.value(x), partialState(graph, {{}, {}}, 0, ReductionKind::Sum));
    EXPECT_EQ(solved.bytes(), 2 * 3 * (8 * 16 * 4) / 4);
  }
}

// What propagation appends to an open dim is never an axis that the value is partial over.
TEST(SolverTest, OpenDimsDoNotTakeAPartialAxis) {
  GraphBuilder graph({2, 2});
  ValueId x = graph.input({8, 16}, {{0}, {1}}), y = graph.pointwise({x});
  Wish wish = graph.partialWish({{}, {}}, {0});
  wish.dims[0].isOpen = wish.dims[1].isOpen = true;
  graph.problem.setWish(y, wish);
  graph.problem.addOutput(y);
  Solved solved(graph);
  EXPECT_EQ(solved.value(y), partialState(graph, {{}, {1}}, 0, ReductionKind::Sum));
}

// A partial value must be of one kind: two wishes for one value that differ in it exclude each other.
TEST(SolverTest, TwoKindsOfPartialAreAConflict) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16});
  graph.problem.setWish(x, graph.partialWish({{}, {}}, {0}, ReductionKind::Sum));
  graph.problem.setWish(x, graph.partialWish({{}, {}}, {0}, ReductionKind::Max));
  graph.problem.addOutput(x);
  Solver solver(graph.problem);
  EXPECT_FALSE(solver.solve());
  ASSERT_EQ(solver.getErrors().size(), 1u);
  EXPECT_EQ(solver.getErrors()[0].kind, SolverError::Kind::Conflict);
}

//===----------------------------------------------------------------------===//
// Priorities
//===----------------------------------------------------------------------===//

// Both operands of an add want the one axis for another dim. Whoever is of the lower number gets it.
TEST(SolverTest, TheLowerPriorityNumberDecidesFirst) {
  for (unsigned winner : {0u, 1u}) {
    GraphBuilder graph({2});
    ValueId x = graph.input({8, 16}), y = graph.input({8, 16});
    Wish rows = graph.wish({{0}, {}}), columns = graph.wish({{}, {0}});
    for (WishDim &dim : (winner == 0 ? columns : rows).dims)
      dim.priority = 1;
    graph.problem.setWish(x, rows);
    graph.problem.setWish(y, columns);
    ValueId sum = graph.pointwise({x, y});
    graph.problem.addOutput(graph.pointwise({sum}));
    Solved solved(graph);
    EXPECT_EQ(solved.value(sum), graph.state(winner == 0 ? DimAxes{{0}, {}} : DimAxes{{}, {0}}));
    EXPECT_EQ(solved.value(x), graph.state({{0}, {}}));
    EXPECT_EQ(solved.value(y), graph.state({{}, {0}}));
    EXPECT_EQ(solved.bytes(), (4 * 16 * 4) / 2);
  }
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(SolverTest, AConflictNamesBothWishes) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{0}, {}});
  graph.problem.setWish(x, graph.wish({{}, {0}}));
  graph.problem.addOutput(x);
  Solver solver(graph.problem);
  EXPECT_FALSE(solver.solve());
  ASSERT_EQ(solver.getErrors().size(), 1u);
  EXPECT_EQ(solver.getErrors()[0].kind, SolverError::Kind::Conflict);
  EXPECT_EQ(solver.getErrors()[0].value, x);
  EXPECT_EQ(solver.getErrors()[0].first, 0u);
  EXPECT_EQ(solver.getErrors()[0].second, 1u);
}

std::string errorOf(const DimAxes &dims, std::vector<int64_t> shape) {
  GraphBuilder graph({4, 2});
  ValueId x = graph.input(shape);
  Wish wish;
  for (const std::vector<unsigned> &axes : dims)
    wish.dims.push_back({graph.state({axes}).dims[0]});
  graph.problem.setWish(x, wish);
  graph.problem.addOutput(x);
  Solver solver(graph.problem);
  EXPECT_FALSE(solver.solve());
  return solver.getErrors().empty() ? "" : solver.getErrors()[0].message;
}

TEST(SolverTest, IllegalWishesAreErrors) {
  EXPECT_EQ(errorOf({{0}}, {8, 8}), "the wish has 1 dims but the value has 2");
  EXPECT_EQ(errorOf({{0}, {0}}, {8, 8}), "an axis is used twice, the second time in dim 1");
  EXPECT_EQ(errorOf({{}, {0}}, {8, 10}), "dim 1 has size 10, which 4 shards do not divide");
}

TEST(SolverTest, AValueIsNotPartialOverWhatKeepsItWhole) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 8});
  Wish wish = graph.partialWish({{}, {}}, {0});
  wish.replicated = wish.partial;
  graph.problem.setWish(x, wish);
  graph.problem.addOutput(x);
  Solver solver(graph.problem);
  EXPECT_FALSE(solver.solve());
  ASSERT_EQ(solver.getErrors().size(), 1u);
  EXPECT_EQ(solver.getErrors()[0].message, "an axis is used twice: the value cannot be partial over it");
}

//===----------------------------------------------------------------------===//
// Explanations
//===----------------------------------------------------------------------===//

TEST(SolverTest, ExplainsByTheShortestChainToAWish) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{0}, {}}); // Cause 0.
  ValueId y = graph.pointwise({graph.pointwise({x})});
  graph.problem.addOutput(y);
  Solved solved(graph);
  std::vector<CauseLink> chain = solved.solver.explain(1, 0, 0);
  ASSERT_EQ(chain.size(), 4u);
  EXPECT_EQ(chain[0].kind, CauseLink::Kind::Op);
  EXPECT_EQ(chain[0].id, 1u);
  EXPECT_EQ(chain[1].kind, CauseLink::Kind::Op);
  EXPECT_EQ(chain[1].id, 0u);
  EXPECT_EQ(chain[2].kind, CauseLink::Kind::Value);
  EXPECT_EQ(chain[2].id, x);
  EXPECT_EQ(chain[3].kind, CauseLink::Kind::Wish);
  EXPECT_EQ(chain[3].id, 0u);
  EXPECT_TRUE(solved.solver.explain(1, 1, 0).empty()); // Nothing brings the axis to the columns.
  EXPECT_EQ(solved.solver.explainValue(y, 0, 0).size(), 4u);
  EXPECT_EQ(solved.solver.getReached(1, 0), AtomList{0});
}

TEST(SolverTest, ListsWhyAnOpStaysWhole) {
  GraphBuilder graph({2});
  RuleBuilder rule(1, 1);
  std::optional<FactorId> sorted = rule.addFactor(8), column = rule.addParallel(16);
  rule.operandDim(0, sorted).operandDim(0, column).resultDim(0, sorted).resultDim(0, column);
  ValueId x = graph.input({8, 16}, {{0}, {}});
  graph.problem.addOutput(graph.op(rule.rule, x, {8, 16}));
  Solved solved(graph);
  ASSERT_EQ(solved.solver.getDecision().forced.size(), 1u);
  const ForcedReplication &forced = solved.solver.getDecision().forced[0];
  EXPECT_EQ(forced.op, 0u);
  EXPECT_EQ(forced.factor, *sorted);
  EXPECT_EQ(forced.reason, ForcedReplication::Reason::NoChoice);
}

// Cutting the rows is free; the next best is to gather them: 256 bytes, and computing them twice.
TEST(SolverTest, PricesTheNextBestChoice) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{0}, {}});
  graph.problem.addOutput(graph.pointwise({x}));
  Solved solved(graph);
  std::optional<int64_t> price = solved.solver.priceOfNextBest(0, 0);
  ASSERT_TRUE(price.has_value());
  EXPECT_GE(*price, 256);
  EXPECT_LE(*price, 258); // 256 bytes more written count one more.
}

//===----------------------------------------------------------------------===//
// As a whole
//===----------------------------------------------------------------------===//

void expectSame(const Decision &lhs, const Decision &rhs) {
  EXPECT_EQ(lhs.choices, rhs.choices);
  EXPECT_EQ(lhs.operandStates, rhs.operandStates);
  EXPECT_EQ(lhs.valueStates, rhs.valueStates);
  EXPECT_EQ(lhs.outputStates, rhs.outputStates);
  EXPECT_EQ(lhs.objective, rhs.objective);
  EXPECT_EQ(lhs.wireBytes, rhs.wireBytes);
}

TEST(SolverTest, GivesTheSameAnswerTwice) {
  GraphBuilder first({2, 4}), second({2, 4});
  buildTransformer(first, 3, 8, 32, 64, 8);
  buildTransformer(second, 3, 8, 32, 64, 8);
  Solved once(first), again(first), rebuilt(second);
  expectSame(once.solver.getDecision(), again.solver.getDecision());
  expectSame(once.solver.getDecision(), rebuilt.solver.getDecision());
}

// Two all_reduces of the local activation per layer at every size, and equal layers share all forms.
TEST(SolverTest, TransformersReduceTwiceALayer) {
  for (unsigned numLayers : {1u, 7u, 100u}) {
    GraphBuilder graph({2, 4});
    buildTransformer(graph, numLayers, 8, 32, 64, 8);
    Solved solved(graph);
    EXPECT_EQ(graph.problem.numOps(), 34 * numLayers);
    EXPECT_EQ(solved.bytes(), numLayers * 2 * (2 * 3 * (4 * 32 * 64 * 4) / 4));
  }
}

} // namespace
