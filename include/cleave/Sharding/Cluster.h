//===- Cluster.h - the machine that a program is for ------------*- C++ -*-===//
//
// What devices compute and how they are connected, in bytes and nanoseconds: the one place where rates come from. A cluster
// is read from a file or named (Plan/ClusterFile.h, docs/cluster.md); without one the default counts, all devices alike and
// each a link from every other.
//
//   links, nearest first     nvlink: 8 devices        a node
//                            ib:     2 of these       all of the cluster
//
// Rank r stands on device r, or where the mesh says. An axis has the nearest link that connects all ranks which differ
// along it; of an axis that stretches over several kinds, neighbors have nearer ones, wherever a node ends along it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_CLUSTER_H
#define CLEAVE_SHARDING_CLUSTER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cleave::spmd {

struct CostModel;
enum class Optimize;

struct ClusterDevice {
  /// By element type (`f32`, `bf16`); what is not listed computes as fast as f32, which always is.
  std::map<std::string, double, std::less<>> flopsPerNs = {{"f32", 47000}};
  /// 0: nobody said.
  int64_t memoryBytes = 0;
  double memoryBytesPerNs = 2300;
  /// What a kernel takes to start.
  double launchNs = 2000;
  /// What a kernel reads and writes comes so fast where all of it together, on a rank, is no more than that; 0: nobody said.
  int64_t cacheBytes = 0;
  double cacheBytesPerNs = 0;
  /// Between its memory and the host's, each way; without a word what PCIe of generation 4 with 16 lanes reaches of its 32 GB/s.
  double hostBytesPerNs = kHostBytesPerNs;
  static constexpr double kHostBytesPerNs = 25;

  /// One core with vector units: 50 Gflop/s in f32, 10 GB/s of memory, and 16 KiB of that while a kernel starts. For what runs on the
  /// host, whatever cluster is named.
  static ClusterDevice hostCore();

  double getFlopsPerNs(llvm::StringRef elementType) const;
  /// What a kernel of `bytes` of operands and results takes to read and write them.
  double getMemoryNs(double bytes) const;
  /// The roofline: what computing or what reading and writing takes, whichever is longer.
  double getNs(double flops, double bytes, llvm::StringRef elementType) const;
};

/// A device that is not as the others.
struct UnlikeDevice {
  /// What it does in a time of what `Cluster::device` does: above 0, at most 1.
  double speed = 1;
  /// 0: as much as `Cluster::device` has.
  int64_t memoryBytes = 0;
};

struct ClusterLink {
  /// What a message takes beside its bytes; each step of a ring is one.
  double latencyNs = 0;
  /// Each way.
  double bytesPerNs = 300;
};

/// A kind of link, and how many groups of the level before it connects.
struct ClusterLevel {
  std::string name;
  /// 0: any number; only of the last.
  int64_t devices = 0;
  ClusterLink link;
};

struct Cluster {
  /// The default: 70 % of what an H100 SXM is specified for, 67 Tflop/s in f32 and 3.35 TB/s of memory (NVIDIA H100 data
  /// sheet, 2023), and two thirds of its 450 GB/s of NVLink each way.
  Cluster();

  std::string name = "default";
  ClusterDevice device;
  /// By number; all others are as `device`, the fastest.
  std::map<int64_t, UnlikeDevice> unlike;
  /// Nearest first; at least one.
  std::vector<ClusterLevel> levels;
  /// Axes of the mesh that are said to have another link than their ranks' places give them.
  std::map<std::string, ClusterLink, std::less<>> axes;
  /// Beginning a collective.
  double beginNs = 5000;

  /// 0: any number.
  int64_t getNumDevices() const;
  /// Of the slowest of these.
  double getSpeed(llvm::ArrayRef<int64_t> devices) const;
  /// The least that any of these has; 0: nobody said.
  int64_t getMemoryBytes(llvm::ArrayRef<int64_t> devices) const;
};

/// The axes of a mesh, and where its ranks stand (empty: rank r on device r).
struct ClusterMesh {
  std::vector<std::string> names;
  std::vector<int64_t> sizes, devices;
};

/// Of the ranks of a mesh, in their order; of those alone that are at `position` along an axis that it has.
std::vector<int64_t> listDevices(const ClusterMesh &mesh, llvm::StringRef axis = "", int64_t position = 0);

/// The cluster as it is to ranks on these devices that share work evenly: all as slow as the slowest, with the least memory.
Cluster makeAlike(Cluster cluster, llvm::ArrayRef<int64_t> devices);

/// `mesh` can run on `cluster`.
llvm::Error checkFit(const Cluster &cluster, const ClusterMesh &mesh);

/// The link between neighbors along an axis, the slowest that it has; that of the nearest devices for an axis that the mesh
/// lacks.
ClusterLink findLink(const Cluster &cluster, const ClusterMesh &mesh, llvm::StringRef axis);

/// Costs for a program whose mesh has the axes `names`, all of those of `mesh` or fewer. A unit is 1/1024 of the time that
/// a byte takes over the fastest link: `Balanced` weighs bytes by the links that they go over, and compute by the device's
/// rates; `Time` has latencies, what collectives and kernels take to begin, and memory too; `Bytes` counts bytes on any cluster.
/// Of devices that differ the slowest counts, or, where `names` are not all of the axes, for stages have devices of their own, the fastest.
/// Precondition: `mesh` fits.
CostModel makeCostModel(const Cluster &cluster, const ClusterMesh &mesh, llvm::ArrayRef<std::string> names,
                        Optimize optimize);

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_CLUSTER_H
