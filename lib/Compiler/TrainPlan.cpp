//===- TrainPlan.cpp - what a plan of a training is filled in with --------===//
//
// A folder of onnxruntime's artifacts says of a step what `train` of a plan says: a loss (an output of its model), an optimizer, and what is trained. A
// plan may say some of it, or all, which then counts; what it says besides (rates, ZeRO, microbatches) it says of this step as of any.
//
// Microbatches of a step are a pipeline of one stage.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Pipelines/Phases.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Support/Status.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace cleave;
using spmd::PlanPlace;

std::string cleave::getArtifactsModel(const std::string &folder) { return onnx::getEvalModel(folder); }

/// A name that may hold characters of patterns.
static std::string makePattern(StringRef name) {
  return spmd::NamePattern::isLiteral(name) ? name.str() : "re:" + llvm::Regex::escape(name);
}

//===----------------------------------------------------------------------===//
// Microbatches
//===----------------------------------------------------------------------===//

void Compilation::State::splitSteps() {
  auto split = std::make_shared<spmd::Plan>(*plan);
  spmd::PlanPipeline &pipeline = split->pipeline.emplace();
  pipeline.axis = "stage";
  while (split->findAxis(pipeline.axis))
    pipeline.axis += "_";
  pipeline.microbatches = plan->train->microbatches;
  pipeline.place = pipeline.axisPlace = plan->train->microbatchesPlace;
  // How many labels count is known before the first microbatch where each has them all.
  llvm::StringSet<> seen;
  for (const spmd::PlanLoss &loss : plan->train->losses)
    if (plan->train->losses.size() > 1 && loss.ignored && !loss.next && seen.insert(loss.labels.text).second)
      pipeline.batch.push_back({{makePattern(loss.labels.text), loss.labels.place}, spmd::PlanPipeline::kNoBatch});
  split->mesh.insert(split->mesh.begin(), {pipeline.axis, 1, pipeline.axisPlace});
  // A plan without a mesh has not been handed on: one device it is, which takes one microbatch after the other.
  handed.pipeline = handed.plan = plan = split;
}

/// Differentiation asks whether there are several microbatches, and not how many: one such step does for all plans. What cannot be made is
/// tried again by whoever asks next, and each is told why.
bool Compilation::State::splitStep() {
  if (stepOfParts)
    return true;
  auto ofParts = std::make_shared<spmd::Plan>(*handed.training);
  ofParts->train->microbatches = 2;
  ShardState handing = handed;
  handing.training = ofParts;
  OwningOpRef<ModuleOp> made = canonical->clone();
  for (const PipelinePhase &step : getShardPhases())
    if (step.phase == Phase::Differentiated) {
      PassManager manager(context.get());
      manager.enableVerifier(false);
      step.addPasses(manager, options.sharding, handing);
      if (failed(manager.run(*made)))
        return false;
    }
  canonical = nullptr;
  stepOfParts = std::move(made);
  return true;
}

//===----------------------------------------------------------------------===//
// Steps of a call
//===----------------------------------------------------------------------===//

/// What ranks compute is repeated where it is decided (`pipe-repeat-step`); this is what they are held against.
bool Compilation::State::repeatSteps(ModuleOp module) {
  if (handed.stepsPerCall == 1)
    return true;
  PassManager manager(module.getContext());
  pipe::RepeatStepOptions repeating;
  repeating.steps = handed.stepsPerCall;
  manager.addPass(pipe::createRepeatStep(repeating));
  return succeeded(manager.run(module));
}

//===----------------------------------------------------------------------===//
// Artifacts
//===----------------------------------------------------------------------===//

