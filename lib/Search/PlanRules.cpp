//===- PlanRules.cpp - few rules for many tensors -------------------------===//
//
// Tensors are one rule if their names differ in numbers alone and they are cut alike: `*` stands for the numbers where it picks no tensor
// that is cut otherwise, `{0,2,5}` for those that there are where it would.
//
//
// By modules a rule picks of each the weight of as many dims, so that a star may go over modules that have none, and may not over those that
// have one which is sharded otherwise.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/PlanRules.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Support/NumberedName.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace cleave::spmd;
using namespace llvm;

namespace {
struct Group {
  PlanRule::Target target = PlanRule::Target::Tensor;
  std::vector<PlanDim> dims;
  std::vector<std::string> names;
  std::vector<cleave::NumberedName> numbered;
};
} // namespace

/// Text that a pattern would read as more than itself.
static bool hasPatternWords(StringRef name) {
  return name.find_first_of("*?[]{}\\,") != StringRef::npos || name.starts_with("re:");
}

/// With a list of the numbers that there are; empty where names differ in several.
static std::string listAlternatives(const Group &group) {
  const cleave::NumberedName &first = group.numbered.front();
  ArrayRef<cleave::NumberedName> others = ArrayRef(group.numbered).drop_front();
  std::optional<size_t> place = cleave::findDifference(first, others.front());
  bool isOne =
      place && all_of(others, [&](const auto &other) { return cleave::findDifference(first, other) == place; });
  return isOne ? cleave::listNumbers(first, others) : "";
}

/// True if a pattern picks no tensor beside those of the group, cut or not: what no rule names stays free.
static bool picksOnly(StringRef text, const Group &group, ArrayRef<StringRef> names) {
  Expected<NamePattern> pattern = NamePattern::create(text);
  if (!pattern) {
    consumeError(pattern.takeError());
    return false;
  }
  StringSet<> own;
  for (const std::string &name : group.names)
    own.insert(name);
  return all_of(names, [&](StringRef name) { return own.contains(name) || !pattern->matches(name); });
}

static PlanRule makeRule(const Group &group, StringRef pattern) {
  PlanRule rule;
  rule.target = group.target;
  rule.pattern = pattern.str();
  rule.dims = group.dims;
  return rule;
}

std::vector<PlanDim> cleave::spmd::makePlanDims(ArrayRef<AtomList> dims, const AtomMesh &mesh,
                                                ArrayRef<MeshAxis> axes) {
  std::vector<PlanDim> made;
  for (const AtomList &atoms : dims) {
    PlanDim &dim = made.emplace_back();
    for (const SubAxis &part : mesh.subAxesOf(atoms)) {
      bool isFull = part.size == mesh.axisSize(part.axis);
      dim.axes.push_back({axes[part.axis].name, isFull ? 1 : part.preSize, isFull ? 0 : part.size, {}});
    }
  }
  return made;
}

static std::string formatDims(const std::vector<PlanDim> &dims) {
  PlanRule rule;
  rule.dims = dims;
  return rule.formatDims();
}

std::vector<TensorDims> cleave::spmd::keepAgreed(ArrayRef<TensorDims> tensors) {
  MapVector<StringRef, const TensorDims *> known;
  for (const TensorDims &tensor : tensors) {
    auto [entry, isNew] = known.try_emplace(tensor.name, &tensor);
    if (!isNew && entry->second && formatDims(entry->second->dims) != formatDims(tensor.dims))
      entry->second = nullptr;
  }
  std::vector<TensorDims> kept;
  for (auto [name, tensor] : known)
    if (tensor && any_of(tensor->dims, [](const PlanDim &dim) { return !dim.axes.empty(); }))
      kept.push_back(*tensor);
  return kept;
}

/// Of modules those alone count that have a weight of as many dims.
static std::vector<StringRef> listOthers(const Group &group, const ModelNames &names) {
  return group.target == PlanRule::Target::Module ? names.weights.listModules(group.dims.size()) : names.tensors;
}

/// What is wanted alike of modules side by side is one rule: `self_attn.{q_proj,k_proj}`, which picks just what they did.
static std::vector<PlanRule> joinSiblings(ArrayRef<PlanRule> rules) {
  using Key = std::tuple<std::string, std::string>;
  std::vector<PlanRule> joined;
  std::map<Key, size_t> places;
  std::vector<std::vector<std::string>> names;
  for (const PlanRule &rule : rules) {
    auto [parent, name] = StringRef(rule.pattern).rsplit('.');
    bool mayJoin = rule.target == PlanRule::Target::Module && !name.empty() && !hasPatternWords(name);
    auto [place, isNew] =
        mayJoin ? places.try_emplace({parent.str(), rule.formatDims()}, joined.size()) : std::pair(places.end(), true);
    if (isNew) {
      joined.push_back(rule);
      names.push_back({name.str()});
      continue;
    }
    names[place->second].push_back(name.str());
    joined[place->second].pattern = (parent + ".{" + join(names[place->second], ",") + "}").str();
  }
  return joined;
}

std::vector<PlanRule> cleave::spmd::makePlanRules(ArrayRef<TensorDims> tensors, const ModelNames &names) {
  using Key = std::tuple<PlanRule::Target, std::string, std::string>;
  MapVector<Key, Group, std::map<Key, unsigned>> groups;
  for (const TensorDims &tensor : tensors) {
    StringRef module = names.weights.findModule(tensor.name);
    bool isModule = !module.empty() && names.weights.getRank(tensor.name) == tensor.dims.size();
    std::string name = isModule ? module.str() : tensor.name;
    PlanRule::Target target = isModule ? PlanRule::Target::Module : PlanRule::Target::Tensor;
    cleave::NumberedName numbered(name);
    std::string starred = hasPatternWords(name) ? name : numbered.getStarred();
    Group &group = groups[{target, std::move(starred), formatDims(tensor.dims)}];
    group.target = target;
    group.dims = tensor.dims;
    group.names.push_back(name);
    group.numbered.push_back(std::move(numbered));
  }
  std::vector<PlanRule> rules;
  for (auto &[key, group] : groups) {
    if (group.names.size() == 1) {
      rules.push_back(makeRule(group, group.names.front()));
      continue;
    }
    const std::string &starred = std::get<1>(key);
    std::vector<StringRef> others = listOthers(group, names);
    std::string listed = listAlternatives(group);
    if (picksOnly(starred, group, others))
      rules.push_back(makeRule(group, starred));
    else if (!listed.empty() && picksOnly(listed, group, others))
      rules.push_back(makeRule(group, listed));
    else
      for (const std::string &name : group.names)
        rules.push_back(makeRule(group, name));
  }
  return joinSiblings(rules);
}
