//===- ClusterAttr.cpp - the machine that a module is for -----------------===//
//
// Files are written by strangers, too: nothing is divided by a rate of 0, and no entry is passed over.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/ClusterAttr.h"

#include "mlir/IR/Builders.h"
#include <cmath>

using namespace mlir;
using namespace cleave::spmd;

ClusterMesh cleave::spmd::getClusterMesh(MeshAttr mesh) {
  ClusterMesh made;
  for (auto [name, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes())) {
    made.names.push_back(name.str());
    made.sizes.push_back(size);
  }
  made.devices = mesh.getDevices().vec();
  return made;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// `[latency, bytes per ns]`.
static Attribute encode(Builder &b, const ClusterLink &link) {
  return b.getDenseF64ArrayAttr({link.latencyNs, link.bytesPerNs});
}

/// A dictionary with all that a level is.
static Attribute encode(Builder &b, const ClusterLevel &level) {
  return b.getDictionaryAttr({b.getNamedAttr("name", b.getStringAttr(level.name)),
                              b.getNamedAttr("devices", b.getI64IntegerAttr(level.devices)),
                              b.getNamedAttr("link", encode(b, level.link))});
}

static Attribute encode(Builder &b, double number) { return b.getF64FloatAttr(number); }

template <typename T> static Attribute encode(Builder &b, const std::map<std::string, T, std::less<>> &table) {
  SmallVector<NamedAttribute> entries;
  for (const auto &[name, entry] : table)
    entries.push_back(b.getNamedAttr(name, encode(b, entry)));
  return b.getDictionaryAttr(entries);
}

/// Device, speed, memory.
static Attribute encode(Builder &b, const std::map<int64_t, UnlikeDevice> &unlike) {
  SmallVector<Attribute> entries;
  for (const auto &[number, device] : unlike)
    entries.push_back(b.getArrayAttr(
        {b.getI64IntegerAttr(number), encode(b, device.speed), b.getI64IntegerAttr(device.memoryBytes)}));
  return b.getArrayAttr(entries);
}

void cleave::spmd::writeCluster(ModuleOp module, const Cluster &cluster) {
  Builder b(module.getContext());
  SmallVector<Attribute> levels;
  for (const ClusterLevel &level : cluster.levels)
    levels.push_back(encode(b, level));
  const ClusterDevice &device = cluster.device;
  SmallVector<NamedAttribute> fields{
      b.getNamedAttr("name", b.getStringAttr(cluster.name)),
      b.getNamedAttr("begin_ns", encode(b, cluster.beginNs)),
      b.getNamedAttr("launch_ns", encode(b, device.launchNs)),
      b.getNamedAttr("memory_bytes", b.getI64IntegerAttr(device.memoryBytes)),
      b.getNamedAttr("memory_bytes_per_ns", encode(b, device.memoryBytesPerNs)),
      b.getNamedAttr("flops_per_ns", encode(b, device.flopsPerNs)),
      b.getNamedAttr("levels", b.getArrayAttr(levels)),
      b.getNamedAttr("axes", encode(b, cluster.axes)),
  };
  if (device.cacheBytes > 0) {
    fields.push_back(b.getNamedAttr("cache_bytes", b.getI64IntegerAttr(device.cacheBytes)));
    fields.push_back(b.getNamedAttr("cache_bytes_per_ns", encode(b, device.cacheBytesPerNs)));
  }
  if (device.hostBytesPerNs != ClusterDevice::kHostBytesPerNs)
    fields.push_back(b.getNamedAttr("host_bytes_per_ns", encode(b, device.hostBytesPerNs)));
  if (!cluster.unlike.empty())
    fields.push_back(b.getNamedAttr("unlike", encode(b, cluster.unlike)));
  module->setAttr(SpmdDialect::kClusterAttr, b.getDictionaryAttr(fields));
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static bool isTime(double number) { return std::isfinite(number) && number >= 0; }
/// Something comes through.
static bool isRate(double number) { return std::isfinite(number) && number > 0; }

static bool decode(Attribute value, double &number) {
  auto attribute = dyn_cast_if_present<FloatAttr>(value);
  if (attribute && attribute.getType().isF64())
    number = attribute.getValueAsDouble();
  return attribute && attribute.getType().isF64();
}

static bool decode(Attribute value, int64_t &number) {
  auto attribute = dyn_cast_if_present<IntegerAttr>(value);
  if (!attribute || !attribute.getType().isInteger(64))
    return false;
  number = attribute.getInt();
  return number >= 0;
}

static bool decode(Attribute value, std::string &text) {
  auto attribute = dyn_cast_if_present<StringAttr>(value);
  text = attribute ? attribute.str() : "";
  return attribute != nullptr;
}

static bool decode(Attribute value, ClusterLink &link) {
  auto attribute = dyn_cast_if_present<DenseF64ArrayAttr>(value);
  if (!attribute || attribute.size() != 2)
    return false;
  link = {attribute[0], attribute[1]};
  return isTime(link.latencyNs) && isRate(link.bytesPerNs);
}

static bool decode(Attribute value, ClusterLevel &level) {
  auto fields = dyn_cast_if_present<DictionaryAttr>(value);
  return fields && fields.size() == 3 && decode(fields.get("name"), level.name) &&
         decode(fields.get("devices"), level.devices) && decode(fields.get("link"), level.link);
}

/// At least one; only the last connects any number.
static bool decode(Attribute value, std::vector<ClusterLevel> &levels) {
  auto list = dyn_cast_if_present<ArrayAttr>(value);
  if (!list || list.empty())
    return false;
  levels.resize(list.size());
  for (auto [attribute, level] : llvm::zip_equal(list, levels))
    if (!decode(attribute, level) || (level.devices == 0 && &level != &levels.back()))
      return false;
  return true;
}

template <typename T> static bool decode(Attribute value, std::map<std::string, T, std::less<>> &table) {
  auto fields = dyn_cast_if_present<DictionaryAttr>(value);
  table.clear();
  return fields && llvm::all_of(fields, [&](NamedAttribute field) {
           return decode(field.getValue(), table[field.getName().str()]);
         });
}

/// Of each type that is named, f32 among them.
static bool areRates(const std::map<std::string, double, std::less<>> &table) {
  return table.count("f32") && llvm::all_of(table, [](const auto &entry) { return isRate(entry.second); });
}

/// The cache of a device is there as a whole, or not at all.
static bool decodeCache(DictionaryAttr fields, ClusterDevice &device) {
  Attribute bytes = fields.get("cache_bytes"), rate = fields.get("cache_bytes_per_ns");
  device.cacheBytes = 0;
  return (!bytes && !rate) || (decode(bytes, device.cacheBytes) && device.cacheBytes > 0 &&
                               decode(rate, device.cacheBytesPerNs) && isRate(device.cacheBytesPerNs));
}

/// Not there: as nobody has said.
static bool decodeHost(Attribute rate, ClusterDevice &device) {
  return !rate || (decode(rate, device.hostBytesPerNs) && isRate(device.hostBytesPerNs));
}

/// Not there: all devices are alike.
static bool decode(Attribute value, std::map<int64_t, UnlikeDevice> &unlike) {
  unlike.clear();
  if (!value)
    return true;
  auto list = dyn_cast<ArrayAttr>(value);
  return list && llvm::all_of(list, [&](Attribute attribute) {
           auto entry = dyn_cast<ArrayAttr>(attribute);
           int64_t number = 0;
           UnlikeDevice device;
           bool isRead = entry && entry.size() == 3 && decode(entry[0], number) && decode(entry[1], device.speed) &&
                         decode(entry[2], device.memoryBytes);
           return isRead && isRate(device.speed) && device.speed <= 1 && unlike.emplace(number, device).second;
         });
}

/// The name of an entry that is wrong; empty if none is.
static StringRef findWrong(DictionaryAttr fields, Cluster &cluster) {
  ClusterDevice &device = cluster.device;
  const std::pair<StringRef, bool> entries[] = {
      {"name", decode(fields.get("name"), cluster.name)},
      {"begin_ns", decode(fields.get("begin_ns"), cluster.beginNs) && isTime(cluster.beginNs)},
      {"launch_ns", decode(fields.get("launch_ns"), device.launchNs) && isTime(device.launchNs)},
      {"memory_bytes", decode(fields.get("memory_bytes"), device.memoryBytes)},
      {"memory_bytes_per_ns",
       decode(fields.get("memory_bytes_per_ns"), device.memoryBytesPerNs) && isRate(device.memoryBytesPerNs)},
      {"cache_bytes", decodeCache(fields, device)},
      {"cache_bytes_per_ns", true},
      {"host_bytes_per_ns", decodeHost(fields.get("host_bytes_per_ns"), device)},
      {"flops_per_ns", decode(fields.get("flops_per_ns"), device.flopsPerNs) && areRates(device.flopsPerNs)},
      {"levels", decode(fields.get("levels"), cluster.levels)},
      {"axes", decode(fields.get("axes"), cluster.axes)},
      {"unlike", decode(fields.get("unlike"), cluster.unlike)},
  };
  for (auto [name, isRight] : entries)
    if (!isRight)
      return name;
  for (NamedAttribute field : fields)
    if (llvm::none_of(entries, [&](const auto &entry) { return entry.first == field.getName(); }))
      return field.getName();
  return "";
}

FailureOr<std::optional<Cluster>> cleave::spmd::readCluster(ModuleOp module) {
  std::optional<Cluster> cluster;
  Attribute attribute = module->getAttr(SpmdDialect::kClusterAttr);
  if (!attribute)
    return cluster;
  auto fields = dyn_cast<DictionaryAttr>(attribute);
  if (!fields)
    return module.emitError() << "'" << SpmdDialect::kClusterAttr << "' is not a dictionary";
  cluster.emplace();
  if (StringRef wrong = findWrong(fields, *cluster); !wrong.empty())
    return module.emitError() << "'" << SpmdDialect::kClusterAttr << "' has an entry '" << wrong
                              << "' that is missing, unknown, of the wrong type, or out of range";
  return cluster;
}
