//===- PlanPipeline.h - the section `pipeline` of a plan --------*- C++ -*-===//
#ifndef CLEAVE_LIB_PLAN_PLANPIPELINE_H
#define CLEAVE_LIB_PLAN_PLANPIPELINE_H

#include "YamlReader.h"

namespace cleave::spmd {

/// Reads the section; what it says by itself is checked here.
llvm::LogicalResult readPipeline(YamlReader &reader, llvm::yaml::Node *node, std::optional<PlanPipeline> &pipeline);

/// P1: the axis is of the mesh, and no sharding uses it. Ranks of stages are on it.
llvm::LogicalResult checkPipeline(const Plan &plan, PlanError &error);

} // namespace cleave::spmd

#endif // CLEAVE_LIB_PLAN_PLANPIPELINE_H
