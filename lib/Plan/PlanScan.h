//===- PlanScan.h - a look at a plan's text before it is parsed -*- C++ -*-===//
#ifndef CLEAVE_LIB_PLAN_PLANSCAN_H
#define CLEAVE_LIB_PLAN_PLANSCAN_H

#include <optional>
#include <string>

namespace cleave::spmd {

/// What is wrong with a text, and at which of its characters.
struct PlanProblem {
  size_t position;
  std::string message;
};

/// Finds what a YAML parser would accept or name at another place: a missing comma, a bracket that is not closed, a tab
/// as indentation; and nesting beyond what any plan needs, which the parser would follow on the stack. A bare `?` entry
/// of a list, YAML's mark of a complex key, becomes `~`, of the same width, so that all places stay right.
std::optional<PlanProblem> scanPlan(std::string &text);

} // namespace cleave::spmd

#endif // CLEAVE_LIB_PLAN_PLANSCAN_H
