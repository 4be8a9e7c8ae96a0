//===- SolverAnnotationsTest.cpp - what annotations do, and which are refused --===//
//
// Open and closed dims, constraints, partial values, priorities, and the errors of annotations that cannot be kept. Bytes as
// in SolverTest.cpp: n ranks, all_reduce 2(n-1)/n of the tensor, all_gather and reduce_scatter (n-1)/n.
//
//===----------------------------------------------------------------------===//
#include "Solved.h"

using namespace cleave::spmd;

namespace {

//===----------------------------------------------------------------------===//
// Open dims, constraints, how inputs are stored
//===----------------------------------------------------------------------===//

TEST(SolverAnnotationsTest, AFreeInputIsStoredAsItsUsersWantIt) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{0}, {}}), y = graph.input({8, 16});
  graph.problem.addOutput(graph.add(x, y));
  EXPECT_EQ(Solved(graph).value(y), graph.state({{0}, {}}));
}

TEST(SolverAnnotationsTest, AnInputWithUnlikeUsersIsStoredReplicated) {
  GraphBuilder graph({2});
  ValueId y = graph.input({8, 16});
  graph.problem.addOutput(graph.add(graph.input({8, 16}, {{0}, {}}), y));
  graph.problem.addOutput(graph.add(graph.input({8, 16}, {{}, {0}}), y));
  Solved solved(graph);
  EXPECT_TRUE(solved.value(y).isReplicated());
  EXPECT_EQ(solved.bytes(), 0);
}

// The input is annotated [data?, _]; its users also split dim 0 over model, so it is stored that way. A closed one is not.
TEST(SolverAnnotationsTest, AnOpenDimIsSplitFurtherAndAClosedOneIsNot) {
  for (bool isOpen : {true, false}) {
    GraphBuilder graph({2, 2});
    ValueId x = graph.input({8, 16});
    Annotation annotation = graph.annotation({{0}, {}});
    annotation.dims[0].isOpen = isOpen;
    graph.problem.setAnnotation(x, annotation);
    graph.problem.addOutput(graph.add(x, graph.input({8, 16}, {{0, 1}, {}})));
    Solved solved(graph);
    EXPECT_EQ(solved.value(x), graph.state(isOpen ? DimAxes{{0, 1}, {}} : DimAxes{{0}, {}}));
    EXPECT_EQ(solved.bytes(), 0);
  }
}

TEST(SolverAnnotationsTest, ReplicatedAxesDoNotSplitOpenDims) {
  GraphBuilder graph({2, 2});
  ValueId x = graph.input({8, 16});
  Annotation annotation = graph.annotation({{0}, {}});
  annotation.dims[0].isOpen = true;
  annotation.replicated = {1};
  graph.problem.setAnnotation(x, annotation);
  graph.problem.addOutput(graph.add(x, graph.input({8, 16}, {{0, 1}, {}})));
  EXPECT_EQ(Solved(graph).value(x), graph.state({{0}, {}}));
}

// An open output takes what comes; a closed one is gathered: each of 2 ranks sends its half of 512 bytes.
TEST(SolverAnnotationsTest, OpenOutputsTakeWhatComes) {
  for (bool isOpen : {true, false}) {
    GraphBuilder graph({2});
    ValueId y = graph.pointwise({graph.input({8, 16}, {{0}, {}})});
    Annotation annotation = graph.annotation({{}, {}});
    annotation.dims[0].isOpen = isOpen;
    graph.problem.addOutput(y, &annotation);
    Solved solved(graph);
    EXPECT_EQ(solved.output(0), graph.state(isOpen ? DimAxes{{0}, {}} : DimAxes{{}, {}}));
    EXPECT_EQ(solved.bytes(), isOpen ? 0 : 256);
  }
}

