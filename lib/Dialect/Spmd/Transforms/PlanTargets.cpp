//===- PlanTargets.cpp - the tensors that a plan's rules address ----------===//
//
// Names of arguments and results are attributes, those of parameters symbols, all others stand in locations
// (`NodeLoc.h`). An output of the model addresses the function's result, not the value inside that it comes from: what
// the caller wants need not be how the value is used inside. A name that is pinned addresses the pin.
//
//===----------------------------------------------------------------------===//
#include "PlanTargets.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Plan/NamePattern.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

RankedTensorType PlanTarget::getType() const {
  return dyn_cast<RankedTensorType>(value ? value.getType() : func::FuncOp(func).getResultTypes()[result]);
}

nn::LoadOp PlanTarget::getPart() const {
  auto pin = value ? value.getDefiningOp<PinOp>() : PinOp();
  Value source = pin ? pin.getInput() : value;
  auto load = source ? source.getDefiningOp<nn::LoadOp>() : nn::LoadOp();
  return load && load.isPart() ? load : nn::LoadOp();
}

Location PlanTarget::getLoc() const { return value ? value.getLoc() : func::FuncOp(func).getLoc(); }

PlanTarget::Key PlanTarget::getKey() const {
  return {value ? value.getAsOpaquePointer() : func::FuncOp(func).getAsOpaquePointer(), result};
}

PlanTargets::PlanTargets(ModuleOp module) : named(module->getAttrOfType<DictionaryAttr>(SpmdDialect::kNamedAttr)) {
  for (func::FuncOp func : getFunctions(module))
    add(func);
}

void PlanTargets::add(func::FuncOp func) {
  llvm::DenseSet<std::pair<Value, StringRef>> outputs;
  SmallVector<PlanTarget> results;
  Operation *terminator = func.getBody().front().getTerminator();
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    results.push_back({{}, func, i, nn::getResultName(func, i)});
    outputs.insert({terminator->getOperand(i), results.back().name});
  }
  llvm::DenseSet<StringRef> pinned;
  // Several where a parameter is loaded in parts.
  for (PinOp pin : func.getOps<PinOp>()) {
    pinned.insert(pin.getName());
    tensors[pin.getName()].push_back({pin.getResult(), {}, 0, pin.getName()});
  }
  auto addNames = [&](Value value) {
    // How a parameter is stored is asked for even where it is an output too.
    bool isLoad = value.getDefiningOp<nn::LoadOp>() != nullptr;
    for (StringRef name : nn::getTensorNames(value))
      if (isa<BlockArgument>(value) || ((isLoad || !outputs.contains({value, name})) && !pinned.contains(name)))
        tensors[name].push_back({value, {}, 0, name});
  };
  // One walk for tensors and nodes: on a large model each look at an op's location misses the cache.
  Block &body = func.getBody().front();
  size_t numOps = std::distance(body.begin(), body.end());
  tensors.reserve(tensors.size() + numOps);
  nodes.reserve(nodes.size() + numOps);
  llvm::for_each(body.getArguments(), addNames);
  for (Operation &op : body) {
    if (!isa<PinOp>(op))
      llvm::for_each(op.getResults(), addNames);
    for (const nn::NodeInfo &info : nn::getNodeInfos(op.getLoc()))
      if (!info.node.empty())
        nodes[info.node].push_back(&op);
  }
  for (const PlanTarget &result : results)
    tensors[result.name].push_back(result);
}

/// The tensors that are operand or result `index` of the node called `name`, which `ops` were made for.
static SmallVector<StringRef, 2> getTensors(ArrayRef<Operation *> ops, StringRef name, bool isOperand, unsigned index) {
  SmallVector<StringRef, 2> tensors;
  auto note = [&](StringRef tensor) {
    if (!tensor.empty() && !llvm::is_contained(tensors, tensor))
      tensors.push_back(tensor);
  };
  for (Operation *op : ops)
    for (const nn::NodeInfo &info : nn::getNodeInfos(op->getLoc())) {
      if (info.node != name)
        continue;
      if (isOperand && index < info.operands.size())
        note(info.operands[index]);
      if (!isOperand && index < info.results.size())
        llvm::for_each(info.results[index], note);
    }
  return tensors;
}

