//===- Artifacts.cpp - what onnxruntime trains with -----------------------===//
//
// Of the graphs with gradients two things are read: nodes InPlaceAccumulatorV2, each of which adds the gradient of a trained weight W to
// the buffer `W_grad.accumulation.buffer`, and whether anything differs from the model that evaluates (dropout, batch norms).
//
// What onnxruntime's gradients compute is not looked at: their ops are its own, fused for its kernels, and no form that could be sharded.
// Numbers of the optimizer are attributes of its node; its rate is an input, which whoever trains with onnxruntime sets at each step.
//
//===----------------------------------------------------------------------===//
#include "cleave/Onnx/Artifacts.h"

#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace cleave;
using namespace cleave::onnx;
using namespace llvm;

static constexpr StringLiteral kMicrosoft = "com.microsoft", kBuffer = "_grad.accumulation.buffer";

static std::string getFile(StringRef folder, StringRef name) {
  SmallString<128> path(folder);
  sys::path::append(path, name);
  return path.str().str();
}

std::string cleave::onnx::getEvalModel(StringRef folder) { return getFile(folder, "eval_model.onnx"); }

/// Who names another folder learns what should be in it.
static Expected<std::unique_ptr<ModelFile>> readPart(StringRef folder, StringRef name) {
  std::string path = getFile(folder, name);
  if (!sys::fs::exists(path))
    return makeError("{0} is missing: generate_artifacts of onnxruntime-training writes training_model.onnx, "
                     "eval_model.onnx, optimizer_model.onnx and checkpoint into one folder",
                     path);
  Expected<std::unique_ptr<ModelFile>> model = readModel(path);
  return model ? std::move(model) : addContext(path + ": ", model.takeError());
}

//===----------------------------------------------------------------------===//
// The optimizer
//===----------------------------------------------------------------------===//

static double getFloat(const NodeProto &node, StringRef name, double without) {
  const AttributeProto *attribute = node.findAttribute(name);
  return attribute ? double(attribute->f) : without;
}

static int64_t getInteger(const NodeProto &node, StringRef name, int64_t without) {
  const AttributeProto *attribute = node.findAttribute(name);
  return attribute ? attribute->i : without;
}

/// A float of the file as the number that was meant, the shortest that is this float: 0.9 and not 0.89999998.
static double toDecimal(double value) {
  for (int digits = 1; digits <= 9; ++digits) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    double decimal = std::strtod(text, nullptr);
    if (float(decimal) == float(value))
      return decimal;
  }
  return value;
}

static std::string describe(const NodeProto &node) {
  return formatv("node {0} ({1})", quote(node.name), node.opType).str();
}

/// Defaults are those of the op's schema.
static Error readAdamW(const NodeProto &node, OrtOptimizer &optimizer) {
  int64_t mode = getInteger(node, "adam_mode", 0);
  if (mode != 0 && mode != 1)
    return makeError("{0}: adam_mode is {1}, 0 and 1 are known", describe(node), mode);
  optimizer.kind = mode == 0 ? OrtOptimizer::Kind::TorchAdamW : OrtOptimizer::Kind::HfAdamW;
  optimizer.betas[0] = toDecimal(getFloat(node, "alpha", 0.9));
  optimizer.betas[1] = toDecimal(getFloat(node, "beta", 0.999));
  optimizer.epsilon = toDecimal(getFloat(node, "epsilon", 1e-8));
  optimizer.decay = toDecimal(getFloat(node, "weight_decay", 1e-2));
  optimizer.correctsBias = getInteger(node, "correct_bias", 1) != 0;
  auto isShare = [](double beta) { return beta >= 0 && beta <= 1; };
  if (isShare(optimizer.betas[0]) && isShare(optimizer.betas[1]) && optimizer.epsilon >= 0 && optimizer.decay >= 0 &&
      std::isfinite(optimizer.epsilon + optimizer.decay))
    return Error::success();
  return makeError("{0}: its numbers are none of an optimizer", describe(node));
}

