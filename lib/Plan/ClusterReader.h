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

/// Makes the cluster of a name; false if it is none. Where it is one of a machine that nobody builds, `lacks` says what it has not.
bool makeNamedCluster(llvm::StringRef name, Cluster &cluster, std::string &lacks);
/// `; did you mean '8xH100-nvlink'?`, or nothing.
std::string suggestClusters(llvm::StringRef name);

} // namespace cleave::spmd

#endif // CLEAVE_LIB_PLAN_CLUSTERREADER_H
