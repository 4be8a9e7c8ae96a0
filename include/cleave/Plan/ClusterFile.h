//===- ClusterFile.h - describing a machine ---------------------*- C++ -*-===//
//
// A cluster is named (`8xH100-nvlink`), or described in a file, or in a plan under `cluster:`, by the same keys:
//
//   device: {flops: {f32: 67T, bf16: 989T}, memory: 80GB, bandwidth: 3350GB/s, cache: 50MB,
//            cache_bandwidth: 5500GB/s, launch: 2us, efficiency: 0.7}
//   collective: 6.6us
//   links:
//     - {name: nvlink, devices: 8, latency: 1us, bandwidth: 450GB/s}
//     - {name: ib, devices: 2, latency: 2.7us, bandwidth: 50GB/s}
//   axes: {data: ib}
//
// docs/cluster.md has what each means, and where the figures of the named ones come from.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PLAN_CLUSTERFILE_H
#define CLEAVE_PLAN_CLUSTERFILE_H

#include "cleave/Plan/Plan.h"

namespace cleave::spmd {

/// Some of the names that clusters have, as examples: any number of any of the GPUs of Gpus.h has one (docs/cluster.md).
llvm::ArrayRef<llvm::StringRef> getClusterNames();

/// The cluster called `text`, or else the one that the file of this name describes. An error has `place`, or one in the
/// file.
llvm::LogicalResult readCluster(llvm::StringRef text, const PlanPlace &place, Cluster &cluster, PlanError &error);

/// The keys of a file from which `readCluster` makes the same cluster, to four digits of each number. Precondition: one level of any number
/// of devices, or levels that have some.
std::string formatCluster(const Cluster &cluster);

/// `cpu-threads`: ranks are threads of this machine, or processes on it.
Cluster getHostCluster();

/// The mesh of a plan, in the words of clusters.
ClusterMesh getClusterMesh(const Plan &plan);

} // namespace cleave::spmd

#endif // CLEAVE_PLAN_CLUSTERFILE_H
