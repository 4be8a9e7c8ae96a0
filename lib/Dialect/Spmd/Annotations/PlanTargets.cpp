//===- PlanTargets.cpp - the tensors that a plan's rules address ----------===//
//
// An output of the model addresses the function's result, not the value inside that it comes from: what the caller wants
// need not be how the value is used inside. A name that is pinned addresses the pin.
//
//===----------------------------------------------------------------------===//
#include "PlanTargets.h"

#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Support/Beside.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

RankedTensorType PlanTarget::getType() const {
  return dyn_cast<RankedTensorType>(value ? value.getType() : func::FuncOp(func).getResultTypes()[result]);
}

ParameterOpInterface cleave::spmd::getPart(Value value) {
  auto pin = value.getDefiningOp<PinOp>();
  auto parameter = (pin ? pin.getInput() : value).getDefiningOp<ParameterOpInterface>();
  return parameter && parameter.getPartOffset() ? parameter : ParameterOpInterface();
}

Location PlanTarget::getLoc() const { return value ? value.getLoc() : func::FuncOp(func).getLoc(); }

PlanTarget::Key PlanTarget::getKey() const {
  return {value ? value.getAsOpaquePointer() : func::FuncOp(func).getAsOpaquePointer(), result, name};
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

ModuleWeights cleave::spmd::findModuleWeights(ModuleOp module) {
  llvm::DenseMap<StringRef, ArrayAttr> readers;
  for (Operation &op : module.getOps())
    if (auto list = op.getAttrOfType<ArrayAttr>(kModulesAttr))
      readers[SymbolTable::getSymbolName(&op).getValue()] = list;
  ModuleWeights weights;
  if (!readers.empty())
    module.walk([&](ParameterOpInterface parameter) {
      if (ArrayAttr list = readers.lookup(parameter.getParameterName()))
        weights.add(parameter.getParameterName(), parameter.getParameterShape().size(),
                    llvm::to_vector(list.getAsValueRange<StringAttr>()));
    });
  return weights;
}

PlanTargets::PlanTargets(ModuleOp module) : module(module) {
  for (func::FuncOp func : getFunctions(module))
    add(func);
  addUnused(module);
  auto getNames = [](const auto &table) {
    return NameIndex({llvm::make_first_range(table).begin(), llvm::make_first_range(table).end()});
  };
  tensorIndex.emplace(getNames(tensors));
  nodeIndex.emplace(getNames(nodes));
}

/// A name that is pinned, or that the function returns, stands for that and not for the value inside: an annotation must stay
/// where it was asked for.
void PlanTargets::add(func::FuncOp func) {
  llvm::DenseSet<std::pair<Value, StringRef>> outputs;
  SmallVector<PlanTarget> results;
  Operation *terminator = func.getBody().front().getTerminator();
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    results.push_back({{}, func, i, getResultName(func, i)});
    outputs.insert({terminator->getOperand(i), results.back().name});
  }
  llvm::DenseSet<StringRef> pinned;
  func.walk([&](PinOp pin) { pinned.insert(pin.getName()); });
  auto addNames = [&](Value value) {
    Operation *op = value.getDefiningOp();
    // How a parameter is stored is asked for even where it is an output too.
    bool isStored = !op || isa<ParameterOpInterface>(op), isPin = isa_and_present<PinOp>(op);
    for (StringRef name : getTensorNames(value))
      if (isPin || ((isStored || !outputs.contains({value, name})) && !pinned.contains(name)))
        tensors[name].push_back({value, {}, 0, name});
  };
  Block &body = func.getBody().front();
  size_t numOps = std::distance(body.begin(), body.end());
  // Of a large model each table takes as long as the other. What names a node only reads what is there; a tensor's name may
  // be made.
  Beside nodesAdded([&] { addNodes(body, numOps); });
  tensors.reserve(tensors.size() + numOps);
  llvm::for_each(body.getArguments(), addNames);
  body.walk<WalkOrder::PreOrder>([&](Operation *op) { llvm::for_each(op->getResults(), addNames); });
  nodesAdded.wait();
  for (const PlanTarget &result : results)
    tensors[result.name].push_back(result);
}

