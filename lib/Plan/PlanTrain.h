//===- PlanTrain.h - the section `train` of a plan --------------*- C++ -*-===//
#ifndef CLEAVE_LIB_PLAN_PLANTRAIN_H
#define CLEAVE_LIB_PLAN_PLANTRAIN_H

#include "YamlReader.h"

namespace cleave::spmd {

/// Reads the section `train`.
llvm::LogicalResult readTrain(YamlReader &reader, llvm::yaml::Node *node, PlanTrain &train);

/// It has a loss and an optimizer, unless others fill it in.
llvm::LogicalResult checkTrainWhole(const Plan &plan, PlanError &error);

/// What the section says of the mesh, once all of the plan is read.
llvm::LogicalResult checkTrain(const Plan &plan, PlanError &error);

} // namespace cleave::spmd

#endif // CLEAVE_LIB_PLAN_PLANTRAIN_H
