//===- Annotate.cpp - a model with its shardings --------------------------===//
//
// The file is walked field by field and copied; only nodes and what says something of devices are written anew. A spec
// (onnx.proto: ShardingSpecProto) lists the split axes, then for each shard, row-major over them, its device, or a negative
// number that stands for the devices that hold copies of it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Annotations/Annotate.h"

#include "cleave/Annotations/DevicePlan.h"
#include "cleave/Annotations/Properties.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Onnx/WireWriter.h"
#include "cleave/Support/Status.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <map>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using spmd::AxisAttr;
using spmd::MeshAttr;
using spmd::ShardingAttr;

/// In the words of `--mesh`, which a plan's reader takes back.
std::string cleave::onnx::formatMesh(spmd::MeshAttr mesh) {
  std::string text;
  for (auto [name, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes()))
    text += (text.empty() ? "" : ",") + name.str() + "=" + std::to_string(size);
  return text;
}

/// The name of what is written, by which nodes refer to it.
static constexpr llvm::StringLiteral kConfiguration = "cleave";
/// The first IR version with devices.
static constexpr int64_t kIrVersion = 11;

//===----------------------------------------------------------------------===//
// Shardings as specs
//===----------------------------------------------------------------------===//

/// The digit of `rank` along an axis or sub-axis: ranks count row-major over the axes, and an axis's own digits are major to
/// minor, of which a sub-axis is one.
static int64_t getDigit(MeshAttr mesh, AxisAttr axis, int64_t rank) {
  unsigned position = *mesh.findAxis(axis.getName());
  int64_t size = mesh.getSizes()[position], extent = axis.getExtent(mesh);
  int64_t behind = 1; // ranks that differ behind it, in the mesh and in its own axis
  for (int64_t minor : mesh.getSizes().drop_front(position + 1))
    behind *= minor;
  behind *= size / (axis.getPreSize() * extent);
  return rank / behind % extent;
}

/// Axes per dim.
using DimAxes = SmallVector<SmallVector<AxisAttr>>;

/// Moves the axes of dims [first, last) of a value to dims of a tensor with as many elements there: a split of the major dims is
/// one of both. False for other splits.
static bool regroup(ShardingAttr sharding, ArrayRef<int64_t> from, unsigned first, ArrayRef<int64_t> to,
                    MutableArrayRef<SmallVector<AxisAttr>> splits) {
  SmallVector<AxisAttr> axes;
  bool isInner = false; // behind a dim of which a rank has several
  for (auto [dim, extent] : llvm::enumerate(from)) {
    ArrayRef<AxisAttr> own = sharding.getDims()[first + dim].getAxes();
    if (isInner && !own.empty())
      return false;
    llvm::append_range(axes, own);
    isInner |= extent != sharding.getNumShards(first + dim);
  }
  unsigned dim = 0;
  int64_t left = to.empty() ? 1 : to.front();
  for (AxisAttr axis : axes) {
    while (left == 1 && dim + 1 < to.size())
      left = to[++dim];
    int64_t extent = axis.getExtent(sharding.getMesh());
    if (left % extent != 0)
      return false;
    left /= extent;
    splits[dim].push_back(axis);
  }
  return true;
}

/// How a tensor of `shape` lies that a value is, with dims merged or kept apart, or of which it is a part; nothing where that
/// is no split of dims.
static std::optional<DimAxes> findSplits(RankedTensorType value, bool isPart, ArrayRef<int64_t> shape) {
  ShardingAttr sharding = spmd::getSharding(value);
  DimAxes splits(shape.size());
  if (value.getShape() == shape || (isPart && value.getRank() == int64_t(shape.size()))) {
    for (auto [dim, split] : llvm::enumerate(sharding.getDims()))
      splits[dim].assign(split.getAxes().begin(), split.getAxes().end());
    return splits;
  }
  std::optional<SmallVector<ReassociationIndices>> groups;
  bool isFiner = value.getRank() >= int64_t(shape.size());
  auto plain = RankedTensorType::get(value.getShape(), value.getElementType());
  auto other = RankedTensorType::get(shape, value.getElementType());
  if (value.getRank() != int64_t(shape.size()))
    groups = getReassociationIndicesForReshape(plain, other);
  if (!groups)
    return std::nullopt;
  unsigned coarse = 0;
  for (const ReassociationIndices &group : *groups) {
    unsigned fine = group.front();
    unsigned from = isFiner ? fine : coarse, fromCount = isFiner ? group.size() : 1;
    unsigned to = isFiner ? coarse : fine, toCount = isFiner ? 1 : group.size();
    if (!regroup(sharding, value.getShape().slice(from, fromCount), from, shape.slice(to, toCount),
                 MutableArrayRef(splits).slice(to, toCount)))
      return std::nullopt;
    ++coarse;
  }
  return splits;
}