// A constraint in the middle holds for all that follows, whatever comes before.
TEST(SolverAnnotationsTest, AConstraintHoldsForItsUsers) {
  GraphBuilder graph({2});
  ValueId x = graph.pointwise({graph.input({8, 16}, {{0}, {}})});
  ValueId pinned = graph.problem.addValue({8, 16}, 4);
  OpId constraint = graph.problem.addConstraint(x, pinned);
  graph.problem.setAnnotation(pinned, graph.annotation({{}, {0}}));
  ValueId y = graph.pointwise({pinned});
  graph.problem.addOutput(y);
  Solved solved(graph);
  EXPECT_EQ(solved.value(pinned), graph.state({{}, {0}}));
  EXPECT_EQ(solved.operand(constraint, 0), graph.state({{}, {0}}));
  EXPECT_EQ(solved.value(y), graph.state({{}, {0}}));
  EXPECT_EQ(solved.bytes(), (4 * 16 * 4) / 2); // One all_to_all.
}

TEST(SolverAnnotationsTest, AAnnotationInsideIsKept) {
  GraphBuilder graph({2});
  ValueId hidden = graph.pointwise({graph.input({8, 16}, {{0}, {}})});
  graph.problem.setAnnotation(hidden, graph.annotation({{}, {}}));
  graph.problem.addOutput(graph.pointwise({hidden}));
  Solved solved(graph);
  EXPECT_TRUE(solved.value(hidden).isReplicated());
  EXPECT_EQ(solved.bytes(), 256);
}

//===----------------------------------------------------------------------===//
// Annotations for partial values
//===----------------------------------------------------------------------===//

/// Partial over one axis.
State partialState(const GraphBuilder &graph, const DimAxes &dims, unsigned axis, ReductionKind kind) {
  State state = graph.state(dims);
  for (AtomId atom : graph.problem.getMesh().atomsOf(axis))
    state.addPartial(atom, kind);
  return state;
}

// A product annotated partial is one whose contracted dim is split: each rank multiplies half, and nothing is sent.
TEST(SolverAnnotationsTest, APartialProductSplitsWhatItSumsOver) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}), w = graph.parameter({16, 32});
  ValueId y = graph.einsum("ik,kj->ij", {x, w});
  graph.problem.setAnnotation(y, graph.partialAnnotation({{}, {}}, {0}));
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
  EXPECT_EQ(chain[1].kind, CauseLink::Kind::Annotation);
  EXPECT_EQ(chain[1].id, 0u);
}

// An op that sums nothing stays replicated, and its result is made partial for nothing, of any kind.
TEST(SolverAnnotationsTest, AReplicatedValueIsMadePartial) {
  for (ReductionKind kind : {ReductionKind::Sum, ReductionKind::Prod, ReductionKind::Max, ReductionKind::Min}) {
    GraphBuilder graph({2});
    ValueId x = graph.input({8, 16}, {{}, {}}), y = graph.pointwise({x});
    graph.problem.setAnnotation(y, graph.partialAnnotation({{}, {}}, {0}, kind));
    graph.problem.addOutput(y);
    Solved solved(graph);
    EXPECT_TRUE(solved.result(0).isReplicated());
    EXPECT_EQ(solved.value(y), partialState(graph, {{}, {}}, 0, kind));
    EXPECT_EQ(solved.bytes(), 0);
  }
}

// [8, 16] . [16, 32] partial, . [32, 4], then whole: the reduction waits for the smaller product.
TEST(SolverAnnotationsTest, AReductionWaitsBehindAPartialAnnotation) {
  GraphBuilder graph({4});
  ValueId x = graph.input({8, 16}), w = graph.parameter({16, 32}), v = graph.parameter({32, 4}, {{}, {}});
  ValueId y = graph.einsum("ik,kj->ij", {x, w});
  graph.problem.setAnnotation(y, graph.partialAnnotation({{}, {}}, {0}));
  addOutput(graph, graph.einsum("ik,kj->ij", {y, v}), {{}, {}});
  Solved solved(graph);
  EXPECT_EQ(solved.bytes(), 2 * 3 * (8 * 4 * 4) / 4);
}

