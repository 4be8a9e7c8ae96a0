//===- ModuleWeightsTest.cpp - weights by the modules that read them ------===//
#include "cleave/Plan/ModuleWeights.h"
#include "gtest/gtest.h"

using namespace cleave::spmd;
using llvm::StringRef;

namespace {

/// Two linear layers with biases, tied embeddings, a module of two matrices, and a weight that no module reads.
ModuleWeights makeModel() {
  ModuleWeights weights;
  weights.add("val_1", 2, {"layers.0.up"});
  weights.add("val_2", 1, {"layers.0.up"});
  weights.add("val_3", 2, {"layers.1.up"});
  weights.add("val_4", 1, {"layers.1.up"});
  weights.add("wte", 2, {"embed", "head"});
  weights.add("a", 2, {"mix"});
  weights.add("b", 2, {"mix"});
  weights.add("loose", 2, {});
  return weights;
}

/// The weights that a rule picks, or what is wrong with it.
std::string find(const ModuleWeights &weights, const std::string &pattern, size_t dims, bool hasRest = false,
                 const std::string &except = "") {
  PlanRule rule;
  rule.target = PlanRule::Target::Module;
  rule.pattern = pattern;
  rule.dims.resize(dims);
  if (hasRest)
    rule.dims.emplace_back().isRest = true;
  if (!except.empty())
    rule.except.push_back({except, {}});
  llvm::Expected<std::vector<StringRef>> found = weights.find(rule);
  if (!found)
    return llvm::toString(found.takeError());
  std::string text;
  for (StringRef name : *found)
    text += (text.empty() ? "" : " ") + name.str();
  return text;
}

TEST(ModuleWeights, DimsSayWhichOfAModulesWeights) {
  ModuleWeights weights = makeModel();
  EXPECT_EQ(find(weights, "layers.*.up", 2), "val_1 val_3");
  EXPECT_EQ(find(weights, "layers.*.up", 1), "val_2 val_4");
  EXPECT_EQ(find(weights, "layers.{0,1}.up", 0, /*hasRest=*/true), "val_1 val_3") << "the most dims";
  EXPECT_EQ(find(weights, "layers.0.up", 1, /*hasRest=*/true), "val_1");
  // Both names of a tied weight, once.
  EXPECT_EQ(find(weights, "{embed,head}", 2), "wte");
  // Modules without a vector are passed over where others have one.
  EXPECT_EQ(find(weights, "*", 1), "val_2 val_4");
}

TEST(ModuleWeights, WhatIsWrongIsSaid) {
  ModuleWeights weights = makeModel();
  EXPECT_EQ(find(weights, "mix", 2), "module 'mix' reads 2 weights of 2 dims, 'a' and 'b': tensor: says which");
  EXPECT_EQ(find(weights, "layers.0.up", 3),
            "module 'layers.0.up' reads no weight of 3 dims: 'val_1' has 2, 'val_2' has 1");
  EXPECT_EQ(find(weights, "layers.0", 2), "module 'layers.0' reads no weight itself, modules in it do: 'layers.0.up'");
  EXPECT_EQ(find(weights, "layers.0.upp", 2),
            "no module that reads a weight is called 'layers.0.upp'; did you mean 'layers.0.up' or 'layers.1.up'?");
  EXPECT_EQ(find(weights, "mix", 2, false, "m*"), "every module that 'mix' matches is excepted");
  EXPECT_EQ(find(ModuleWeights(), "mix", 2).substr(0, 32), "this model has no module names: ");
}

TEST(ModuleWeights, AWeightGoesByTheModuleThatHasItAlone) {
  ModuleWeights weights = makeModel();
  EXPECT_EQ(weights.findModule("val_2"), "layers.0.up");
  EXPECT_EQ(weights.findModule("wte"), "embed");
  EXPECT_EQ(weights.findModule("a"), "");
  EXPECT_EQ(weights.findModule("loose"), "");
  EXPECT_EQ(weights.listModules(1), (std::vector<StringRef>{"layers.0.up", "layers.1.up"}));
}

} // namespace
