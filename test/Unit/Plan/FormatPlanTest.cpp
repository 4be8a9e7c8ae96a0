//===- FormatPlanTest.cpp - a plan as text, read back ---------------------===//
//
// What is asked of tensors is compared by the fields of a plan, which other tests hold against the texts that users write.
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/FormatPlan.h"
#include "cleave/Plan/PlanKeys.h"

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

/// A step that is written is read as the same step: each key of docs/training.md, with what it has without being said, and otherwise.
TEST(FormatPlan, TrainReadsBack) {
  std::string written;
  for (llvm::StringRef train :
       {"{loss: {kind: cross_entropy, of: logits}, optimizer: adamw}",
        "{loss: {output: \"the: loss\"}, optimizer: sgd, rate: input}",
        "{loss: [{kind: nll, of: a, labels: t, classes: 2, ignore: -100, weight: 0.1}, {kind: cross_entropy, of: b, "
        "labels: "
        "{next: ids}, smoothing: 0.3}], optimizer: {kind: adamw, betas: [0.9, 0.95], epsilon: 1e-7, decay: 0, "
        "correct_bias: false}, rate: {kind: cosine, peak: 1e-4, floor: 1e-6, warmup: 10, steps: 100}}",
        "{loss: {kind: mse, of: y}, optimizer: {kind: momentum, beta: 0.8}, rate: {kind: constant, peak: 0.3, warmup: "
        "7}, "
        "freeze: [\"*bias\", \"re:a.b\"], clip: 0.7, precision: {parameters: bf16, wire: f32, scale: 1024}, dropout: "
        "0.1, batch_norm: batch, seed: -3, groups: [{tensors: [\"*norm*\"], decay: 0, rate: 0.5}], recompute: auto, "
        "memory_limit: 40GB, keep: [k], again: [g, h], offload: [o, p]}",
        "{loss: {kind: l1, of: y}, optimizer: {kind: adagrad, epsilon: 0.5}, only: w, dropout: model, precision: "
        "{scale: "
        "dynamic}, zero: [{axis: b, stage: 1, min_bytes: 12}, {axis: a, stage: 3, gather: twice}], microbatches: 4, "
        "accumulate: split, recompute: blocks}",
        "{loss: {kind: bce, of: y}, optimizer: {kind: hf_adamw, decay: 0.25}, lora: {tensors: [\"*.q_proj\"], rank: 3, "
        "alpha: 0.2}}"}) {
    Parsed first(("mesh: {a: 2, b: 2}\ntrain: " + train).str());
    ASSERT_EQ(first.error, "") << train.str();
    std::string text = formatPlanFile(first.plan, AttentionMethod::Auto, {});
    Parsed again(text);
    ASSERT_EQ(again.error, "") << text;
    EXPECT_EQ(formatPlanFile(again.plan, AttentionMethod::Auto, {}), text);
    written += text;
    ASSERT_TRUE(again.plan.train) << text;
    const PlanTrain &step = *first.plan.train, &back = *again.plan.train;
    ASSERT_EQ(back.losses.size(), step.losses.size());
    for (auto [loss, other] : llvm::zip_equal(step.losses, back.losses)) {
      EXPECT_EQ(other.kind, loss.kind);
      EXPECT_EQ(other.of.text, loss.of.text);
      EXPECT_EQ(other.labels.text, loss.labels.text);
      EXPECT_EQ(other.next.has_value(), loss.next.has_value());
      EXPECT_EQ(other.classes, loss.classes);
      EXPECT_EQ(other.ignored, loss.ignored);
      EXPECT_EQ(other.smoothing, loss.smoothing);
      EXPECT_EQ(other.weight, loss.weight);
    }
    EXPECT_EQ(back.optimizer.kind, step.optimizer.kind);
    EXPECT_EQ(back.optimizer.beta, step.optimizer.beta);
    EXPECT_EQ(back.optimizer.betas[1], step.optimizer.betas[1]);
    EXPECT_EQ(back.optimizer.epsilon, step.optimizer.epsilon);
    EXPECT_EQ(back.optimizer.decay, step.optimizer.decay);
    EXPECT_EQ(back.optimizer.correctsBias, step.optimizer.correctsBias);
    EXPECT_EQ(back.rate.kind, step.rate.kind);
    EXPECT_EQ(back.rate.peak, step.rate.peak);
    EXPECT_EQ(back.rate.floor, step.rate.floor);
    EXPECT_EQ(back.rate.warmup, step.rate.warmup);
    EXPECT_EQ(back.rate.steps, step.rate.steps);
    EXPECT_EQ(back.memory.policy, step.memory.policy);
    EXPECT_EQ(back.memory.limit, step.memory.limit);
    EXPECT_EQ(back.memory.gather, step.memory.gather);
    EXPECT_EQ(back.memory.keep.size(), step.memory.keep.size());
    EXPECT_EQ(back.memory.again.size(), step.memory.again.size());
    EXPECT_EQ(back.memory.offload.size(), step.memory.offload.size());
    EXPECT_EQ(back.freeze.size(), step.freeze.size());
    EXPECT_EQ(back.only.size(), step.only.size());
    ASSERT_EQ(back.groups.size(), step.groups.size());
    for (auto [group, other] : llvm::zip_equal(step.groups, back.groups)) {
      EXPECT_EQ(other.decay, group.decay);
      EXPECT_EQ(other.rate, group.rate);
    }
    EXPECT_EQ(back.clip, step.clip);
    EXPECT_EQ(back.precision.parameters, step.precision.parameters);
    EXPECT_EQ(back.precision.wire, step.precision.wire);
    EXPECT_EQ(back.precision.scale, step.precision.scale);
    EXPECT_EQ(back.precision.fixedScale, step.precision.fixedScale);
    EXPECT_EQ(back.dropout.kind, step.dropout.kind);
    EXPECT_EQ(back.dropout.ratio, step.dropout.ratio);
    EXPECT_EQ(back.batchNorm.kind, step.batchNorm.kind);
    EXPECT_EQ(back.seed, step.seed);
    ASSERT_EQ(back.zero.size(), step.zero.size());
    for (auto [zero, other] : llvm::zip_equal(step.zero, back.zero)) {
      EXPECT_EQ(other.axis, zero.axis);
      EXPECT_EQ(other.stage, zero.stage);
      EXPECT_EQ(other.minBytes, zero.minBytes);
    }
    EXPECT_EQ(back.microbatches, step.microbatches);
    EXPECT_EQ(back.accumulate, step.accumulate);
    EXPECT_EQ(back.lora.has_value(), step.lora.has_value());
    if (step.lora) {
      EXPECT_EQ(back.lora->rank, step.lora->rank);
      EXPECT_EQ(back.lora->alpha, step.lora->alpha);
    }
  }
  // A key that is new in the reader is one here, too.
  for (const PlanKey &key : getPlanKeys(PlanSection::Train))
    EXPECT_NE(written.find("\n  " + key.name.str() + ": "), std::string::npos) << key.name.str();
}

} // namespace
