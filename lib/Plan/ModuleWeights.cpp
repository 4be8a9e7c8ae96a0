//===- ModuleWeights.cpp - weights by the modules that read them ----------===//
//
// Which dims a rule has says which of a module's weights it is about. Modules that a wildcard picks along with others, and that have no such
// weight, are passed over.
//
//   layers.0.up     val_1 [32, 64], val_2 [64]     dims: [_, model] is about val_1, dims: [model] about val_2
//   layers.0.act    nothing                        `layers.0.*` passes it over
//   mix             a [32, 32], b [32, 32]         no dims tell them apart: an error
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/ModuleWeights.h"

#include "cleave/Plan/NamePattern.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace cleave;
using namespace cleave::spmd;
using llvm::StringRef;

StringRef cleave::spmd::explainNoModules() {
  return "this model has no module names: torch's exporters write them (with dynamo as metadata of nodes, which an "
         "optimizer may have "
         "dropped; "
         "without it as folders in names of nodes); tensor: and node: name what is there";
}

// A weight without readers has no module, and is asked for by its own name.
void ModuleWeights::add(StringRef weight, size_t rank, llvm::ArrayRef<StringRef> readers) {
  ranks[weight] = rank;
  for (StringRef module : readers) {
    if (module.empty() || llvm::is_contained(modules[module], weight))
      continue;
    modules[module].push_back(weight);
    modulesOf[weight].push_back(module);
  }
}

// In the order in which the model reads their weights.
std::vector<StringRef> ModuleWeights::listModules() const {
  return {llvm::make_first_range(modules).begin(), llvm::make_first_range(modules).end()};
}

// Others have nothing that a rule of so many dims could be about.
std::vector<StringRef> ModuleWeights::listModules(size_t rank) const {
  std::vector<StringRef> listed;
  for (const auto &[module, weights] : modules)
    if (llvm::any_of(weights, [&](StringRef weight) { return getRank(weight) == rank; }))
      listed.push_back(module);
  return listed;
}

StringRef ModuleWeights::findModule(StringRef weight) const {
  auto readers = modulesOf.find(weight);
  if (readers == modulesOf.end())
    return "";
  size_t rank = getRank(weight);
  for (StringRef module : readers->second)
    if (llvm::count_if(modules.find(module)->second, [&](StringRef other) { return getRank(other) == rank; }) == 1)
      return module;
  return "";
}

/// `'fc.weight' has 2, 'fc.bias' has 1`.
std::string ModuleWeights::describeWeights(StringRef module) const {
  return llvm::join(
      llvm::map_range(modules.find(module)->second,
                      [&](StringRef weight) { return quote(weight) + " has " + std::to_string(getRank(weight)); }),
      ", ");
}

/// `matched`: modules that the rule picks, which have other weights.
llvm::Error ModuleWeights::explainNone(const PlanRule &rule, llvm::ArrayRef<StringRef> matched) const {
  if (isEmpty())
    return makeError("{0}", explainNoModules());
  if (!matched.empty())
    return makeError("module {0} reads no weight of {1} dims: {2}", quote(matched.front()), rule.dims.size(),
                     describeWeights(matched.front()));
  NamePattern pattern = rule.getPattern();
  std::vector<StringRef> names = listModules();
  llvm::SetVector<StringRef> inside;
  StringRef outer;
  for (StringRef module : names) {
    for (StringRef path = module.rsplit('.').first; path.size() < module.size(); path = path.rsplit('.').first) {
      if (pattern.matches(path) && (outer.empty() || outer == path)) {
        outer = path;
        inside.insert(module);
      }
      if (!path.contains('.'))
        break;
    }
  }
  if (!outer.empty()) {
    constexpr size_t kMost = 4;
    auto shown = llvm::map_range(inside.getArrayRef().take_front(kMost), [](StringRef name) { return quote(name); });
    return makeError("module {0} reads no weight itself, modules in it do: {1}{2}", quote(outer),
                     llvm::join(shown, ", "), inside.size() > kMost ? ", .." : "");
  }
  if (llvm::any_of(names,
                   [&](StringRef name) { return llvm::cantFail(NamePattern::create(rule.pattern)).matches(name); }))
    return makeError("every module that {0} matches is excepted", quote(rule.pattern));
  return makeError("no module that reads a weight {0} {1}{2}",
                   NamePattern::isLiteral(rule.pattern) ? "is called" : "matches", quote(rule.pattern),
                   suggestPatterns(rule.pattern, names));
}

llvm::Expected<std::vector<StringRef>> ModuleWeights::find(const PlanRule &rule) const {
  size_t named = llvm::count_if(rule.dims, [](const PlanDim &dim) { return !dim.isRest; });
  bool hasRest = named < rule.dims.size();
  NamePattern pattern = rule.getPattern();
  std::vector<StringRef> matched;
  llvm::SetVector<StringRef> found;
  for (const auto &[module, weights] : modules) {
    if (!pattern.matches(module))
      continue;
    matched.push_back(module);
    size_t rank = named;
    if (hasRest)
      for (StringRef weight : weights)
        rank = std::max(rank, getRank(weight));
    std::vector<StringRef> fitting;
    llvm::copy_if(weights, std::back_inserter(fitting), [&](StringRef weight) { return getRank(weight) == rank; });
    if (fitting.size() > 1)
      return makeError("module {0} reads {1} weights of {2} dims, {3} and {4}{5}: tensor: says which", quote(module),
                       fitting.size(), rank, quote(fitting[0]), quote(fitting[1]), fitting.size() > 2 ? ", .." : "");
    found.insert_range(fitting);
  }
  if (found.empty())
    return explainNone(rule, matched);
  return std::vector<StringRef>(found.begin(), found.end());
}
