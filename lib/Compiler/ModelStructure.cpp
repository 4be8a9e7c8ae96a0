//===- ModelStructure.cpp - what a model is made of -----------------------===//
//
// Ops are asked for their rules: one without a choice has a reason, and one that is neither movement nor computed element by element, and
// counts no operations, is priced by its bytes.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/ModelStructure.h"

#include "MeshProblem.h"

#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

/// A mesh of one rank says nothing; what a plan annotates wants its own.
std::unique_ptr<ModelStructure> ModelStructure::create(Compilation &compilation, std::shared_ptr<const Plan> plan) {
  Compilation::State &state = *compilation.state;
  if (!plan || plan->mesh.empty()) {
    Plan alone;
    alone.mesh = {{"device", 1, {}}};
    // The states of a step are sharded over the mesh of its plan already.
    if (state.handed.training && !state.handed.training->pipeline && !state.handed.training->mesh.empty())
      alone.mesh = state.handed.training->mesh;
    plan = std::make_shared<Plan>(std::move(alone));
  }
  std::unique_ptr<ModelStructure> structure(new ModelStructure);
  std::string reason;
  structure->made = state.makeProblem(*plan, state.options.sharding, /*storesParameters=*/false, &reason);
  if (!structure->made) {
    state.fail(makeError("{0}: the rules that are given cannot be kept: {1}", state.options.model, reason));
    return nullptr;
  }
  structure->names = listNames(*state.module);
  structure->model = makeStyledModel(*structure->made);
  return structure;
}

ModelStructure::ModelStructure() = default;
ModelStructure::~ModelStructure() = default;

const Problem &ModelStructure::getProblem() const { return made->getProblem(); }

std::vector<TensorDims> ModelStructure::listTensors(const StyledPlan &styled, ArrayRef<MeshAxis> axes) const {
  return listStyled(*made, styled, axes);
}

/// The first, where a value has several.
StringRef ModelStructure::getName(ValueId value) const {
  SmallVector<StringRef, 1> names = getTensorNames(made->source->getValues()[value]);
  return names.empty() ? "" : names.front();
}

std::function<bool(StringRef)> ModelStructure::getPicker(const PlanRule &rule) const {
  if (rule.target == PlanRule::Target::Tensor)
    return [pattern = rule.getPattern()](StringRef name) { return pattern.matches(name); };
  llvm::StringSet<> picked;
  if (rule.target == PlanRule::Target::Module) {
    llvm::Expected<std::vector<StringRef>> weights = names.weights.find(rule);
    if (weights)
      picked.insert_range(*weights);
    else
      llvm::consumeError(weights.takeError());
  }
  return [picked = std::move(picked)](StringRef name) { return picked.contains(name); };
}

/// Weights that a plan can name; of others, as states that a recurrence begins with, nobody can say anything.
std::vector<char> ModelStructure::findNamedWeights() const {
  std::vector<char> named;
  for (auto [isWeight, isNamed] : llvm::zip(model.isWeight, model.isNamed))
    named.push_back(isWeight && isNamed);
  return named;
}

/// A weight that several ops read, or that is read in parts, has a line for all of them.
std::vector<NamedRole> ModelStructure::findRoles(const Plan *plan) const {
  std::vector<NamedRole> named;
  llvm::StringMap<size_t> known;
  std::vector<std::pair<std::function<bool(StringRef)>, std::string>> rules;
  for (const PlanRule &rule : plan ? ArrayRef(plan->rules) : ArrayRef<PlanRule>())
    rules.emplace_back(getPicker(rule), rule.formatDims());
  // The last rule that picks a name says how it is split.
  auto findDims = [&](StringRef name) {
    auto found = llvm::find_if(llvm::reverse(rules), [&](const auto &rule) { return rule.first(name); });
    return found == rules.rend() ? std::string() : found->second;
  };
  for (const Role &role : spmd::findRoles(getProblem(), model.isGiven, findNamedWeights())) {
    StringRef name = getName(role.weight);
    auto [entry, isNew] = known.try_emplace(name, named.size());
    std::string words = describe(role.kinds);
    if (!isNew) {
      std::string &before = named[entry->second].role;
      if (!StringRef(before).contains(words))
        before += ", " + words;
      continue;
    }
    auto parameter = made->source->getValues()[role.weight].getDefiningOp<ParameterOpInterface>();
    ArrayRef<int64_t> shape = parameter ? parameter.getParameterShape() : getProblem().shape(role.weight);
    named.push_back({name.str(), words, role.block, shape.vec(), findDims(name)});
  }
  return named;
}

std::map<std::string, unsigned> ModelStructure::numberNodes() const {
  llvm::DenseMap<ValueId, unsigned> blocks;
  for (const Role &role : spmd::findRoles(getProblem(), model.isGiven, findNamedWeights()))
    blocks.try_emplace(role.weight, role.block);
  std::map<std::string, unsigned> nodes;
  unsigned block = 0;
  for (auto [id, op] : llvm::enumerate(made->source->getOps())) {
    for (ValueId value : getProblem().operands(id))
      if (auto known = blocks.find(value); known != blocks.end())
        block = known->second;
    if (std::string node = describeNode(op); !node.empty())
      nodes.try_emplace(std::move(node), block);
  }
  return nodes;
}

/// What makes a value that a plan constrains is no op of the model. Rows are priced: kernels of softmax and norms pass over memory once.
SupportReport ModelStructure::findSupport() const {
  const Problem &problem = getProblem();
  SupportReport report;
  llvm::MapVector<std::pair<StringRef, StringRef>, unsigned> replicated;
  llvm::MapVector<StringRef, unsigned> uncosted;
  for (auto [id, op] : llvm::enumerate(made->source->getOps())) {
    if (problem.isConstraint(id))
      continue;
    const ShardingRule &rule = problem.rule(problem.ruleOf(id));
    bool isMade = rule.choices.size() > 1;
    // Of one position there is nothing to split.
    bool isSmall = rule.mustReplicate.empty();
    ++report.ops;
    report.splittable += isMade || isSmall;
    StringRef name = op->getName().getStringRef();
    if (!isMade && !isSmall)
      ++replicated[{name, rule.mustReplicate}];
    bool isTimed = rule.flops > 0 || rule.isMovement || rule.form == Form::Data || rule.form == Form::Map ||
                   rule.form == Form::Movement || rule.form == Form::Row;
    if (!isTimed)
      ++uncosted[name];
  }
  for (auto &[key, count] : replicated)
    report.replicated.push_back({key.first.str(), key.second.str(), count});
  for (auto &[name, count] : uncosted)
    report.uncosted.emplace_back(name.str(), count);
  return report;
}
