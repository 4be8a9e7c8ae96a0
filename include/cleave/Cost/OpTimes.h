//===- OpTimes.h - what a partitioned program takes -------------*- C++ -*-===//
//
// Nanoseconds of ops and collectives of one rank on a cluster, as predicted: of compute the roofline, and a launch; of a
// collective what it takes to begin, its latencies, and its bytes, by the formulas that decisions are counted with
// (CostModel.h). What is shown of a collective and what it was decided by so are the same; launches are only shown.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COST_OPTIMES_H
#define CLEAVE_COST_OPTIMES_H

#include "cleave/Dialect/Spmd/IR/ClusterAttr.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Sharding/Cluster.h"
#include "cleave/Sharding/CostModel.h"

namespace cleave::cost {

class OpTimes {
public:
  /// `mesh` is that of the program; `whole` of the machine, which has more axes where the program is a pipeline's stage. Of devices that
  /// differ the slowest counts: who knows those of a stage gives their cluster (`makeAlike`).
  /// Precondition: `whole` fits on the cluster.
  OpTimes(const spmd::Cluster &cluster, spmd::MeshAttr mesh, spmd::MeshAttr whole);

  /// For the functions of `module`, on its cluster (`spmd.cluster`) or else the default one. Error on `module`: those of `readCluster`; the
  /// mesh does not fit on the cluster. Without a mesh it is one device.
  static mlir::FailureOr<OpTimes> get(mlir::ModuleOp module);

  const spmd::Cluster &getCluster() const { return cluster; }

  /// Of an op that computes on elements of `elementType`, reads and writes so much. Nothing is launched for no flops: what
  /// only moves or changes elements becomes part of what is beside it.
  double getComputeNs(double flops, double bytes, mlir::Type elementType) const;
  /// Of a kernel that is launched by itself.
  double getKernelNs(double flops, double bytes, mlir::Type elementType) const;
  /// Of a collective (`all_reduce`, `permute`) over these axes of which the busiest rank sends `bytes`, to or from at most `peers` where it
  /// goes point to point.
  double getCollectiveNs(llvm::StringRef kind, llvm::ArrayRef<spmd::AxisAttr> axes, int64_t bytes, int64_t peers) const;
  /// Of a message to the next rank along an axis of the machine's mesh.
  double getMessageNs(llvm::StringRef axis, int64_t bytes) const;

private:
  spmd::MeshAttr mesh;
  spmd::ClusterMesh whole;
  spmd::Cluster cluster;
  spmd::CostModel model;
};

} // namespace cleave::cost

#endif // CLEAVE_COST_OPTIMES_H
