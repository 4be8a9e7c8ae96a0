//===- ClusterTest.cpp - links of axes, and costs in time -----------------===//
//
// Expected times come from two published sources: NCCL's own model of latencies (graph/tuning.cc of NCCL 2.27)
//
//   ring    base + (steps - inter) * hop inside + inter * hop between nodes
//   steps   2(n-1) for all_reduce, n-1 for all_gather;   inter   2(m-1) and m-1 on m nodes
//
// with the figures that it has for H100 on 2 nodes of 8 (hops inside are at least the network's overhead, 1 us, three
// times that for Simple), and the bytes of hierarchical collectives (CostModel.h).
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/Cluster.h"
#include "cleave/Sharding/CostModel.h"
#include "cleave/Sharding/DeviceAssignment.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;

namespace {

Cluster makeNodes(double beginUs, double nearUs, double farUs, int64_t nodes = 2, int64_t perNode = 8) {
  Cluster cluster;
  cluster.beginNs = 1000 * beginUs;
  cluster.levels = {{"nvlink", perNode, {1000 * nearUs, 400}}, {"ib", nodes, {1000 * farUs, 50}}};
  return cluster;
}

/// Microseconds of one collective over all of a mesh.
double getUs(const Cluster &cluster, std::vector<int64_t> sizes, Traffic traffic, int64_t bytes, int64_t peers = 0) {
  ClusterMesh named{{}, sizes, {}};
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    named.names.push_back(std::string(1, static_cast<char>('a' + axis)));
  CostModel model = makeCostModel(cluster, named, named.names, Optimize::Time);
  AtomMesh mesh(sizes);
  AtomList atoms;
  for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
    atoms.push_back(atom);
  return collectiveUnits(mesh, model, traffic, atoms, bytes, peers) / model.perNs / 1000;
}

// LL, LL128, Simple on 2x8 H100: 40.0, 75.2 and 131.6 us; an all_gather with LL 23.3. One axis over all 16, or one for the
// nodes and one inside: NCCL builds the same ring.
TEST(ClusterTest, LatenciesAreThoseOfNccl) {
  struct {
    double begin, near, far, allReduce, allGather;
  } protocols[] = {{6.6, 1.0, 2.7, 40.0, 23.3}, {14, 1.9, 4.0, 75.2, 44.6}, {8.4, 3.4, 14, 131.6, 70.0}};
  for (const auto &protocol : protocols)
    for (std::vector<int64_t> sizes : {std::vector<int64_t>{16}, {2, 8}, {4, 4}, {2, 2, 4}}) {
      Cluster cluster = makeNodes(protocol.begin, protocol.near, protocol.far);
      EXPECT_NEAR(getUs(cluster, sizes, Traffic::TwoRings, 1), protocol.allReduce, 0.1);
      EXPECT_NEAR(getUs(cluster, sizes, Traffic::Ring, 1), protocol.allGather, 0.1);
    }
}

// N bytes on m nodes of g: 2(g-1)/g N inside, 2(m-1)/m N/g between, whichever way axes lie over it. bytes are what one
// flat ring sends, 2(p-1)/p N.
TEST(ClusterTest, AnAllReduceIsHierarchical) {
  constexpr double bytes = 1 << 28, g = 8, m = 2;
  double us = (2 * (g - 1) / g * bytes / 400 + 2 * (m - 1) / m * bytes / g / 50) / 1000;
  for (std::vector<int64_t> sizes : {std::vector<int64_t>{16}, {2, 8}, {4, 4}, {2, 2, 4}})
    EXPECT_NEAR(getUs(makeNodes(0, 0, 0), sizes, Traffic::TwoRings, 2 * 15 * (int64_t(1) << 28) / 16), us, us * 2e-3);
}

// 8 ranks of one node: bytes of the bus, busbw = N / t * 2(n-1)/n, are the link's; a mesh that fits into one node has
// nothing between nodes.
TEST(ClusterTest, OneNodeHasNoNetwork) {
  int64_t sent = 2 * 7 * (int64_t(1) << 27);
  EXPECT_NEAR(getUs(makeNodes(6.6, 0.6, 2.7), {8}, Traffic::TwoRings, sent), 6.6 + 14 * 0.6 + double(sent) / 400e3,
              1e-3 * double(sent) / 400e3);
  EXPECT_NEAR(getUs(makeNodes(0, 1, 100), {2, 3}, Traffic::Ring, 1), 5, 0.1);
}

// Every rank to every other, a latency each; of 15 pieces 7 stay inside. Two peers are as far away as two can be.
TEST(ClusterTest, AllToAllHasALatencyForEachPeer) {
  EXPECT_NEAR(getUs(makeNodes(5, 1, 3), {2, 8}, Traffic::Pairwise, 15'000'000),
              5 + 7 * 1 + 8 * 3 + 7e6 / 400e3 + 8e6 / 50e3, 0.5);
  EXPECT_NEAR(getUs(makeNodes(5, 1, 3), {2, 8}, Traffic::Direct, 1'000'000, 2), 5 + 2 * 3 + 1e6 / 50e3, 0.1);
}

// Rank r on device 8 (r mod 2) + r/2: neighbors along the minor axis of 2 are on two nodes, those along the major axis on
// one. With 6 devices in a node, 4 ranks of a minor axis of 4 lie on two nodes, their pairs on one.
TEST(ClusterTest, WhereRanksStandDecides) {
  std::vector<int64_t> apart;
  for (int64_t rank = 0; rank < 16; ++rank)
    apart.push_back(8 * (rank % 2) + rank / 2);
  Cluster cluster = makeNodes(0, 1, 10);
  ClusterMesh mesh{{"a", "b"}, {8, 2}, apart}, plain{{"a", "b"}, {8, 2}, {}};
  EXPECT_EQ(findLink(cluster, mesh, "a").latencyNs, 1000);
  EXPECT_EQ(findLink(cluster, mesh, "b").latencyNs, 10000);
  EXPECT_EQ(findLink(cluster, plain, "a").latencyNs, 10000);
  EXPECT_EQ(findLink(cluster, plain, "b").latencyNs, 1000);
  ClusterMesh sixes{{"a", "b"}, {3, 4}, {}};
  CostModel model = makeCostModel(makeNodes(0, 1, 10, 2, 6), sixes, sixes.names, Optimize::Time);
  AtomMesh atoms({3, 4});
  auto latency = [&](AtomId atom) { return int64_t(ringCost(atoms, model, {atom}).fixed) / (atoms.size(atom) - 1); };
  EXPECT_LT(latency(2), latency(1));
  EXPECT_EQ(latency(0), latency(1));
}

// Three nodes of 8 in one axis of 24, whose atoms are 2, 2, 2 and 3, cost what they cost as an axis of nodes and one of devices.
TEST(ClusterTest, NodesNeedNotEndWhereAtomsDo) {
  Cluster cluster = makeNodes(0, 1, 10, 3, 8);
  cluster.levels.back().link.bytesPerNs /= 16;
  ClusterMesh together{{"x"}, {24}, {}}, apart{{"n", "x"}, {3, 8}, {}};
  CostModel one = makeCostModel(cluster, together, together.names, Optimize::Time),
            two = makeCostModel(cluster, apart, apart.names, Optimize::Time);
  AtomMesh mesh({24}), meshApart({3, 8});
  auto threePeers = [](const AtomMesh &mesh, const CostModel &model, llvm::ArrayRef<AtomId> atoms) {
    return directCost(mesh, model, atoms, 3);
  };
  for (GroupCost (*cost)(const AtomMesh &, const CostModel &, llvm::ArrayRef<AtomId>) :
       {&ringCost, &pairwiseCost, +threePeers}) {
    GroupCost found = cost(mesh, one, mesh.atomsOf(0u)), expected = cost(meshApart, two, {0, 1, 2, 3});
    EXPECT_EQ(int64_t(found.perPiece), int64_t(expected.perPiece));
    EXPECT_EQ(int64_t(found.fixed), int64_t(expected.fixed));
  }
}

// Elements of 2 bytes compute as f16 where a device lists no bf16; what is not listed computes as f32.
TEST(ClusterTest, FlopsByWidth) {
  Cluster cluster;
  cluster.device.flopsPerNs = {{"f32", 8}, {"f16", 64}, {"f64", 1}};
  CostModel model = makeCostModel(cluster, {}, {}, Optimize::Time);
  EXPECT_EQ(model.getFlopShare(1), 1);
  EXPECT_EQ(model.getFlopShare(2), 0.125);
  EXPECT_EQ(model.getFlopShare(4), 1);
  EXPECT_EQ(model.getFlopShare(8), 8);
}

// On 2 nodes of 8: 16 ranks have their batch between the nodes or inside of them, 8 ranks stay in one node, and 3 fill none.
TEST(ClusterTest, PlacementsFillNodes) {
  auto listAxes = [](std::vector<int64_t> sizes) {
    std::vector<std::vector<std::string>> axes;
    for (const DeviceAssignment &assignment :
         findDeviceAssignments(makeNodes(1, 1, 1), {{"data", "model"}, std::move(sizes), {}}))
      axes.push_back(assignment.axes);
    return axes;
  };
  using Axes = std::vector<std::vector<std::string>>;
  EXPECT_EQ(listAxes({2, 8}),
            (Axes{{"data over ib", "model over nvlink"}, {"data over nvlink", "model over nvlink (4) and ib (2)"}}));
  EXPECT_EQ(listAxes({2, 4}), (Axes{{"data over nvlink", "model over nvlink"}}));
  EXPECT_EQ(listAxes({3, 1}), Axes());
}

// A link that is said of an axis goes before those that follow from places.
TEST(ClusterTest, AnAxisMayHaveItsOwnLink) {
  Cluster cluster = makeNodes(0, 1, 10);
  cluster.axes["a"] = {500, 100};
  ClusterMesh mesh{{"a", "b"}, {2, 8}, {}};
  EXPECT_EQ(findLink(cluster, mesh, "a").bytesPerNs, 100);
  auto getMisfit = [&](const ClusterMesh &of) { return llvm::toString(checkFit(cluster, of)); };
  EXPECT_EQ(getMisfit(mesh), "");
  EXPECT_EQ(getMisfit({{"b"}, {8}, {}}), "the cluster has a link for axis 'a', and the mesh is b");
  EXPECT_EQ(getMisfit({{"a"}, {32}, {}}), "the mesh has 32 ranks and the cluster 16 devices");
}

// What fits into the cache is read and written at its rate, as far as flops do not take longer; a device of which nobody said has none.
TEST(ClusterTest, SmallKernelsStayInTheCache) {
  ClusterDevice device;
  device.flopsPerNs = {{"f32", 100}};
  device.memoryBytesPerNs = 10;
  EXPECT_EQ(device.getNs(0, 0, "f32"), 0);
  EXPECT_EQ(device.getNs(0, 1000, "f32"), 100);
  device.cacheBytes = 1000;
  device.cacheBytesPerNs = 50;
  EXPECT_EQ(device.getNs(0, 0, "f32"), 0);
  EXPECT_EQ(device.getNs(0, 1000, "f32"), 20);
  EXPECT_EQ(device.getNs(0, 1001, "f32"), 100.1);
  EXPECT_EQ(device.getNs(3000, 1000, "f32"), 30);
  // The solver's units are the same times.
  Cluster cluster;
  cluster.device = device;
  CostModel model = makeCostModel(cluster, {}, {}, Optimize::Time);
  for (double bytes : {0, 1, 1000, 1001, 100000})
    EXPECT_DOUBLE_EQ(model.memoryUnits(bytes) / model.perNs, device.getMemoryNs(bytes));
}

// Ranks 4 to 7 are the second stage; of all the slowest counts, and of memory the least that somebody has said.
TEST(ClusterTest, UnlikeDevices) {
  Cluster cluster = makeNodes(5, 1, 10);
  cluster.device.memoryBytes = 80;
  cluster.unlike = {{5, {0.5, 0}}, {6, {1, 24}}, {11, {0.25, 0}}};
  ClusterMesh mesh{{"stage", "model"}, {2, 4}, {}};
  EXPECT_EQ(listDevices(mesh), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(listDevices(mesh, "stage", 1), (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(listDevices(mesh, "model", 1), (std::vector<int64_t>{1, 5}));
  mesh.devices = {0, 11, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(listDevices(mesh, "stage", 0), (std::vector<int64_t>{0, 11, 2, 3}));
  EXPECT_EQ(cluster.getSpeed({0, 5, 6}), 0.5);
  EXPECT_EQ(cluster.getMemoryBytes({0, 5, 6}), 24);
  Cluster alike = makeAlike(cluster, {4, 5, 6, 7});
  EXPECT_EQ(alike.device.getFlopsPerNs("f32"), cluster.device.getFlopsPerNs("f32") / 2);
  EXPECT_EQ(alike.device.memoryBytesPerNs, cluster.device.memoryBytesPerNs / 2);
  EXPECT_EQ(alike.device.memoryBytes, 24);
  EXPECT_TRUE(alike.unlike.empty());
  // A stage does not wait for devices of others.
  CostModel all = makeCostModel(cluster, mesh, mesh.names, Optimize::Time);
  EXPECT_EQ(all.perFlop / all.perNs, 4 / cluster.device.getFlopsPerNs("f32"));
  CostModel stage = makeCostModel(cluster, mesh, {"model"}, Optimize::Time);
  EXPECT_EQ(stage.perFlop / stage.perNs, 1 / cluster.device.getFlopsPerNs("f32"));
}

// The unit is 1/1024 of a byte's time over the fastest link: 400 bytes a ns. Balanced has no latency, and bytes over the
// network are 8 times as dear; bytes alone are the same anywhere.
TEST(ClusterTest, CostsOfEachObjective) {
  Cluster cluster = makeNodes(5, 1, 10);
  cluster.device.flopsPerNs = {{"f32", 1000}, {"bf16", 4000}};
  cluster.device.memoryBytesPerNs = 2000;
  ClusterMesh mesh{{"a", "b"}, {2, 8}, {}};
  CostModel time = makeCostModel(cluster, mesh, mesh.names, Optimize::Time),
            balanced = makeCostModel(cluster, mesh, mesh.names, Optimize::Balanced),
            bytes = makeCostModel(cluster, mesh, mesh.names, Optimize::Bytes);
  EXPECT_EQ(time.perNs, 400 * 1024);
  EXPECT_EQ(time.perCollective, 5000 * 400 * 1024);
  EXPECT_EQ(time.link(0), (LinkCost{8 * 1024, 10000LL * 400 * 1024}));
  EXPECT_EQ(time.link(1), (LinkCost{1024, 1000LL * 400 * 1024}));
  EXPECT_EQ(time.perFlop, 400 * 1024 / 1000.0);
  EXPECT_EQ(time.flopShares[1], 0.25);
  EXPECT_EQ(time.perMemoryByte, 400 * 1024 / 2000.0);
  EXPECT_FALSE(balanced.hasLatency());
  EXPECT_EQ(balanced.link(0).perByte, 8 * 1024);
  EXPECT_EQ(balanced.perFlop, time.perFlop);
  EXPECT_EQ(bytes.link(0), LinkCost());
}

} // namespace
