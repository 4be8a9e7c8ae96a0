//===- ClusterReader.cpp - the keys of a cluster --------------------------===//
//
// Numbers have units, as people write them: rates (`67T`, `3350GB/s`), sizes (`80GB`), times (`2us`). Inside all are
// bytes, flops and nanoseconds:
//
//   67T flops    67,000 a ns        450GB/s    450 bytes a ns        2us    2,000 ns
//
// An efficiency scales what stands beside it, wherever in the mapping.
//
//===----------------------------------------------------------------------===//
#include "ClusterReader.h"
#include "cleave/Plan/ClusterFile.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/PlanKeys.h"
#include "cleave/Program/Content.h"
#include "cleave/Sharding/CostModel.h"
#include "cleave/Support/File.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

static constexpr double kLeast = 1e-9, kLeastShare = 1e-6;
static constexpr size_t kMaxFileSize = 1 << 20;

namespace {
/// What numbers may be followed by, what that is worth, and an example for people. The most is beyond any machine, and such that costs,
/// in units of 1/1024 byte over the fastest link, stay numbers.
struct Quantity {
  StringRef what, example;
  double most;
  std::vector<std::pair<StringRef, double>> units;
};
class ClusterReader {
public:
  ClusterReader(YamlReader &reader, Cluster &cluster) : reader(reader), cluster(cluster) {}

  LogicalResult read(yaml::Node *node);

private:
  LogicalResult readName(yaml::Node *node);
  LogicalResult readNumber(yaml::Node *node, const Quantity &quantity, double &number);
  LogicalResult readEfficiency(yaml::Node *node, double &efficiency);
  LogicalResult readDevice(yaml::Node *node);
  LogicalResult readFlops(yaml::Node *node);
  LogicalResult readUnlike(yaml::Node *node);
  LogicalResult checkUnlike();
  LogicalResult checkUnits();
  LogicalResult readLink(yaml::Node *node, ArrayRef<StringRef> keys, ClusterLevel &level);
  LogicalResult readLinks(yaml::Node *node);
  LogicalResult readLevel(yaml::Node *node);
  LogicalResult readAxis(StringRef axis, yaml::Node *node);

  YamlReader &reader;
  Cluster &cluster;
  /// Axes that name one of the links, which may stand behind them.
  std::vector<std::tuple<std::string, std::string, const yaml::Node *>> named;
  /// Where a device is said to be unlike the others.
  std::map<int64_t, const yaml::Node *> unlikePlaces;
  /// Where times, and links, are said; in ns, and in bytes a ns.
  std::vector<std::pair<const yaml::Node *, double>> times, links;
};
} // namespace

// Tables of units, made when they are first asked for; no unit of one table is the end of another.
static const Quantity &getFlopRate() {
  static const Quantity quantity{"flops per second", "67T", 1e12, {{"P", 1e6}, {"T", 1e3}, {"G", 1}}};
  return quantity;
}
static const Quantity &getByteRate() {
  static const Quantity quantity{"bytes per second", "450GB/s", 1e6, {{"TB/s", 1e3}, {"GB/s", 1}, {"MB/s", 1e-3}}};
  return quantity;
}
static const Quantity &getTime() {
  static const Quantity quantity{"a time", "2us", 1e9, {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}}};
  return quantity;
}

/// A number without a unit could be anything.
LogicalResult ClusterReader::readNumber(yaml::Node *node, const Quantity &quantity, double &number) {
  std::string text;
  if (failed(reader.readText(node, text)))
    return failure();
  for (auto [unit, factor] : quantity.units) {
    StringRef digits(text);
    if (!digits.consume_back(unit) || digits.rtrim().getAsDouble(number) || !std::isfinite(number))
      continue;
    bool mayBeNothing = &quantity == &getTime();
    number *= factor;
    if (number > quantity.most || (number < kLeast && !(number == 0 && mayBeNothing)))
      break;
    if (&quantity == &getTime())
      times.push_back({node, number});
    return success();
  }
  auto units = map_range(quantity.units, [](const auto &unit) { return unit.first; });
  return reader.failWord(node, "expected " + quantity.what + ", such as " + quantity.example +
                                   " (units: " + join(units.begin(), units.end(), ", ") + "), got '" + text + "'");
}

