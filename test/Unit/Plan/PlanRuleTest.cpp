//===- PlanRuleTest.cpp - what a rule asks of one tensor ------------------===//
#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/Plan.h"
#include "gtest/gtest.h"

using namespace cleave::spmd;
using llvm::StringRef;

namespace {

/// A plan on a=2, b=4 whose only rule is `rule`; the error's text where it has one.
struct OneRule {
  explicit OneRule(StringRef rule) {
    std::string text = ("mesh: {a: 2, b: 4}\nshard:\n  - {" + rule + "}\n").str();
    PlanError failure;
    if (failed(parsePlan(text, "p.yaml", plan, failure)) || failed(checkPlan(plan, failure)))
      error = failure.format();
  }

  /// What is asked of a tensor of this shape, with what was taken back; or the error.
  std::string fit(llvm::ArrayRef<int64_t> shape) {
    PlanRule fitted;
    std::vector<PlanNote> left;
    PlanError failure;
    if (failed(fitRule(plan, plan.rules.front(), "'x'", shape, fitted, left, failure)))
      return failure.format();
    std::string text = fitted.formatDims();
    for (const PlanNote &note : left)
      text += "\n" + std::to_string(note.place.column) + ": " + note.message;
    return text;
  }

  Plan plan;
  std::string error;
};

TEST(PlanRule, TheRestIsReplicatedAtAnyRank) {
  OneRule first("tensor: x, dims: [a, ...]"), last("tensor: x, dims: [..., b]"), middle("tensor: x, dims: [a, ..., b]");
  EXPECT_EQ(first.fit({2}), "[a]");
  EXPECT_EQ(first.fit({2, 3, 5}), "[a, _, _]");
  EXPECT_EQ(last.fit({3, 4}), "[_, b]");
  EXPECT_EQ(middle.fit({2, 4}), "[a, b]");
  EXPECT_EQ(middle.fit({2, 3, 5, 4}), "[a, _, _, b]");
  EXPECT_EQ(OneRule("tensor: x, dims: [...]").fit({}), "[]");
  EXPECT_EQ(middle.fit({4}), "p.yaml:3:23: error: 'x' has 1 dims but the rule lists at least 2\n");
  EXPECT_EQ(middle.plan.rules.front().formatDims(), "[a, ..., b]");
}

TEST(PlanRule, WithoutTheRestRanksAreEqual) {
  OneRule rule("tensor: x, dims: [a, _]");
  EXPECT_EQ(rule.fit({2, 3}), "[a, _]");
  EXPECT_EQ(rule.fit({2, 3, 4}), "p.yaml:3:23: error: 'x' has 3 dims but the rule lists 2\n");
  EXPECT_FALSE(rule.plan.rules.front().dependsOnShape());
}

TEST(PlanRule, WhereItDividesItSplits) {
  OneRule rule("tensor: x, dims: [a, b], where: divides"), strict("tensor: x, dims: [a, b]");
  EXPECT_EQ(rule.fit({2, 8}), "[a, b]");
  EXPECT_EQ(rule.fit({2, 6}), "[a, ?]\n27: 'x' has size 6 in dim 1, which axis \"b\"=4 does not divide: propagation "
                              "decides how that dim is cut");
  EXPECT_EQ(strict.fit({2, 6}), "p.yaml:3:27: error: 'x' has size 6 in dim 1, which axis \"b\"=4 does not divide\n"
                                "p.yaml:3:27: note: 'uneven: true' would pad it to 8\n");
  OneRule both("tensor: x, dims: [..., [a, b]], where: divides");
  EXPECT_EQ(both.fit({3, 16}), "[_, [a, b]]");
  EXPECT_EQ(StringRef(both.fit({3, 12})).split('\n').first, "[_, ?]");
}

TEST(PlanRule, KnowsWhetherAnythingIsLeft) {
  OneRule rule("tensor: x, dims: [a], where: divides");
  PlanRule fitted;
  std::vector<PlanNote> left;
  PlanError error;
  ASSERT_TRUE(succeeded(fitRule(rule.plan, rule.plan.rules.front(), "'x'", {3}, fitted, left, error)));
  EXPECT_TRUE(fitted.asksNothing());
  ASSERT_TRUE(succeeded(fitRule(rule.plan, rule.plan.rules.front(), "'x'", {4}, fitted, left, error)));
  EXPECT_FALSE(fitted.asksNothing());
}

TEST(PlanRule, ExceptionsAreNotPicked) {
  NamePattern pattern = OneRule("tensor: \"w*\", except: [\"*.bias\", w3], dims: [a]").plan.rules.front().getPattern();
  EXPECT_TRUE(pattern.matches("w.weight"));
  EXPECT_FALSE(pattern.matches("w.bias"));
  EXPECT_FALSE(pattern.matches("w3"));
  EXPECT_FALSE(pattern.matches("v"));
  NamePattern literal = OneRule("tensor: w, except: \"re:w+\", dims: [a]").plan.rules.front().getPattern();
  EXPECT_FALSE(literal.isLiteral());
  EXPECT_FALSE(literal.matches("w"));
}

TEST(PlanRule, NamesThePlaceOfEveryError) {
  EXPECT_EQ(OneRule("tensor: x, dims: [..., a, ...]").error, "p.yaml:3:32: error: '...' is given twice\n");
  EXPECT_EQ(OneRule("tensor: x, dims: [[a, ...]]").error,
            "p.yaml:3:28: error: '...' is written alone, not in a list of axes\n");
  EXPECT_EQ(OneRule("tensor: x, where: sometimes, dims: [a]").error,
            "p.yaml:3:24: error: expected divides, got 'sometimes'\n");
  EXPECT_EQ(OneRule("tensor: x, except: [\"\"], dims: [a]").error, "p.yaml:3:26: error: pattern is empty\n");
}

TEST(PlanRule, ThreeDotsStandInAnOptionToo) {
  Plan plan;
  PlanError error;
  ASSERT_TRUE(succeeded(parseShardOption("x=[..., model]", plan, error)));
  EXPECT_EQ(plan.rules[0].formatDims(), "[..., model]");
}

/// What `findIdle` says, one line each.
std::string idle(StringRef text) {
  Plan plan;
  PlanError error;
  EXPECT_TRUE(succeeded(parsePlan(text, "p.yaml", plan, error)));
  std::string lines;
  for (const PlanNote &note : findIdle(plan))
    lines += std::to_string(note.place.column) + ": " + note.message + "\n";
  return lines;
}

TEST(Plan, AxesThatNoRuleUsesAreTold) {
  EXPECT_EQ(idle("mesh: {a: 2, b: 4, c: 1}\nshard: [{tensor: x, dims: [a]}]"),
            "14: no rule uses axis \"b\"=4: all devices along it do the same\n");
  EXPECT_EQ(idle("mesh: {a: 2, b: 4}\nshard: [{tensor: x, dims: [\"a:(1)2\"], replicated: [b]}]"), "");
  EXPECT_EQ(idle("mesh: {a: 2, b: 4}\nshard: []"),
            "8: no rule says what to split: every device of the mesh does all the work\n");
  EXPECT_EQ(idle("dims: {n: 4}"), "");
}

TEST(PlanRule, ShardsAreWholeGranules) {
  OneRule rule("tensor: x, dims: [_, b]"), left("tensor: x, dims: [_, b], where: divides");
  auto check = [](const OneRule &rule, int64_t extent, Granule granule) {
    PlanError failure;
    return succeeded(checkRule(rule.plan, rule.plan.rules.front(), "'x'", {2, extent}, failure, {{}, granule}))
               ? ""
               : failure.format();
  };
  // 24 over 4 ranks are 6 each: whole bytes of 2 elements, not of 4, and no blocks of 4.
  EXPECT_EQ(check(rule, 24, {2, 1}), "");
  EXPECT_EQ(check(rule, 24, {4, 1}),
            "p.yaml:3:27: error: 'x' has size 24 in dim 1, of which axis \"b\"=4 makes shards of 6: 4 elements "
            "share a byte\np.yaml:3:27: note: 'uneven: true' would pad it to 32\n");
  EXPECT_EQ(check(rule, 24, {2, 4}),
            "p.yaml:3:27: error: 'x' has size 24 in dim 1, of which axis \"b\"=4 makes shards of 6: 4 elements "
            "share a scale\np.yaml:3:27: note: 'uneven: true' would cut it there, and elements are gathered "
            "before they are scaled\n");
  EXPECT_EQ(check(rule, 26, {2, 1}),
            "p.yaml:3:27: error: 'x' has size 26 in dim 1, which axis \"b\"=4 does not divide\n"
            "p.yaml:3:27: note: 'uneven: true' would pad it to 32\n");
  PlanRule fitted;
  std::vector<PlanNote> notes;
  PlanError failure;
  EXPECT_TRUE(
      succeeded(fitRule(left.plan, left.plan.rules.front(), "'x'", {2, 24}, fitted, notes, failure, {{}, {4, 1}})));
  EXPECT_EQ(fitted.formatDims(), "[_, ?]");
  EXPECT_EQ(notes.size(), 1u);
}

} // namespace
