//===- Placements.cpp - shardings in the words of frameworks --------------===//
//
// Shardy says all that a sharding here says, sub-axes and partial values included. DTensor has one placement for each axis of the mesh, and
// cuts a dim axis by axis in the order of the mesh; what is split otherwise it cannot say:
//
//   mesh (a=2, b=2)     [[a, b]]  (Shard(0), Shard(0))     [[b, a]]  none: the mesh's order is a, b     [a:(1)2]  none: a part of an axis
//
//===----------------------------------------------------------------------===//
#include "cleave/Export/Placements.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;
using llvm::json::Array;
using llvm::json::Object;

namespace {
struct Tensor {
  std::string name;
  /// `input`, `parameter` or `output`.
  StringRef kind;
  RankedTensorType type;
  /// Of a parameter, the modules that read it, where the model's file says them.
  ArrayAttr modules = {};
};
} // namespace

/// Inputs, then parameters, each once, then outputs. What is read in parts is a tensor for each.
static std::vector<Tensor> listTensors(func::FuncOp func) {
  std::vector<Tensor> tensors, parameters;
  for (BlockArgument argument : func.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(argument.getType())) {
      bool isParameter = spmd::isParameter(func, argument.getArgNumber());
      (isParameter ? parameters : tensors)
          .push_back(
              {spmd::getArgumentName(func, argument.getArgNumber()).str(), isParameter ? "parameter" : "input", type});
    }
  llvm::MapVector<std::pair<StringRef, Type>, unsigned> seen;
  llvm::StringMap<unsigned> parts;
  SymbolTable symbols(func->getParentOfType<ModuleOp>());
  func->walk([&](spmd::ParameterOpInterface parameter) {
    auto type = dyn_cast<RankedTensorType>(parameter->getResult(0).getType());
    StringRef name = parameter.getParameterName();
    bool isPart = type && type.getShape() != parameter.getParameterShape();
    if (!type || (!isPart && !seen.try_emplace({name, type}, 0).second))
      return;
    std::string shown = name.str();
    if (unsigned number = parts[name]++; isPart || number > 0)
      shown += " part " + std::to_string(number);
    Operation *symbol = symbols.lookup(name);
    parameters.push_back(
        {shown, "parameter", type, symbol ? symbol->getAttrOfType<ArrayAttr>(spmd::kModulesAttr) : ArrayAttr()});
  });
  llvm::append_range(tensors, parameters);
  // What is returned may be resharded first: the terminator says how it wants its operands.
  auto returned = cast<func::ReturnOp>(func.getBody().front().getTerminator());
  auto wanted = returned->getAttrOfType<ArrayAttr>(spmd::SpmdDialect::kOperandShardingsAttr);
  for (auto [index, value] : llvm::enumerate(returned.getOperands()))
    if (auto type = dyn_cast<RankedTensorType>(value.getType())) {
      if (auto sharding = wanted ? dyn_cast<spmd::ShardingAttr>(wanted[index]) : spmd::ShardingAttr())
        type = RankedTensorType::get(type.getShape(), type.getElementType(), sharding);
      tensors.push_back({spmd::getResultName(func, index).str(), "output", type});
    }
  return tensors;
}

//===----------------------------------------------------------------------===//
// Shardy
//===----------------------------------------------------------------------===//

/// `{"data", "model":(1)2}`.
static std::string formatShardyAxes(ArrayRef<spmd::AxisAttr> axes) {
  auto format = [](spmd::AxisAttr axis) {
    std::string text = llvm::formatv("\"{0}\"", axis.getName());
    if (axis.isSubAxis())
      text += llvm::formatv(":({0}){1}", axis.getPreSize(), axis.getSize());
    return text;
  };
  return "{" + llvm::join(llvm::map_range(axes, format), ", ") + "}";
}

static std::string formatShardy(RankedTensorType type) {
  spmd::ShardingAttr sharding = spmd::getSharding(type);
  std::string text = "#sdy.sharding<@mesh, [";
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    text += (dim ? ", " : "") + (sharding ? formatShardyAxes(sharding.getDims()[dim].getAxes()) : "{}");
  text += "]";
  if (sharding && sharding.isPartial())
    text += ", unreduced=" + formatShardyAxes(sharding.getPartial());
  return text + ">";
}

void cleave::writeShardy(llvm::raw_ostream &os, func::FuncOp func) {
  spmd::MeshAttr mesh = spmd::getMesh(func);
  assert(mesh && "no sharding has been decided");
  os << "sdy.mesh @mesh = <[";
  for (auto [index, axis] : llvm::enumerate(llvm::zip_equal(mesh.getNames(), mesh.getSizes())))
    os << (index ? ", " : "") << '"' << std::get<0>(axis) << "\"=" << std::get<1>(axis);
  os << ']';
  if (ArrayRef<int64_t> devices = mesh.getDevices(); !devices.empty())
    os << llvm::formatv(", device_ids=[{0:$[, ]}]", llvm::make_range(devices.begin(), devices.end()));
  os << ">\nfunc.func private @main(\n";
  std::vector<Tensor> tensors = listTensors(func);
  auto begin = llvm::find_if(tensors, [](const Tensor &tensor) { return tensor.kind == "output"; });
  // A comment for each: declarations have no names of arguments.
  auto write = [&](ArrayRef<Tensor> list) {
    for (auto [index, tensor] : llvm::enumerate(list))
      os << "    " << RankedTensorType::get(tensor.type.getShape(), tensor.type.getElementType())
         << " {sdy.sharding = " << formatShardy(tensor.type) << '}' << (index + 1 < list.size() ? "," : "") << " // "
         << tensor.kind << ' ' << tensor.name << '\n';
  };
  write(ArrayRef(tensors).take_front(begin - tensors.begin()));
  os << "  ) -> (\n";
  write(ArrayRef(tensors).drop_front(begin - tensors.begin()));
  os << "  )\n";
}

