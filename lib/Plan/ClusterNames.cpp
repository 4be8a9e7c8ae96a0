//===- ClusterNames.cpp - machines that people have -----------------------===//
//
// A name says how many nodes there are of how many GPUs each, and how these are connected:
//
//   2x8xH100-ib      2 nodes of 8, over the network of their maker; inside NVLink, or else PCIe
//   4xL4-pcie        4 in one node
//   8xB200           the same over the fastest link that it has
//   H100             as many as the mesh has ranks, 8 to a node
//
// Figures of GPUs are those of data sheets (Gpus.cpp). What of them is reached, and latencies, are here, for all alike: docs/cluster.md
// says where they come from. `cpu-threads` is this kind of machine, measured.
//
//===----------------------------------------------------------------------===//
#include "ClusterReader.h"
#include "cleave/Plan/ClusterFile.h"
#include "cleave/Plan/Gpus.h"
#include "cleave/Support/Suggest.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <optional>

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

/// What large products and copies reach of a GPU, and rings of NCCL of a link.
static constexpr double kComputeShare = 0.7, kLinkShare = 0.8, kNetworkShare = 0.9;
static constexpr double kLaunchNs = 2000;
/// NCCL's own model, graph/tuning.cc, protocol LL: what a ring takes to begin, and a hop.
static constexpr double kBeginNs = 6600, kNvlinkNs = 600, kPcieNs = 1000, kNetworkNs = 2700;
/// Of the machines that their makers build.
static constexpr int64_t kUsualNode = 8;
static constexpr int64_t kMostDevices = 1 << 15; // Of these so many are less than 2^31.

namespace {
/// What a name says; 0: any number.
struct Machine {
  int64_t nodes = 1, devices = 0;
  StringRef gpu, link;
};
} // namespace

/// `2x8xH100-ib`; a GPU's own name may have dashes.
static std::optional<Machine> parseMachine(StringRef name) {
  Machine machine;
  SmallVector<int64_t, 2> counts;
  while (counts.size() < 2) {
    StringRef rest = name;
    int64_t count = 0;
    if (rest.consumeInteger(10, count) || !rest.consume_front("x"))
      break;
    if (count < 1 || count > kMostDevices)
      return std::nullopt;
    counts.push_back(count);
    name = rest;
  }
  if (!counts.empty())
    machine.devices = counts.back();
  if (counts.size() == 2)
    machine.nodes = counts.front();
  auto [gpu, link] = name.rsplit('-');
  bool hasLink = link == "nvlink" || link == "pcie" || link == "ib";
  machine.gpu = hasLink ? gpu : name;
  machine.link = hasLink ? link : "";
  return machine;
}

/// What of the figures of a data sheet programs reach; a type that the GPU does not know is left out, and computes as f32.
static ClusterDevice makeDevice(const Gpu &gpu) {
  ClusterDevice device;
  device.flopsPerNs.clear();
  for (auto [type, rate] :
       {std::pair("f32", gpu.f32), std::pair("bf16", gpu.bf16), std::pair("f16", gpu.f16), std::pair("i8", gpu.i8)})
    if (rate > 0)
      device.flopsPerNs[type] = rate * 1e3 * kComputeShare;
  device.memoryBytes = std::llround(gpu.memoryGb * 1e9);
  device.memoryBytesPerNs = gpu.memoryGbps * kComputeShare;
  device.hostBytesPerNs = gpu.pcie * kLinkShare;
  device.launchNs = kLaunchNs;
  return device;
}

/// Makes the cluster; or says what such a machine lacks.
static std::string build(const Machine &machine, const Gpu &gpu, Cluster &cluster) {
  bool isMany = machine.nodes > 1 || machine.link == "ib" || (machine.devices == 0 && gpu.network > 0);
  if (isMany && gpu.network == 0)
    return formatv("of {0} no machine of several nodes is known: describe its network in a file", gpu.name);
  if (machine.link == "nvlink" && gpu.nvlink == 0)
    return formatv("{0} has no NVLink: {1}{0}-pcie", gpu.name,
                   machine.devices ? std::to_string(machine.devices) + "x" : "");
  if (machine.link == "ib" && machine.nodes == 1)
    return formatv("the network is between nodes: 2x{0}x{1}-ib", machine.devices ? machine.devices : kUsualNode,
                   gpu.name);
  bool overNvlink = gpu.nvlink > 0 && machine.link != "pcie";
  // NCCL counts a hop inside a node as more where there is a network too.
  ClusterLink inside{overNvlink && !isMany ? kNvlinkNs : kPcieNs, (overNvlink ? gpu.nvlink : gpu.pcie) * kLinkShare};
  int64_t devices = machine.devices ? machine.devices : isMany ? kUsualNode : 0;
  cluster.device = makeDevice(gpu);
  cluster.beginNs = kBeginNs;
  cluster.axes.clear();
  cluster.levels = {{overNvlink ? "nvlink" : "pcie", devices, inside}};
  if (isMany)
    cluster.levels.push_back({"ib", machine.devices ? machine.nodes : 0, {kNetworkNs, gpu.network * kNetworkShare}});
  return "";
}

bool cleave::spmd::makeNamedCluster(StringRef name, Cluster &cluster, std::string &lacks) {
  if (name == "cpu-threads") {
    cluster = getHostCluster();
    return true;
  }
  std::optional<Machine> machine = parseMachine(name);
  const Gpu *gpu = machine ? findGpu(machine->gpu) : nullptr;
  if (!gpu)
    return false;
  cluster.name = name.str();
  lacks = build(*machine, *gpu, cluster);
  return lacks.empty();
}

/// The same machine of other GPUs, and those that are named here.
std::string cleave::spmd::suggestClusters(StringRef name) {
  std::vector<std::string> near;
  if (std::optional<Machine> machine = parseMachine(name))
    for (const Gpu &gpu : getGpus())
      near.push_back((name.take_front(machine->gpu.data() - name.data()) + gpu.name +
                      name.drop_front(machine->gpu.data() - name.data() + machine->gpu.size()))
                         .str());
  std::vector<StringRef> names(near.begin(), near.end());
  names.insert(names.end(), getClusterNames().begin(), getClusterNames().end());
  return suggestNames(name, names);
}

// A core of Zen 4 with AVX-512: docs/cluster.md has what was measured, and how.
Cluster cleave::spmd::getHostCluster() {
  Cluster cluster;
  cluster.name = "cpu-threads";
  cluster.device.flopsPerNs = {{"f32", 105}, {"bf16", 210}};
  cluster.device.memoryBytesPerNs = 12;
  cluster.device.launchNs = 100;
  cluster.beginNs = 200;
  cluster.levels = {{"", 0, {100, 5.4}}};
  return cluster;
}

ArrayRef<StringRef> cleave::spmd::getClusterNames() {
  static constexpr StringRef names[] = {"8xH100-nvlink", "2x8xH100-ib", "8xA100-nvlink",
                                        "8xB200",        "4xL4-pcie",   "cpu-threads"};
  return names;
}
