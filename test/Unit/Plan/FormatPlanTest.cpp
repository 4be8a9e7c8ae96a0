//===- FormatPlanTest.cpp - a plan as text, read back ---------------------===//
//
// What is asked of tensors is compared by the fields of a plan, which other tests hold against the texts that users write.
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/FormatPlan.h"

#include "gtest/gtest.h"

using namespace cleave::spmd;

namespace {

struct Parsed {
  explicit Parsed(llvm::StringRef text) {
    PlanError failure;
    if (failed(parsePlan(text, "p.yaml", plan, failure)) || failed(checkPlan(plan, failure)))
      error = failure.format();
  }

  Plan plan;
  std::string error;
};

/// Every word that a rule has; names with letters of YAML's own.
TEST(FormatPlan, RulesReadBack) {
  Parsed first(
      "mesh: {a: 4, b-1: 2, c.x: 3}\n"
      "devices: [23, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 0]\n"
      "shard:\n"
      "  - {tensor: \"x: {y,z} # [0-9]\", dims: [\"a:(1)2\", _, ?, b-1?, ...], except: [\"x: y\", \"re:q\\\\.\"]}\n"
      "  - {tensor: \"quote \\\" back \\\\[\", dims: [[a, b-1], [c.x, \"?\"]], where: divides, priority: 3}\n"
      "  - {node: n, operand: 1, dims: [], replicated: [a, \"b-1\"], uneven: true}\n"
      "  - {node: \"*\", result: 2, dims: [?, ...]}\n"
      "  - {tensor: w, dims: [...], experts: [a, b-1]}\n"
      "uneven: true\n");
  ASSERT_EQ(first.error, "");
  std::string text = formatPlan(first.plan, AttentionMethod::Gather, "");
  Parsed again(text);
  ASSERT_EQ(again.error, "") << text;
  EXPECT_EQ(formatPlan(again.plan, AttentionMethod::Gather, ""), text);
  ASSERT_EQ(again.plan.mesh.size(), 3u);
  EXPECT_EQ(again.plan.mesh[1].name, "b-1");
  EXPECT_EQ(again.plan.mesh[2].size, 3);
  EXPECT_EQ(again.plan.devices, first.plan.devices);
  EXPECT_TRUE(again.plan.uneven);
  EXPECT_EQ(again.plan.attention, AttentionMethod::Gather);
  EXPECT_FALSE(again.plan.pipeline);
  ASSERT_EQ(again.plan.rules.size(), first.plan.rules.size());
  for (size_t i = 0; i < first.plan.rules.size(); ++i) {
    const PlanRule &rule = first.plan.rules[i], &back = again.plan.rules[i];
    EXPECT_TRUE(back.asksSameAs(rule)) << rule.formatAnnotation() << " and " << back.formatAnnotation();
    EXPECT_EQ(back.formatTarget(), rule.formatTarget());
    EXPECT_EQ(back.whereDivides, rule.whereDivides);
    ASSERT_EQ(back.except.size(), rule.except.size());
    for (size_t name = 0; name < rule.except.size(); ++name)
      EXPECT_EQ(back.except[name].text, rule.except[name].text);
  }
}

TEST(FormatPlan, StagesReadBack) {
  Parsed first("mesh: {stage: 2}\npipeline:\n  axis: stage\n  microbatches: 2\n"
               "  stages: [{nodes: \"*/em, bed/*\", rank: 1}, {first: \"a\\\"b\", rank: 0}]\n");
  ASSERT_EQ(first.error, "");
  std::string stages = formatStages(first.plan.pipeline->stages);
  Parsed again(formatPlan(first.plan, AttentionMethod::Auto, "{axis: stage, microbatches: 2, stages: " + stages + "}"));
  ASSERT_EQ(again.error, "") << stages;
  ASSERT_EQ(again.plan.pipeline->stages.size(), 2u);
  EXPECT_EQ(again.plan.pipeline->stages[0].pattern.text, "*/em, bed/*");
  EXPECT_EQ(again.plan.pipeline->stages[0].kind, PlanStage::Kind::Nodes);
  EXPECT_EQ(again.plan.pipeline->stages[0].rank, 1);
  EXPECT_EQ(again.plan.pipeline->stages[1].pattern.text, "a\"b");
  EXPECT_EQ(again.plan.pipeline->stages[1].kind, PlanStage::Kind::First);
}

} // namespace