// A constraint to a partial value, and one to a split value behind it: make terms for nothing, scatter them.
TEST(SolverAnnotationsTest, ConstraintsMakeAndEndPartialValues) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{}, {}});
  ValueId terms = graph.constrain(graph.pointwise({x}), graph.partialAnnotation({{}, {}}, {0}, ReductionKind::Max));
  ValueId sharded = graph.constrain(terms, graph.annotation({{}, {0}}));
  addOutput(graph, graph.pointwise({sharded}), {{}, {0}});
  Solved solved(graph);
  EXPECT_EQ(solved.value(terms), partialState(graph, {{}, {}}, 0, ReductionKind::Max));
  EXPECT_EQ(solved.value(sharded), graph.state({{}, {0}}));
  EXPECT_EQ(solved.bytes(), 8 * 16 * 4 / 2);
}

// Two users that are not linear, and want the value whole, share one reduction.
TEST(SolverAnnotationsTest, UsersOfAPartialValueShareItsReduction) {
  for (bool isInput : {false, true}) {
    GraphBuilder graph({4});
    ValueId x = graph.input({8, 16});
    if (!isInput)
      x = graph.pointwise({x});
    graph.problem.setAnnotation(x, graph.partialAnnotation({{}, {}}, {0}));
    addOutput(graph, graph.pointwise({x}), {{}, {}});
    addOutput(graph, graph.pointwise({x}), {{}, {}});
    Solved solved(graph);
    EXPECT_EQ(solved.value(x), partialState(graph, {{}, {}}, 0, ReductionKind::Sum));
    EXPECT_EQ(solved.bytes(), 2 * 3 * (8 * 16 * 4) / 4);
  }
}

// What propagation appends to an open dim is never an axis that the value is partial over.
TEST(SolverAnnotationsTest, OpenDimsDoNotTakeAPartialAxis) {
  GraphBuilder graph({2, 2});
  ValueId x = graph.input({8, 16}, {{0}, {1}}), y = graph.pointwise({x});
  Annotation annotation = graph.partialAnnotation({{}, {}}, {0});
  annotation.dims[0].isOpen = annotation.dims[1].isOpen = true;
  graph.problem.setAnnotation(y, annotation);
  graph.problem.addOutput(y);
  Solved solved(graph);
  EXPECT_EQ(solved.value(y), partialState(graph, {{}, {1}}, 0, ReductionKind::Sum));
}

// A partial value must be of one kind: two annotations for one value that differ in it exclude each other.
TEST(SolverAnnotationsTest, TwoKindsOfPartialAreAConflict) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16});
  graph.problem.setAnnotation(x, graph.partialAnnotation({{}, {}}, {0}, ReductionKind::Sum));
  graph.problem.setAnnotation(x, graph.partialAnnotation({{}, {}}, {0}, ReductionKind::Max));
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
TEST(SolverAnnotationsTest, TheLowerPriorityNumberDecidesFirst) {
  for (unsigned winner : {0u, 1u}) {
    GraphBuilder graph({2});
    ValueId x = graph.input({8, 16}), y = graph.input({8, 16});
    Annotation rows = graph.annotation({{0}, {}}), columns = graph.annotation({{}, {0}});
    for (AnnotationDim &dim : (winner == 0 ? columns : rows).dims)
      dim.priority = 1;
    graph.problem.setAnnotation(x, rows);
    graph.problem.setAnnotation(y, columns);
    ValueId sum = graph.pointwise({x, y});
    graph.problem.addOutput(graph.pointwise({sum}));
    Solved solved(graph);
    EXPECT_EQ(solved.value(sum), graph.state(winner == 0 ? DimAxes{{0}, {}} : DimAxes{{}, {0}}));
    EXPECT_EQ(solved.value(x), graph.state({{0}, {}}));
    EXPECT_EQ(solved.value(y), graph.state({{}, {0}}));
    EXPECT_EQ(solved.bytes(), (4 * 16 * 4) / 2);
  }
}

