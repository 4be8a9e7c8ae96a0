//===- Optimizers.cpp - from a gradient to a new weight -------------------===//
//
// As PyTorch's torch.optim has them (sgd, momentum and nesterov: Sutskever et al. 2013; Adagrad: Duchi et al. 2011; Adam: Kingma and Ba
// 2015; AdamW: Loshchilov and Hutter 2019), and LAMB (You et al. 2020), algorithm 2. With weight w, gradient g, rate r, step n from 1 on,
// and decay d, which joins the gradient of all but adamw and lamb:
//
//   sgd        w - r g                          adam, adamw   m = b1 m + (1 - b1) g      v = b2 v + (1 - b2) g^2
//   momentum   m = b m + g      w - r m                       u = m / (1 - b1^n) / (sqrt(v / (1 - b2^n)) + e)
//   nesterov   w - r (g + b m)                                w - r u;  adamw: w (1 - r d) - r u
//   adagrad    v = v + g^2      w - r g / (sqrt(v) + e)
//   lamb       w - r |w| / |u + d w| (u + d w)
//   hf_adamw   x - r d x, with x = w - r sqrt(1 - b2^n) / (1 - b1^n) m / (sqrt(v) + e)
//
// The last one is transformers.AdamW of Hugging Face (2.9 to 4.x), which onnxruntime's AdamWOptimizer computes in its mode 1.
//
//===----------------------------------------------------------------------===//
#include "Optimizers.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using OptimizerKind = spmd::PlanOptimizer::Kind;

Value cleave::nn::composeRate(Composer &f, const spmd::PlanRate &rate, Value done) {
  Value n = f.cast(done, f.f64()), peak = f.scalar(f.f64(), rate.peak), later = peak;
  if (rate.kind == spmd::PlanRate::Kind::Linear || rate.kind == spmd::PlanRate::Kind::Cosine) {
    double span = double(rate.steps - rate.warmup);
    Value gone = f.clamp(f.div(f.sub(n, double(rate.warmup)), span), 0, 1);
    Value left =
        rate.kind == spmd::PlanRate::Kind::Linear ? f.sub(1, gone) : f.mul(f.add(f.cos(f.mul(gone, M_PI)), 1), 0.5);
    later = f.add(f.mul(left, rate.peak - rate.floor), rate.floor);
  }
  if (rate.warmup == 0)
    return later;
  Value early = f.mul(f.div(f.add(n, 1), double(rate.warmup)), rate.peak);
  return f.select(f.lt(n, double(rate.warmup)), early, later);
}

ArrayRef<StringRef> cleave::nn::getStateWords(const spmd::PlanOptimizer &optimizer) {
  static constexpr StringRef first[] = {"m"}, both[] = {"m", "v"}, second[] = {"v"};
  switch (optimizer.kind) {
  case OptimizerKind::Sgd:
    return {};
  case OptimizerKind::Momentum:
  case OptimizerKind::Nesterov:
    return first;
  case OptimizerKind::Adagrad:
    return second;
  case OptimizerKind::Adam:
  case OptimizerKind::AdamW:
  case OptimizerKind::Lamb:
  case OptimizerKind::HfAdamW:
    return both;
  }
  return {};
}

/// `beta * x + share * y`.
static Value blend(Composer &f, double beta, Value x, double share, Value y) {
  return f.add(f.mul(x, beta), share == 1 ? y : f.mul(y, share));
}

