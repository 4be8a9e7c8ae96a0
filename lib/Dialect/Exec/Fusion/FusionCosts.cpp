//===- FusionCosts.cpp - what fusion saves, in bytes ----------------------===//
//
// The formulas of FusionCosts.h.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/Fusion/FusionCosts.h"

#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

using namespace mlir;
using namespace cleave;

int64_t exec::countElements(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }

int64_t exec::countReadElements(Operation *op) {
  return countElements(Rows::get(op) ? op->getOperand(0) : op->getResult(0));
}

exec::FusionCosts::FusionCosts(const spmd::ClusterDevice &device)
    : opBytes(kFlopsPerElement / device.getFlopsPerNs("f32") * device.memoryBytesPerNs),
      launchBytes(device.launchNs * device.memoryBytesPerNs) {}

bool exec::FusionCosts::isCheaperInReaders(const Chain &chain, Value value) const {
  assert(!value.use_empty() && !value.hasOneUse() && "there are several readers");
  if (chain.ops > kMostRepeatedOps)
    return false;
  double repeated = 0, shares = 0;
  bool isReadFully = false;
  for (Operation *reader : value.getUsers()) {
    double elements = double(countReadElements(reader));
    double share = std::min(1.0, elements / double(std::max<int64_t>(1, countElements(value))));
    repeated += share * double(chain.bytes) + elements * double(chain.ops) * opBytes;
    shares += share;
    isReadFully |= share == 1;
  }
  double bytes = double(spmd::getBytes(value.getType())),
         loads = isReadFully ? (shares - 1) * bytes : shares * bytes + launchBytes;
  return repeated < double(chain.bytes) + bytes + loads;
}

bool exec::FusionCosts::isCheaperInReader(int64_t ops, Value value, int64_t elements) const {
  return static_cast<double>((elements - countElements(value)) * ops) * opBytes <=
         static_cast<double>(2 * spmd::getBytes(value.getType())) + launchBytes;
}
