//===- Solved.h - a problem and its answer, for tests -----------*- C++ -*-===//
#ifndef CLEAVE_TEST_UNIT_SOLVER_SOLVED_H
#define CLEAVE_TEST_UNIT_SOLVER_SOLVED_H

#include "GraphBuilder.h"
#include "cleave/Solver/Solver.h"
#include <gtest/gtest.h>

namespace cleave::spmd {

/// Solves `builder`, which must have an answer and outlive this, and names what there is to ask.
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

/// Makes `value` an output that is annotated closed in `dims`.
inline void addOutput(GraphBuilder &graph, ValueId value, const DimAxes &dims) {
  Annotation annotation = graph.annotation(dims);
  graph.problem.addOutput(value, &annotation);
}

} // namespace cleave::spmd

#endif // CLEAVE_TEST_UNIT_SOLVER_SOLVED_H