/// The two moments, and the step that they propose, without the rate: Adam's u.
static Value composeAdam(Composer &f, const spmd::PlanOptimizer &optimizer, Value count, Value gradient,
                         MutableArrayRef<Value> moments) {
  auto [beta1, beta2] = optimizer.betas;
  Type type = Composer::elementType(gradient);
  Value n = f.cast(count, f.f64());
  auto correction = [&](double beta) { return f.sub(1, f.pow(f.scalar(f.f64(), beta), n)); };
  moments[0] = blend(f, beta1, moments[0], 1 - beta1, gradient);
  moments[1] = blend(f, beta2, moments[1], 1 - beta2, f.square(gradient));
  if (!optimizer.correctsBias)
    return f.div(moments[0], f.add(f.sqrt(moments[1]), optimizer.epsilon));
  // In f64: 1 - 0.999 has four digits left in f32.
  Value first = correction(beta1), second = f.sqrt(correction(beta2));
  // Epsilon is not corrected, and so weighs less in the first steps.
  if (optimizer.kind == OptimizerKind::HfAdamW)
    return f.mul(f.div(moments[0], f.add(f.sqrt(moments[1]), optimizer.epsilon)), f.cast(f.div(second, first), type));
  // One number each, so that elements are multiplied: a division takes ten times as long.
  first = f.cast(f.reciprocal(first), type);
  second = f.cast(f.reciprocal(second), type);
  Value deviation = f.add(f.mul(f.sqrt(moments[1]), second), optimizer.epsilon);
  return f.div(f.mul(moments[0], first), deviation);
}

static Value getLength(Composer &f, Value value) { return f.sqrt(f.sumAll(f.square(value))); }

/// As long as the weight, in the direction of `step`; where one of both is 0, as it is.
static Value scaleByLength(Composer &f, Value weight, Value step) {
  Value ofWeight = getLength(f, weight), ofStep = getLength(f, step);
  Value isSome = f.both(f.gt(ofWeight, 0), f.gt(ofStep, 0));
  return f.mul(step, f.select(isSome, f.div(ofWeight, f.select(isSome, ofStep, 1)), 1));
}

Value cleave::nn::composeUpdate(Composer &f, const spmd::PlanOptimizer &optimizer, const StepNumbers &numbers,
                                Value weight, Value gradient, MutableArrayRef<Value> states, double decay,
                                double rateFactor) {
  Value rate = rateFactor == 1 ? numbers.rate : f.mul(numbers.rate, rateFactor);
  auto toType = [&](Value number) { return f.cast(number, Composer::elementType(weight)); };
  bool isLate = optimizer.kind == OptimizerKind::HfAdamW;
  bool isApart = optimizer.kind == OptimizerKind::AdamW || optimizer.kind == OptimizerKind::Lamb || isLate;
  if (decay != 0 && !isApart)
    gradient = f.add(gradient, f.mul(weight, decay));
  Value step = gradient;
  switch (optimizer.kind) {
  case OptimizerKind::Sgd:
    break;
  case OptimizerKind::Momentum:
  case OptimizerKind::Nesterov:
    states[0] = blend(f, optimizer.beta, states[0], 1, gradient);
    step = optimizer.kind == OptimizerKind::Momentum ? states[0] : f.add(gradient, f.mul(states[0], optimizer.beta));
    break;
  case OptimizerKind::Adagrad:
    states[0] = f.add(states[0], f.square(gradient));
    step = f.div(gradient, f.add(f.sqrt(states[0]), optimizer.epsilon));
    break;
  case OptimizerKind::Adam:
  case OptimizerKind::HfAdamW:
    step = composeAdam(f, optimizer, numbers.count, gradient, states);
    break;
  case OptimizerKind::AdamW:
    step = composeAdam(f, optimizer, numbers.count, gradient, states);
    if (decay != 0)
      weight = f.mul(weight, toType(f.sub(1, f.mul(rate, decay))));
    break;
  case OptimizerKind::Lamb:
    step = composeAdam(f, optimizer, numbers.count, gradient, states);
    if (decay != 0)
      step = f.add(step, f.mul(weight, decay));
    step = scaleByLength(f, weight, step);
    break;
  }
  Value next = f.sub(weight, f.mul(step, toType(rate)));
  return isLate && decay != 0 ? f.mul(next, toType(f.sub(1, f.mul(rate, decay)))) : next;
}
