//===- DevicePlan.cpp - a model's own device annotations ------------------===//
//
// Two walks: over the nodes, which reads of each tensor which of its shards every device holds; from these lists follows
// the mesh, and over the tensors, which writes rules with its axes. No other tool checks such annotations (ONNX's checker
// takes any), so everything is held against the graph and against the rest here.
//
//===----------------------------------------------------------------------===//
#include "cleave/Annotations/DevicePlan.h"
#include "cleave/Annotations/Properties.h"

#include "DeviceStages.h"
#include "cleave/Sharding/FactorMesh.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include <map>

using namespace llvm;
using namespace cleave;
using namespace cleave::onnx;
using spmd::HeldShards;
using spmd::PlanRule;

namespace {
/// A dim of a tensor that is split, and which of the lists of shards says how.
struct ShardedDim {
  int64_t axis;
  size_t list;
  bool isUneven;

  bool operator==(const ShardedDim &other) const { return axis == other.axis && list == other.list; }
};

/// How one tensor lies.
using ShardedDims = SmallVector<ShardedDim, 2>;

/// What is read at the moment, for errors.
struct ErrorContext {
  const NodeProto &node;
  StringRef tensor;
};

class DevicePlanReader {
public:
  DevicePlanReader(const ModelFile &file, spmd::Plan &plan, spmd::PlanError &error, std::vector<std::string> &notes)
      : file(file), graph(file.model.graph), plan(plan), error(error), notes(notes) {}

  bool read();

private:
  bool fail(const Twine &message);
  bool fail(const ErrorContext &place, const Twine &message);
  bool chooseConfiguration();
  void takeNamedDevices();
  bool takeStages();
  bool readNode(const NodeProto &node, size_t number, const NodeDeviceConfigurationProto &told);
  bool readSpec(const ErrorContext &place, const ShardingSpecProto &spec, ArrayRef<int64_t> own,
                ShardedDims &shardedDims);
  bool readDim(const ErrorContext &place, const ShardedDimProto &dim, ShardedDim &sharded, int64_t &count);
  bool placeShards(const ErrorContext &place, const ShardingSpecProto &spec, int64_t count, ArrayRef<int64_t> own,
                   std::vector<int64_t> &shards);
  size_t getList(HeldShards held);
  bool chooseMesh();
  bool takeNamedMesh(StringRef text);
  void addPipelineAxis();
  void addRule(StringRef name, const ShardedDims &shardedDims);
  bool fitsStages(ArrayRef<int64_t> sizes, unsigned pipelineAxis) const;
  /// What is on one rank of the pipeline; all devices where there is none.
  int64_t countDevices() const { return devices / (stages.isSplit() ? int64_t(stages.devices.size()) : 1); }

  const ModelFile &file;
  const GraphProto &graph;
  spmd::Plan &plan;
  spmd::PlanError &error;
  std::vector<std::string> &notes;
  StringRef configuration;
  int64_t devices = 0;
  std::vector<int64_t> every;  ///< rank
  std::vector<int64_t> rankOf; ///< of each device
  DeviceStages stages;
  SmallVector<unsigned> inner; ///< axes of the mesh but the pipeline's
  std::vector<HeldShards> lists;
  std::map<std::pair<int64_t, std::vector<int64_t>>, size_t> numbers; ///< of lists
  std::vector<SmallVector<unsigned>> axes; ///< of lists, once there is a mesh, by their place in `inner`
  MapVector<StringRef, ShardedDims> tensors;
  /// Inputs of nodes that lie otherwise than their tensors.
  std::vector<std::string> otherwise;
};
} // namespace

bool DevicePlanReader::fail(const Twine &message) {
  error.place = {file.file->getPath().str(), 0, 0};
  error.message = message.str();
  return false;
}

bool DevicePlanReader::fail(const ErrorContext &place, const Twine &message) {
  StringRef name = place.node.name;
  if (name.empty() && !place.node.output.empty())
    name = place.node.output.front();
  std::string tensor = place.tensor.empty() ? "" : ", sharding of " + quote(place.tensor);
  return fail("device annotations of node " + quote(name) + tensor + ": " + message);
}