//===----------------------------------------------------------------------===//
// DTensor and JAX
//===----------------------------------------------------------------------===//

/// Why neither can say it; empty: they can. Both cut a dim by whole axes of the mesh.
static std::string findObstacle(spmd::MeshAttr mesh, spmd::ShardingAttr sharding, bool isByMesh) {
  auto isFullAxis = [](spmd::AxisAttr axis) { return !axis.isSubAxis(); };
  for (auto [number, dim] : llvm::enumerate(sharding.getDims())) {
    if (!llvm::all_of(dim.getAxes(), isFullAxis))
      return llvm::formatv("dim {0} is split by a part of an axis", number);
    auto place = [&](spmd::AxisAttr axis) {
      return llvm::find(mesh.getNames(), axis.getName()) - mesh.getNames().begin();
    };
    if (isByMesh && !llvm::is_sorted(llvm::map_range(dim.getAxes(), place)))
      return llvm::formatv("dim {0} is split by {1}, which is not the order of the mesh", number,
                           spmd::formatAxes(dim.getAxes()));
  }
  return llvm::all_of(sharding.getPartial(), isFullAxis) ? "" : "it is partial over a part of an axis";
}

/// One word for each axis of the mesh.
static Array placeOnMesh(spmd::MeshAttr mesh, spmd::ShardingAttr sharding) {
  Array placements;
  for (StringRef name : mesh.getNames()) {
    std::string placement = "Replicate()";
    auto isIt = [&](spmd::AxisAttr axis) { return axis.getName() == name; };
    for (auto [number, dim] : llvm::enumerate(sharding.getDims()))
      if (llvm::any_of(dim.getAxes(), isIt))
        placement = llvm::formatv("Shard({0})", number);
    if (llvm::any_of(sharding.getPartial(), isIt))
      placement = llvm::formatv("Partial('{0}')", spmd::stringifyReductionKind(sharding.getPartialKind()));
    placements.push_back(std::move(placement));
  }
  return placements;
}

/// For each dim null, a name, or a list of names.
static Array specifyDims(spmd::ShardingAttr sharding) {
  Array spec;
  for (spmd::DimShardingAttr dim : sharding.getDims()) {
    Array names;
    for (spmd::AxisAttr axis : dim.getAxes())
      names.push_back(axis.getName().str());
    if (names.size() == 1)
      spec.push_back(std::move(names.front()));
    else if (names.empty())
      spec.push_back(nullptr);
    else
      spec.push_back(std::move(names));
  }
  return spec;
}

static Object describe(spmd::MeshAttr mesh, const Tensor &tensor) {
  std::string element;
  llvm::raw_string_ostream(element) << tensor.type.getElementType();
  Object entry{
      {"name", tensor.name}, {"kind", tensor.kind.str()}, {"type", element}, {"shape", Array(tensor.type.getShape())}};
  Array modules;
  for (Attribute path : tensor.modules ? tensor.modules.getValue() : ArrayRef<Attribute>())
    if (StringRef text = cast<StringAttr>(path).getValue(); !text.empty())
      modules.push_back(text.str());
  if (!modules.empty())
    entry["modules"] = std::move(modules);
  spmd::ShardingAttr sharding = spmd::getSharding(tensor.type);
  entry["sdy"] = formatShardy(tensor.type);
  if (!sharding) {
    entry["dtensor"] = Array(std::vector<std::string>(mesh.getNames().size(), "Replicate()"));
    entry["jax"] = Array(std::vector<std::nullptr_t>(tensor.type.getRank(), nullptr));
    return entry;
  }
  std::string forTorch = findObstacle(mesh, sharding, /*isByMesh=*/true), forJax = findObstacle(mesh, sharding, false);
  if (sharding.isPartial() && forJax.empty())
    forJax = "a partition spec has no partial values";
  if (forTorch.empty())
    entry["dtensor"] = placeOnMesh(mesh, sharding);
  else
    entry["not_in_dtensor"] = forTorch;
  if (forJax.empty())
    entry["jax"] = specifyDims(sharding);
  else
    entry["not_in_jax"] = forJax;
  return entry;
}

Object cleave::describePlacements(func::FuncOp func) {
  spmd::MeshAttr mesh = spmd::getMesh(func);
  assert(mesh && "no sharding has been decided");
  Array names, tensors;
  for (StringRef name : mesh.getNames())
    names.push_back(name.str());
  Object device{{"names", std::move(names)}, {"shape", Array(mesh.getSizes())}};
  if (!mesh.getDevices().empty())
    device["devices"] = Array(mesh.getDevices());
  for (const Tensor &tensor : listTensors(func))
    tensors.push_back(describe(mesh, tensor));
  return Object{{"version", 1}, {"kind", "placements"}, {"mesh", std::move(device)}, {"tensors", std::move(tensors)}};
}