/// Names differ, formulas do not (Dialect/Nn/Training/Optimizers.cpp).
static spmd::PlanOptimizer convert(const onnx::OrtOptimizer &read) {
  using Kind = spmd::PlanOptimizer::Kind;
  spmd::PlanOptimizer optimizer;
  switch (read.kind) {
  case onnx::OrtOptimizer::Kind::Sgd:
    optimizer.kind = Kind::Sgd;
    return optimizer;
  case onnx::OrtOptimizer::Kind::TorchAdamW:
    optimizer.kind = Kind::AdamW;
    break;
  case onnx::OrtOptimizer::Kind::HfAdamW:
    optimizer.kind = Kind::HfAdamW;
    break;
  }
  optimizer.betas[0] = read.betas[0];
  optimizer.betas[1] = read.betas[1];
  optimizer.epsilon = read.epsilon;
  optimizer.decay = read.decay;
  optimizer.correctsBias = read.correctsBias;
  return optimizer;
}

/// Fills in what `train` does not say; calls `tell` with what it says otherwise than the artifacts.
static void fill(const onnx::Artifacts &artifacts, const std::string &folder, spmd::PlanTrain &train,
                 llvm::function_ref<void(StringRef what, const PlanPlace &place)> tell) {
  PlanPlace place{getArtifactsModel(folder), 1, 1};
  if (train.losses.empty()) {
    spmd::PlanLoss &loss = train.losses.emplace_back();
    loss.kind = spmd::PlanLoss::Kind::Output;
    loss.of = {artifacts.loss, place};
    loss.place = place;
  } else {
    tell("the loss", train.losses.front().place);
  }
  if (train.optimizer.place.line) {
    tell("the optimizer", train.optimizer.place);
  } else {
    // That there is one has been seen.
    train.optimizer = convert(*artifacts.optimizer);
    train.optimizer.place = place;
    // Clipping is a node beside that one.
    if (!train.clip)
      train.clip = artifacts.optimizer->clip;
  }
  if (!train.rate.place.line && artifacts.checkpoint.rate)
    train.rate.peak = *artifacts.checkpoint.rate;
  if (!train.freeze.empty() || !train.only.empty() || train.lora)
    return tell("what is trained", train.place);
  for (const std::string &name : artifacts.trained)
    train.only.push_back({makePattern(name), {folder + "/training_model.onnx", 1, 1}});
}

/// Before anything of the plan is handed on: who asks it later finds a section `train` like any other.
bool Compilation::State::takeArtifacts() {
  const std::string &folder = options.artifacts;
  std::string model = getArtifactsModel(folder);
  if (options.model.empty())
    given.model = options.model = model;
  if (options.model != model && !llvm::sys::fs::equivalent(options.model, model))
    return fail(makeError("--artifacts {0} is about {1}, and {2} is another model: name one of both", folder, model,
                          options.model),
                Blame::Options);
  llvm::Expected<onnx::Artifacts> read = onnx::readArtifacts(folder);
  if (!read)
    return fail(read.takeError());
  artifacts = std::make_shared<const onnx::Artifacts>(std::move(*read));
  Location loc = NameLoc::get(StringAttr::get(context.get(), model));
  for (const std::string &note : artifacts->notes)
    emitWarning(loc) << note;
  if (artifacts->checkpoint.hasMoments)
    emitRemark(loc) << "the checkpoint has moments of an optimizer that has begun: they begin anew, as zeros";
  // The plan may be shared with others, who read what was written.
  auto filled = plan ? std::make_shared<spmd::Plan>(*plan) : std::make_shared<spmd::Plan>();
  if (!filled->train)
    filled->train.emplace().place = {model, 1, 1};
  if (!artifacts->optimizer && !filled->train->optimizer.place.line)
    return fail(makeError("{0}/optimizer_model.onnx is missing, and no plan has a section 'train' with an 'optimizer'",
                          folder));
  fill(*artifacts, folder, *filled->train, [&](StringRef what, const PlanPlace &place) {
    emitRemark(FileLineColLoc::get(context.get(), place.file, place.line, place.column))
        << what << " is that of the plan, and not of " << folder;
  });
  plan = filled;
  return true;
}