//===----------------------------------------------------------------------===//
// Configurations, stages
//===----------------------------------------------------------------------===//

/// The device of each rank, if the model lists all devices once; else they are ranks.
void DevicePlanReader::takeNamedDevices() {
  rankOf = every;
  for (const StringStringEntryProto &property : file.model.metadataProps) {
    SmallVector<StringRef> words;
    if (property.key == kDevicesProperty)
      property.value.split(words, ',');
    std::vector<int64_t> named(words.size());
    for (auto [word, device] : zip_equal(words, named))
      if (word.getAsInteger(10, device))
        return;
    std::vector<int64_t> sorted = named;
    sort(sorted);
    if (sorted != every)
      continue;
    for (auto [rank, device] : enumerate(named))
      rankOf[device] = rank;
    plan.devices = named;
  }
}

/// Devices are numbers below `num_devices`; a few more than anybody has would only fill memory.
bool DevicePlanReader::chooseConfiguration() {
  constexpr int64_t mostDevices = 1 << 17;
  std::map<StringRef, int64_t> known;
  for (const DeviceConfigurationProto &given : file.model.configuration) {
    if (given.numDevices < 1 || given.numDevices > mostDevices)
      return fail("device configuration " + quote(given.name) + " has " + Twine(given.numDevices) +
                  " devices, expected 1 to " + Twine(mostDevices));
    if (!given.device.empty() && given.device.size() != size_t(given.numDevices))
      return fail("device configuration " + quote(given.name) + " names " + Twine(given.device.size()) + " of " +
                  Twine(given.numDevices) + " devices");
    if (!known.try_emplace(given.name, given.numDevices).second)
      return fail("device configuration " + quote(given.name) + " occurs twice");
  }
  llvm::StringSet<> used;
  for (const NodeProto &node : graph.node) {
    llvm::StringSet<> ofNode;
    for (const NodeDeviceConfigurationProto &told : node.deviceConfigurations) {
      if (!known.count(told.configurationId))
        return fail({node, ""}, "the model has no configuration " + quote(told.configurationId));
      if (!ofNode.insert(told.configurationId).second)
        return fail({node, ""}, "configuration " + quote(told.configurationId) + " occurs twice");
      if (used.insert(told.configurationId).second && used.size() == 1)
        configuration = told.configurationId;
    }
  }
  devices = known[configuration];
  append_range(every, seq<int64_t>(0, devices));
  takeNamedDevices();
  if (used.size() > 1)
    notes.push_back("of " + std::to_string(used.size()) + " device configurations " + quote(configuration) +
                    " is taken");
  return true;
}

/// What is wrong with stages is so of a node, or of all.
bool DevicePlanReader::takeStages() {
  StageProblem problem;
  spmd::PlanPlace place{file.file->getPath().str(), 1, 1};
  if (!readStages(graph, configuration, rankOf, stages, problem) ||
      (stages.isSplit() && !makePipeline(file.model, stages, place, plan.pipeline.emplace(), problem)))
    return problem.node ? fail({*problem.node, ""}, problem.message) : fail(problem.message);
  return true;
}

//===----------------------------------------------------------------------===//
// Shards of devices
//===----------------------------------------------------------------------===//

/// Shards of an axis, as the parts of a fused one make them: parts in front must be split into single elements, and those
/// behind not at all; anything else would be a split with a stride.
bool DevicePlanReader::readDim(const ErrorContext &place, const ShardedDimProto &dim, ShardedDim &sharded,
                               int64_t &count) {
  constexpr int64_t mostDims = 64; // more than any tensor has: what is larger would only fill memory
  if (dim.axis < -mostDims || dim.axis >= mostDims)
    return fail(place, "axis " + Twine(dim.axis) + " is one of no tensor");
  sharded = {dim.axis, 0, false};
  count = 1;
  bool isFull = true; // all parts so far are split into single elements
  for (const SimpleShardedDimProto &part : dim.simpleSharding) {
    if (part.numShards < 1 || part.numShards > devices)
      return fail(place, "axis " + Twine(dim.axis) + " is cut into " + Twine(part.numShards) + " shards on " +
                             Twine(devices) + " devices");
    if (!isFull && part.numShards > 1)
      return fail(place, "axis " + Twine(dim.axis) + " is cut with a stride, which is not supported");
    isFull = part.numShards == part.dimValue;
    sharded.isUneven |= part.dimValue && *part.dimValue % part.numShards != 0;
    count *= part.numShards;
    if (count > devices)
      return fail(place, "more shards than the " + Twine(devices) + " devices");
  }
  return true;
}

