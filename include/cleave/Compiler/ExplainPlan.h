//===- ExplainPlan.h - why a found plan, and no other -----------*- C++ -*-===//
//
//   std::optional<cleave::FoundPlan> found = cleave::findPlan(compilation, request);
//   std::optional<cleave::PlanReasons> reasons = compilation.explainPlan(*found, request);
//
// What the other numbers of stages and the styles that people know would take, what the time of a call goes into, and which collectives
// take longest, with what doing otherwise there would cost.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_EXPLAINPLAN_H
#define CLEAVE_COMPILER_EXPLAINPLAN_H

#include "cleave/Compiler/Explanation.h"
#include "cleave/Compiler/FindPlan.h"

namespace cleave {

/// The best of another number of stages, or the plan of a style, on as many devices.
struct OtherPlan {
  /// `2 stages`, `megatron`.
  std::string name;
  std::string mesh;
  /// Of a call, as predicted with kernels formed; at once on a rank; sent by the busiest one.
  double ns = 0;
  int64_t peakBytes = 0, sentBytes = 0;
  /// Why there is none, or why it is no answer; figures are 0 where there is none.
  std::string reason;
};

/// Equal collectives of nodes whose names differ in numbers alone.
struct DearCollective {
  /// `h.*/attn/MatMul`; may be empty.
  std::string node;
  std::string kind;
  int64_t count = 0;
  /// Of all of them.
  int64_t bytes = 0;
  double ns = 0;
  /// What the node of the first would do otherwise for the least more.
  std::optional<Alternative> nextBest;
};

struct PlanReasons {
  /// Of the rank that takes longest; what it waits for others is the rest of a call.
  double computeNs = 0, communicationNs = 0, waitNs = 0;
  std::vector<OtherPlan> stages, styles;
  /// The longest first, ten at most.
  std::vector<DearCollective> collectives;
};

} // namespace cleave

#endif // CLEAVE_COMPILER_EXPLAINPLAN_H