void PlanTargets::addNodes(Block &body, size_t numOps) {
  nodes.reserve(nodes.size() + numOps);
  body.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (const NodeInfo &info : getNodeInfos(op))
      if (!info.node.empty())
        nodes[info.node].push_back(info);
  });
}

void PlanTargets::addUnused(ModuleOp module) {
  auto list = module->getAttrOfType<ArrayAttr>(kUnusedAttr);
  if (!list)
    return;
  for (LocationAttr node : list.getAsRange<LocationAttr>())
    for (const NodeInfo &info : getNodeInfos(Location(node))) {
      if (!info.node.empty()) {
        nodes[info.node].push_back(info);
        fullNodes[info.node].push_back(info);
      }
      SmallVector<StringRef> names(info.operands);
      for (ArrayRef<StringRef> result : info.results)
        llvm::append_range(names, result);
      for (StringRef name : names)
        if (!tensors.contains(name))
          unused.insert(name);
    }
}

//===----------------------------------------------------------------------===//
// Looking up
//===----------------------------------------------------------------------===//

/// The tensors that are operand or result `index` of a node.
static SmallVector<StringRef, 2> getTensors(ArrayRef<NodeInfo> infos, bool isOperand, unsigned index) {
  SmallVector<StringRef, 2> tensors;
  auto note = [&](StringRef tensor) {
    if (!tensor.empty() && !llvm::is_contained(tensors, tensor))
      tensors.push_back(tensor);
  };
  for (const NodeInfo &info : infos) {
    if (isOperand && index < info.operands.size())
      note(info.operands[index]);
    if (!isOperand && index < info.results.size())
      llvm::for_each(info.results[index], note);
  }
  return tensors;
}

/// Why a rule picks nothing, with names that are close to what it says.
static std::string describeUnmatched(const PlanRule &rule, StringRef what, const NameIndex &index) {
  if (!rule.except.empty() && index.forEachMatch(llvm::cantFail(NamePattern::create(rule.pattern)), [](size_t) {}))
    return "every " + what.str() + " that '" + rule.pattern + "' matches is excepted";
  bool isPattern = StringRef(rule.pattern).find_first_of("*?[{") != StringRef::npos;
  std::string message = isPattern ? ("no " + what + " matches '" + rule.pattern + "'").str()
                                  : ("there is no " + what + " '" + rule.pattern + "'").str();
  return message + suggestPatterns(rule.pattern, index.getNames());
}

/// An exception of `rule` that takes nothing away from what it picks; null if each does.
static const PlanPattern *findIdleException(const PlanRule &rule, const NameIndex &index) {
  if (rule.except.empty())
    return nullptr;
  NamePattern picked = llvm::cantFail(NamePattern::create(rule.pattern));
  for (const PlanPattern &other : rule.except) {
    NamePattern excepted = llvm::cantFail(NamePattern::create(other.text));
    bool takes = false;
    index.forEachMatch(picked, [&](size_t number) { takes |= excepted.matches(index.getNames()[number]); });
    if (!takes)
      return &other;
  }
  return nullptr;
}

/// `{query,kez}` picks queries, and nobody would notice that no name has the other in its place.
static void noteIdleAlternatives(const PlanRule &rule, StringRef what, const NameIndex &index,
                                 std::vector<std::string> &notes) {
  if (!StringRef(rule.pattern).contains('{'))
    return;
  for (const auto &[alternative, pattern] : llvm::cantFail(NamePattern::create(rule.pattern)).getAlternatives())
    if (!index.forEachMatch(pattern, [](size_t) {}))
      notes.push_back("no " + what.str() + " matches '" + pattern.getText().str() + "': '" + alternative + "' of '" +
                      rule.pattern + "' picks nothing" + suggestNames(pattern.getText(), index.getNames()));
}

void PlanTargets::addName(StringRef name, Found &found) const {
  if (auto it = tensors.find(name); it != tensors.end())
    llvm::append_range(found.targets, it->second);
  else if (unused.contains(name))
    found.unused.push_back(name);
}

