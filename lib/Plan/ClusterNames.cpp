//===- ClusterNames.cpp - machines that people have -----------------------===//
//
// In the words of cluster files, read like these, so that one can be taken as the start of another. Figures are those of
// data sheets, scaled by `efficiency` to what programs reach; each has its source behind it, and docs/cluster.md has them
// in one table. A new one is a row of the table below, one of the docs, and a line of test/Unit/Plan/ClusterTest.cpp, which
// holds figures of it against the data sheet.
//
//===----------------------------------------------------------------------===//
#include "ClusterReader.h"
#include "cleave/Plan/ClusterFile.h"

#include <cassert>

using namespace cleave::spmd;
using namespace llvm;

// NVIDIA H100 data sheet (SXM, without sparsity); 0.7 of it is what large products and copies reach.
#define CLEAVE_H100                                                                                                    \
  "device:\n"                                                                                                          \
  "  flops: {f32: 67T, bf16: 989T, f16: 989T, i8: 1979T}\n"                                                            \
  "  memory: 80GB\n"                                                                                                   \
  "  bandwidth: 3350GB/s\n"                                                                                            \
  "  launch: 2us\n"                                                                                                    \
  "  efficiency: 0.7\n"

namespace {
struct NamedCluster {
  StringRef name, text;
};
} // namespace

// NVLink 4: 900 GB/s a device both ways together (H100 data sheet), of which rings of NCCL reach about 0.8; NVLink 3: 600
// GB/s (A100 data sheet). ConnectX-7, one for each device: 400 Gbit/s each way (DGX H100 user guide). Latencies are NCCL's
// own model, graph/tuning.cc, protocol LL: 6.6 us to begin a ring, 0.6 us a hop over NVLink, or 1 us where there is a
// network too, 2.7 us over the network. cpu-threads: a core of Zen 4 as measured with this project's own kernels, 64 MB
// collectives of two threads, and a copy of 512 MB.
static constexpr NamedCluster kClusters[] = {
    {"8xH100-nvlink",
     CLEAVE_H100 "collective: 6.6us\n"
                 "links:\n"
                 "  - {name: nvlink, devices: 8, latency: 0.6us, bandwidth: 450GB/s, efficiency: 0.8}\n"},
    {"2x8xH100-ib", CLEAVE_H100 "collective: 6.6us\n"
                                "links:\n"
                                "  - {name: nvlink, devices: 8, latency: 1us, bandwidth: 450GB/s, efficiency: 0.8}\n"
                                "  - {name: ib, devices: 2, latency: 2.7us, bandwidth: 50GB/s, efficiency: 0.9}\n"},
    {"8xA100-nvlink", "device:\n"
                      "  flops: {f32: 19.5T, bf16: 312T, f16: 312T, i8: 624T}\n"
                      "  memory: 80GB\n"
                      "  bandwidth: 2039GB/s\n"
                      "  launch: 2us\n"
                      "  efficiency: 0.7\n"
                      "collective: 6.6us\n"
                      "links:\n"
                      "  - {name: nvlink, devices: 8, latency: 0.6us, bandwidth: 300GB/s, efficiency: 0.8}\n"},
    {"cpu-threads", "device:\n"
                    "  flops: {f32: 105G, bf16: 210G}\n"
                    "  bandwidth: 12GB/s\n"
                    "  launch: 0.1us\n"
                    "collective: 0.2us\n"
                    "links: {latency: 0.1us, bandwidth: 5.4GB/s}\n"},
};
#undef CLEAVE_H100

ArrayRef<StringRef> cleave::spmd::getClusterNames() {
  static constexpr StringRef names[] = {kClusters[0].name, kClusters[1].name, kClusters[2].name, kClusters[3].name};
  static_assert(std::size(names) == std::size(kClusters), "a name for each");
  return names;
}

Cluster cleave::spmd::getHostCluster() {
  Cluster cluster;
  PlanError error;
  [[maybe_unused]] LogicalResult read = readCluster("cpu-threads", {}, cluster, error);
  assert(succeeded(read) && "the table has it");
  return cluster;
}

StringRef cleave::spmd::findClusterText(StringRef name) {
  for (const NamedCluster &cluster : kClusters)
    if (cluster.name == name)
      return cluster.text;
  return "";
}
