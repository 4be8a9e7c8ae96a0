//===- OpTimes.cpp - what a partitioned program takes ---------------------===//
//
// A group of ranks is a list of axes; their atoms are cut for each collective anew, since what a group costs does not
// depend on how its axes are cut:
//
//   all_reduce over model:(1)2   ->   atoms of model, cut so that (1)2 is a run of them   ->   links of these atoms
//
// Prices of collectives are those of the objective `time`, turned back into nanoseconds: there is one set of formulas. Of compute it
// counts the same: roofline and launches, those of what is no product by which ops share a kernel.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/OpTimes.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace cleave::spmd;

ClusterMesh cleave::spmd::getClusterMesh(MeshAttr mesh) {
  ClusterMesh made;
  for (auto [name, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes())) {
    made.names.push_back(name.str());
    made.sizes.push_back(size);
  }
  made.devices = mesh.getDevices().vec();
  return made;
}

OpTimes::OpTimes(const Cluster &cluster, MeshAttr mesh, MeshAttr whole)
    : cluster(cluster), mesh(mesh), whole(getClusterMesh(whole)),
      model(makeCostModel(cluster, this->whole, getClusterMesh(mesh).names, Optimize::Time)) {}

static std::string getWord(Type type) {
  std::string word;
  llvm::raw_string_ostream(word) << type;
  return word;
}

// Products are launched; what works element by element is fused with what is beside it, and reads and writes as if not.
double OpTimes::getComputeNs(double flops, double bytes, Type elementType) const {
  return cluster.device.getNs(flops, bytes, getWord(elementType)) + (flops > 0 ? cluster.device.launchNs : 0);
}

double OpTimes::getKernelNs(double flops, double bytes, Type elementType) const {
  return cluster.device.getNs(flops, bytes, getWord(elementType)) + cluster.device.launchNs;
}

double OpTimes::getCollectiveNs(StringRef kind, ArrayRef<AxisAttr> axes, int64_t bytes) const {
  Traffic traffic = llvm::StringSwitch<Traffic>(kind)
                        .Case("all_reduce", Traffic::TwoRings)
                        .Cases({"all_gather", "reduce_scatter"}, Traffic::Ring)
                        .Case("all_to_all", Traffic::Pairwise)
                        .Default(Traffic::Direct);
  SmallVector<SubAxis> digits;
  for (AxisAttr axis : axes)
    digits.push_back(axis.toSubAxis(mesh));
  std::optional<AtomMesh> cut = AtomMesh::create(mesh.getSizes(), digits);
  if (!cut) // Digits that exclude each other are illegal in one op.
    return 0;
  AtomList atoms;
  for (const SubAxis &digit : digits)
    llvm::append_range(atoms, cut->atomsOf(digit).value_or(AtomList()));
  return collectiveUnits(*cut, model, traffic, atoms, bytes) / model.perNs;
}

double OpTimes::getCollectiveNs(CollectiveOpInterface op, int64_t bytes) const {
  return getCollectiveNs(op->getName().stripDialect(), op.getGroupAxes(), bytes);
}

/// The axis of a pipeline is none of the stage's mesh.
double OpTimes::getMessageNs(StringRef axis, int64_t bytes) const {
  ClusterLink link = findLink(cluster, whole, axis);
  return cluster.beginNs + link.latencyNs + static_cast<double>(bytes) / link.bytesPerNs;
}

Type cleave::spmd::getComputedType(Operation *op) {
  auto types = op->getNumOperands() ? TypeRange(op->getOperandTypes()) : TypeRange(op->getResultTypes());
  return types.empty() ? Type() : getElementTypeOrSelf(types.front());
}
