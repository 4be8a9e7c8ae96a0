//===- OpTimes.cpp - what a partitioned program takes ---------------------===//
//
// A group of ranks is a list of axes; their atoms are split for each collective anew, since what a group costs does not
// depend on how its axes are split:
//
//   all_reduce over model:(1)2   ->   atoms of model, split so that (1)2 is a run of them   ->   links of these atoms
//
// Costs of collectives are those of the objective `time`, turned back into nanoseconds: there is one set of formulas.
//
//===----------------------------------------------------------------------===//
#include "cleave/Cost/OpTimes.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Program/Collective.h"

#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::cost;

OpTimes::OpTimes(const spmd::Cluster &cluster, spmd::MeshAttr mesh, spmd::MeshAttr whole)
    : mesh(mesh), whole(spmd::getClusterMesh(whole)),
      cluster(cluster.unlike.empty() ? cluster : spmd::makeAlike(cluster, spmd::listDevices(this->whole))),
      model(spmd::makeCostModel(this->cluster, this->whole, spmd::getClusterMesh(mesh).names, spmd::Optimize::Time)) {}

FailureOr<OpTimes> OpTimes::get(ModuleOp module) {
  FailureOr<std::optional<spmd::Cluster>> cluster = spmd::readCluster(module);
  if (failed(cluster))
    return failure();
  spmd::MeshAttr mesh = spmd::getMesh(module), whole = pipe::getWholeMesh(module);
  if (!mesh)
    mesh = whole = spmd::MeshAttr::get(module.getContext(), {"device"}, {1}, {});
  spmd::Cluster machine = cluster->value_or(spmd::Cluster());
  if (llvm::Error misfit = spmd::checkFit(machine, spmd::getClusterMesh(whole)))
    return module.emitError() << llvm::toString(std::move(misfit));
  return OpTimes(machine, mesh, whole);
}

// Products are launched; what works element by element is fused with what is beside it, and reads and writes as if not.
double OpTimes::getComputeNs(double flops, double bytes, Type elementType) const {
  return cluster.device.getNs(flops, bytes, debugString(elementType)) + (flops > 0 ? cluster.device.launchNs : 0);
}

double OpTimes::getKernelNs(double flops, double bytes, Type elementType) const {
  return cluster.device.getNs(flops, bytes, debugString(elementType)) + cluster.device.launchNs;
}

double OpTimes::getCollectiveNs(StringRef kind, ArrayRef<spmd::AxisAttr> axes, int64_t bytes, int64_t peers) const {
  SmallVector<spmd::SubAxis> digits;
  for (spmd::AxisAttr axis : axes)
    digits.push_back(axis.toSubAxis(mesh));
  llvm::Expected<spmd::AtomMesh> split = spmd::AtomMesh::create(mesh.getSizes(), digits);
  if (llvm::errorToBool(split.takeError())) // Digits that exclude each other are illegal in one op.
    return 0;
  spmd::AtomList atoms;
  for (const spmd::SubAxis &digit : digits)
    llvm::append_range(atoms, split->atomsOf(digit).value_or(spmd::AtomList()));
  return spmd::collectiveUnits(*split, model, program::getTraffic(kind), atoms, bytes, peers) / model.perNs;
}

/// The axis of a pipeline is none of the stage's mesh.
double OpTimes::getMessageNs(StringRef axis, int64_t bytes) const {
  spmd::ClusterLink link = spmd::findLink(cluster, whole, axis);
  return cluster.beginNs + link.latencyNs + static_cast<double>(bytes) / link.bytesPerNs;
}
