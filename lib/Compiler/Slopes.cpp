//===- Slopes.cpp - are the gradients of a step right? --------------------===//
//
//   direction d, as long as the weight       slope = (loss(w + h d) - loss(w - h d)) / 2 h  ~  sum of grad(w) d
//
// In f64 the difference has some 10 digits at the steps tried. Where a network has kinks, a step may go over one: then a smaller one, with
// fewer digits, does not. What a gradient may be off by is a part of what such a direction could give at all, so that parameters that
// hardly matter are held to the same.
//
// The direction is drawn anew for each parameter: where a rule is wrong for one element of many, this one has its share in the sum. What is
// wrong in the loss itself, and so in both, is not seen here: that is a matter of the model's own tests.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Slopes.h"

#include "cleave/Compiler/Values.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Reference/Evaluator.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

#include <cfloat>
#include <cmath>
#include <random>

using namespace mlir;
using namespace cleave;
using reference::Tensor;

namespace {
/// As parts of the weight.
constexpr double kSteps[] = {1e-4, 1e-5, 1e-6};
/// A part of what the direction could give; roundings of the loss.
constexpr double kAllowed = 1e-5, kRoundings = 64;

class SlopeChecker {
public:
  SlopeChecker(func::FuncOp step, ArrayRef<Tensor> inputs, uint64_t seed)
      : step(step), inputs(inputs.begin(), inputs.end()), random(seed) {}

  std::optional<std::vector<SlopeCheck>> run();

private:
  bool keepLoss();
  std::optional<double> findLoss(unsigned argument, const Tensor &at);
  std::optional<SlopeCheck> check(unsigned argument, const Tensor &gradient);

  func::FuncOp step, loss;
  OwningOpRef<ModuleOp> module;
  SmallVector<Tensor> inputs;
  std::mt19937_64 random;
  double lossHere = 0;
};
} // namespace

/// Exact, whatever floats it has.
static Tensor toDouble(const Tensor &tensor) {
  auto type = RankedTensorType::get(tensor.getShape(), Float64Type::get(tensor.getType().getContext()));
  Tensor wide = Tensor::zeros(type);
  for (int64_t i = 0; i < tensor.getNumElements(); ++i)
    wide.write<double>()[i] = static_cast<double>(getElement(tensor, i));
  return wide;
}

/// The loss alone, which takes a third of the time of a step.
bool SlopeChecker::keepLoss() {
  module = step->getParentOfType<ModuleOp>().clone();
  PassManager manager(module->getContext());
  manager.addPass(nn::createNnKeepLoss());
  loss = succeeded(manager.run(*module)) ? module->lookupSymbol<func::FuncOp>(step.getSymName()) : func::FuncOp();
  return static_cast<bool>(loss);
}

/// With one parameter elsewhere, all else as it is.
std::optional<double> SlopeChecker::findLoss(unsigned argument, const Tensor &at) {
  SmallVector<Tensor> changed = inputs, outputs;
  changed[argument] = at;
  if (failed(reference::runInDouble(loss, changed, outputs)))
    return std::nullopt;
  return outputs.front().as<double>()[0];
}

/// A step after the other, from large ones on, until one agrees; of those that do not the one that comes closest is told.
std::optional<SlopeCheck> SlopeChecker::check(unsigned argument, const Tensor &gradient) {
  Tensor here = toDouble(inputs[argument]);
  int64_t count = here.getNumElements();
  double squares = 0;
  for (double number : here.as<double>())
    squares += number * number;
  // What begins as zeros has no length of its own.
  double length = std::max(std::sqrt(squares / double(std::max<int64_t>(count, 1))), 1e-2), scale = 0;
  std::normal_distribution<double> normal;
  std::vector<double> direction(count);
  SlopeCheck found;
  found.parameter = spmd::getArgumentName(step, argument).str();
  for (int64_t i = 0; i < count; ++i) {
    direction[i] = length * normal(random);
    double term = direction[i] * static_cast<double>(getElement(gradient, i));
    found.byGradient += term;
    scale += term * term;
  }
  // Terms may cancel: what they could give is their length, not their sum.
  scale = std::max(std::sqrt(scale), std::abs(found.byGradient));
  double apart = INFINITY;
  for (double size : kSteps) {
    double ends[2];
    for (int side : {0, 1}) {
      Tensor at = toDouble(here);
      for (int64_t i = 0; i < count; ++i)
        at.write<double>()[i] += (side ? -size : size) * direction[i];
      std::optional<double> there = findLoss(argument, at);
      if (!there)
        return std::nullopt;
      ends[side] = *there;
    }
    double slope = (ends[0] - ends[1]) / (2 * size), distance = std::abs(slope - found.byGradient);
    double allowed = kAllowed * scale + kRoundings * DBL_EPSILON * std::abs(lossHere) / size;
    if (distance - allowed < apart || std::isnan(distance)) {
      apart = distance - allowed;
      found.slope = slope;
      found.allowed = allowed;
    }
    if (found.isRight())
      break;
  }
  return found;
}

/// Where each result is made; arguments come first.
static SmallVector<unsigned> sortResults(func::FuncOp func) {
  llvm::DenseMap<Operation *, unsigned> places;
  for (auto [place, op] : llvm::enumerate(func.getBody().front()))
    places[&op] = unsigned(place);
  Operation *terminator = func.getBody().front().getTerminator();
  auto order = llvm::to_vector(llvm::seq<unsigned>(0, func.getNumResults()));
  llvm::sort(order, [&](unsigned a, unsigned b) {
    auto getPlace = [&](unsigned result) {
      return std::pair(places.lookup(terminator->getOperand(result).getDefiningOp()), result);
    };
    return getPlace(a) < getPlace(b);
  });
  return order;
}

/// In the order of the program: a wrong rule spoils what comes behind it, and that is nearer to the input.
std::optional<std::vector<SlopeCheck>> SlopeChecker::run() {
  auto isGradient = [&](unsigned result) { return spmd::getResultName(step, result).starts_with("grad("); };
  if (llvm::none_of(llvm::seq<unsigned>(0, step.getNumResults()), isGradient))
    return std::vector<SlopeCheck>();
  SmallVector<Tensor> outputs;
  if (!keepLoss() || failed(reference::runInDouble(step, inputs, outputs)))
    return std::nullopt;
  llvm::StringMap<unsigned> arguments;
  for (unsigned index = 0; index < step.getNumArguments(); ++index)
    if (spmd::isParameter(step, index))
      arguments[("grad(" + spmd::getArgumentName(step, index) + ")").str()] = index;
  std::vector<SlopeCheck> found;
  for (unsigned result : sortResults(step)) {
    if (spmd::getResultName(step, result) == "loss")
      lossHere = outputs[result].as<double>()[0];
    auto argument = arguments.find(spmd::getResultName(step, result));
    if (argument == arguments.end())
      continue;
    std::optional<SlopeCheck> one = check(argument->second, outputs[result]);
    if (!one)
      return std::nullopt;
    found.push_back(*one);
  }
  return found;
}

std::optional<std::vector<SlopeCheck>> cleave::checkSlopes(func::FuncOp step, ArrayRef<Tensor> inputs, uint64_t seed) {
  return SlopeChecker(step, inputs, seed).run();
}