/// The entries of `table` whose name matches; a literal is looked up.
template <typename Map, typename Callback>
static bool forEachMatch(const Map &table, const NamePattern &pattern, Callback callback) {
  bool any = false;
  auto call = [&](auto it) {
    any = true;
    callback(it->first, it->second);
  };
  if (pattern.isLiteral()) {
    if (auto it = table.find(pattern.getText()); it != table.end())
      call(it);
    return any;
  }
  for (auto it = table.begin(), end = table.end(); it != end; ++it)
    if (pattern.matches(it->first))
      call(it);
  return any;
}

template <typename Map> static std::string describeUnmatched(const PlanRule &rule, StringRef what, const Map &table) {
  SmallVector<StringRef> names;
  for (const auto &entry : table)
    names.push_back(entry.first);
  bool isPattern = StringRef(rule.pattern).find_first_of("*?[{") != StringRef::npos;
  std::string message = isPattern ? ("no " + what + " matches '" + rule.pattern + "'").str()
                                  : ("there is no " + what + " '" + rule.pattern + "'").str();
  return message + suggestNames(rule.pattern, names);
}

bool PlanTargets::findTensors(const PlanRule &rule, SmallVectorImpl<PlanTarget> &targets) const {
  std::string error;
  NamePattern pattern = *NamePattern::create(rule.pattern, error);
  return forEachMatch(tensors, pattern, [&](StringRef, const auto &found) { llvm::append_range(targets, found); });
}

/// True if a node matches; where it has no such tensor, the reason is in `reason`.
bool PlanTargets::findNodes(const PlanRule &rule, SmallVectorImpl<PlanTarget> &targets, std::string &reason) const {
  std::string error;
  NamePattern pattern = *NamePattern::create(rule.pattern, error);
  bool isOperand = rule.target == PlanRule::Target::Operand;
  return forEachMatch(nodes, pattern, [&](StringRef name, ArrayRef<Operation *> ops) {
    SmallVector<StringRef, 2> names = getTensors(ops, name, isOperand, rule.index);
    std::string what = (isOperand ? "operand " : "result ") + std::to_string(rule.index);
    if (names.empty()) {
      reason = "node '" + name.str() + "' has no " + what;
      return;
    }
    const auto *it = llvm::find_if(names, [&](StringRef tensor) { return tensors.contains(tensor); });
    if (it != names.end())
      llvm::append_range(targets, tensors.find(*it)->second);
    else if (!getNamed(rule))
      reason =
          what + " of node '" + name.str() + "' is '" + names.front().str() + "', which is not in the program any more";
  });
}

ArrayAttr PlanTargets::getNamed(const PlanRule &rule) const {
  return named ? named.getAs<ArrayAttr>(rule.formatTarget()) : ArrayAttr();
}

SmallVector<StringRef, 1> PlanTargets::findUnused(const PlanRule &rule) const {
  SmallVector<StringRef, 1> unused;
  if (ArrayAttr names = getNamed(rule))
    for (StringRef name : names.getAsValueRange<StringAttr>())
      if (!tensors.contains(name))
        unused.push_back(name);
  return unused;
}

LogicalResult PlanTargets::find(const PlanRule &rule, SmallVectorImpl<PlanTarget> &targets, PlanError &error) const {
  bool isTensor = rule.target == PlanRule::Target::Tensor;
  SmallVector<PlanTarget> all;
  std::string reason;
  bool any = isTensor ? findTensors(rule, all) : findNodes(rule, all, reason);
  // Nodes may have become parts of others since the rule was looked up first; the tensors are pinned.
  if (ArrayAttr names = getNamed(rule))
    for (StringRef name : names.getAsValueRange<StringAttr>())
      if (auto it = tensors.find(name); it != tensors.end())
        llvm::append_range(all, it->second);
  if (reason.empty() && all.empty()) {
    SmallVector<StringRef, 1> unused = findUnused(rule);
    if (!unused.empty())
      reason = "'" + unused.front().str() + "' is unused: no op of the program needs its elements";
    else if (!any)
      reason = isTensor ? describeUnmatched(rule, "tensor", tensors) : describeUnmatched(rule, "node", nodes);
  }
  if (!reason.empty()) {
    error = {rule.patternPlace, reason, {}};
    return failure();
  }
  llvm::DenseSet<PlanTarget::Key> seen;
  for (const PlanTarget &target : all)
    if (seen.insert(target.getKey()).second)
      targets.push_back(target);
  return success();
}
