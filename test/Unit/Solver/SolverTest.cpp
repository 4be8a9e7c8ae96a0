//===- SolverTest.cpp - known cases, byte by byte -------------------------===//
//
// Bytes follow from closed formulas: N = all bytes of a tensor, n ranks in a group; all_reduce 2(n-1)/n N, all_gather
// and reduce_scatter (n-1)/n N. All tensors are f32.
//
//===----------------------------------------------------------------------===//
#include "Solved.h"

using namespace cleave::spmd;

namespace {

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
  ValueId hidden = graph.normalize({graph.einsum("ik,kj->ij", {x, graph.parameter({64, 256})})}, 2);
  graph.problem.addOutput(graph.einsum("ik,kj->ij", {hidden, graph.parameter({256, 64})}));
  Solved solved(graph);
  EXPECT_EQ(solved.bytes(), 0);
  EXPECT_EQ(solved.output(0), graph.state({{0}, {}}));
}

// 10 columns on 4 ranks, 3 on each: the maximum of [64] over them is all that is sent. Without the word nothing is split.
TEST(SolverTest, UnevenColumnsStaySplit) {
  for (bool isUneven : {false, true}) {
    GraphBuilder graph({4});
    ValueId x = graph.input({64, 10});
    Annotation annotation = graph.annotation({{}, {0}});
    annotation.isUneven = isUneven;
    graph.problem.setAnnotation(x, annotation);
    RuleBuilder rule(1, 1);
    auto rows = rule.addParallel(64), columns = rule.addReduction(10, ReductionKind::Max);
    rule.operandDim(0, rows).operandDim(0, columns).resultDim(0, rows);
    ValueId best = graph.op(rule.rule, {graph.pointwise({x})}, {64});
    addOutput(graph, best, {{}});
    Solver solver(graph.problem);
    ASSERT_EQ(solver.solve(), isUneven);
    if (!isUneven) {
      EXPECT_EQ(solver.getErrors().front().message, "dim 1 has size 10, which 4 shards do not divide");
      continue;
    }
    EXPECT_EQ(solver.getDecision().wireBytes, 2 * 3 * (64 * 4) / 4);
    EXPECT_TRUE(solver.getDecision().forced.empty());
  }
}

// Sequence parallelism: the activation between blocks is split over the sequence, so each block gathers once and
// scatters once: 2 * 3/4 of [2, 16, 64].
TEST(SolverTest, SequenceParallelGathersAndScatters) {
  GraphBuilder graph({4});
  ValueId x = graph.input({2, 16, 64}, {{}, {0}, {}});
  ValueId normed = graph.normalize({x, graph.parameter({64})}, 2);
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

// 4 query heads per key head and 2 key heads on 4 ranks: half of the axis splits key heads, the other half groups.
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
// Behaviors of the field's best systems
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

// arg [a|-] -> sine -> two adds -> cosines, annotated [-|a]: one all_to_all of [2, 8] on 4 ranks serves both.
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
// Explanations
//===----------------------------------------------------------------------===//

TEST(SolverTest, ExplainsByTheShortestChainToAAnnotation) {
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
  EXPECT_EQ(chain[3].kind, CauseLink::Kind::Annotation);
  EXPECT_EQ(chain[3].id, 0u);
  EXPECT_TRUE(solved.solver.explain(1, 1, 0).empty()); // Nothing brings the axis to the columns.
  EXPECT_EQ(solved.solver.explainValue(y, 0, 0).size(), 4u);
  EXPECT_EQ(solved.solver.getReached(1, 0), AtomList{0});
}

// The contracted dim brings the axis; that rows take it is an idea of the solver's, and the chain says so at that op.
TEST(SolverTest, ExplainsWhatGivesWayToAConflict) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{}, {0}}), w = graph.parameter({16, 32}); // Cause 0.
  graph.problem.addOutput(graph.pointwise({graph.einsum("ik,kj->ij", {x, w})}));
  Solved solved(graph);
  std::vector<CauseLink> brought = solved.solver.explain(0, 1, 0), fallback = solved.solver.explain(0, 0, 0);
  ASSERT_EQ(brought.size(), 3u);
  for (const CauseLink &link : brought)
    EXPECT_FALSE(link.isFallback);
  ASSERT_EQ(fallback.size(), 4u);
  EXPECT_TRUE(fallback[0].isFallback);
  EXPECT_EQ(fallback[0].factor, 0);
  EXPECT_FALSE(fallback[1].isFallback);
  EXPECT_EQ(fallback[1].factor, 1);
  std::vector<CauseLink> next = solved.solver.explain(1, 0, 0); // The op behind it only follows.
  ASSERT_EQ(next.size(), 5u);
  EXPECT_FALSE(next[0].isFallback);
  EXPECT_TRUE(next[1].isFallback);
}

TEST(SolverTest, ListsWhyAnOpStaysReplicated) {
  GraphBuilder graph({2});
  RuleBuilder rule(1, 1);
  std::optional<FactorId> sorted = rule.addFactor(8), column = rule.addParallel(16);
  rule.operandDim(0, sorted).operandDim(0, column).resultDim(0, sorted).resultDim(0, column);
  ValueId x = graph.input({8, 16}, {{0}, {}});
  addOutput(graph, graph.op(rule.rule, x, {8, 16}), {{}, {}}); // Else it would be split by columns.
  Solved solved(graph);
  ASSERT_EQ(solved.solver.getDecision().forced.size(), 1u);
  const ForcedReplication &forced = solved.solver.getDecision().forced[0];
  EXPECT_EQ(forced.op, 0u);
  EXPECT_EQ(forced.factor, *sorted);
  EXPECT_EQ(forced.reason, ForcedReplication::Reason::NoChoice);
}

// Splitting the rows is free; the next best is to gather them: 256 bytes, and computing them twice. It is also what is left
// where the other operand, which is free, is taken whole; how x is stored says its annotation.
TEST(SolverTest, TellsTheCostOfTheNextBestChoice) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{0}, {}}), free = graph.input({8, 16}), y = graph.pointwise({x, free});
  graph.problem.addOutput(y);
  Solved solved(graph);
  for (ValueId value : {y, free}) {
    std::optional<NextBest> next = solved.solver.findNextBest(value, 0);
    ASSERT_TRUE(next.has_value());
    EXPECT_GE(next->bytes, 256);
    EXPECT_LE(next->bytes, 258); // 256 bytes more written count one more.
    EXPECT_EQ(next->result, State::replicated(2));
  }
  EXPECT_FALSE(solved.solver.findNextBest(x, 0).has_value());
}

//===----------------------------------------------------------------------===//
// As a whole
//===----------------------------------------------------------------------===//

void expectIdentical(const Decision &lhs, const Decision &rhs) {
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
  expectIdentical(once.solver.getDecision(), again.solver.getDecision());
  expectIdentical(once.solver.getDecision(), rebuilt.solver.getDecision());
}

// Two all_reduces of the local activation per layer at every size, and equal layers share all strategies.
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
