//===- GpusTest.cpp - machines named after GPUs ---------------------------===//
//
// Figures are those of data sheets, with what of them is reached (docs/cluster.md).
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/Gpus.h"
#include "cleave/Plan/ClusterFile.h"
#include "gtest/gtest.h"

using namespace cleave::spmd;

namespace {

Cluster readNamed(llvm::StringRef name) {
  Cluster cluster;
  PlanError error;
  EXPECT_TRUE(succeeded(readCluster(name, {}, cluster, error))) << error.format();
  EXPECT_EQ(cluster.name, name);
  return cluster;
}

// Nodes, devices of each, a GPU, and what connects them: without that the fastest that there is.
TEST(Gpus, NamesAreCountsOfGpus) {
  Cluster l4 = readNamed("4xL4-pcie"), b200 = readNamed("8xB200"), h200 = readNamed("2x8xH200-ib"),
          any = readNamed("H100"), card = readNamed("2xRTX 4090");
  EXPECT_EQ(l4.getNumDevices(), 4);
  EXPECT_EQ(l4.levels.size(), 1u);
  EXPECT_EQ(l4.levels[0].name, "pcie");
  EXPECT_NEAR(l4.levels[0].link.bytesPerNs, 0.8 * 32, 1e-9);
  EXPECT_EQ(l4.levels[0].link.latencyNs, 1000);
  EXPECT_NEAR(l4.device.getFlopsPerNs("bf16"), 0.7 * 121e3, 1e-6);
  EXPECT_EQ(b200.levels[0].name, "nvlink");
  EXPECT_NEAR(b200.levels[0].link.bytesPerNs, 0.8 * 900, 1e-9);
  EXPECT_EQ(b200.levels[0].link.latencyNs, 600);
  EXPECT_EQ(b200.device.memoryBytes, 180'000'000'000);
  EXPECT_EQ(h200.getNumDevices(), 16);
  EXPECT_EQ(h200.levels[0].link.latencyNs, 1000);
  EXPECT_EQ(h200.levels[1].name, "ib");
  EXPECT_NEAR(h200.levels[1].link.bytesPerNs, 0.9 * 50, 1e-9);
  EXPECT_NEAR(h200.device.memoryBytesPerNs, 0.7 * 4800, 1e-9);
  EXPECT_EQ(any.levels[0].devices, 8);
  EXPECT_EQ(any.getNumDevices(), 0);
  EXPECT_EQ(card.levels[0].name, "pcie");
  EXPECT_NEAR(card.device.getFlopsPerNs("f32"), 0.7 * 82.6e3, 1e-6);
  // T4 and V100 have no bf16, which computes as f32 does.
  EXPECT_EQ(readNamed("T4").device.getFlopsPerNs("bf16"), readNamed("T4").device.getFlopsPerNs("f32"));
}

// Every row has what a cluster needs, and its own name in any spelling.
TEST(Gpus, EveryGpuIsAMachine) {
  ASSERT_GE(getGpus().size(), 19u);
  for (const Gpu &gpu : getGpus()) {
    EXPECT_EQ(findGpu(gpu.name.lower()), &gpu);
    EXPECT_EQ(readNamed("1x" + gpu.name.str()).getNumDevices(), 1);
    EXPECT_GT(gpu.memoryGb * gpu.memoryGbps * gpu.f32 * gpu.f16 * gpu.pcie, 0) << gpu.name.str();
    EXPECT_GE(gpu.f16, gpu.f32);
    EXPECT_TRUE(gpu.i8 >= gpu.f16 || gpu.architecture < 75);
    EXPECT_TRUE(gpu.bf16 == gpu.f16 || gpu.architecture < 80);
  }
  EXPECT_EQ(findGpu("H100")->getArchitecture(), "sm_90");
  EXPECT_EQ(findGpu("H1000"), nullptr);
}

TEST(Gpus, MachinesThatNobodyBuilds) {
  auto expect = [](llvm::StringRef name, const std::string &message) {
    Cluster cluster;
    PlanError error;
    EXPECT_TRUE(failed(readCluster(name, {"p.yaml", 1, 1}, cluster, error)));
    EXPECT_EQ(error.message.substr(0, message.size()), message);
  };
  expect("4xL4-nvlink", "cluster '4xL4-nvlink': L4 has no NVLink: 4xL4-pcie");
  expect("2x4xL4-ib",
         "cluster '2x4xL4-ib': of L4 no machine of several nodes is known: describe its network in a file");
  expect("8xH100-ib", "cluster '8xH100-ib': the network is between nodes: 2x8xH100-ib");
  expect("8xH1000-nvlink", "no cluster is called '8xH1000-nvlink'; did you mean '8xH100-nvlink'");
  expect("0xH100", "no cluster is called '0xH100'");
  expect("3x2x8xH100", "no cluster is called '3x2x8xH100'");
}

// What is written is read as the same machine, to four digits.
TEST(Gpus, WhatIsWrittenIsRead) {
  for (llvm::StringRef name : {"cpu-threads", "2x8xH100-ib", "8xA100-nvlink"}) {
    Cluster cluster = readNamed(name);
    cluster.device.cacheBytes = 1'000'000;
    cluster.device.cacheBytesPerNs = 60;
    cluster.axes["data"] = {123, 4.5};
    cluster.unlike = {{0, {0.5, 0}}, {1, {1, 24'000'000}}, {7, {0.25, 1000}}};
    std::string text = formatCluster(cluster), indented = "  " + text;
    for (size_t at = 0; (at = indented.find('\n', at)) + 1 < indented.size(); at += 3)
      indented.insert(at + 1, "  ");
    Plan plan;
    PlanError error;
    ASSERT_TRUE(succeeded(parsePlan("mesh: {data: 2}\ncluster:\n" + indented, "p.yaml", plan, error)))
        << error.format();
    EXPECT_EQ(formatCluster(*plan.cluster), text);
    EXPECT_NEAR(plan.cluster->device.memoryBytesPerNs / cluster.device.memoryBytesPerNs, 1, 1e-3);
    EXPECT_EQ(plan.cluster->levels.size(), cluster.levels.size());
    EXPECT_EQ(plan.cluster->device.cacheBytes, 1'000'000);
    EXPECT_EQ(plan.cluster->axes.at("data").bytesPerNs, 4.5);
  }
}

} // namespace
