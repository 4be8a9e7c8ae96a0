//===- ClusterAttr.h - the machine that a module is for ---------*- C++ -*-===//
//
// A plan may name a cluster. Passes from annotation to fusion ask what it computes and sends, in one process or with files
// in between, so it is an attribute of the module:
//
//   spmd.cluster = {name = "two nodes", begin_ns = 5.0e3, launch_ns = 2.0e3, memory_bytes = 80000000000,
//                   memory_bytes_per_ns = 2.3e3, flops_per_ns = {f32 = 4.7e4, bf16 = 7.0e5},
//                   levels = [{name = "nvlink", devices = 8, link = array<f64: 500.0, 300.0>}, ..],
//                   axes = {data = array<f64: 3000.0, 25.0>}}
//
// A link is its latency in ns, then its bytes per ns.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_CLUSTERATTR_H
#define CLEAVE_DIALECT_SPMD_IR_CLUSTERATTR_H

#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Sharding/Cluster.h"
#include "mlir/IR/BuiltinOps.h"

namespace cleave::spmd {

/// The axes of `mesh` and its devices, as clusters know them.
ClusterMesh getClusterMesh(MeshAttr mesh);

/// Sets `spmd.cluster` of `module`.
void writeCluster(mlir::ModuleOp module, const Cluster &cluster);

/// The cluster of `module`; nothing without the attribute. Error on `module`: an entry is missing or unknown, or is not of the type or
/// in the range that it should be: rates are above 0, and times, bytes and devices at least 0.
mlir::FailureOr<std::optional<Cluster>> readCluster(mlir::ModuleOp module);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_CLUSTERATTR_H
