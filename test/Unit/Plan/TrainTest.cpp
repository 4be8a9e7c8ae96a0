//===- TrainTest.cpp - the section train of a plan ------------------------===//
#include "cleave/Plan/Plan.h"
#include "gtest/gtest.h"

using namespace cleave::spmd;
using llvm::StringRef;

namespace {
/// A plan of a mesh and a section `train`, or what is wrong with it.
struct Parsed {
  explicit Parsed(StringRef train) {
    PlanError wrong;
    std::string text = ("mesh: {data: 2, model: 2}\ntrain: {" + train + "}").str();
    if (failed(parsePlan(text, "p.yaml", plan, wrong)) || failed(checkPlan(plan, wrong)))
      error = wrong.format();
    else
      read = *plan.train;
  }

  Plan plan;
  PlanTrain read;
  std::string error;
};

const char *const kLoss = "loss: {kind: mse, of: y}, optimizer: sgd";
std::string withLoss(StringRef more) { return (StringRef(kLoss) + ", " + more).str(); }
} // namespace

TEST(Train, ReadsAllKeys) {
  Parsed parsed(
      "loss: [{kind: cross_entropy, of: logits, labels: t, classes: 2, ignore: -100, smoothing: 0.1}, {output: aux, "
      "weight: 0.5}], optimizer: {kind: adam, betas: [0.8, 0.95], epsilon: 1e-6, decay: 0.1}, rate: {kind: cosine, "
      "peak: "
      "1e-4, floor: 1e-5, warmup: 10, steps: 100}, freeze: [\"*.embed*\"], groups: [{tensors: \"*bias\", decay: 0, "
      "rate: "
      "2}], precision: {parameters: bf16, wire: f32, scale: 128}, dropout: 0.25, batch_norm: batch, seed: -3, clip: "
      "1.5, "
      "zero: [{axis: data, stage: 3, min_bytes: 0}]");
  ASSERT_EQ(parsed.error, "");
  const PlanTrain &train = parsed.read;
  ASSERT_EQ(train.losses.size(), 2u);
  EXPECT_EQ(train.losses[0].kind, PlanLoss::Kind::CrossEntropy);
  EXPECT_EQ(train.losses[0].labels.text, "t");
  EXPECT_EQ(train.losses[0].classes, 2);
  EXPECT_EQ(train.losses[0].ignored, -100);
  EXPECT_EQ(train.losses[0].smoothing, 0.1);
  EXPECT_EQ(train.losses[1].kind, PlanLoss::Kind::Output);
  EXPECT_EQ(train.losses[1].weight, 0.5);
  EXPECT_EQ(train.optimizer.kind, PlanOptimizer::Kind::Adam);
  EXPECT_EQ(train.optimizer.betas[1], 0.95);
  EXPECT_EQ(train.optimizer.decay, 0.1);
  EXPECT_EQ(train.rate.warmup, 10);
  EXPECT_EQ(train.rate.floor, 1e-5);
  EXPECT_EQ(train.freeze[0].text, "*.embed*");
  EXPECT_EQ(train.groups[0].rate, 2);
  EXPECT_EQ(train.groups[0].decay, 0.0);
  EXPECT_EQ(train.precision.parameters, PlanPrecision::Parameters::Bf16);
  EXPECT_EQ(train.precision.wire, PlanPrecision::Wire::F32);
  EXPECT_EQ(train.precision.scale, PlanPrecision::Scale::Number);
  EXPECT_EQ(train.precision.fixedScale, 128);
  EXPECT_EQ(train.dropout.kind, PlanDropout::Kind::Number);
  EXPECT_EQ(train.dropout.ratio, 0.25);
  EXPECT_EQ(train.batchNorm.kind, PlanBatchNorm::Kind::Batch);
  EXPECT_EQ(train.seed, -3);
  EXPECT_EQ(train.clip, 1.5);
  EXPECT_EQ(train.zero[0].stage, 3);
}

