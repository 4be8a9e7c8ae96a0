//===- Annotate.cpp - a model with its shardings --------------------------===//
//
// The file is walked field by field and copied; only nodes and what says something of devices are written anew. A spec
// (onnx.proto: ShardingSpecProto) lists the cut axes, then for each shard, row-major over them, its device, or a negative
// number that stands for the devices that hold copies of it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Export/Onnx/Annotate.h"

#include "Manifest.h"
#include "WireWriter.h"
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Import/Onnx/DevicePlan.h"
#include "cleave/Support/Status.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <map>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using spmd::AxisAttr;
using spmd::MeshAttr;
using spmd::ShardingAttr;

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

/// Moves the axes of dims [first, last) of a value to dims of a tensor with as many elements there: a cut of the major dims is
/// one of both. False for other cuts.
static bool regroup(ShardingAttr sharding, ArrayRef<int64_t> from, unsigned first, ArrayRef<int64_t> to,
                    MutableArrayRef<SmallVector<AxisAttr>> cuts) {
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
    cuts[dim].push_back(axis);
  }
  return true;
}

/// How a tensor of `shape` lies that a value is, with dims merged or kept apart, or of which it is a part; nothing where that
/// is no cut of dims.
static std::optional<DimAxes> findCuts(RankedTensorType value, bool isPart, ArrayRef<int64_t> shape) {
  ShardingAttr sharding = spmd::getSharding(value);
  DimAxes cuts(shape.size());
  if (value.getShape() == shape || (isPart && value.getRank() == int64_t(shape.size()))) {
    for (auto [dim, cut] : llvm::enumerate(sharding.getDims()))
      cuts[dim].assign(cut.getAxes().begin(), cut.getAxes().end());
    return cuts;
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
                 MutableArrayRef(cuts).slice(to, toCount)))
      return std::nullopt;
    ++coarse;
  }
  return cuts;
}

/// All of a spec but the name of the tensor; empty for what ONNX has no words for. A shard that all devices hold once is
/// numbered by the device; one with several holders by a number below 0, for which the map has their list.
static std::string encodeSpec(RankedTensorType value, bool isPart, ArrayRef<int64_t> shape) {
  ShardingAttr sharding = spmd::getSharding(value);
  std::optional<DimAxes> cuts = sharding.isPartial() ? std::nullopt : findCuts(value, isPart, shape);
  if (!cuts)
    return "";
  MeshAttr mesh = sharding.getMesh();
  WireMessage spec;
  SmallVector<AxisAttr> axes; // of all dims, major to minor
  std::vector<WireMessage> dims;
  int64_t shards = 1;
  for (auto [dim, cut] : llvm::enumerate(*cuts)) {
    if (cut.empty())
      continue;
    int64_t count = 1;
    for (AxisAttr axis : cut)
      count *= axis.getExtent(mesh);
    WireMessage simple, part;
    simple.integer(1, shape[dim]);
    simple.integer(3, count);
    part.integer(1, dim);
    part.message(2, std::move(simple));
    dims.push_back(std::move(part));
    llvm::append_range(axes, cut);
    shards *= count;
  }
  std::vector<SmallVector<int64_t, 1>> holders(shards);
  for (int64_t rank = 0, ranks = mesh.getNumRanks(); rank < ranks; ++rank) {
    int64_t shard = 0;
    for (AxisAttr axis : axes)
      shard = shard * axis.getExtent(mesh) + getDigit(mesh, axis, rank);
    holders[shard].push_back(mesh.getDevices().empty() ? rank : mesh.getDevices()[rank]);
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
  Specs(func::FuncOp func, const TensorTypes &tensors);

  /// Empty where nothing is said of a tensor.
  StringRef find(StringRef tensor) const { return byName.lookup(tensor); }

private:
  void add(StringRef name, Type type, bool isPart = false);

  const TensorTypes &tensors;
  /// By the types of value and tensor. Strings stay where they are.
  std::map<std::pair<const void *, const void *>, std::string> byType;
  llvm::StringMap<StringRef> byName;
};
} // namespace

/// Of parts that lie in several ways nothing is said.
void Specs::add(StringRef name, Type type, bool isPart) {
  auto tensor = cast<RankedTensorType>(type);
  ShardingAttr sharding = spmd::getSharding(tensor);
  auto known = tensors.find(name);
  if (!sharding || known == tensors.end())
    return;
  std::string &spec = byType[{type.getAsOpaquePointer(), known->second.getAsOpaquePointer()}];
  if (spec.empty())
    spec = encodeSpec(tensor, isPart, known->second.getShape());
  auto [it, isNew] = byName.try_emplace(name, spec);
  if (!isNew)
    it->second = isPart && it->second != spec ? StringRef() : StringRef(spec);
}

/// Whatever comes from no argument and no parameter costs nothing to make anywhere, and asking for it would keep it from
/// being folded. What a result must be like is more than how it is computed.
Specs::Specs(func::FuncOp func, const TensorTypes &tensors) : tensors(tensors) {
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
  Annotator(const MappedFile &model, func::FuncOp func, const TensorTypes &tensors)
      : model(model), mesh(spmd::getMesh(func)), specs(func, tensors), wire(model.getBytes(), ReadLimits()) {}

  llvm::Error write(llvm::raw_ostream &os);

private:
  bool addModel(WireMessage &out);
  bool addGraph(StringRef bytes, WireMessage &out);
  bool addNode(StringRef bytes, WireMessage &out);

  const MappedFile &model;
  MeshAttr mesh;
  Specs specs;
  WireReader wire;
};
} // namespace

/// A node as it was, with the specs of its tensors behind it; a tensor that it takes twice has one.
bool Annotator::addNode(StringRef bytes, WireMessage &out) {
  std::vector<StringRef> tensors;
  bool isGood = wire.fields(bytes, [&](const WireField &field) {
    if (field.number == 10)
      return true;
    out.copy(field);
    return (field.number != 1 && field.number != 2) || wire.texts(field, "input", tensors);
  });
  llvm::StringSet<> seen;
  WireMessage told;
  told.text(1, kConfiguration);
  uint64_t empty = told.size();
  for (StringRef tensor : tensors) {
    StringRef spec = specs.find(tensor);
    if (spec.empty() || !seen.insert(tensor).second)
      continue;
    WireMessage named;
    named.text(1, tensor);
    told.text(2, named.str() + spec.str());
  }
  if (told.size() > empty)
    out.message(10, std::move(told));
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
      if (entry.key == kMeshProperty)
        return true;
    }
    if (field.number != 26)
      out.copy(field);
    return true;
  });
  WireMessage property, configuration;
  property.text(1, kMeshProperty);
  property.text(2, formatMesh(mesh));
  out.message(14, std::move(property));
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
                                         llvm::raw_ostream &os) {
  auto functions = module.getOps<func::FuncOp>();
  if (std::distance(functions.begin(), functions.end()) != 1)
    return makeError("a model in stages cannot be written with device annotations");
  return Annotator(model, *functions.begin(), tensors).write(os);
}
