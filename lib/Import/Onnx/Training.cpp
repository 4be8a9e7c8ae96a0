//===- Training.cpp - optimizers of ai.onnx.preview.training --------------===//
//
// Each updates any number of tensors alike. Operands are the learning rate, the number of updates so far, then all
// tensors, all gradients and all averages; results come in the same order:
//
//   Momentum (R, T, X1, X2, G1, G2, V1, V2) -> (X1', X2', V1', V2')
//
// The count is an integer. What follows from it (`beta^T`, whether it is the first) is computed in the type of the
// learning rate, as the standard's formulas say, and cast once to that of the tensors.
//
//===----------------------------------------------------------------------===//
#include "NodeContext.h"
#include "Registry.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

namespace {
/// The operands of one tensor's update: itself, its gradient, and one or two averages.
struct Update {
  Value x, gradient, first, second;
};
} // namespace

/// Calls `update(operands of one tensor)`, which gives the new tensor and the new averages, for each tensor.
template <typename Fn> static void updateAll(NodeContext &node, unsigned averages, Fn update) {
  unsigned parts = 2 + averages, given = node.getNumOperands() - 2;
  if (!node.check(given % parts == 0, "the tensors, gradients and averages are " + Twine(given) +
                                          ", which is not a multiple of " + Twine(parts)))
    return;
  unsigned count = given / parts;
  for (unsigned i = 0; i < count; ++i) {
    auto part = [&](unsigned p) { return p < parts ? node.operand(2 + p * count + i) : Value(); };
    SmallVector<Value> results = update(Update{part(0), part(1), part(2), part(3)});
    for (auto [p, result] : llvm::enumerate(results))
      node.result(p * count + i, result);
  }
}

/// The gradient of `norm / 2 * |x|^2` comes on top.
static Value regularize(nn::Composer &f, const Update &update, double norm) {
  return norm == 0 ? update.gradient : f.add(f.mul(update.x, norm), update.gradient);
}

static void importAdagrad(NodeContext &node) {
  nn::Composer &f = node;
  double norm = node.floatAttr("norm_coefficient", 0), decay = node.floatAttr("decay_factor", 0),
         epsilon = node.floatAttr("epsilon", 1e-6f);
  Value rate = node.operand(0), count = node.cast(node.operand(1), NodeContext::elementType(rate));
  rate = f.div(rate, f.add(f.mul(count, decay), 1));
  updateAll(node, 1, [&](const Update &update) -> SmallVector<Value> {
    Value gradient = regularize(f, update, norm);
    Value squares = f.add(update.first, f.square(gradient));
    Value step = f.mul(node.cast(rate, NodeContext::elementType(update.x)), gradient);
    return {f.sub(update.x, f.div(step, f.add(f.sqrt(squares), epsilon))), squares};
  });
}

static void importAdam(NodeContext &node) {
  nn::Composer &f = node;
  double norm = node.floatAttr("norm_coefficient", 0), after = node.floatAttr("norm_coefficient_post", 0),
         alpha = node.floatAttr("alpha", 0.9f), beta = node.floatAttr("beta", 0.999f),
         epsilon = node.floatAttr("epsilon", 1e-6f);
  Value rate = node.operand(0), updates = node.operand(1);
  Value count = node.cast(updates, NodeContext::elementType(rate));
  // Averages that start at zero are too small at first: by these factors.
  auto missing = [&](double decay) { return f.sub(1, f.pow(node.scalarLike(rate, decay), count)); };
  rate = f.select(f.gt(updates, 0), f.div(f.mul(rate, f.sqrt(missing(beta))), missing(alpha)), rate);
  updateAll(node, 2, [&](const Update &update) -> SmallVector<Value> {
    Value gradient = regularize(f, update, norm);
    Value mean = f.add(f.mul(update.first, alpha), f.mul(gradient, 1 - alpha));
    Value squares = f.add(f.mul(update.second, beta), f.mul(f.square(gradient), 1 - beta));
    Value direction = f.div(mean, f.add(f.sqrt(squares), epsilon));
    Value moved = f.sub(update.x, f.mul(node.cast(rate, NodeContext::elementType(update.x)), direction));
    return {after == 0 ? moved : f.mul(moved, 1 - after), mean, squares};
  });
}

static void importMomentum(NodeContext &node) {
  nn::Composer &f = node;
  double norm = node.floatAttr("norm_coefficient"), alpha = node.floatAttr("alpha"), beta = node.floatAttr("beta");
  StringRef mode = node.stringAttr("mode");
  if (node.failed() || !node.check(mode == "standard" || mode == "nesterov",
                                   "attribute 'mode' is '" + mode + "', expected 'standard' or 'nesterov'"))
    return;
  Value rate = node.operand(0);
  // The first gradient counts in full.
  Value weight = f.select(f.gt(node.operand(1), 0), node.scalarLike(rate, beta), 1);
  updateAll(node, 1, [&](const Update &update) -> SmallVector<Value> {
    Type type = NodeContext::elementType(update.x);
    Value gradient = regularize(f, update, norm);
    Value velocity = f.add(f.mul(update.first, alpha), f.mul(node.cast(weight, type), gradient));
    Value direction = mode == "nesterov" ? f.add(gradient, f.mul(velocity, alpha)) : velocity;
    return {f.sub(update.x, f.mul(node.cast(rate, type), direction)), velocity};
  });
}

void cleave::onnx::registerTraining(Registry &registry) {
  Arity any{2, Arity::kAny, Arity::kAny};
  registry.add("ai.onnx.preview.training.Adagrad", any, importAdagrad);
  registry.add("ai.onnx.preview.training.Adam", any, importAdam);
  registry.add("ai.onnx.preview.training.Momentum", any, importMomentum);
}