// As torch has them.
TEST(Train, DefaultsAreThoseOfTorch) {
  EXPECT_EQ(Parsed("loss: {kind: mse, of: y}, optimizer: adamw").read.optimizer.decay, 0.01);
  EXPECT_EQ(Parsed("loss: {kind: mse, of: y}, optimizer: {kind: adam}").read.optimizer.decay, 0.0);
  EXPECT_EQ(Parsed("loss: {kind: mse, of: y}, optimizer: adamw").read.rate.peak, 1e-3);
  EXPECT_EQ(Parsed("loss: {kind: mse, of: y}, optimizer: adamw, lora: {tensors: q}").read.lora->rank, 8);
}

TEST(Train, LabelsMayBeTheNextTokens) {
  Parsed parsed("loss: {kind: cross_entropy, of: y, labels: {next: input_ids}}, optimizer: sgd");
  ASSERT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.read.losses[0].next->text, "input_ids");
}

TEST(Train, NamesThePlaceOfEveryError) {
  auto expect = [](StringRef train, StringRef place, StringRef error) {
    EXPECT_EQ(Parsed(train).error, ("p.yaml:2:" + place + ": error: " + error + "\n").str());
  };
  expect("optimizer: sgd", "8",
         "'train' needs a loss: 'loss: {kind: cross_entropy, of: OUTPUT}', or 'loss: {output: NAME}' where the model "
         "has one");
  expect("loss: {output: y}", "8",
         "'train' needs an optimizer: sgd, momentum, nesterov, adam, adamw, adagrad, lamb or hf_adamw");
  expect("loss: {kind: mse}, optimizer: sgd", "15",
         "a loss needs 'kind' and 'of', or 'output' where the model gives one");
  expect("loss: {kind: mes, of: y}, optimizer: sgd", "22", "expected cross_entropy, nll, bce, mse or l1, got 'mes'");
  expect("loss: {kind: mse, of: y, ignore: 1}, optimizer: sgd", "15",
         "'ignore' is about labels of classes: of cross_entropy and nll");
  expect("loss: {output: y, kind: mse}, optimizer: sgd", "15",
         "a loss that the model gives has no kind, and nothing of one: 'output' alone");
  expect("loss: {kind: mse, of: y}, optimizer: {kind: sgd, betas: [0.9, 0.9]}", "46",
         "'betas' is not a number of 'sgd'");
  expect("loss: {kind: mse, of: y}, optimizer: {kind: adam, betas: [1, 0.9]}", "46",
         "'betas' are from 0 to less than 1: a moment of beta 1 never learns");
  expect("loss: {kind: mse, of: y}, optimizer: {kind: adam, betas: [0.9]}", "66",
         "expected two numbers, such as [0.9, 0.999]");
  expect(withLoss("rate: {kind: cosine, peak: 1}"), "57", "rate 'cosine' needs 'steps'");
  expect(withLoss("rate: {kind: linear, warmup: 9, steps: 9}"), "57", "'warmup' takes 9 of 9 steps");
  expect(withLoss("rate: fast"), "57", "expected a number of at least 0, got 'fast'");
  expect(withLoss("clip: -1"), "57", "expected a number of at least 0, got '-1'");
  expect(withLoss("zero: {axis: data, stage: 4}"), "77", "'zero' has the stages 1, 2 and 3, got 4");
  expect(withLoss("zero: {axis: data, stage: 3, gather: thrice}"), "88",
         "expected once or twice, got 'thrice'; did you mean 'twice'?");
  expect(withLoss("zero: {axis: data, stage: 1, gather: twice}"), "57",
         "'gather' is about sharded parameters: stage 3");
  expect(withLoss("recompute: block"), "62",
         "expected none, cheap, blocks or auto, got 'block'; did you mean 'blocks'?");
  expect(withLoss("recompute: auto, memory_limit: much"), "82", "expected bytes, such as 40GB or 512MiB, got 'much'");
  expect(withLoss("memory_limit: 4GB"), "8", "'memory_limit' is what 'recompute: auto' decides by");
  expect(withLoss("zero: {axis: dat, stage: 1}"), "64",
         "'zero' is over \"dat\", which is not an axis of the mesh; did you mean 'data'?");
  expect(withLoss("zero: [{axis: data}, {axis: data}]"), "79", "'zero' is over \"data\" twice");
  expect(withLoss("precision: {parameters: f64}"), "75", "expected f32, bf16 or f16, got 'f64'");
  expect(withLoss("precision: {wire: bf16}"), "69", "expected same or f32, got 'bf16'");
  expect(withLoss("precision: {scale: auto}"), "70", "expected none or dynamic, got 'auto'");
  expect(withLoss("precision: {scale: 0}"), "70", "a scale is none, dynamic or a number above 0, got '0'");
  expect(withLoss("dropout: on"), "60", "expected off or model, got 'on'");
  expect(withLoss("dropout: 1"), "60", "dropout is off, model or a number from 0 to less than 1, got '1'");
  expect(withLoss("batch_norm: running"), "63", "expected frozen or batch, got 'running'");
  expect(withLoss("groups: [{decay: 1}]"), "60", "a group needs 'tensors'");
  expect(withLoss("freeze: a, only: b"), "8", "'freeze' and 'only' say both what is trained");
  expect(withLoss("lora: {rank: 8}"), "57", "'lora' needs 'tensors'");
  expect(withLoss("freeze: \"[a\""), "59", "bad pattern '[a': invalid glob pattern, unmatched '['");
}