/// Of nothing there is no share: a device that computes nothing cannot be meant.
LogicalResult ClusterReader::readEfficiency(yaml::Node *node, double &efficiency) {
  std::string text;
  if (failed(reader.readText(node, text)))
    return failure();
  if (StringRef(text).getAsDouble(efficiency) || !(efficiency > 0 && efficiency <= 1))
    return reader.failWord(node, "expected a share above 0 and at most 1, got '" + text + "'");
  if (efficiency < kLeastShare)
    return reader.failWord(node, "a share is a millionth at least, got '" + text + "'");
  return success();
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

/// What is not listed computes as f32 does.
LogicalResult ClusterReader::readFlops(yaml::Node *node) {
  cluster.device.flopsPerNs.clear();
  if (failed(reader.readMapping(node, "flops by element type, such as {f32: 67T, bf16: 989T}",
                                getPlanKeyNames(PlanSection::Flops), [&](StringRef type, yaml::KeyValueNode &entry) {
                                  return readNumber(entry.getValue(), getFlopRate(),
                                                    cluster.device.flopsPerNs[type.str()]);
                                })))
    return failure();
  return cluster.device.flopsPerNs.count("f32") ? success() : reader.fail(node, "flops of f32 are needed");
}

/// The efficiency may stand before or behind what it scales, so it is applied in the end.
LogicalResult ClusterReader::readDevice(yaml::Node *node) {
  ClusterDevice &device = cluster.device;
  double efficiency = 1;
  bool hasFlops = false, hasBandwidth = false;
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    yaml::Node *value = entry.getValue();
    if (key == "flops") {
      hasFlops = true;
      return readFlops(value);
    }
    if (key == "memory")
      return reader.readBytes(value, device.memoryBytes);
    if (key == "cache")
      return reader.readBytes(value, device.cacheBytes);
    if (key == "cache_bandwidth")
      return readNumber(value, getByteRate(), device.cacheBytesPerNs);
    if (key == "host")
      return readNumber(value, getByteRate(), device.hostBytesPerNs);
    if (key == "launch")
      return readNumber(value, getTime(), device.launchNs);
    if (key == "efficiency")
      return readEfficiency(value, efficiency);
    hasBandwidth = true;
    return readNumber(value, getByteRate(), device.memoryBytesPerNs);
  };
  if (failed(reader.readMapping(node, "a device, such as {flops: {f32: 67T}, bandwidth: 3350GB/s}",
                                getPlanKeyNames(PlanSection::Device), readEntry)))
    return failure();
  if (!hasFlops || !hasBandwidth)
    return reader.fail(node, hasFlops ? "a device needs a bandwidth" : "a device needs flops");
  if ((device.cacheBytes > 0) != (device.cacheBytesPerNs > 0))
    return reader.fail(node,
                       device.cacheBytes > 0 ? "a cache needs a cache_bandwidth" : "a cache_bandwidth needs a cache");
  if (device.cacheBytes > kMostCost)
    return reader.fail(node, "a cache has at most " + Twine(kMostCost) + " bytes");
  for (auto &[type, flops] : device.flopsPerNs)
    flops *= efficiency;
  device.cacheBytesPerNs *= efficiency;
  device.memoryBytesPerNs *= efficiency;
  return success();
}

/// Several devices that are so, in one entry. A faster device than `device` would make every bound wrong that rests on it.
/// Numbers are checked against how many there are in the end, for links may stand behind.
LogicalResult ClusterReader::readUnlike(yaml::Node *node) {
  std::vector<std::pair<int64_t, const yaml::Node *>> devices;
  UnlikeDevice unlike;
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    yaml::Node *value = entry.getValue();
    if (key == "speed")
      return readEfficiency(value, unlike.speed);
    if (key == "memory")
      return reader.readBytes(value, unlike.memoryBytes);
    return reader.readSequence(value, "a list of devices, such as [2, 3]", [&](yaml::Node *number) {
      devices.push_back({0, number});
      return reader.readInteger(number, devices.back().first, 0, INT32_MAX);
    });
  };
  if (failed(reader.readMapping(node, "devices that are not as the others, such as {devices: [2, 3], speed: 0.5}",
                                getPlanKeyNames(PlanSection::Unlike), readEntry)))
    return failure();
  if (devices.empty() || (unlike.speed == 1 && unlike.memoryBytes == 0))
    return reader.fail(node, devices.empty() ? "it is not said which devices are so"
                                             : "devices that are not as the others have a speed or a memory");
  for (auto [number, place] : devices) {
    if (!cluster.unlike.emplace(number, unlike).second)
      return reader.fail(place, "device " + Twine(number) + " is given twice");
    unlikePlaces[number] = place;
  }
  return success();
}

/// When it is known how many devices there are: one link stands for any number of them.
///
/// What is beyond them would never be looked up.
LogicalResult ClusterReader::checkUnlike() {
  int64_t count = cluster.getNumDevices();
  for (auto [number, place] : unlikePlaces)
    if (count > 0 && number >= count)
      return reader.fail(place, "the cluster has devices 0 to " + Twine(count - 1));
  return success();
}

static std::string formatShort(double number) {
  std::string text;
  raw_string_ostream(text) << format("%.4g", number);
  return text;
}