/// The same of a value of one microbatch, which has a part of one dim of the tensor: the batch is the first that explains its size.
static std::optional<DimAxes> findSplitsInTime(RankedTensorType value, ArrayRef<int64_t> shape) {
  int64_t all = ShapedType::getNumElements(shape);
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    int64_t rest = all / std::max<int64_t>(extent, 1);
    if (all == 0 || value.getNumElements() % rest != 0 || value.getNumElements() / rest >= extent)
      continue;
    SmallVector<int64_t> part(shape);
    part[dim] = value.getNumElements() / rest;
    if (std::optional<DimAxes> splits = findSplits(value, /*isPart=*/false, part))
      return splits;
  }
  return std::nullopt;
}

/// The device of a rank of the mesh of one stage.
static int64_t getDevice(MeshAttr mesh, int64_t rank, const NodeStages *stages, int64_t stageRank) {
  if (stages) {
    MeshAttr whole = stages->mesh;
    unsigned position = *whole.findAxis(stages->axis);
    int64_t behind = 1;
    for (int64_t size : whole.getSizes().drop_front(position + 1))
      behind *= size;
    rank = (rank / behind * whole.getSizes()[position] + stageRank) * behind + rank % behind;
    mesh = whole;
  }
  return mesh.getDevices().empty() ? rank : mesh.getDevices()[rank];
}

/// All of a spec but the name of the tensor; empty for what ONNX has no words for. A shard that all devices hold once is
/// numbered by the device; one with several holders by a number below 0, for which the map has their list.
static std::string encodeSpec(RankedTensorType value, bool isPart, ArrayRef<int64_t> shape, const NodeStages *stages,
                              int64_t stageRank) {
  ShardingAttr sharding = spmd::getSharding(value);
  std::optional<DimAxes> splits = sharding.isPartial() ? std::nullopt : findSplits(value, isPart, shape);
  if (!splits && stages && !sharding.isPartial())
    splits = findSplitsInTime(value, shape);
  if (!splits)
    return "";
  MeshAttr mesh = sharding.getMesh();
  WireMessage spec;
  SmallVector<AxisAttr> axes; // of all dims, major to minor
  std::vector<WireMessage> dims;
  int64_t shards = 1;
  for (auto [dim, split] : llvm::enumerate(*splits)) {
    if (split.empty())
      continue;
    int64_t count = 1;
    for (AxisAttr axis : split)
      count *= axis.getExtent(mesh);
    WireMessage simple, part;
    simple.integer(1, shape[dim]);
    simple.integer(3, count);
    part.integer(1, dim);
    part.message(2, std::move(simple));
    dims.push_back(std::move(part));
    llvm::append_range(axes, split);
    shards *= count;
  }
  std::vector<SmallVector<int64_t, 1>> holders(shards);
  for (int64_t rank = 0, ranks = mesh.getNumRanks(); rank < ranks; ++rank) {
    int64_t shard = 0;
    for (AxisAttr axis : axes)
      shard = shard * axis.getExtent(mesh) + getDigit(mesh, axis, rank);
    holders[shard].push_back(getDevice(mesh, rank, stages, stageRank));
  }
  for (auto [shard, devices] : llvm::enumerate(holders))
    spec.integer(2, devices.size() == 1 ? devices.front() : -1 - int64_t(shard));
  for (auto [shard, devices] : llvm::enumerate(holders)) {
    if (devices.size() == 1)
      continue;
    WireMessage group;
    group.integer(1, -1 - int64_t(shard));
    for (int64_t device : devices)
      group.integer(2, device);
    spec.message(3, std::move(group));
  }
  for (WireMessage &dim : dims)
    spec.message(4, std::move(dim));
  return spec.str();
}

namespace {
/// The specs of a module's values, by the names of their tensors.
class Specs {
public:
  Specs(func::FuncOp func, const TensorTypes &tensors, const NodeStages *stages);

  /// On the devices of a rank of the pipeline. Empty where nothing is said of a tensor.
  StringRef find(StringRef tensor, int64_t stageRank);

private:
  /// A value, and the tensor that it is or is a part of.
  struct Kind {
    RankedTensorType value, tensor;
    bool isPart;
  };

  void add(StringRef name, Type type, bool isPart = false);
  StringRef encode(unsigned kind, int64_t stageRank);