// What a step adds has names that no tensor of a model has; its rules wait for it.
TEST(Train, RulesOfWhatAStepAddsAreApart) {
  Plan plan;
  PlanError error;
  ASSERT_TRUE(succeeded(
      parsePlan("mesh: {data: 2}\nshard:\n  - {tensor: x, dims: [data, _]}\n  - {tensor: \"m(w)\", dims: [data, _]}\n  "
                "- {tensor: "
                "labels, dims: [data]}\n  - {tensor: \"f(w)\", dims: [data]}\ntrain: {loss: {kind: mse, of: y}, "
                "optimizer: sgd}\n",
                "p.yaml", plan, error)))
      << error.format();
  auto [ofModel, ofStep] = splitForTraining(plan);
  ASSERT_EQ(ofModel.rules.size(), 2u);
  EXPECT_EQ(ofModel.rules[0].pattern, "x");
  EXPECT_EQ(ofModel.rules[1].pattern, "f(w)");
  ASSERT_EQ(ofStep.rules.size(), 2u);
  EXPECT_EQ(ofStep.rules[1].pattern, "labels");
}

TEST(Train, ReadsWhatIsComputedAgain) {
  PlanMemory none = Parsed(kLoss).read.memory;
  EXPECT_EQ(none.policy, PlanMemory::Policy::None);
  EXPECT_FALSE(none.gather);
  Parsed parsed(
      withLoss("recompute: auto, memory_limit: 40GB, keep: [\"*.attn*\", x], again: \"*gelu*\", zero: {axis: data, "
               "stage: 3, gather: twice}"));
  ASSERT_EQ(parsed.error, "");
  const PlanMemory &memory = parsed.read.memory;
  EXPECT_EQ(memory.policy, PlanMemory::Policy::Auto);
  EXPECT_EQ(memory.limit, 40000000000);
  ASSERT_EQ(memory.keep.size(), 2u);
  EXPECT_EQ(memory.keep[1].text, "x");
  EXPECT_EQ(memory.again[0].text, "*gelu*");
  EXPECT_EQ(memory.gather, PlanMemory::Gather::Twice);
}

TEST(Train, ReadsWhatWaitsInTheHostsMemory) {
  EXPECT_TRUE(Parsed(kLoss).read.memory.offload.empty());
  Parsed parsed(withLoss("offload: [\"*mlp*\", x]"));
  ASSERT_EQ(parsed.error, "");
  ASSERT_EQ(parsed.read.memory.offload.size(), 2u);
  EXPECT_EQ(parsed.read.memory.offload[0].text, "*mlp*");
  EXPECT_EQ(Parsed(withLoss("offload: []")).error.find("'offload' names no tensors") == std::string::npos, false);
}
