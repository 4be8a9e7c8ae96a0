//===- UnlikeDevices.cpp - machines of several kinds of devices -----------===//
//
// Ranks that share work evenly wait for the slowest of them, and none may take more than the one with least memory has. So a cluster is asked
// for the devices of those who share: of all ranks, or of the ranks of a stage.
//
//   devices 0 1 2 3, of which 2 and 3 are half as fast      mesh stage=2,model=2     stage 0: full speed     stage 1: half
//                                                           mesh model=4             all: half
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/Cluster.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::spmd;
using namespace llvm;

// Ranks are counted with the last axis fastest.
std::vector<int64_t> cleave::spmd::listDevices(const ClusterMesh &mesh, StringRef axis, int64_t position) {
  int64_t ranks = 1, stride = 1, size = 1;
  for (auto [name, extent] : reverse(zip_equal(mesh.names, mesh.sizes))) {
    if (name == axis) {
      stride = ranks;
      size = extent;
    }
    ranks *= extent;
  }
  std::vector<int64_t> devices;
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (size == 1 || rank / stride % size == position)
      devices.push_back(mesh.devices.empty() ? rank : mesh.devices[rank]);
  return devices;
}

// A device that is not named is as fast as any.
double Cluster::getSpeed(ArrayRef<int64_t> devices) const {
  double speed = 1;
  for (int64_t number : devices)
    if (auto found = unlike.find(number); found != unlike.end())
      speed = std::min(speed, found->second.speed);
  return speed;
}

// What nobody has said limits nothing.
int64_t Cluster::getMemoryBytes(ArrayRef<int64_t> devices) const {
  int64_t least = 0;
  for (int64_t number : devices) {
    auto found = unlike.find(number);
    bool isOther = found != unlike.end() && found->second.memoryBytes > 0;
    int64_t bytes = isOther ? found->second.memoryBytes : device.memoryBytes;
    if (bytes > 0)
      least = least == 0 ? bytes : std::min(least, bytes);
  }
  return least;
}

// Starting a kernel is work of the host.
Cluster cleave::spmd::makeAlike(Cluster cluster, ArrayRef<int64_t> devices) {
  if (cluster.unlike.empty())
    return cluster;
  ClusterDevice &device = cluster.device;
  double speed = cluster.getSpeed(devices);
  for (auto &[type, rate] : device.flopsPerNs)
    rate *= speed;
  device.memoryBytesPerNs *= speed;
  device.cacheBytesPerNs *= speed;
  device.memoryBytes = cluster.getMemoryBytes(devices);
  cluster.unlike.clear();
  return cluster;
}
