//===- Modes.cpp - what a model does in training alone --------------------===//
//
//   pin x {nn.dropout = p}      ->   select(word(place, count) >= p 2^32, x / (1 - p), 0)
//   batch_norm x, s, b, m, v    ->   batch_norm x, s, b, mean(x), variance(x)     next(m) = momentum m + (1 - momentum) mean(x)
//
// Words are those of Philox (Srivastava et al. 2014 for dropout; IR/Random.h for the numbers), whose key is made of the node's result and of
// the plan's seed: which elements stay is a function of seed, node, step and place, and so is the same on any mesh, and again wherever it is
// computed once more. Statistics are over all samples, with the variance over n, as ONNX has them; the mean is subtracted before squares are
// summed.
//
//===----------------------------------------------------------------------===//
#include "Step.h"

#include "cleave/Dialect/Nn/Gradients/Differentiate.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"
#include "cleave/Dialect/Nn/IR/Random.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {
class ModeChanger {
public:
  ModeChanger(func::FuncOp func, const spmd::PlanTrain &train, bool evaluates)
      : func(func), train(train), evaluates(evaluates) {}

  LogicalResult dropOut();
  LogicalResult normalizeByBatch();
  SmallVector<RunningValue> running;

private:
  Value drop(Composer &f, Value x, StringRef name, double ratio);
  void normalize(BatchNormOp norm);
  void run(Composer &f, OpOperand &statistic, Value ofBatch, double momentum);

  func::FuncOp func;
  const spmd::PlanTrain &train;
  /// The states of training are there, and are read: nothing is dropped, and norms take the running statistics.
  bool evaluates;
};
} // namespace

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

/// Scaled in f32 at least, so that the mean stays to all digits.
Value ModeChanger::drop(Composer &f, Value x, StringRef name, double ratio) {
  Value count = getCount(func);
  if (evaluates)
    return x;
  Value word = composeRandomWords(f, Composer::shape(x), makeRandomKey(name, train.seed), count).first;
  Value scaled = f.cast(f.mul(f.widen(x), 1 / (1 - ratio)), Composer::elementType(x));
  return f.select(f.ge(word, std::round(ratio * 0x1p32)), scaled, 0);
}

LogicalResult ModeChanger::dropOut() {
  const spmd::PlanDropout &dropout = train.dropout;
  if (dropout.kind == spmd::PlanDropout::Kind::Off)
    return success();
  SmallVector<spmd::PinOp> pins;
  func.walk([&](spmd::PinOp pin) {
    if (pin->hasAttr(spmd::kDropoutAttr))
      pins.push_back(pin);
  });
  if (pins.empty())
    return emitErrorAt(func.getContext(), dropout.place)
           << "'dropout' finds no Dropout node: exporters leave them out of models that only infer";
  for (spmd::PinOp pin : pins) {
    if (pin->getParentOp() != func)
      return pin.emitOpError() << "is a dropout in a loop, which draws the same in each round";
    auto own = cast<FloatAttr>(pin->removeDiscardableAttr(spmd::kDropoutAttr));
    double ratio = dropout.kind == spmd::PlanDropout::Kind::Number ? dropout.ratio : own.getValueAsDouble();
    if (ratio < 0 || ratio >= 1)
      return pin.emitOpError() << "is a dropout of " << ratio << ", expected less than 1";
    if (ratio == 0)
      continue;
    OpBuilder builder(pin);
    Composer f(builder, getInnerLoc(pin.getLoc()));
    pin.getInputMutable().assign(drop(f, pin.getInput(), pin.getName(), ratio));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Batch norms
//===----------------------------------------------------------------------===//

/// In place of what the file has. A statistic that is a weight becomes a state; one of two norms changes twice.
void ModeChanger::run(Composer &f, OpOperand &statistic, Value ofBatch, double momentum) {
  Value known = statistic.get();
  if (!evaluates)
    statistic.set(f.cast(ofBatch, Composer::elementType(known)));
  LoadOp load = findLoad(known);
  if (!load)
    return;
  std::string name = getTensorName(load);
  auto *state = llvm::find_if(running, [&](const RunningValue &value) { return value.name == name; });
  if (state == running.end())
    state = &running.emplace_back(RunningValue{name, addLoaded(func, load, getElementType(load), spmd::kRunningRole)});
  if (evaluates)
    return statistic.set(f.cast(state->next, Composer::elementType(known)));
  Value old = f.widen(state->next);
  Value next = f.add(f.mul(old, momentum), f.mul(f.cast(ofBatch, Composer::elementType(old)), 1 - momentum));
  state->next = f.cast(next, getElementType(load));
}

void ModeChanger::normalize(BatchNormOp norm) {
  OpBuilder builder(norm);
  Composer f(builder, getInnerLoc(norm.getLoc()));
  Value x = f.widen(norm.getInput());
  int64_t rank = Composer::rank(x);
  SmallVector<int64_t> others = {0};
  llvm::append_range(others, llvm::seq<int64_t>(2, rank));
  Value mean = f.mean(x, others, /*keepDims=*/true);
  // A variance does not depend on what is subtracted, if that is the mean: its gradient would be a sum over ranks that is zero.
  auto subtracted = spmd::PinOp::create(builder, f.getLoc(), mean, builder.getStringAttr(""), spmd::AnnotationAttr());
  subtracted->setDiscardableAttr(kDetachedAttr, builder.getUnitAttr());
  Value variance = f.mean(f.square(f.sub(x, subtracted)), others);
  auto momentum = norm->getAttrOfType<FloatAttr>(spmd::kMomentumAttr);
  double kept = momentum ? momentum.getValueAsDouble() : 0.9;
  run(f, norm.getMeanMutable(), f.reshape(mean, Composer::shape(variance)), kept);
  run(f, norm.getVarianceMutable(), variance, kept);
}

LogicalResult ModeChanger::normalizeByBatch() {
  if (train.batchNorm.kind == spmd::PlanBatchNorm::Kind::Frozen)
    return success();
  auto norms = llvm::to_vector(func.getOps<BatchNormOp>());
  if (norms.empty())
    return emitErrorAt(func.getContext(), train.batchNorm.place)
           << "'batch_norm' finds no BatchNormalization node: exporters fold them into convolutions of models that "
              "only infer";
  for (BatchNormOp norm : norms)
    normalize(norm);
  return success();
}

FailureOr<SmallVector<RunningValue>> cleave::nn::enterTraining(func::FuncOp func, const spmd::PlanTrain &train,
                                                               bool evaluates) {
  ModeChanger changer(func, train, evaluates);
  if (failed(changer.dropOut()) || failed(changer.normalizeByBatch()))
    return failure();
  return changer.running;
}
