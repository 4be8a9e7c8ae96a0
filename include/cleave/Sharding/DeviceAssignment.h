//===- DeviceAssignment.h - which links each axis of a mesh has -*- C++ -*-===//
//
// Ranks may stand on the devices of a cluster in many orders, of which only this counts: how many ranks of each axis,
// one behind the other, are neighbors over each kind of link.
//
//   mesh data=2, model=8 on 2 nodes of 8     nvlink: model 8             ib: data 2
//                                            nvlink: data 2, model 4     ib: model 2
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_DEVICEASSIGNMENT_H
#define CLEAVE_SHARDING_DEVICEASSIGNMENT_H

#include "cleave/Sharding/Cluster.h"

namespace cleave::spmd {

struct DeviceAssignment {
  /// Device of each rank.
  std::vector<int64_t> devices;
  /// By axis of the mesh: `model over nvlink`, `data over nvlink (2) and ib (4)`.
  std::vector<std::string> axes;
};

/// All ways to fill the devices of each level before the next: by a divisor of each axis, as many devices as divide the
/// level. The first has the minor axes nearest. Empty where the mesh cannot be laid out so; `mesh.devices` do not count.
/// Precondition: the mesh fits.
std::vector<DeviceAssignment> findDeviceAssignments(const Cluster &cluster, const ClusterMesh &mesh);

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_DEVICEASSIGNMENT_H
