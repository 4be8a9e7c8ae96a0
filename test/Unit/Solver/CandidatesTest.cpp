//===- CandidatesTest.cpp - where annotations flow ------------------------===//
//
// Factors of einsum rules are numbered in the order in which the equation first names their letters.
//
//===----------------------------------------------------------------------===//
#include "Candidates.h"
#include "GraphBuilder.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;

namespace {

/// A graph and what flows in it.
struct Flow {
  explicit Flow(const GraphBuilder &builder) : graph(builder.problem), candidates(graph) {
    for (int64_t priority : candidates.getPriorities())
      candidates.activate(priority);
  }
  AtomMask base(OpId op, FactorId factor) const { return candidates.base(graph.nodeOfOp(op), factor); }
  AtomMask all(OpId op, FactorId factor) const { return candidates.all(graph.nodeOfOp(op), factor); }

  SearchGraph graph;
  Candidates candidates;
};

constexpr AtomMask kNoAtoms = 0, kAtom0 = 1, kAtom1 = 2;

// x [data, _] . w [_, model]: i takes data, j takes model, k nothing; the next op gets both.
TEST(CandidatesTest, FlowsForwardAlongFactors) {
  GraphBuilder graph({2, 2});
  ValueId x = graph.input({8, 16}, {{0}, {}}), w = graph.parameter({16, 32}, {{}, {1}});
  graph.problem.addOutput(graph.pointwise({graph.einsum("ik,kj->ij", {x, w})}));
  Flow flow(graph);
  EXPECT_EQ(flow.base(0, 0), kAtom0);
  EXPECT_EQ(flow.base(0, 1), kNoAtoms);
  EXPECT_EQ(flow.base(0, 2), kAtom1);
  EXPECT_EQ(flow.base(1, 0), kAtom0);
  EXPECT_EQ(flow.base(1, 1), kAtom1);
}

// Only the output is annotated; its axis comes to the op before it, and to the input.
TEST(CandidatesTest, FlowsBackward) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16});
  ValueId y = graph.pointwise({graph.pointwise({x})});
  Annotation annotation = graph.annotation({{}, {0}});
  graph.problem.addOutput(y, &annotation);
  Flow flow(graph);
  EXPECT_EQ(flow.base(0, 1), kAtom0);
  EXPECT_EQ(flow.base(0, 0), kNoAtoms);
  EXPECT_EQ(flow.candidates.base(flow.graph.inputNode(x), 1), kAtom0);
}

// The reduced factor k takes the axis: the op pays, so its parallel factors become fallbacks, but not base.
TEST(CandidatesTest, OffersFallbacksWhereAReductionPays) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{}, {0}}), w = graph.parameter({16, 32});
  graph.problem.addOutput(graph.einsum("ik,kj->ij", {x, w}));
  Flow flow(graph);
  EXPECT_EQ(flow.base(0, 1), kAtom0);
  EXPECT_EQ(flow.base(0, 0), kNoAtoms);
  EXPECT_EQ(flow.all(0, 0), kAtom0);
  EXPECT_EQ(flow.all(0, 2), kAtom0);
}

// Nothing is contested in data parallelism: there are no fallbacks at all.
TEST(CandidatesTest, OffersNoFallbacksWithoutConflict) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{0}, {}}), w = graph.parameter({16, 32});
  graph.problem.addOutput(graph.einsum("ik,kj->ij", {x, w}));
  Flow flow(graph);
  for (FactorId factor : {0, 1, 2})
    EXPECT_EQ(flow.all(0, factor), factor == 0 ? kAtom0 : kNoAtoms);
}

// [batch 4, sequence 8] merged: a split sequence does not get out into the flat dim while batch is replicated ...
TEST(CandidatesTest, HoldsAMinorFactorBackUnderAReplicatedMajor) {
  GraphBuilder graph({2});
  ValueId x = graph.input({4, 8, 16}, {{}, {0}, {}});
  graph.problem.addOutput(graph.pointwise({graph.mergeDims(x, 0)}));
  Flow flow(graph);
  EXPECT_EQ(flow.base(0, 1), kAtom0);
  EXPECT_EQ(flow.base(1, 0), kNoAtoms);
}

// ... but does once batch can be full, whichever comes first.
TEST(CandidatesTest, LetsAMinorFactorOutUnderAFullMajor) {
  GraphBuilder graph({2, 4});
  ValueId x = graph.input({4, 8, 16}, {{1}, {0}, {}});
  graph.problem.addOutput(graph.pointwise({graph.mergeDims(x, 0)}));
  Flow flow(graph);
  EXPECT_EQ(flow.base(1, 0), kAtom0 | 6u);
}