/// Costs are whole numbers of what a part of a byte takes over the fastest link: no time, and no slow link, may be more of these than there are.
LogicalResult ClusterReader::checkUnits() {
  double fastest = 0;
  for (auto [place, rate] : links)
    fastest = std::max(fastest, rate);
  auto isBeyond = [&](double ns) { return ns * fastest * kCostUnitsPerByte > static_cast<double>(kMostCost); };
  for (auto [place, ns] : times)
    if (isBeyond(ns))
      return reader.fail(place, formatv("too long to be counted in bytes over a link of {0}GB/s: {1}ns at most",
                                        formatShort(fastest),
                                        formatShort(static_cast<double>(kMostCost) / fastest / kCostUnitsPerByte)));
  for (auto [place, rate] : links)
    if (isBeyond(1 / rate))
      return reader.fail(place, formatv("too slow to be counted next to a link of {0}GB/s", formatShort(fastest)));
  return success();
}

//===----------------------------------------------------------------------===//
// Links
//===----------------------------------------------------------------------===//

/// A link between any devices, one of a list, or that of an axis: they differ in the keys that they may have.
LogicalResult ClusterReader::readLink(yaml::Node *node, ArrayRef<StringRef> keys, ClusterLevel &level) {
  double efficiency = 1;
  bool hasBandwidth = false;
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    yaml::Node *value = entry.getValue();
    if (key == "latency")
      return readNumber(value, getTime(), level.link.latencyNs);
    if (key == "efficiency")
      return readEfficiency(value, efficiency);
    if (key == "name")
      return reader.readText(value, level.name);
    if (key == "devices")
      return reader.readInteger(value, level.devices, 1, INT32_MAX);
    hasBandwidth = true;
    return readNumber(value, getByteRate(), level.link.bytesPerNs);
  };
  if (failed(reader.readMapping(node, "a link, such as {latency: 1us, bandwidth: 450GB/s}", keys, readEntry)))
    return failure();
  level.link.bytesPerNs *= efficiency;
  links.push_back({node, level.link.bytesPerNs});
  return hasBandwidth ? success() : reader.fail(node, "a link needs a bandwidth");
}

/// Its name is what `axes` refers to, its number of devices what says where ranks are near each other.
LogicalResult ClusterReader::readLevel(yaml::Node *node) {
  ClusterLevel level;
  if (failed(readLink(node, getPlanKeyNames(PlanSection::Level), level)))
    return failure();
  if (level.name.empty() || level.devices == 0)
    return reader.fail(node, level.name.empty() ? "one of several links needs a name"
                                                : "one of several links says how many devices it connects");
  int64_t devices = level.devices;
  for (const ClusterLevel &other : cluster.levels) {
    if (other.name == level.name)
      return reader.fail(node, "link '" + level.name + "' is given twice");
    devices = devices > INT32_MAX / other.devices ? INT64_MAX : devices * other.devices;
    if (devices > INT32_MAX)
      return reader.fail(node, "the cluster has more than 2^31 - 1 devices");
  }
  cluster.levels.push_back(std::move(level));
  return success();
}

/// One link stands for any number of devices: then nobody has to say how many a mesh may have.
LogicalResult ClusterReader::readLinks(yaml::Node *node) {
  cluster.levels.clear();
  if (isa_and_nonnull<yaml::SequenceNode>(node)) {
    if (failed(reader.readSequence(node, "links, nearest first", [&](yaml::Node *level) { return readLevel(level); })))
      return failure();
    return cluster.levels.empty() ? reader.fail(node, "a cluster has at least one link") : success();
  }
  return readLink(node, getPlanKeyNames(PlanSection::Link), cluster.levels.emplace_back());
}

/// One of the links, which need not be known yet, or a link of its own.
LogicalResult ClusterReader::readAxis(StringRef axis, yaml::Node *node) {
  if (isa_and_nonnull<yaml::MappingNode>(node)) {
    ClusterLevel level;
    LogicalResult isRead = readLink(node, getPlanKeyNames(PlanSection::Link), level);
    cluster.axes[axis.str()] = level.link;
    return isRead;
  }
  auto &[name, link, place] = named.emplace_back();
  name = axis.str();
  place = node;
  return reader.readText(node, link);
}

/// Messages have it, and comments of plans, which are a line each.
LogicalResult ClusterReader::readName(yaml::Node *node) {
  if (failed(reader.readText(node, cluster.name)))
    return failure();
  bool isLine =
      !cluster.name.empty() && none_of(cluster.name, [](char c) { return static_cast<unsigned char>(c) < ' '; });
  return isLine ? success() : reader.fail(node, "a name is a line of text");
}

