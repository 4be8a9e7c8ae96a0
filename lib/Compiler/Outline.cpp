//===- Outline.cpp - what is in a model -----------------------------------===//
//
// Of an imported module; OutlineFile.cpp reads the file of a model that cannot be imported yet. Then equal layers become one
// group: two names are alike if they are the same text with one number that differs, always at the same place.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Outline.h"

#include "State.h"

#include "cleave/Compiler/Values.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Packed.h"
#include "cleave/Support/NumberedName.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace cleave;

//===----------------------------------------------------------------------===//
// Of a module
//===----------------------------------------------------------------------===//

static int64_t getBytes(RankedTensorType type) {
  return type.getNumElements() * reference::getElementBytes(type.getElementType());
}

static std::vector<TensorOutline> describe(ArrayRef<std::string> names, ArrayRef<RankedTensorType> types) {
  std::vector<TensorOutline> tensors;
  for (auto [name, type] : llvm::zip_equal(names, types))
    tensors.push_back({name, formatType(type), getBytes(type)});
  return tensors;
}

/// Nodes that read a parameter, as a plan addresses them: `node:/enc/MatMul#1`.
static std::vector<std::string> getUses(nn::LoadOp load) {
  std::vector<std::string> uses;
  for (OpOperand &use : load.getResult().getUses())
    for (const nn::NodeInfo &info : nn::getNodeInfos(use.getOwner()))
      for (auto [index, name] : llvm::enumerate(info.operands))
        if (name == load.getParam() && !info.node.empty())
          uses.push_back(("node:" + info.node + "#" + Twine(index)).str());
  return uses;
}

/// A parameter may be loaded several times, by the ops or parts that use it: their nodes are its uses.
static std::vector<TensorOutline> describeParameters(ModuleOp module, func::FuncOp func) {
  llvm::StringMap<std::vector<std::string>> uses;
  llvm::StringMap<std::string> held;
  func.walk([&](nn::LoadOp load) {
    llvm::append_range(uses[load.getParam()], getUses(load));
    if (RankedTensorType type = nn::getHeldType(load.getResult()))
      held[load.getParam()] = formatType(type);
  });
  std::vector<TensorOutline> parameters;
  for (nn::ParamOp param : module.getOps<nn::ParamOp>()) {
    auto type = cast<RankedTensorType>(param.getType());
    StringRef name = param.getSymName();
    auto readers = param->getAttrOfType<ArrayAttr>(spmd::kModulesAttr);
    StringRef module = readers ? cast<StringAttr>(readers[0]).getValue() : "";
    bool isConstant = isa<IntegerType>(type.getElementType()) && type.getElementTypeBitWidth() != 8;
    parameters.push_back({name.str(), formatType(type), getBytes(type), uses.lookup(name), held.lookup(name),
                          module.str(), isConstant, type.getNumElements()});
  }
  return parameters;
}

/// Tensors inside, by their names, with the node that computes each.
static std::vector<TensorOutline> describeTensors(func::FuncOp func) {
  std::vector<TensorOutline> tensors;
  func.walk([&](Operation *op) {
    for (Value result : op->getResults())
      for (StringRef name : nn::getTensorNames(result))
        if (auto type = dyn_cast<RankedTensorType>(result.getType()))
          tensors.push_back({name.str(), formatType(type), getBytes(type), {nn::describeNode(op)}});
  });
  return tensors;
}

/// By module, what its ops compute. What several nodes have become counts where the first of them stands.
using ModuleFlops = llvm::MapVector<std::string, double, std::map<std::string, unsigned>>;

static ModuleFlops countOps(func::FuncOp func, Outline &outline) {
  ModuleFlops byModule;
  func.walk([&](Operation *op) {
    auto ruled = dyn_cast<spmd::ShardingRuleOpInterface>(op);
    if (!ruled)
      return;
    int64_t flops = ruled.getShardingRule().flops;
    ++outline.ops[op->getName().getStringRef().str()];
    outline.flops += flops;
    if (SmallVector<nn::NodeInfo, 1> infos = nn::getNodeInfos(op); !infos.empty())
      byModule[infos.front().getModule()] += flops;
  });
  return byModule;
}