  const TensorTypes &tensors;
  const NodeStages *stages;
  std::vector<Kind> kinds;
  std::map<std::pair<const void *, const void *>, unsigned> numbers; ///< of kinds, by their types
  std::map<std::pair<unsigned, int64_t>, std::string> encoded;       ///< by kind and rank of the pipeline
  llvm::StringMap<std::optional<unsigned>> byName;
};
} // namespace

StringRef Specs::encode(unsigned kind, int64_t stageRank) {
  auto [spec, isNew] = encoded.try_emplace({kind, stageRank});
  if (isNew)
    spec->second = encodeSpec(kinds[kind].value, kinds[kind].isPart, kinds[kind].tensor.getShape(), stages, stageRank);
  return spec->second;
}

StringRef Specs::find(StringRef tensor, int64_t stageRank) {
  std::optional<unsigned> kind = byName.lookup(tensor);
  return kind ? encode(*kind, stageRank) : StringRef();
}

/// Of parts that lie in several ways nothing is said.
void Specs::add(StringRef name, Type type, bool isPart) {
  auto value = cast<RankedTensorType>(type);
  auto known = tensors.find(name);
  if (!spmd::getSharding(value) || known == tensors.end())
    return;
  RankedTensorType tensor = known->second;
  auto [number, isNewKind] =
      numbers.try_emplace({type.getAsOpaquePointer(), tensor.getAsOpaquePointer()}, kinds.size());
  if (isNewKind)
    kinds.push_back({value, tensor, isPart});
  unsigned kind = number->second;
  auto [it, isNew] = byName.try_emplace(name, kind);
  if (isNew)
    return;
  bool isEqual = it->second && encode(*it->second, 0) == encode(kind, 0);
  it->second = isPart && !isEqual ? std::nullopt : std::optional(kind);
}