// Of three operands the later two want the axis for columns: moving one would be cheaper than moving two. But rows came
// first, and stay: two all_to_alls, where each rank sends half of its [4, 16].
TEST(SolverAnnotationsTest, WhatAnEarlierPrioritySplitsStays) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{0}, {}}), y = graph.input({8, 16}), z = graph.input({8, 16});
  for (ValueId later : {y, z}) {
    Annotation columns = graph.annotation({{}, {0}});
    for (AnnotationDim &dim : columns.dims)
      dim.priority = 1;
    graph.problem.setAnnotation(later, columns);
  }
  ValueId sum = graph.pointwise({x, y, z});
  graph.problem.addOutput(graph.pointwise({sum}));
  Solved solved(graph);
  EXPECT_EQ(solved.value(sum), graph.state({{0}, {}}));
  EXPECT_EQ(solved.bytes(), 2 * (4 * 16 * 4) / 2);
}

// Annotations that differ in nothing but the priority are not the same annotation.
TEST(SolverAnnotationsTest, TwoPrioritiesForOneValueAreAConflict) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16});
  Annotation first = graph.annotation({{0}, {}}), second = graph.annotation({{0}, {}});
  second.dims[0].priority = 1;
  graph.problem.setAnnotation(x, first);
  graph.problem.setAnnotation(x, second);
  graph.problem.addOutput(x);
  Solver solver(graph.problem);
  EXPECT_FALSE(solver.solve());
  ASSERT_EQ(solver.getErrors().size(), 1u);
  EXPECT_EQ(solver.getErrors()[0].kind, SolverError::Kind::Conflict);
  EXPECT_EQ(solver.getErrors()[0].second, 1u);
}

//===----------------------------------------------------------------------===//
// The order of axes in a dim
//===----------------------------------------------------------------------===//

// Where the annotations name axis 1 before axis 0, so do all ops: nobody moves a byte. One that says otherwise is outvoted.
TEST(SolverAnnotationsTest, AxesOfADimStandAsMostAnnotationsSay) {
  GraphBuilder graph({2, 2});
  ValueId x = graph.input({8, 16}, {{1, 0}, {}}), y = graph.input({8, 16}, {{1, 0}, {}});
  ValueId z = graph.input({8, 16}, {{0, 1}, {}});
  ValueId sum = graph.pointwise({x, y});
  graph.problem.addOutput(sum);
  graph.problem.addOutput(z);
  Solved solved(graph);
  EXPECT_EQ(solved.value(sum), graph.state({{1, 0}, {}}));
  EXPECT_EQ(solved.bytes(), 0);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(SolverAnnotationsTest, AConflictNamesBothAnnotations) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16}, {{0}, {}});
  graph.problem.setAnnotation(x, graph.annotation({{}, {0}}));
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
  Annotation annotation;
  for (const std::vector<unsigned> &axes : dims)
    annotation.dims.push_back({graph.state({axes}).dims[0]});
  graph.problem.setAnnotation(x, annotation);
  graph.problem.addOutput(x);
  Solver solver(graph.problem);
  EXPECT_FALSE(solver.solve());
  return solver.getErrors().empty() ? "" : solver.getErrors()[0].message;
}

TEST(SolverAnnotationsTest, IllegalAnnotationsAreErrors) {
  EXPECT_EQ(errorOf({{0}}, {8, 8}), "the annotation has 1 dims but the value has 2");
  EXPECT_EQ(errorOf({{0}, {0}}, {8, 8}), "an axis is used twice, the second time in dim 1");
  EXPECT_EQ(errorOf({{}, {0}}, {8, 10}), "dim 1 has size 10, which 4 shards do not divide");
}

TEST(SolverAnnotationsTest, AValueIsNotPartialOverWhatKeepsItReplicated) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 8});
  Annotation annotation = graph.partialAnnotation({{}, {}}, {0});
  annotation.replicated = annotation.partial;
  graph.problem.setAnnotation(x, annotation);
  graph.problem.addOutput(x);
  Solver solver(graph.problem);
  EXPECT_FALSE(solver.solve());
  ASSERT_EQ(solver.getErrors().size(), 1u);
  EXPECT_EQ(solver.getErrors()[0].message, "an axis is used twice: the value cannot be partial over it");
}

} // namespace