// x=4 over heads [kv 2, group 4]: the first half of the axis goes to kv, the second to group; atoms are decided singly.
TEST(CandidatesTest, FillsTheMajorFactorFirst) {
  GraphBuilder graph({4});
  ValueId x = graph.input({8, 16}, {{0}, {}});
  graph.problem.addOutput(graph.splitDim(x, 0, 2));
  Flow flow(graph);
  EXPECT_EQ(flow.base(0, 0), kAtom0);
  EXPECT_EQ(flow.base(0, 1), kAtom1);
  EXPECT_TRUE(flow.candidates.isMarked(0));
}

TEST(CandidatesTest, RecordsWhatDoesNotDivide) {
  GraphBuilder graph({2});
  ValueId x = graph.input({9, 16});
  Annotation annotation = graph.annotation({{0}, {}});
  annotation.isUneven = true; // As stored; rows that are a part of a dim cannot be split unevenly.
  graph.problem.setAnnotation(x, annotation);
  graph.problem.addOutput(graph.mergeDims(x, 0));
  Flow flow(graph);
  EXPECT_EQ(flow.base(0, 0), kNoAtoms);
  ASSERT_EQ(flow.candidates.getRefused().size(), 1u);
  EXPECT_EQ(flow.candidates.getRefused()[0].node, flow.graph.nodeOfOp(0));
  EXPECT_EQ(flow.candidates.getRefused()[0].factor, 0);
}

// Axes that one annotation names as uneven may split anything; others, of the same rows, may not.
TEST(CandidatesTest, LetsAxesOfUnevenAnnotationsSplitWhatTheyDoNotDivide) {
  GraphBuilder graph({2, 2});
  ValueId x = graph.input({9, 15}, {{}, {}});
  Annotation annotation = graph.annotation({{0}, {}});
  annotation.isUneven = true;
  ValueId sharded = graph.constrain(graph.pointwise({x}), annotation);
  graph.problem.addOutput(graph.pointwise({sharded}));
  EXPECT_TRUE(graph.problem.mayBeUneven(0));
  EXPECT_FALSE(graph.problem.mayBeUneven(1));
  Flow flow(graph);
  EXPECT_EQ(flow.base(0, 0), kAtom0);
  EXPECT_EQ(flow.base(2, 0), kAtom0);
  EXPECT_TRUE(flow.candidates.getRefused().empty());
}

// But for what has a multiple of the samples of microbatches, which must be as many on each rank.
TEST(CandidatesTest, KeepsMultiplesOfSamplesEven) {
  for (int64_t samples : {0, 3, 5, 9}) {
    GraphBuilder graph({2});
    ValueId x = graph.input({9, 15}, {{}, {}});
    Annotation annotation = graph.annotation({{0}, {}});
    annotation.isUneven = true;
    graph.problem.addOutput(graph.pointwise({graph.constrain(graph.pointwise({x}), annotation)}));
    if (samples > 0)
      graph.problem.keepEven(samples);
    Flow flow(graph);
    bool isKept = samples > 0 && 9 % samples == 0;
    EXPECT_EQ(flow.base(2, 0), isKept ? kNoAtoms : kAtom0) << samples;
    EXPECT_EQ(flow.candidates.getRefused().empty(), !isKept) << samples;
  }
}

// A reduction counts as splitting the compute only if both operands bring it.
TEST(CandidatesTest, CountsASplitReductionOnlyIfBroughtByAll) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{}, {0}});
  ValueId brought = graph.parameter({16, 32}, {{0}, {}}), replicated = graph.parameter({16, 32}, {{}, {}});
  graph.problem.addOutput(graph.einsum("ik,kj->ij", {x, brought}));
  graph.problem.addOutput(graph.einsum("ik,kj->ij", {x, replicated}));
  Flow flow(graph);
  EXPECT_EQ(flow.candidates.split(flow.graph.nodeOfOp(0)), 2);
  EXPECT_EQ(flow.candidates.split(flow.graph.nodeOfOp(1)), 1);
}

/// Atoms for which the op may be partial through its linear choice, the last one of the rule.
AtomMask keepsPartial(const Flow &flow, OpId op) {
  NodeId node = flow.graph.nodeOfOp(op);
  return flow.candidates.allowed(node, flow.graph.ruleOf(node).rule->choices.size() - 1).second;
}