/// Keys may come in any order; what some say of others is looked up when all are read.
LogicalResult ClusterReader::read(yaml::Node *node) {
  bool hasDevice = false, hasLinks = false;
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    yaml::Node *value = entry.getValue();
    if (key == "name")
      return readName(value);
    if (key == "collective")
      return readNumber(value, getTime(), cluster.beginNs);
    if (key == "axes")
      return reader.readMapping(
          value, "axes and their links, such as {data: ib}", {},
          [&](StringRef axis, yaml::KeyValueNode &line) { return readAxis(axis, line.getValue()); }, "a link");
    if (key == "unlike")
      return reader.readSequence(value, "a list of devices that are not as the others",
                                 [&](yaml::Node *unlike) { return readUnlike(unlike); });
    (key == "device" ? hasDevice : hasLinks) = true;
    return key == "device" ? readDevice(value) : readLinks(value);
  };
  if (failed(reader.readMapping(node, "a cluster, such as {device: .., links: ..}",
                                getPlanKeyNames(PlanSection::Cluster), readEntry)))
    return failure();
  if (!hasDevice || !hasLinks)
    return reader.fail(node, hasDevice ? "a cluster needs links" : "a cluster needs a device");
  for (auto &[axis, link, place] : named) {
    auto found = find_if(cluster.levels, [&, &link = link](const ClusterLevel &level) { return level.name == link; });
    if (found == cluster.levels.end()) {
      std::string known;
      for (const ClusterLevel &level : cluster.levels)
        known += (known.empty() ? "" : ", ") + level.name;
      return reader.fail(place, "unknown link '" + link + "', the " +
                                    (known.empty() ? "one link of the cluster has no name" : "cluster has " + known));
    }
    cluster.axes[axis] = found->link;
  }
  return failed(checkUnlike()) ? failure() : checkUnits();
}

LogicalResult cleave::spmd::readClusterKeys(YamlReader &reader, yaml::Node *node, Cluster &cluster) {
  cluster.beginNs = 0;
  return ClusterReader(reader, cluster).read(node);
}

//===----------------------------------------------------------------------===//
// Where it comes from
//===----------------------------------------------------------------------===//

static LogicalResult parseCluster(StringRef text, StringRef file, Cluster &cluster, PlanError &error) {
  YamlReader reader(text, file, error, "cluster");
  yaml::Node *root = reader.open();
  return root && succeeded(readClusterKeys(reader, root, cluster)) ? reader.close() : failure();
}

/// Names go first: a file of the same name in some folder must not change what a plan means.
LogicalResult cleave::spmd::readCluster(StringRef text, const PlanPlace &place, Cluster &cluster, PlanError &error) {
  cluster.name = text.str();
  std::string lacks;
  if (makeNamedCluster(text, cluster, lacks))
    return success();
  if (!lacks.empty()) {
    error = {place, "cluster '" + text.str() + "': " + lacks, {}};
    return failure();
  }
  auto buffer = readBuffer(text);
  if (!buffer) {
    std::string hint = program::hintAtHome(text);
    error = {place,
             "no cluster is called '" + text.str() + "'" + suggestClusters(text) + " (such as " +
                 join(getClusterNames(), ", ") + "), and as a file it cannot be read: " +
                 (hint.empty() ? StringRef(buffer.getError().message()).lower() : hint),
             {}};
    return failure();
  }
  if ((*buffer)->getBufferSize() > kMaxFileSize) {
    error = {{text.str(), 1, 1}, "the cluster is larger than 1 MB", {}};
    return failure();
  }
  return parseCluster((*buffer)->getBuffer(), text, cluster, error);
}

LogicalResult cleave::spmd::readClusterEntry(YamlReader &reader, yaml::Node *node, Cluster &cluster) {
  if (isa_and_nonnull<yaml::MappingNode>(node)) {
    cluster.name = "of the plan";
    return readClusterKeys(reader, node, cluster);
  }
  std::string text;
  PlanError other;
  if (failed(reader.readText(node, text)))
    return failure();
  return succeeded(readCluster(text, reader.placeOf(node), cluster, other)) ? success() : reader.failWith(other);
}

ClusterMesh cleave::spmd::getClusterMesh(const Plan &plan) {
  ClusterMesh mesh;
  for (const MeshAxis &axis : plan.mesh) {
    mesh.names.push_back(axis.name);
    mesh.sizes.push_back(axis.size);
  }
  mesh.devices = plan.devices;
  return mesh;
}

LogicalResult cleave::spmd::checkCluster(const Plan &plan, PlanError &error) {
  if (!plan.cluster || plan.mesh.empty())
    return success();
  llvm::Error misfit = checkFit(*plan.cluster, getClusterMesh(plan));
  if (!misfit)
    return success();
  error = {plan.clusterPlace, toString(std::move(misfit)), {{plan.mesh.front().place, "the mesh is here"}}};
  return failure();
}
