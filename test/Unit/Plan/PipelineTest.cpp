//===- PipelineTest.cpp - the section `pipeline` of a plan ----------------===//
#include "cleave/Plan/Plan.h"
#include "gtest/gtest.h"

using namespace cleave::spmd;

static Plan parse(const std::string &text) {
  Plan plan;
  PlanError error;
  EXPECT_TRUE(succeeded(parsePlan(text, "p.yaml", plan, error)) && succeeded(checkPlan(plan, error))) << error.format();
  return plan;
}

/// What is wrong with a pipeline on `mesh: {stage: 4, data: 2}`; the section begins on line 3.
static std::string getError(const std::string &section) {
  Plan plan;
  PlanError error;
  std::string text = "mesh: {stage: 4, data: 2}\npipeline:\n" + section;
  if (succeeded(parsePlan(text, "p.yaml", plan, error)) && succeeded(checkPlan(plan, error)))
    return "";
  return error.format();
}

TEST(Pipeline, ReadsEveryKey) {
  Plan plan = parse("mesh: {stage: 4, data: 2, model: 2}\n"
                    "pipeline:\n"
                    "  axis: stage\n"
                    "  microbatches: 8\n"
                    "  batch: {input_ids: 0, mask: 1, table: none}\n"
                    "  stages:\n"
                    "    - {nodes: \"*/embeddings/*\"}\n"
                    "    - {first: \"*/layer.3/*\"}\n"
                    "    - {first: \"*/layer.6/*\", rank: 2}\n"
                    "  together: [\"{embedding,lm_head}*\"]\n"
                    "  schedule: zb-v\n"
                    "  placement: v\n"
                    "  chunks: 2\n"
                    "  memory_limit: 40GB\n"
                    "  balance: latency\n"
                    "  send: relay\n"
                    "  uneven: true\n"
                    "  recompute: except_last\n"
                    "  update: end\n");
  ASSERT_TRUE(plan.pipeline);
  const PlanPipeline &pipeline = *plan.pipeline;
  EXPECT_EQ(pipeline.axis, "stage");
  EXPECT_EQ(pipeline.microbatches, 8);
  EXPECT_EQ(pipeline.microbatchSize, std::nullopt);
  ASSERT_EQ(pipeline.batch.size(), 3u);
  EXPECT_EQ(pipeline.batch[1].first.text, "mask");
  EXPECT_EQ(pipeline.batch[1].second, 1);
  EXPECT_EQ(pipeline.batch[2].second, PlanPipeline::kNoBatch);
  ASSERT_EQ(pipeline.stages.size(), 3u);
  EXPECT_EQ(pipeline.stages[0].kind, PlanStage::Kind::Nodes);
  EXPECT_EQ(pipeline.stages[2].kind, PlanStage::Kind::First);
  EXPECT_EQ(pipeline.stages[2].rank, 2);
  EXPECT_EQ(pipeline.stages[2].pattern.place.line, 9u);
  EXPECT_EQ(pipeline.together[0].text, "{embedding,lm_head}*");
  EXPECT_EQ(pipeline.schedule, "zb-v");
  EXPECT_EQ(pipeline.placement, "v");
  EXPECT_EQ(pipeline.chunks, 2);
  EXPECT_EQ(pipeline.memoryLimit, 40'000'000'000);
  EXPECT_EQ(pipeline.balance, PlanBalance::Latency);
  EXPECT_TRUE(pipeline.relays);
  EXPECT_TRUE(pipeline.uneven);
  EXPECT_EQ(pipeline.recompute, PlanRecompute::ExceptLast);
  EXPECT_FALSE(pipeline.updatesEarly);
}

TEST(Pipeline, IsShortWhereDefaultsDo) {
  Plan plan = parse("mesh: {stage: 2}\npipeline: {axis: stage, microbatch_size: 2}\n");
  EXPECT_EQ(plan.pipeline->microbatchSize, 2);
  EXPECT_EQ(plan.pipeline->schedule, "");
  EXPECT_EQ(plan.pipeline->chunks, 1);
  EXPECT_FALSE(plan.pipeline->relays);
  EXPECT_FALSE(parse("mesh: {stage: 2}\n").pipeline);
}

TEST(Pipeline, NamesThePlaceOfEveryError) {
  EXPECT_EQ(getError("  {axis: stage}\n"), "p.yaml:3:3: error: a pipeline needs microbatches, or a microbatch_size\n");
  EXPECT_EQ(getError("  {microbatches: 2}\n"), "p.yaml:3:3: error: a pipeline needs an axis\n");
  EXPECT_EQ(getError("  {axis: stage, microbatches: 2, microbatch_size: 1}\n"),
            "p.yaml:3:3: error: a pipeline has microbatches or a microbatch_size, not both\n");
  EXPECT_EQ(getError("  {axis: stages, microbatches: 2}\n"),
            "p.yaml:3:10: error: unknown axis 'stages'; did you mean 'stage'?\n");
  EXPECT_EQ(getError("  {axis: stage, microbatches: 0}\n"),
            "p.yaml:3:31: error: expected a number from 1 to 1073741824, got '0'\n");
  EXPECT_EQ(getError("  {axis: stage, microbatches: 2, placement: ring}\n"),
            "p.yaml:3:45: error: expected linear, loop, v or wave, got 'ring'\n");
  EXPECT_EQ(getError("  {axis: stage, microbatches: 2, balance: both}\n"),
            "p.yaml:3:43: error: expected throughput or latency, got 'both'\n");
  EXPECT_EQ(getError("  {axis: stage, microbatches: 2, memory_limit: 40 gigabytes}\n"),
            "p.yaml:3:48: error: expected bytes, such as 40GB or 512MiB, got '40 gigabytes'\n");
  EXPECT_EQ(getError("  {axis: stage, microbatches: 2, stages: [{rank: 1}]}\n"),
            "p.yaml:3:43: error: a stage needs nodes, a first one or a module\n");
  EXPECT_EQ(getError("  {axis: stage, microbatches: 2, stages: [{nodes: a, first: b}]}\n"),
            "p.yaml:3:61: error: a stage has one of nodes, first and module\n");
  EXPECT_EQ(getError("  {axis: stage, microbatches: 2, stages: [{nodes: a, rank: 4}]}\n"),
            "p.yaml:3:51: error: rank 4 is none of axis 'stage', which has 4\n");
  EXPECT_EQ(
      getError(
          "  {axis: stage, microbatches: 2, stages: [{nodes: a}, {nodes: b}, {nodes: c}, {nodes: d}, {nodes: e}]}\n"),
      "p.yaml:3:99: error: 5 stages are given, and the pipeline has 4: 4 ranks with 1 each\n");
  EXPECT_EQ(getError("  {axis: stage, microbatch: 2}\n").substr(0, 75),
            "p.yaml:3:17: error: unknown key 'microbatch'; did you mean 'microbatches'? ");
}

/// P1, whichever of the two stands first.
TEST(Pipeline, KeepsItsAxisForItself) {
  EXPECT_EQ(getError("  {axis: stage, microbatches: 2}\nshard:\n  - {tensor: x, dims: [data, stage]}\n"),
            "p.yaml:5:30: error: axis 'stage' is the pipeline, no tensor is split along it (P1)\n"
            "p.yaml:3:10: note: the pipeline is here\n");
  EXPECT_EQ(getError("  {axis: stage, microbatches: 2}\nshard:\n  - {tensor: x, dims: [_], replicated: [stage]}\n"),
            "p.yaml:5:41: error: axis 'stage' is the pipeline, no tensor is split along it (P1)\n"
            "p.yaml:3:10: note: the pipeline is here\n");
}

TEST(Pipeline, ReadsBytesInBothKindsOfUnits) {
  EXPECT_EQ(parseBytes("1000"), 1000);
  EXPECT_EQ(parseBytes("40GB"), 40'000'000'000);
  EXPECT_EQ(parseBytes("2 GiB"), int64_t(2) << 30);
  EXPECT_EQ(parseBytes("3kB"), 3000);
  EXPECT_EQ(parseBytes("1.9GB"), 1'900'000'000);
  EXPECT_EQ(parseBytes("8.35 kB"), 8350);
  EXPECT_EQ(parseBytes("0.5KiB"), 512);
  EXPECT_EQ(parseBytes("1.5"), std::nullopt);
  EXPECT_EQ(parseBytes("1.kB"), std::nullopt);
  EXPECT_EQ(parseBytes(".5kB"), std::nullopt);
  EXPECT_EQ(parseBytes("1.2.3kB"), std::nullopt);
  EXPECT_EQ(parseBytes("3KB"), std::nullopt);
  EXPECT_EQ(parseBytes("GB"), std::nullopt);
  EXPECT_EQ(parseBytes("-1"), std::nullopt);
  EXPECT_EQ(parseBytes("9999999999TiB"), std::nullopt);
}