bool PlanTargets::findTensors(const PlanRule &rule, Found &found) const {
  NamePattern pattern = rule.getPattern();
  bool any = tensorIndex->forEachMatch(
      pattern, [&](size_t number) { llvm::append_range(found.targets, tensors.begin()[number].second); });
  // What is gone is asked for by its whole name only: wildcards find what is there.
  if (!any && pattern.isLiteral() && unused.contains(pattern.getText()))
    found.unused.push_back(rule.pattern);
  return any || !found.unused.empty();
}

/// True if a node matches; where it has no such tensor, the reason is in `reason`.
bool PlanTargets::findNodes(const PlanRule &rule, Found &found, std::string &reason) const {
  NamePattern pattern = rule.getPattern();
  bool isOperand = rule.target == PlanRule::Target::Operand;
  return nodeIndex->forEachMatch(pattern, [&](size_t number) {
    const auto &[name, infos] = nodes.begin()[number];
    auto whole = isOperand ? fullNodes.end() : fullNodes.find(name);
    SmallVector<StringRef, 2> names =
        getTensors(whole == fullNodes.end() ? ArrayRef<NodeInfo>(infos) : ArrayRef<NodeInfo>(whole->second), isOperand,
                   rule.index);
    std::string what = (isOperand ? "operand " : "result ") + std::to_string(rule.index);
    if (names.empty()) {
      reason = "node '" + name.str() + "' has no " + what;
      return;
    }
    const auto *it = llvm::find_if(names, [&](StringRef tensor) { return tensors.contains(tensor); });
    if (it == names.end())
      it = llvm::find_if(names, [&](StringRef tensor) { return unused.contains(tensor); });
    if (it != names.end())
      addName(*it, found);
    else
      reason =
          what + " of node '" + name.str() + "' is '" + names.front().str() + "', which is not in the program any more";
  });
}

/// True if a module matches; where it has no such weight, the reason is in `reason`.
bool PlanTargets::findWeights(const PlanRule &rule, Found &found, std::string &reason) const {
  llvm::Expected<std::vector<StringRef>> weights = modules->find(rule);
  if (!weights) {
    reason = llvm::toString(weights.takeError());
    return false;
  }
  for (StringRef name : *weights)
    addName(name, found);
  return true;
}

/// One value may be found by several names; it is one target.
LogicalResult PlanTargets::find(const PlanRule &rule, Found &found, PlanError &error) const {
  bool isTensor = rule.target == PlanRule::Target::Tensor, isModule = rule.target == PlanRule::Target::Module;
  StringRef what = isTensor ? "tensor" : isModule ? "module" : "node";
  std::optional<NameIndex> moduleIndex;
  if (isModule && !modules)
    modules = findModuleWeights(module);
  if (isModule)
    moduleIndex.emplace(modules->listModules());
  const NameIndex &index = isTensor ? *tensorIndex : isModule ? *moduleIndex : *nodeIndex;
  Found all;
  std::string reason;
  bool any = isTensor   ? findTensors(rule, all)
             : isModule ? findWeights(rule, all, reason)
                        : findNodes(rule, all, reason);
  if (reason.empty() && all.targets.empty()) {
    if (!all.unused.empty())
      reason = "'" + all.unused.front().str() + "' is unused: no op of the program needs its elements";
    else if (!any)
      reason = describeUnmatched(rule, what, index);
  }
  if (!reason.empty()) {
    error = {rule.patternPlace, reason, {}};
    return failure();
  }
  if (const PlanPattern *idle = findIdleException(rule, index)) {
    error = {idle->place, "'" + idle->text + "' excepts nothing that '" + rule.pattern + "' matches", {}};
    return failure();
  }
  noteIdleAlternatives(rule, what, index, found.notes);
  found.unused = std::move(all.unused);
  llvm::DenseSet<PlanTarget::Key> seen;
  for (const PlanTarget &target : all.targets)
    if (seen.insert(target.getKey()).second)
      found.targets.push_back(target);
  return success();
}
