//===- ClusterTest.cpp - reading clusters ---------------------------------===//
#include "cleave/Plan/ClusterFile.h"
#include "gtest/gtest.h"

using namespace cleave::spmd;

static Plan parse(const std::string &text) {
  Plan plan;
  PlanError error;
  EXPECT_TRUE(succeeded(parsePlan(text, "p.yaml", plan, error)) && succeeded(checkPlan(plan, error))) << error.format();
  return plan;
}

/// What is wrong with a cluster in a plan with `mesh: {data: 2, model: 8}`; it begins on line 3.
static std::string getError(const std::string &cluster) {
  Plan plan;
  PlanError error;
  std::string text = "mesh: {data: 2, model: 8}\ncluster:\n" + cluster;
  if (succeeded(parsePlan(text, "p.yaml", plan, error)) && succeeded(checkPlan(plan, error)))
    return "";
  return error.format();
}

TEST(ClusterFile, ReadsEveryKey) {
  Plan plan = parse("mesh: {data: 2, model: 8, rest: 1}\n"
                    "cluster:\n"
                    "  name: ours\n"
                    "  device:\n"
                    "    flops: {f32: 60T, bf16: 1P, i8: 500G}\n"
                    "    memory: 80GB\n"
                    "    bandwidth: 2TB/s\n"
                    "    cache: 50MB\n"
                    "    cache_bandwidth: 6TB/s\n"
                    "    launch: 1500ns\n"
                    "    host: 60GB/s\n"
                    "    efficiency: 0.5\n"
                    "  unlike:\n"
                    "    - {devices: [3, 5], speed: 0.5}\n"
                    "    - {devices: [4], memory: 24GB}\n"
                    "  collective: 6.5us\n"
                    "  links:\n"
                    "    - {name: near, devices: 8, latency: 600ns, bandwidth: 400GB/s, efficiency: 0.75}\n"
                    "    - {name: far, devices: 2, latency: 0.01ms, bandwidth: 500MB/s}\n"
                    "  axes: {data: near, rest: {bandwidth: 7GB/s}}\n");
  ASSERT_TRUE(plan.cluster);
  const Cluster &cluster = *plan.cluster;
  EXPECT_EQ(cluster.name, "ours");
  EXPECT_EQ(cluster.device.getFlopsPerNs("f32"), 30000);
  EXPECT_EQ(cluster.device.getFlopsPerNs("bf16"), 500000);
  EXPECT_EQ(cluster.device.getFlopsPerNs("i8"), 250);
  EXPECT_EQ(cluster.device.getFlopsPerNs("f16"), 30000);
  EXPECT_EQ(cluster.device.memoryBytes, 80'000'000'000);
  EXPECT_EQ(cluster.device.memoryBytesPerNs, 1000);
  EXPECT_EQ(cluster.device.cacheBytes, 50'000'000);
  EXPECT_EQ(cluster.device.cacheBytesPerNs, 3000);
  EXPECT_EQ(cluster.device.launchNs, 1500);
  // What programs reach of a device says nothing of its link.
  EXPECT_EQ(cluster.device.hostBytesPerNs, 60);
  EXPECT_EQ(cluster.beginNs, 6500);
  ASSERT_EQ(cluster.unlike.size(), 3u);
  EXPECT_EQ(cluster.unlike.at(5).speed, 0.5);
  EXPECT_EQ(cluster.unlike.at(5).memoryBytes, 0);
  EXPECT_EQ(cluster.unlike.at(4).speed, 1);
  EXPECT_EQ(cluster.unlike.at(4).memoryBytes, 24'000'000'000);
  ASSERT_EQ(cluster.levels.size(), 2u);
  EXPECT_EQ(cluster.levels[0].link.bytesPerNs, 300);
  EXPECT_EQ(cluster.levels[0].link.latencyNs, 600);
  EXPECT_EQ(cluster.levels[1].link.bytesPerNs, 0.5);
  EXPECT_EQ(cluster.levels[1].link.latencyNs, 10000);
  EXPECT_EQ(cluster.getNumDevices(), 16);
  EXPECT_EQ(cluster.axes.at("data").bytesPerNs, 300);
  EXPECT_EQ(cluster.axes.at("rest").bytesPerNs, 7);
  EXPECT_EQ(cluster.axes.at("rest").latencyNs, 0);
}

TEST(ClusterFile, OneLinkConnectsAnyNumber) {
  Plan plan = parse("mesh: {x: 4096}\n"
                    "cluster: {device: {flops: {f32: 1T}, bandwidth: 1GB/s}, links: {bandwidth: 10GB/s}}\n");
  EXPECT_EQ(plan.cluster->getNumDevices(), 0);
  EXPECT_EQ(plan.cluster->beginNs, 0);
}

// Figures of data sheets, with what of them is reached (docs/cluster.md).
TEST(ClusterFile, NamedOnes) {
  ASSERT_GE(getClusterNames().size(), 4u);
  std::map<std::string, Cluster> named;
  for (llvm::StringRef name : getClusterNames()) {
    PlanError error;
    ASSERT_TRUE(succeeded(readCluster(name, {}, named[name.str()], error))) << error.format();
    EXPECT_EQ(named[name.str()].name, name);
  }
  EXPECT_NEAR(named["8xH100-nvlink"].device.getFlopsPerNs("bf16"), 0.7 * 989e3, 1);
  EXPECT_NEAR(named["8xH100-nvlink"].device.memoryBytesPerNs, 0.7 * 3350, 1e-6);
  EXPECT_EQ(named["8xH100-nvlink"].getNumDevices(), 8);
  EXPECT_EQ(named["2x8xH100-ib"].getNumDevices(), 16);
  EXPECT_NEAR(named["2x8xH100-ib"].levels[1].link.bytesPerNs, 45, 1e-6);
  EXPECT_NEAR(named["8xA100-nvlink"].levels[0].link.bytesPerNs, 240, 1e-6);
  EXPECT_NEAR(named["8xA100-nvlink"].device.getFlopsPerNs("bf16"), 0.7 * 312e3, 1);
  EXPECT_EQ(named["cpu-threads"].device.getFlopsPerNs("f32"), 105);
  EXPECT_EQ(named["cpu-threads"].getNumDevices(), 0);
}

// Without one, times are those that stages have always been split by.
TEST(ClusterFile, TheDefault) {
  Cluster cluster;
  EXPECT_EQ(cluster.device.getFlopsPerNs("bf16"), 47000);
  EXPECT_EQ(cluster.device.memoryBytesPerNs, 2300);
  EXPECT_EQ(cluster.device.launchNs, 2000);
  EXPECT_EQ(cluster.levels.front().link.bytesPerNs, 300);
  EXPECT_EQ(cluster.beginNs + cluster.levels.front().link.latencyNs, 5000);
}

TEST(ClusterFile, Errors) {
  const std::string device = "  device: {flops: {f32: 1T}, bandwidth: 1GB/s}\n", link = "  links: {bandwidth: 1GB/s}\n";
  auto expect = [](const std::string &text, const std::string &place, const std::string &message) {
    std::string error = getError(text);
    EXPECT_EQ(error.substr(0, error.find('\n')), "p.yaml:" + place + ": error: " + message) << text;
  };
  expect(device + "  link: {}\n", "4:3",
         "unknown key 'link'; did you mean 'links'? (known: name, device, unlike, collective, links, axes)");
  expect(link, "3:3", "a cluster needs a device");
  expect(device, "3:3", "a cluster needs links");
  expect("  device: {flops: {bf16: 1T}, bandwidth: 1GB/s}\n" + link, "3:19", "flops of f32 are needed");
  expect("  device: {flops: {f32: 1T}}\n" + link, "3:11", "a device needs a bandwidth");
  expect("  device: {flops: {f32: 1T}, bandwidth: 1GB/s, cache: 1MB}\n" + link, "3:11",
         "a cache needs a cache_bandwidth");
  expect("  device: {flops: {f32: 1T}, bandwidth: 1GB/s, cache_bandwidth: 2GB/s}\n" + link, "3:11",
         "a cache_bandwidth needs a cache");
  expect("  device: {bandwidth: 1GB/s}\n" + link, "3:11", "a device needs flops");
  expect("  device: {flops: {f23: 1T}, bandwidth: 1GB/s}\n" + link, "3:20",
         "unknown key 'f23' (known: f64, f32, bf16, f16, f8E4M3FN, i32, i8, i4)");
  expect("  device: {flops: {f32: 67}, bandwidth: 1GB/s}\n" + link, "3:25",
         "expected flops per second, such as 67T (units: P, T, G), got '67'");
  expect("  device: {flops: {f32: -1T}, bandwidth: 1GB/s}\n" + link, "3:25",
         "expected flops per second, such as 67T (units: P, T, G), got '-1T'");
  expect("  device: {flops: {f32: nanT}, bandwidth: 1GB/s}\n" + link, "3:25",
         "expected flops per second, such as 67T (units: P, T, G), got 'nanT'");
  expect(device + "  links: {bandwidth: 0GB/s}\n", "4:22",
         "expected bytes per second, such as 450GB/s (units: TB/s, GB/s, MB/s), got '0GB/s'");
  expect(device + "  links: {bandwidth: 1e300GB/s}\n", "4:22",
         "expected bytes per second, such as 450GB/s (units: TB/s, GB/s, MB/s), got '1e300GB/s'");
  expect(device + "  links: {latency: 1us}\n", "4:10", "a link needs a bandwidth");
  expect(device + "  links: {latency: 3, bandwidth: 1GB/s}\n", "4:20",
         "expected a time, such as 2us (units: ns, us, ms), got '3'");
  expect(device + "  links: []\n", "4:10", "a cluster has at least one link");
  expect(device + "  links: [{devices: 2, bandwidth: 1GB/s}]\n", "4:11", "one of several links needs a name");
  expect(device + "  links: [{name: a, bandwidth: 1GB/s}]\n", "4:11",
         "one of several links says how many devices it connects");
  expect(device + "  links: [{name: a, devices: 8, bandwidth: 1GB/s}, {name: a, devices: 8, bandwidth: 1GB/s}]\n",
         "4:52", "link 'a' is given twice");
  expect(device +
             "  links: [{name: a, devices: 65536, bandwidth: 1GB/s}, {name: b, devices: 65536, bandwidth: 1GB/s}]\n",
         "4:56", "the cluster has more than 2^31 - 1 devices");
  expect(device + "  links: [{name: a, devices: 8, bandwidth: 1GB/s}]\n", "3:3",
         "the mesh has 16 ranks and the cluster 8 devices");
  expect(device + link + "  axes: {modle: {bandwidth: 1GB/s}}\n", "3:3",
         "the cluster has a link for axis 'modle', and the mesh is data, model");
  expect(device + "  links: [{name: a, devices: 16, bandwidth: 1GB/s}]\n  axes: {model: b}\n", "5:17",
         "unknown link 'b', the cluster has a");
  expect("  device: {flops: {f32: 1T}, bandwidth: 1GB/s, efficiency: 1.5}\n" + link, "3:60",
         "expected a share above 0 and at most 1, got '1.5'");
  expect("  device: {flops: {f32: 1T}, bandwidth: 1GB/s, memory: 80}\n  links: {}\n", "4:10",
         "a link needs a bandwidth");
  expect("  nowhere\n", "3:3",
         "no cluster is called 'nowhere' (such as 8xH100-nvlink, 2x8xH100-ib, 8xA100-nvlink, 8xB200, 4xL4-pcie, "
         "cpu-threads), and as a file it cannot be read: no such file or directory");
}