/// Whatever comes from no argument and no parameter costs nothing to make anywhere, and asking for it would keep it from
/// being folded. What a result must be like is more than how it is computed.
Specs::Specs(func::FuncOp func, const TensorTypes &tensors, const NodeStages *stages)
    : tensors(tensors), stages(stages) {
  auto addAll = [&](Value value) {
    auto load = value.getDefiningOp<nn::LoadOp>();
    for (StringRef name : spmd::getTensorNames(value))
      add(name, value.getType(), load && load.isPart());
  };
  llvm::for_each(func.getArguments(), addAll);
  llvm::DenseSet<Operation *> constant;
  for (Operation &op : func.getBody().front())
    if (!isa<nn::LoadOp>(op) &&
        llvm::all_of(op.getOperands(), [&](Value operand) { return constant.contains(operand.getDefiningOp()); }))
      constant.insert(&op);
    else
      llvm::for_each(op.getResults(), addAll);
  for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
    add(spmd::getResultName(func, index), type);
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

namespace {
class Annotator {
public:
  Annotator(const MappedFile &model, func::FuncOp func, const TensorTypes &tensors, const NodeStages *stages,
            const PlanOrigin *origin)
      : model(model), mesh(stages ? stages->mesh : spmd::getMesh(func)), stages(stages), origin(origin),
        specs(func, tensors, stages), wire(model.getBytes(), ReadLimits()) {}

  llvm::Error write(llvm::raw_ostream &os);

private:
  bool addModel(WireMessage &out);
  bool addGraph(StringRef bytes, WireMessage &out);
  bool addNode(StringRef bytes, WireMessage &out);

  const MappedFile &model;
  MeshAttr mesh;
  const NodeStages *stages;
  const PlanOrigin *origin;
  PlanDigest digest;
  size_t number = 0; ///< of the next node
  Specs specs;
  WireReader wire;
};
} // namespace

/// A node as it was, with the specs of its tensors behind it, and its stage; a tensor that it takes twice has one spec. In a pipeline
/// tensors lie where the node is, and a node that is nowhere says nothing of them.
bool Annotator::addNode(StringRef bytes, WireMessage &out) {
  std::vector<StringRef> tensors;
  bool isGood = wire.fields(bytes, [&](const WireField &field) {
    if (field.number == 10)
      return true;
    out.copy(field);
    return (field.number != 1 && field.number != 2) || wire.texts(field, "input", tensors);
  });
  int64_t stage = stages ? stages->ofNode[number++] : -1;
  if (stages && stage < 0)
    tensors.clear();
  llvm::StringSet<> seen;
  WireMessage told;
  told.text(1, kConfiguration);
  uint64_t empty = told.size();
  for (StringRef tensor : tensors) {
    StringRef spec = specs.find(tensor, stage < 0 ? 0 : stages->rankOf[stage]);
    if (spec.empty() || !seen.insert(tensor).second)
      continue;
    WireMessage named;
    named.text(1, tensor);
    told.text(2, named.str() + spec.str());
  }
  if (stage >= 0)
    told.integer(3, stage);
  if (told.size() > empty) {
    digest.addAnnotation(told.str());
    out.message(10, std::move(told));
  }
  return isGood;
}

bool Annotator::addGraph(StringRef bytes, WireMessage &out) {
  return wire.fields(bytes, [&](const WireField &field) {
    if (field.number != 1) {
      out.copy(field);
      return true;
    }
    WireMessage node;
    if (!wire.message(field, "node", -1, [&](StringRef inner) { return addNode(inner, node); }))
      return false;
    out.message(1, std::move(node));
    return true;
  });
}

/// Devices are those of the mesh; the names of its axes go along as a property, for lists of devices have none.
bool Annotator::addModel(WireMessage &out) {
  bool isGood = wire.fields(model.getBytes(), [&](const WireField &field) {
    if (field.number == 1) {
      out.integer(1, std::max<int64_t>(field.value, kIrVersion));
      return true;
    }
    if (field.number == 7) {
      WireMessage graph;
      if (!wire.message(field, "graph", -1, [&](StringRef inner) { return addGraph(inner, graph); }))
        return false;
      out.message(7, std::move(graph));
      return true;
    }
    if (field.number == 14) {
      StringStringEntryProto entry;
      if (!wire.fields(field.payload,
                       [&](const WireField &inner) { return inner.number != 1 || wire.text(inner, "key", entry.key); }))
        return false;
      if (entry.key == kMeshProperty || entry.key == kDevicesProperty || entry.key == kPipelineProperty ||
          entry.key == kStagesProperty || entry.key == kPlanProperty || entry.key == kPlanDigestProperty)
        return true;
    }
    if (field.number != 26)
      out.copy(field);
    return true;
  });
  auto addProperty = [&](StringRef key, StringRef value) {
    WireMessage property;
    property.text(1, key);
    property.text(2, value);
    out.message(14, std::move(property));
  };
  addProperty(kMeshProperty, formatMesh(mesh));
  if (!mesh.getDevices().empty())
    addProperty(
        kDevicesProperty,
        llvm::join(llvm::map_range(mesh.getDevices(), [](int64_t device) { return std::to_string(device); }), ","));
  if (stages)
    addProperty(kPipelineProperty, stages->property);
  if (stages && !stages->ops.empty())
    addProperty(kStagesProperty, spmd::formatStageOps(stages->ops));
  if (origin) {
    addProperty(kPlanProperty, origin->plan);
    addProperty(kPlanDigestProperty, digest.get(origin->plan, origin->settings));
  }
  WireMessage configuration;
  configuration.text(1, kConfiguration);
  configuration.integer(2, mesh.getNumRanks());
  out.message(26, std::move(configuration));
  return isGood;
}

llvm::Error Annotator::write(llvm::raw_ostream &os) {
  WireMessage out;
  if (!addModel(out))
    return makeError("{0}: {1}", model.getPath(), wire.getError());
  out.write(os);
  return llvm::Error::success();
}

TensorTypes cleave::onnx::collectTensors(ModuleOp module) {
  TensorTypes types;
  for (auto param : module.getOps<nn::ParamOp>())
    types.try_emplace(param.getSymName(), cast<RankedTensorType>(param.getType()));
  auto add = [&](Value value) {
    for (StringRef name : spmd::getTensorNames(value))
      types.try_emplace(name, cast<RankedTensorType>(value.getType()));
  };
  for (auto func : module.getOps<func::FuncOp>()) {
    llvm::for_each(func.getArguments(), add);
    func.walk([&](Operation *op) { llvm::for_each(op->getResults(), add); });
    for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
      types.try_emplace(spmd::getResultName(func, index), cast<RankedTensorType>(type));
  }
  return types;
}

llvm::Error cleave::onnx::writeAnnotated(const MappedFile &model, ModuleOp module, const TensorTypes &tensors,
                                         const NodeStages *stages, const PlanOrigin *origin, llvm::raw_ostream &os) {
  assert(cleave::getPhase(module) >= cleave::Phase::Propagated && "no sharding has been decided");
  return Annotator(model, *module.getOps<func::FuncOp>().begin(), tensors, stages, origin).write(os);
}
