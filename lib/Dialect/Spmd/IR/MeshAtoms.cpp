//===- MeshAtoms.cpp - shardings as states of atoms, and back -------------===//
//
// Atoms are split where any sharding of the module has a border, so all types are read before the first state is made; a
// sharding that comes later and has other borders would not be expressible. States are remembered by attribute:
// attributes are unique, so their address is the key.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace cleave::spmd;

//===----------------------------------------------------------------------===//
// Walks over a module
//===----------------------------------------------------------------------===//

SmallVector<func::FuncOp> cleave::spmd::getFunctions(ModuleOp module) {
  SmallVector<func::FuncOp> functions;
  for (auto func : module.getOps<func::FuncOp>())
    if (!func.isExternal())
      functions.push_back(func);
  return functions;
}

static void forEachValue(Region &region, function_ref<void(Value)> callback) {
  for (Block &block : region) {
    for (BlockArgument argument : block.getArguments())
      callback(argument);
    for (Operation &op : block) {
      for (OpResult result : op.getResults())
        callback(result);
      for (Region &inner : op.getRegions())
        ::forEachValue(inner, callback);
    }
  }
}

void cleave::spmd::forEachValue(func::FuncOp func, function_ref<void(Value)> callback) {
  ::forEachValue(func.getBody(), callback);
}

std::string cleave::spmd::formatAxis(AxisAttr axis) {
  std::string text = axis.getName().str();
  if (axis.isSubAxis())
    text += ":(" + std::to_string(axis.getPreSize()) + ")" + std::to_string(axis.getSize());
  return text;
}

std::string cleave::spmd::formatAxes(ArrayRef<AxisAttr> axes) {
  return llvm::join(llvm::map_range(axes, formatAxis), ", ");
}

/// As plans write it: `_`, `?`, `data`, `[data, model]?`.
static std::string formatDim(DimShardingAttr dim) {
  std::string axes = formatAxes(dim.getAxes());
  if (axes.empty())
    return dim.getIsOpen() ? "?" : "_";
  return (dim.getAxes().size() > 1 ? "[" + axes + "]" : axes) + (dim.getIsOpen() ? "?" : "");
}

std::string cleave::spmd::formatSharding(ShardingAttr sharding) {
  std::string text = "[" + llvm::join(llvm::map_range(sharding.getDims(), formatDim), ", ") + "]";
  if (sharding.isPartial())
    text += " partial(" + formatAxes(sharding.getPartial()) + ": " +
            stringifyReductionKind(sharding.getPartialKind()).str() + ")";
  return text;
}

int64_t cleave::spmd::getElementBytes(Type elementType) {
  return llvm::divideCeil(elementType.getIntOrFloatBitWidth(), 8);
}

int64_t cleave::spmd::getBytes(Type type) {
  auto shaped = cast<ShapedType>(type);
  return shaped.getNumElements() * getElementBytes(shaped.getElementType());
}

/// The distinct shardings of all types in the functions of `module`, in order of appearance.
static llvm::SetVector<ShardingAttr> collectShardings(ModuleOp module) {
  llvm::SetVector<ShardingAttr> shardings;
  llvm::DenseSet<Type> seen;
  auto collect = [&](Type type) {
    if (seen.insert(type).second)
      if (ShardingAttr sharding = getSharding(type))
        shardings.insert(sharding);
  };
  for (auto func : module.getOps<func::FuncOp>()) {
    llvm::for_each(func.getArgumentTypes(), collect);
    llvm::for_each(func.getResultTypes(), collect);
    forEachValue(func, [&](Value value) { collect(value.getType()); });
  }
  return shardings;
}

/// The first value of that sharding.
static Value findFirst(ModuleOp module, ShardingAttr sharding) {
  Value first;
  for (auto func : module.getOps<func::FuncOp>())
    forEachValue(func, [&](Value value) {
      if (!first && getSharding(value.getType()) == sharding)
        first = value;
    });
  return first;
}

/// `shardings` are those of all types in the module.
static MeshAttr resolveMesh(ModuleOp module, ArrayRef<ShardingAttr> shardings) {
  MeshAttr mesh = module->getAttrOfType<MeshAttr>(SpmdDialect::kMeshAttr);
  for (ShardingAttr sharding : shardings) {
    if (!mesh)
      mesh = sharding.getMesh();
    if (sharding.getMesh() != mesh) {
      InFlightDiagnostic error = module.emitError() << "types are sharded over " << sharding.getMesh()
                                                    << " but the module's mesh is " << mesh;
      if (Value value = findFirst(module, sharding))
        error.attachNote(value.getLoc()) << "this value is";
      return {};
    }
  }
  if (!mesh)
    module.emitError() << "there is no mesh: give one by --mesh, in the plan, or in the sharding of a type";
  else
    module->setAttr(SpmdDialect::kMeshAttr, mesh);
  return mesh;
}

MeshAttr cleave::spmd::resolveMesh(ModuleOp module) {
  return ::resolveMesh(module, collectShardings(module).getArrayRef());
}

