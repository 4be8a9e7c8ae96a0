//===- ChooseDevices.cpp - which links the axes of a mesh get -------------===//
//
// With `devices: auto` the ranks of a plan are laid on the machine in every order that counts (DeviceAssignment.h). The model is
// decided and partitioned for each, as it would be with that list of devices in the plan, and the order stays whose
// program is predicted to take least. There are few: two axes on nodes of 8 have four at most.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "cleave/Plan/ClusterFile.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Sharding/DeviceAssignment.h"
#include "cleave/Support/Status.h"

#include <limits>

using namespace mlir;
using namespace cleave;

spmd::CostModel cleave::makeCosts(const spmd::Plan &plan, spmd::Optimize optimize) {
  std::vector<std::string> names;
  for (const spmd::MeshAxis &axis : plan.getInnerAxes())
    names.push_back(axis.name);
  return spmd::makeCostModel(*plan.cluster, spmd::getClusterMesh(plan), names, optimize);
}

ShardOptions cleave::withMachine(const spmd::Plan &plan, ShardOptions sharding) {
  sharding.costs = makeCosts(plan, sharding.optimize);
  sharding.cluster = *plan.cluster;
  return sharding;
}

/// Ranks keep their numbers; where they stand becomes the plan's list of devices.
bool Compilation::State::chooseDevices() {
  if (!plan || !plan->areDevicesAuto)
    return true;
  if (cleave::getPhase(*module) >= Phase::Annotated)
    return fail(makeError("{0} is {1} already: its mesh says where its ranks stand, 'devices: auto' comes too late",
                          options.model, toString(cleave::getPhase(*module))));
  if (plan->mesh.empty())
    return fail(makeError("{0}: 'devices: auto' needs a mesh in the plan, not in the file", options.model));
  Telling telling(onProgress, "devices");
  std::vector<spmd::DeviceAssignment> assignments =
      spmd::findDeviceAssignments(*plan->cluster, spmd::getClusterMesh(*plan));
  std::shared_ptr<const spmd::Plan> best;
  DeviceAssignmentReport chosen;
  chosen.ns = chosen.nextNs = std::numeric_limits<double>::infinity();
  for (const spmd::DeviceAssignment &assignment : assignments) {
    auto candidate = std::make_shared<spmd::Plan>(*plan);
    candidate->areDevicesAuto = false;
    candidate->devices = assignment.devices;
    if (llvm::is_sorted(assignment.devices))
      candidate->devices.clear();
    double ns = predict(candidate, withMachine(*candidate, options.sharding)).ns;
    if (best && ns >= chosen.ns) {
      chosen.nextNs = std::min(chosen.nextNs, ns);
      continue;
    }
    best = candidate;
    chosen.nextNs = chosen.ns;
    chosen.ns = ns;
    chosen.axes = assignment.axes;
    chosen.devices = assignment.devices;
  }
  if (!best)
    return fail(makeError("{0}: no order of {1} ranks fills the nodes of {2}, one after the other: 'devices: auto' has "
                          "nothing to choose from",
                          options.model, spmd::getMesh(context.get(), *plan).getNumRanks(), plan->cluster->name));
  chosen.tried = static_cast<int64_t>(assignments.size());
  if (chosen.ns < std::numeric_limits<double>::infinity())
    placement = chosen;
  handed.plan = plan = best;
  return true;
}