void cleave::listModules(ArrayRef<std::pair<std::string, double>> flops, Outline &outline) {
  llvm::MapVector<std::string, ModuleOutline, std::map<std::string, unsigned>> modules;
  for (const auto &[path, count] : flops)
    if (!path.empty())
      modules[path].flops += count;
  for (const TensorOutline &parameter : outline.parameters) {
    if (parameter.module.empty() || parameter.isConstant)
      continue;
    ModuleOutline &module = modules[parameter.module];
    module.elements += parameter.elements;
    module.bytes += parameter.bytes;
    module.types.push_back(parameter.holds.empty() ? parameter.type : parameter.holds);
  }
  for (auto &[path, module] : modules) {
    module.path = path;
    if (module.flops > 0 || !module.types.empty())
      outline.modules.push_back(std::move(module));
  }
}

int64_t Outline::countOps() const {
  int64_t total = 0;
  for (const auto &[name, count] : ops)
    total += count;
  return total;
}

std::optional<Outline> cleave::makeOutline(Compilation &compilation) {
  llvm::Expected<std::optional<Outline>> fromFile = outlineFile(compilation.getOptions());
  if (!fromFile) {
    compilation.fail(fromFile.takeError());
    return std::nullopt;
  }
  if (*fromFile)
    return *fromFile;
  func::FuncOp func = compilation.load(/*collectAllErrors=*/true) ? compilation.getEntry() : nullptr;
  if (!func)
    return std::nullopt;
  Outline outline;
  outline.inputs = describe(getInputNames(func), getInputTypes(func));
  for (auto [input, argument] : llvm::zip(outline.inputs, func.getArguments()))
    if (RankedTensorType held = nn::getHeldType(argument))
      input.holds = formatType(held);
  outline.outputs = describe(getOutputNames(func), getOutputTypes(func));
  outline.parameters = describeParameters(compilation.getModule(), func);
  outline.tensors = describeTensors(func);
  ModuleFlops flops = countOps(func, outline);
  listModules(flops.takeVector(), outline);
  return outline;
}

//===----------------------------------------------------------------------===//
// Equal layers
//===----------------------------------------------------------------------===//

namespace {

/// Parameters that share a line.
struct Group {
  const TensorOutline *first;
  NumberedName name, nodes;
  std::vector<NumberedName> otherNames, otherNodes;
  /// The number of the name that differs; nothing for one parameter.
  std::optional<size_t> differing;
};

} // namespace

/// A group grows along one number. What differs elsewhere too begins a group of its own, so that a line never hides
/// which parameters there are.
std::vector<ParameterGroup> cleave::groupParameters(ArrayRef<TensorOutline> parameters) {
  std::vector<Group> groups;
  llvm::StringMap<std::vector<size_t>> byText; // groups that are alike but for numbers
  for (const TensorOutline &parameter : parameters) {
    NumberedName name(parameter.name), nodes(llvm::join(parameter.nodes, " "));
    std::vector<size_t> &alike = byText[llvm::join(name.texts, "\n") + "\n\n" + parameter.type + parameter.holds +
                                        "\n\n" + llvm::join(nodes.texts, "\n")];
    auto found = llvm::find_if(alike, [&](size_t index) {
      std::optional<size_t> place = findDifference(groups[index].name, name);
      return place && groups[index].differing.value_or(*place) == *place;
    });
    if (found == alike.end()) {
      alike.push_back(groups.size());
      groups.push_back({&parameter, std::move(name), std::move(nodes), {}, {}, std::nullopt});
      continue;
    }
    Group &group = groups[*found];
    group.differing = findDifference(group.name, name);
    group.otherNames.push_back(std::move(name));
    group.otherNodes.push_back(std::move(nodes));
  }
  constexpr size_t longest = 16;
  std::vector<ParameterGroup> lines;
  for (const Group &group : groups)
    lines.push_back({listNumbers(group.name, group.otherNames, longest), group.first->type,
                     listNumbers(group.nodes, group.otherNodes, longest), group.otherNames.size() + 1,
                     group.first->bytes, group.first->holds});
  return lines;
}
