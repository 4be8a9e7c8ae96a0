//===- PlanExpect.h - what a plan expects of its program --------*- C++ -*-===//
#ifndef CLEAVE_LIB_PLAN_PLANEXPECT_H
#define CLEAVE_LIB_PLAN_PLANEXPECT_H

#include "YamlReader.h"

namespace cleave::spmd {

/// Reads the section `expect`.
llvm::LogicalResult readExpect(YamlReader &reader, llvm::yaml::Node *node, std::vector<PlanBound> &bounds);

} // namespace cleave::spmd

#endif // CLEAVE_LIB_PLAN_PLANEXPECT_H