/// The shard of each device, of those of a stage where there are stages. An entry of `device` that the map has stands for all
/// devices of that group, which hold copies; any other is a device itself.
bool DevicePlanReader::placeShards(const ErrorContext &place, const ShardingSpecProto &spec, int64_t count,
                                   ArrayRef<int64_t> own, std::vector<int64_t> &shards) {
  int64_t here = own.size();
  if (spec.device.size() != size_t(count))
    return fail(place, Twine(count) + " shards on " + Twine(spec.device.size()) + " devices or groups");
  std::map<int64_t, ArrayRef<int64_t>> groups;
  for (const DeviceGroup &group : spec.indexToDeviceGroupMap)
    if (!groups.try_emplace(group.key, group.value).second)
      return fail(place, "device group " + Twine(group.key) + " occurs twice");
  shards.assign(here, -1);
  for (auto [shard, key] : enumerate(spec.device)) {
    auto group = groups.find(key);
    for (int64_t device : group == groups.end() ? ArrayRef(key) : group->second) {
      if (device < 0 || device >= devices)
        return fail(place, "device " + Twine(device) + " of " + Twine(devices));
      const int64_t *found = lower_bound(own, rankOf[device]);
      if (found == own.end() || *found != rankOf[device])
        return fail(place, "device " + Twine(device) + " is not one of the " + Twine(here) + " of its stage");
      int64_t &held = shards[found - own.begin()];
      if (held >= 0)
        return fail(place, "device " + Twine(device) + " holds shards " + Twine(held) + " and " + Twine(shard));
      held = shard;
    }
  }
  if (int64_t missing = count_if(shards, [](int64_t shard) { return shard < 0; }))
    return fail(place, Twine(missing) + " of " + Twine(here) + " devices hold nothing of it, which is not supported");
  return true;
}

/// Equal lists have one number: a model of many layers has few.
size_t DevicePlanReader::getList(HeldShards held) {
  auto [it, isNew] = numbers.try_emplace({held.count, held.shards}, lists.size());
  if (isNew)
    lists.push_back(std::move(held));
  return it->second;
}

/// Shards count row-major over the split axes as they are listed.
bool DevicePlanReader::readSpec(const ErrorContext &place, const ShardingSpecProto &spec, ArrayRef<int64_t> own,
                                ShardedDims &shardedDims) {
  SmallVector<int64_t> counts;
  int64_t count = 1;
  SmallVector<int64_t, 4> seen;
  for (const ShardedDimProto &dim : spec.shardedDim) {
    if (is_contained(seen, dim.axis))
      return fail(place, "axis " + Twine(dim.axis) + " occurs twice");
    seen.push_back(dim.axis);
    shardedDims.emplace_back();
    if (!readDim(place, dim, shardedDims.back(), counts.emplace_back()))
      return false;
    count *= counts.back();
    if (count > devices)
      return fail(place, "more shards than the " + Twine(devices) + " devices");
  }
  std::vector<int64_t> shards;
  if (!placeShards(place, spec, count, own, shards))
    return false;
  int64_t behind = count;
  for (auto [sharded, parts] : zip_equal(shardedDims, counts)) {
    behind /= parts;
    HeldShards held{shards, parts};
    for (int64_t &shard : held.shards)
      shard = shard / behind % parts;
    sharded.list = getList(std::move(held));
  }
  erase_if(shardedDims, [&](const ShardedDim &sharded) { return lists[sharded.list].count == 1; });
  sort(shardedDims, [](const ShardedDim &a, const ShardedDim &b) { return a.axis < b.axis; });
  return true;
}

