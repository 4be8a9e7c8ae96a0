//===- PlanRules.cpp - few rules for many tensors -------------------------===//
//
// Tensors are one rule if their names differ in numbers alone and they are cut alike: `*` stands for the numbers where it picks no tensor
// that is cut otherwise, `{0,2,5}` for those that there are where it would.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/PlanRules.h"
#include "cleave/Plan/NamePattern.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace cleave::spmd;
using namespace llvm;

namespace {
/// A name cut into text and numbers: "h." "12" "/mlp".
struct Numbered {
  std::string skeleton; ///< with `*` for each number
  SmallVector<std::string> numbers;
};

struct Group {
  std::vector<PlanDim> dims;
  std::vector<std::string> names;
  std::vector<Numbered> numbered;
};
} // namespace

/// Every number is a place in which names of layers may differ.
static Numbered splitNumbers(StringRef name) {
  Numbered split;
  while (!name.empty()) {
    StringRef number = name.take_while(isDigit);
    if (number.empty()) {
      split.skeleton += name.front();
      name = name.drop_front();
      continue;
    }
    split.skeleton += '*';
    split.numbers.push_back(number.str());
    name = name.drop_front(number.size());
  }
  return split;
}

/// Text that a pattern would read as more than itself.
static bool hasPatternWords(StringRef name) {
  return name.find_first_of("*?[]{}\\,") != StringRef::npos || name.starts_with("re:");
}

/// The one number in which the names of a group differ as a list of alternatives; empty where they differ in several.
static std::string listNumbers(const Group &group) {
  const Numbered &first = group.numbered.front();
  std::optional<size_t> differs;
  for (size_t place = 0; place < first.numbers.size(); ++place)
    if (any_of(group.numbered, [&](const Numbered &other) { return other.numbers[place] != first.numbers[place]; })) {
      if (differs)
        return "";
      differs = place;
    }
  if (!differs)
    return "";
  std::string text;
  size_t place = 0;
  for (char letter : first.skeleton) {
    if (letter != '*') {
      text += letter;
      continue;
    }
    if (place == *differs)
      text += "{" + join(map_range(group.numbered, [&](const Numbered &one) { return one.numbers[place]; }), ",") + "}";
    else
      text += first.numbers[place];
    ++place;
  }
  return text;
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
  rule.pattern = pattern.str();
  rule.dims = group.dims;
  return rule;
}

std::vector<PlanRule> cleave::spmd::makePlanRules(ArrayRef<TensorDims> tensors, ArrayRef<StringRef> names) {
  MapVector<std::pair<std::string, std::string>, Group, std::map<std::pair<std::string, std::string>, unsigned>> groups;
  for (const TensorDims &tensor : tensors) {
    PlanRule asRule;
    asRule.dims = tensor.dims;
    Numbered numbered = splitNumbers(tensor.name);
    bool isPlain = !hasPatternWords(tensor.name);
    Group &group = groups[{isPlain ? numbered.skeleton : tensor.name, asRule.formatDims()}];
    group.dims = tensor.dims;
    group.names.push_back(tensor.name);
    group.numbered.push_back(std::move(numbered));
  }
  std::vector<PlanRule> rules;
  for (auto &[key, group] : groups) {
    if (group.names.size() == 1) {
      rules.push_back(makeRule(group, group.names.front()));
      continue;
    }
    std::string listed = listNumbers(group);
    if (picksOnly(key.first, group, names))
      rules.push_back(makeRule(group, key.first));
    else if (!listed.empty() && picksOnly(listed, group, names))
      rules.push_back(makeRule(group, listed));
    else
      for (const std::string &name : group.names)
        rules.push_back(makeRule(group, name));
  }
  return rules;
}
