//===- ClusterReader.h - the keys of a cluster ------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_PLAN_CLUSTERREADER_H
#define CLEAVE_LIB_PLAN_CLUSTERREADER_H

#include "YamlReader.h"

namespace cleave::spmd {

/// Reads a mapping; what it says by itself is checked here.
llvm::LogicalResult readClusterKeys(YamlReader &reader, llvm::yaml::Node *node, Cluster &cluster);

/// The value of `cluster:` in a plan: a name, a file, or the keys themselves.
llvm::LogicalResult readClusterEntry(YamlReader &reader, llvm::yaml::Node *node, Cluster &cluster);

/// The mesh of a plan fits on its cluster.
llvm::LogicalResult checkCluster(const Plan &plan, PlanError &error);

/// The description of a named cluster; empty if there is none.
llvm::StringRef findClusterText(llvm::StringRef name);

} // namespace cleave::spmd

#endif // CLEAVE_LIB_PLAN_CLUSTERREADER_H