//===----------------------------------------------------------------------===//
// MeshAtoms
//===----------------------------------------------------------------------===//

MeshAtoms::MeshAtoms(MeshAttr mesh, AtomMesh atoms) : mesh(mesh), atoms(std::move(atoms)) {
  for (StringRef name : mesh.getNames())
    axisNames.push_back(name.str());
}

/// All sub-axes of a sharding.
static void collectSubAxes(ShardingAttr sharding, SmallVectorImpl<SubAxis> &annotations) {
  auto collect = [&](AxisAttr axis) {
    if (axis.isSubAxis())
      if (SubAxis annotation = axis.toSubAxis(sharding.getMesh()); !llvm::is_contained(annotations, annotation))
        annotations.push_back(annotation);
  };
  for (DimShardingAttr dim : sharding.getDims())
    llvm::for_each(dim.getAxes(), collect);
  llvm::for_each(sharding.getPartial(), collect);
  llvm::for_each(sharding.getReplicated(), collect);
}

std::unique_ptr<MeshAtoms> MeshAtoms::create(MeshAttr mesh, Operation *op, ArrayRef<ShardingAttr> shardings) {
  SmallVector<SubAxis> annotations;
  for (ShardingAttr sharding : shardings)
    collectSubAxes(sharding, annotations);
  llvm::Expected<AtomMesh> atoms = AtomMesh::create(mesh.getSizes(), annotations, mesh.getNames());
  if (!atoms) {
    op->emitError() << llvm::toString(atoms.takeError());
    return nullptr;
  }
  return std::unique_ptr<MeshAtoms>(new MeshAtoms(mesh, std::move(*atoms)));
}

/// Axes are split into atoms once for the whole module, along all sub-axes that any type of it has.
std::unique_ptr<MeshAtoms> MeshAtoms::create(ModuleOp root) {
  llvm::SetVector<ShardingAttr> shardings = collectShardings(root);
  MeshAttr mesh = ::resolveMesh(root, shardings.getArrayRef());
  return mesh ? create(mesh, root, shardings.getArrayRef()) : nullptr;
}

AtomList MeshAtoms::toAtoms(AxisAttr axis) const {
  assert(mesh.findAxis(axis.getName()) && "an axis of another mesh");
  return atoms.atomsOf(axis.toSubAxis(mesh)).value_or(AtomList());
}

/// Cached by attribute, which is one pointer: a model of many values has few shardings.
const State &MeshAtoms::toState(ShardingAttr sharding) {
  std::unique_ptr<State> &slot = states[sharding];
  if (slot)
    return *slot;
  slot = std::make_unique<State>();
  for (DimShardingAttr dim : sharding.getDims()) {
    AtomList &list = slot->dims.emplace_back();
    for (AxisAttr axis : dim.getAxes())
      llvm::append_range(list, toAtoms(axis));
  }
  for (AxisAttr axis : sharding.getPartial())
    for (AtomId atom : toAtoms(axis))
      slot->addPartial(atom, sharding.getPartialKind());
  return *slot;
}

/// A whole axis is written without its digits, so that equal lists are equal attributes.
SmallVector<AxisAttr, 2> MeshAtoms::toAxes(ArrayRef<AtomId> list) const {
  SmallVector<AxisAttr, 2> axes;
  for (const SubAxis &axis : atoms.subAxesOf(list)) {
    bool isFull = axis.size == atoms.axisSize(axis.axis);
    axes.push_back(AxisAttr::get(mesh.getContext(), mesh.getNames()[axis.axis], isFull ? 1 : axis.preSize,
                                 isFull ? 0 : axis.size));
  }
  return axes;
}

ArrayAttr MeshAtoms::toAxisArray(ArrayRef<AtomId> list) const {
  SmallVector<AxisAttr, 2> axes = toAxes(list);
  return ArrayAttr::get(mesh.getContext(), SmallVector<Attribute>(axes.begin(), axes.end()));
}

ShardingAttr MeshAtoms::toSharding(const State &state, ArrayRef<int64_t> shape) const {
  MLIRContext *context = mesh.getContext();
  SmallVector<DimShardingAttr> dims;
  for (const AtomList &list : state.dims)
    dims.push_back(DimShardingAttr::get(context, toAxes(list), /*isOpen=*/false, /*priority=*/0));
  return ShardingAttr::get(context, mesh, dims, toAxes(state.partial), state.kind, ArrayRef<AxisAttr>(),
                           isUneven(atoms, shape, state));
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

void cleave::spmd::addPadding(RankedTensorType global, Padding &padding) {
  ShardingAttr sharding = getSharding(global);
  if (!sharding)
    return;
  int64_t shards = 1;
  for (unsigned dim = 0; dim < sharding.getDims().size(); ++dim)
    shards *= sharding.getNumShards(dim);
  padding.add(sharding.getMesh().getNumRanks(), shards, getBytes(getLocalType(global)), getBytes(global));
}