/// The specs of a node, each of one of its tensors. Nodes behind the first that says how a tensor lies may want it
/// otherwise, which the values do not depend on; two ways to compute it would be a contradiction.
bool DevicePlanReader::readNode(const NodeProto &node, size_t number, const NodeDeviceConfigurationProto &told) {
  bool isInStage = stages.isSplit() && told.pipelineStage;
  ArrayRef<int64_t> own = isInStage ? stages.getDevices(number) : ArrayRef(every);
  if (stages.isSplit() && !isInStage && !told.shardingSpec.empty())
    return fail({node, ""}, "it is in no pipeline stage, others are");
  for (const ShardingSpecProto &spec : told.shardingSpec) {
    ErrorContext place{node, spec.tensorName};
    bool isOutput = is_contained(node.output, spec.tensorName);
    if (spec.tensorName.empty() || (!isOutput && !is_contained(node.input, spec.tensorName)))
      return fail(place, "it is neither an input nor an output of the node");
    ShardedDims shardedDims;
    if (!readSpec(place, spec, own, shardedDims))
      return false;
    auto [known, isNew] = tensors.insert({spec.tensorName, shardedDims});
    if (isNew || known->second == shardedDims)
      continue;
    if (isOutput)
      return fail(place, "it is given twice, differently");
    otherwise.push_back("node " + quote(node.name) + " takes " + quote(spec.tensorName));
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Mesh, rules
//===----------------------------------------------------------------------===//

/// True if ranks of the pipeline have just the devices that stand along an axis of a mesh of these sizes, with its number.
bool DevicePlanReader::fitsStages(ArrayRef<int64_t> sizes, unsigned pipelineAxis) const {
  int64_t behind = 1;
  for (int64_t size : sizes.drop_front(pipelineAxis + 1))
    behind *= size;
  int64_t ranks = sizes[pipelineAxis];
  if (ranks != static_cast<int64_t>(stages.devices.size()))
    return false;
  for (auto [rank, own] : enumerate(stages.devices))
    if (any_of(own, [&, rank = rank](int64_t device) { return device / behind % ranks != static_cast<int64_t>(rank); }))
      return false;
  return true;
}

/// The axes that the model names, if they are those of all its lists and its stages. A file that was written by somebody else, or changed
/// since, may name any; then they are found as if it named none.
bool DevicePlanReader::takeNamedMesh(StringRef text) {
  spmd::Plan named;
  spmd::PlanError ignored;
  if (failed(parseMeshOption(text, named, ignored)))
    return false;
  SmallVector<int64_t> sizes, innerSizes;
  int64_t product = 1;
  for (const spmd::MeshAxis &axis : named.mesh) {
    if (sizes.push_back(axis.size); __builtin_mul_overflow(product, axis.size, &product))
      return false;
    if (!stages.isSplit() || axis.name != plan.pipeline->axis)
      innerSizes.push_back(axis.size);
  }
  if (product != devices)
    return false;
  if (stages.isSplit()) {
    const spmd::MeshAxis *axis = named.findAxis(plan.pipeline->axis);
    if (!axis || !fitsStages(sizes, axis - named.mesh.data()))
      return false;
  }
  if (!all_of(lists, [&](const HeldShards &held) { return spmd::findSplits(innerSizes, held).has_value(); }))
    return false;
  plan.mesh = named.mesh;
  return true;
}

/// Of the ranks of the pipeline, which each have a mesh of their own, one behind the other, whatever their devices are.
void DevicePlanReader::addPipelineAxis() {
  plan.mesh.push_back({plan.pipeline->axis, static_cast<int64_t>(stages.devices.size()), {}});
  std::vector<int64_t> named = std::move(plan.devices);
  plan.devices.clear();
  for (const std::vector<int64_t> &own : stages.devices)
    for (int64_t rank : own)
      plan.devices.push_back(named.empty() ? rank : named[rank]);
  if (is_sorted(plan.devices))
    plan.devices.clear();
}

/// Axes in front of those that are found: the stages.
bool DevicePlanReader::chooseMesh() {
  for (const StringStringEntryProto &property : file.model.metadataProps)
    if (property.key == kMeshProperty)
      takeNamedMesh(property.value);
  if (plan.mesh.empty()) {
    auto sizes = spmd::factorMesh(countDevices(), lists);
    if (!sizes)
      return fail("no mesh of " + Twine(countDevices()) + " devices has axes of which all device annotations are made");
    if (stages.isSplit())
      addPipelineAxis();
    if (sizes->empty() && !stages.isSplit())
      sizes->push_back(1);
    for (auto [number, size] : enumerate(*sizes))
      plan.mesh.push_back({sizes->size() == 1 ? "devices" : "devices" + std::to_string(number), size, {}});
  }
  SmallVector<int64_t> sizes;
  for (auto [number, axis] : enumerate(plan.mesh)) {
    axis.place = {file.file->getPath().str(), 1, 1};
    if (stages.isSplit() && axis.name == plan.pipeline->axis)
      continue;
    inner.push_back(number);
    sizes.push_back(axis.size);
  }
  for (const HeldShards &held : lists)
    axes.push_back(*spmd::findSplits(sizes, held));
  return true;
}

/// A name as a pattern that matches it alone.
static std::string toPattern(StringRef name) {
  if (name.find_first_of("*?[]{}\\") == StringRef::npos && !name.starts_with("re:"))
    return name.str();
  std::string text = "re:";
  for (char letter : name)
    text += StringRef("\\^$.|?*+()[]{}").contains(letter) ? std::string{'\\', letter} : std::string{letter};
  return text;
}

/// Axes from the front, then what they leave, then axes from the back: how many dims the tensor has is not known here, and is
/// held against the rule where all rules are.
void DevicePlanReader::addRule(StringRef name, const ShardedDims &shardedDims) {
  PlanRule rule;
  rule.place = rule.patternPlace = rule.dimsPlace = {file.file->getPath().str(), 1, 1};
  rule.pattern = toPattern(name);
  int64_t front = 0, back = 0;
  for (const ShardedDim &sharded : shardedDims)
    sharded.axis < 0 ? back = std::max(back, -sharded.axis) : front = std::max(front, sharded.axis + 1);
  rule.dims.resize(front + 1 + back);
  rule.dims[front].isRest = true;
  for (const ShardedDim &sharded : shardedDims) {
    spmd::PlanDim &dim = rule.dims[sharded.axis < 0 ? front + 1 + back + sharded.axis : sharded.axis];
    for (unsigned axis : axes[sharded.list])
      dim.axes.push_back({plan.mesh[inner[axis]].name, 1, 0, {}});
    rule.uneven |= sharded.isUneven;
  }
  plan.rules.push_back(std::move(rule));
}

bool DevicePlanReader::read() {
  if (!chooseConfiguration() || !takeStages())
    return false;
  for (auto [number, node] : enumerate(graph.node)) {
    const NodeDeviceConfigurationProto *told = findTold(node, configuration);
    if (told && !readNode(node, number, *told))
      return false;
  }
  if (!chooseMesh())
    return false;
  // Who is alone in a stage splits nothing, and what is asked for would only keep tensors apart that canonical form makes one of.
  if (countDevices() > 1)
    for (const auto &[name, shardedDims] : tensors)
      addRule(name, shardedDims);
  if (!otherwise.empty())
    notes.push_back(otherwise.front() + " in another layout than its devices have" +
                    (otherwise.size() > 1 ? ", as do " + std::to_string(otherwise.size() - 1) + " more" : "") +
                    ": its sharding there is decided by cost");
  return true;
}

bool cleave::onnx::hasDevicePlan(const ModelProto &model) {
  return any_of(model.graph.node, [](const NodeProto &node) {
    return any_of(node.deviceConfigurations, [](const NodeDeviceConfigurationProto &told) {
      return told.pipelineStage || !told.shardingSpec.empty();
    });
  });
}

LogicalResult cleave::onnx::readDevicePlan(const ModelFile &file, spmd::Plan &plan, spmd::PlanError &error,
                                           std::vector<std::string> &notes) {
  assert(hasDevicePlan(file.model) && "a model without annotations");
  if (!DevicePlanReader(file, plan, error, notes).read())
    return failure();
  return spmd::checkPlan(plan, error);
}