/// One optimizer, and one node that clips in front of it, in any order.
static Expected<OrtOptimizer> readOptimizer(const GraphProto &graph) {
  OrtOptimizer optimizer;
  const NodeProto *found = nullptr;
  for (const NodeProto &node : graph.node) {
    bool isOwn = node.domain == kMicrosoft;
    if (isOwn && node.opType == "InplaceClipGradNorm") {
      optimizer.clip = toDecimal(getFloat(node, "max_norm", 1));
      continue;
    }
    if (!isOwn || (node.opType != "AdamWOptimizer" && node.opType != "SGDOptimizerV2"))
      return makeError("{0} is none of the optimizers that are known: AdamWOptimizer and SGDOptimizerV2 of {1}; "
                       "'train' of a plan names another one",
                       describe(node), kMicrosoft);
    if (std::exchange(found, &node))
      return makeError("{0} is a second optimizer", describe(node));
    if (node.opType == "AdamWOptimizer")
      if (Error error = readAdamW(node, optimizer))
        return std::move(error);
  }
  if (!found)
    return makeError("has no optimizer");
  return optimizer;
}

//===----------------------------------------------------------------------===//
// What is trained
//===----------------------------------------------------------------------===//

/// What a model in training computes otherwise than one that evaluates.
static bool isOfTraining(const NodeProto &node) {
  if (node.opType == "BatchNormalization")
    return getInteger(node, "training_mode", 0) != 0;
  return node.opType.contains("Dropout") || node.opType == "BatchNormInternal";
}

/// The buffer is asked, and not the gradient: that may be called otherwise where several nodes add to it.
static Error readTrained(const GraphProto &graph, Artifacts &artifacts) {
  for (const NodeProto &node : graph.node) {
    if (node.opType != "InPlaceAccumulatorV2" || node.domain != kMicrosoft)
      continue;
    StringRef name = node.input.empty() ? StringRef() : node.input.front();
    if (!name.consume_back(kBuffer) || name.empty())
      return makeError("{0} has the buffer {1}, expected WEIGHT{2}", describe(node),
                       quote(node.input.empty() ? StringRef() : node.input.front()), kBuffer);
    if (!artifacts.checkpoint.weights.contains(name))
      return makeError("{0}: {1} is trained, and not in the checkpoint", describe(node), quote(name));
    artifacts.trained.push_back(name.str());
  }
  if (artifacts.trained.empty())
    return makeError("trains nothing: it has no node InPlaceAccumulatorV2");
  const auto *other =
      find_if(graph.node, isOfTraining) == graph.node.end() ? nullptr : &*find_if(graph.node, isOfTraining);
  if (other)
    artifacts.notes.push_back(
        formatv("{0} and its like are as in eval_model.onnx, where nothing is dropped and norms take running "
                "statistics: onnxruntime trains with others",
                describe(*other)));
  return Error::success();
}

/// Weights come first, since what is trained is looked up in them.
Expected<Artifacts> cleave::onnx::readArtifacts(StringRef folder) {
  Artifacts artifacts;
  std::string checkpoint = getFile(folder, "checkpoint"), optimizer = getFile(folder, "optimizer_model.onnx");
  Expected<std::unique_ptr<ModelFile>> eval = readPart(folder, "eval_model.onnx");
  if (!eval)
    return eval.takeError();
  Expected<std::unique_ptr<ModelFile>> training = readPart(folder, "training_model.onnx");
  if (!training)
    return training.takeError();
  const std::vector<ValueInfoProto> &outputs = (*eval)->model.graph.output;
  if (outputs.empty())
    return makeError("{0} has no outputs, of which the first is the loss", getEvalModel(folder));
  artifacts.loss = outputs.front().name.str();
  Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(checkpoint);
  if (!file)
    return file.takeError();
  Expected<OrtCheckpoint> read = readOrtCheckpoint(*file);
  if (!read)
    return addContext(checkpoint + ": ", read.takeError());
  artifacts.checkpoint = std::move(*read);
  if (Error error = readTrained((*training)->model.graph, artifacts))
    return addContext((getFile(folder, "training_model.onnx") + ": "), std::move(error));
  if (!sys::fs::exists(optimizer))
    return artifacts;
  Expected<std::unique_ptr<ModelFile>> model = readPart(folder, "optimizer_model.onnx");
  if (!model)
    return model.takeError();
  Expected<OrtOptimizer> known = readOptimizer((*model)->model.graph);
  if (!known)
    return addContext(optimizer + ": ", known.takeError());
  artifacts.optimizer = *known;
  return artifacts;
}
