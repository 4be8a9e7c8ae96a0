//===- Cluster.cpp - the machine that a program is for --------------------===//
//
// Where ranks stand says which of their links an axis has. Without a list of devices that follows from strides: ranks along
// an axis of stride s lie in groups of C devices where s times their number divides C. With one, all ranks are looked at.
//
//
//   mesh a=4, b=4 on nodes of 8      b: stride 1, blocks of 4 in a node       all near
//                                    a: stride 4, blocks of 2 in a node       pairs near, the rest far
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/Cluster.h"
#include "cleave/Sharding/CostModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include "cleave/Support/Status.h"
#include <cmath>
#include <numeric>

using namespace cleave::spmd;
using namespace llvm;

Cluster::Cluster() : levels{{"link", 0, ClusterLink()}} {}

ClusterDevice ClusterDevice::hostCore() {
  return {{{"f32", 50}}, /*memoryBytes=*/0, /*memoryBytesPerNs=*/10, /*launchNs=*/1638.4};
}

/// Precondition: there is a rate for f32, which the reader sees to.
double ClusterDevice::getFlopsPerNs(StringRef elementType) const {
  auto found = flopsPerNs.find(elementType);
  assert(flopsPerNs.count("f32") && "a device without a rate");
  return found != flopsPerNs.end() ? found->second : flopsPerNs.find(StringRef("f32"))->second;
}

double ClusterDevice::getMemoryNs(double bytes) const {
  bool fits = cacheBytes > 0 && bytes <= static_cast<double>(cacheBytes);
  return bytes / (fits ? cacheBytesPerNs : memoryBytesPerNs);
}

double ClusterDevice::getNs(double flops, double bytes, StringRef elementType) const {
  return std::max(flops / getFlopsPerNs(elementType), getMemoryNs(bytes));
}

/// A level of any number makes the product 0.
int64_t Cluster::getNumDevices() const {
  int64_t devices = 1;
  for (const ClusterLevel &level : levels)
    devices *= level.devices;
  return devices;
}

//===----------------------------------------------------------------------===//
// Which links an axis has
//===----------------------------------------------------------------------===//

static int64_t countRanks(const ClusterMesh &mesh) {
  return std::accumulate(mesh.sizes.begin(), mesh.sizes.end(), int64_t(1), std::multiplies<>());
}

llvm::Error cleave::spmd::checkFit(const Cluster &cluster, const ClusterMesh &mesh) {
  int64_t ranks = countRanks(mesh), devices = cluster.getNumDevices();
  if (devices != 0 && ranks > devices)
    return makeError("the mesh has {0} ranks and the cluster {1} devices", ranks, devices);
  for (const auto &[axis, link] : cluster.axes)
    if (!is_contained(mesh.names, axis))
      return makeError("the cluster has a link for axis '{0}', and the mesh is {1}", axis, join(mesh.names, ", "));
  return llvm::Error::success();
}

/// True if blocks of `block` ranks that follow each other along an axis lie in groups of `capacity` devices each.
static bool isNear(const ClusterMesh &mesh, int64_t stride, int64_t block, int64_t capacity) {
  if (mesh.devices.empty())
    return countRanks(mesh) <= capacity || capacity % (stride * block) == 0;
  for (auto [rank, device] : enumerate(mesh.devices)) {
    int64_t first = static_cast<int64_t>(rank) - static_cast<int64_t>(rank) / stride % block * stride;
    if (mesh.devices[first] / capacity != device / capacity)
      return false;
  }
  return true;
}

/// The most ranks that follow each other along an axis, a divisor of its size, which groups of `capacity` connect.
static int64_t findBlock(const ClusterMesh &mesh, int64_t stride, int64_t size, int64_t capacity) {
  for (int64_t parts = 1; parts < size; ++parts)
    if (size % parts == 0 && isNear(mesh, stride, size / parts, capacity))
      return size / parts;
  return 1;
}

namespace {
/// A kind of link and how many ranks of an axis, one behind the other, it connects.
struct AxisLink {
  int64_t block;
  ClusterLink link;
};
} // namespace