// Partial choices are offered only downstream of something that makes partial results.
TEST(CandidatesTest, OffersPartialOnlyAfterAReduction) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{}, {0}}), w = graph.parameter({16, 32}, {{0}, {}});
  ValueId before = graph.pointwise({x}, {{0}});
  ValueId after = graph.pointwise({graph.einsum("ik,kj->ij", {before, w})}, {{0}});
  graph.problem.addOutput(after);
  Flow flow(graph);
  EXPECT_EQ(keepsPartial(flow, 0), kNoAtoms);
  EXPECT_EQ(keepsPartial(flow, 2), kAtom0);
}

// An annotation for a partial sum goes back over linear ops, and through the hub of the product, to the factor that both
// products sum over; not to a factor of another kind, and not beyond the op that is not linear.
TEST(CandidatesTest, APartialAnnotationComesToReducedFactors) {
  for (ReductionKind kind : {ReductionKind::Sum, ReductionKind::Max}) {
    GraphBuilder graph({2});
    ValueId x = graph.input({8, 16}), w = graph.input({16, 32});
    ValueId before = graph.einsum("ik,jk->ij", {x, graph.input({16, 16})});
    ValueId product = graph.einsum("ik,kj->ij", {graph.pointwise({before}), w});
    ValueId scaled = graph.pointwise({product}, {{0}});
    graph.problem.setAnnotation(scaled, graph.partialAnnotation({{}, {}}, {0}, kind));
    graph.problem.addOutput(graph.pointwise({scaled, product}));
    Flow flow(graph);
    AtomMask expected = kind == ReductionKind::Sum ? kAtom0 : kNoAtoms;
    EXPECT_EQ(flow.base(2, 1), expected);
    EXPECT_EQ(flow.base(2, 0), kNoAtoms);
    EXPECT_EQ(flow.base(0, 1), kNoAtoms);
    EXPECT_EQ(flow.base(0, 2), expected); // Along the dim that is summed later, as any axis comes.
    EXPECT_EQ(flow.candidates.base(flow.graph.inputNode(w), 0), expected);
    EXPECT_EQ(flow.candidates.annotatedState(flow.graph.sharedAt(scaled).first).partial.size(), 1u);
  }
}

// A column-parallel weight on its own may not be gathered lightly; under data parallelism on the same axis (FSDP) it
// may.
TEST(CandidatesTest, ChargesForMovingAParameterThatNothingElseAsksFor) {
  for (bool isFsdp : {false, true}) {
    GraphBuilder graph({2});
    ValueId x = isFsdp ? graph.input({8, 16}, {{0}, {}}) : graph.input({8, 16});
    graph.problem.addOutput(graph.einsum("ik,kj->ij", {x, graph.parameter({16, 32}, {{0}, {}})}));
    Flow flow(graph);
    EdgeId weight = flow.graph.node(flow.graph.nodeOfOp(0)).firstIn + 1;
    EXPECT_EQ(flow.candidates.movesParameter(weight), !isFsdp);
  }
}

// Annotations of priority 1 do not flow before those of priority 0 have been decided.
TEST(CandidatesTest, ActivatesPrioritiesOneByOne) {
  GraphBuilder graph({2, 2});
  ValueId x = graph.input({8, 16});
  Annotation annotation = graph.annotation({{0}, {1}});
  annotation.dims[1].priority = 1;
  graph.problem.setAnnotation(x, annotation);
  graph.problem.addOutput(graph.pointwise({x}));
  SearchGraph search(graph.problem);
  Candidates candidates(search);
  ASSERT_EQ(candidates.getPriorities().vec(), (std::vector<int64_t>{0, 1}));
  NodeId input = search.inputNode(x);
  candidates.activate(0);
  EXPECT_EQ(candidates.base(search.nodeOfOp(0), 0), kAtom0);
  EXPECT_EQ(candidates.base(search.nodeOfOp(0), 1), kNoAtoms);
  EXPECT_EQ(candidates.annotatedState(input), graph.state({{0}, {}}));
  EXPECT_EQ(candidates.openAtoms(input, 0), kNoAtoms);
  EXPECT_EQ(candidates.openAtoms(input, 1), ~kAtom0); // Not decided yet, so anything that dim 0 has not.
  candidates.activate(1);
  EXPECT_EQ(candidates.base(search.nodeOfOp(0), 1), kAtom1);
  EXPECT_EQ(candidates.annotatedState(input), graph.state({{0}, {1}}));
  EXPECT_EQ(candidates.openAtoms(input, 1), kNoAtoms);
}

} // namespace