/// Nearest first; the last one connects all. A kind that connects no more ranks of the axis than the one before it is not
/// seen along it.
static SmallVector<AxisLink, 2> findLinks(const Cluster &cluster, const ClusterMesh &mesh, size_t axis) {
  int64_t size = mesh.sizes[axis], stride = 1, capacity = 1;
  for (int64_t minor : ArrayRef(mesh.sizes).drop_front(axis + 1))
    stride *= minor;
  if (auto said = cluster.axes.find(mesh.names[axis]); said != cluster.axes.end())
    return {{size, said->second}};
  SmallVector<AxisLink, 2> links;
  for (const ClusterLevel &level : cluster.levels) {
    capacity *= level.devices;
    int64_t block = level.devices == 0 ? size : findBlock(mesh, stride, size, capacity);
    if (block > (links.empty() ? 1 : links.back().block))
      links.push_back({block, level.link});
  }
  // An axis of one rank sends nothing.
  if (links.empty())
    links.push_back({size, cluster.levels.front().link});
  return links;
}

ClusterLink cleave::spmd::findLink(const Cluster &cluster, const ClusterMesh &mesh, StringRef axis) {
  size_t position = find(mesh.names, axis) - mesh.names.begin();
  return position < mesh.names.size() ? findLinks(cluster, mesh, position).back().link : cluster.levels.front().link;
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

namespace {
/// Times in units.
struct Converter {
  double perNs;
  bool countsLatency;

  LinkCost operator()(const ClusterLink &link) const {
    return {std::llround(perNs / link.bytesPerNs), countsLatency ? std::llround(perNs * link.latencyNs) : 0};
  }
};
} // namespace

/// Compute against bytes over the fastest link. What is repeated stays as much more expensive than what is not.
static void setDevice(const ClusterDevice &device, double perNs, Optimize optimize, CostModel &model) {
  double repetition = model.perRepeatedFlop / model.perFlop, rate = device.getFlopsPerNs("f32");
  model.perFlop = perNs / rate;
  // Rules know how wide elements are, not of which type: of two types of one width the first that the device lists counts.
  auto shareOf = [&](StringRef first, StringRef second) {
    return rate / device.getFlopsPerNs(device.flopsPerNs.count(first) ? first : second);
  };
  model.flopShares = {shareOf("i8", "f8E4M3FN"), shareOf("bf16", "f16"), 1, shareOf("f64", "f64")};
  model.perRepeatedFlop = repetition * model.perFlop;
  if (optimize != Optimize::Time)
    return;
  // What takes less time is better, whoever asked for what: nothing is more expensive than it is.
  model.perMemoryByte = perNs / device.memoryBytesPerNs;
  if (device.cacheBytes > 0) {
    model.perCacheByte = perNs / device.cacheBytesPerNs;
    model.cacheBytes = device.cacheBytes;
  }
  model.perLaunch = std::llround(perNs * device.launchNs);
  model.perRepeatedFlop = model.perExtraWrite = model.perMovedByte = 0;
  model.fallbackSurcharge = model.tornSurcharge = model.parameterSurcharge = 0;
}

// Bytes stay bytes on any machine: who asks for these wants what no figure of a machine changes.
CostModel cleave::spmd::makeCostModel(const Cluster &cluster, const ClusterMesh &mesh, ArrayRef<std::string> names,
                                      Optimize optimize) {
  if (optimize == Optimize::Bytes)
    return CostModel::create(optimize);
  assert(!errorToBool(checkFit(cluster, mesh)) && "a mesh of another machine");
  SmallVector<SmallVector<AxisLink, 2>> links;
  double fastest = names.empty() ? cluster.levels.front().link.bytesPerNs : 0;
  for (const std::string &name : names) {
    // The one device of a stage has an axis of its own.
    size_t axis = find(mesh.names, name) - mesh.names.begin();
    links.push_back(axis < mesh.names.size() ? findLinks(cluster, mesh, axis)
                                             : SmallVector<AxisLink, 2>{{1, cluster.levels.front().link}});
    for (const AxisLink &link : links.back())
      fastest = std::max(fastest, link.link.bytesPerNs);
  }
  CostModel model;
  bool isTime = optimize == Optimize::Time;
  model.perNs = static_cast<double>(kCostUnitsPerByte) * fastest;
  Converter convert{model.perNs, isTime};
  model.anyLink = convert(cluster.levels.front().link);
  for (ArrayRef<AxisLink> axis : links) {
    model.links.push_back(convert(axis.back().link));
    auto &near = model.nearLinks.emplace_back();
    for (const AxisLink &link : axis.drop_back())
      near.push_back({link.block, convert(link.link)});
  }
  if (isTime)
    model.perCollective = std::llround(model.perNs * cluster.beginNs);
  bool isOfAll = names.size() == mesh.names.size();
  setDevice(isOfAll && !cluster.unlike.empty() ? makeAlike(cluster, listDevices(mesh)).device : cluster.device,
            model.perNs, optimize, model);
  return model;
}
