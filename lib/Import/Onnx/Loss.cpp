//===- Loss.cpp - cross-entropy losses ------------------------------------===//
//
//   loss[n, ...] = -logits[n, target[n, ...], ...] * weight[target[n, ...]], and 0 where the target is ignored
//
// `mean` divides the sum by the sum of the weights that took part.
//
//===----------------------------------------------------------------------===//
#include "NodeContext.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static Value sumAll(NodeContext &node, Value value) {
  Ints dims = llvm::to_vector(llvm::seq<int64_t>(0, NodeContext::rank(value)));
  return !value || dims.empty() ? value : node.create<nn::ReduceOp>(nn::ReduceKind::Sum, value, dims, false);
}

/// The loss of log-probabilities [batch, classes, ...] for targets [batch, ...].
static Value likelihoodLoss(NodeContext &node, Value logits, Value target, Value weight) {
  StringRef reduction = node.stringAttr("reduction", StringRef("mean"));
  bool ignores = node.hasAttr("ignore_index");
  int64_t ignored = node.intAttr("ignore_index", 0);
  if (node.failed() || !node.check(llvm::is_contained({"none", "sum", "mean"}, reduction),
                                   "attribute 'reduction' is '" + reduction + "', which is not known"))
    return {};
  Ints shape(NodeContext::shape(logits)), targets(NodeContext::shape(target));
  if (!node.check(shape.size() >= 2 && isa<IntegerType>(NodeContext::elementType(target)),
                  "the scores have no classes, or the targets are not integers"))
    return {};
  shape.erase(shape.begin() + 1);
  if (!node.check(shape == targets, "the targets do not have the shape of the scores without dim 1"))
    return {};

  // An ignored target need not be a class; it looks up class 0 and counts nothing.
  Value zero = node.scalarLike(logits, 0), takesPart;
  if (ignores) {
    takesPart = node.create<nn::NotOp>(node.create<nn::EqOp>(
        target, node.cast(node.reshape(node.vector({ignored}), {}), NodeContext::elementType(target))));
    target = node.create<nn::SelectOp>(takesPart, target, node.scalarLike(target, 0));
  }
  Value picked = node.create<nn::GatherElementsOp>(logits, node.unsqueeze(target, {1}), 1);
  Value loss = node.create<nn::NegOp>(node.reshape(picked, targets));
  Value weights = weight ? node.create<nn::GatherOp>(weight, target, 0) : Value();
  if (ignores)
    weights = node.create<nn::SelectOp>(takesPart, weights ? weights : node.scalarLike(logits, 1), zero);
  if (weights)
    loss = node.create<nn::MulOp>(loss, weights);
  if (reduction == "none" || node.failed())
    return loss;
  Value total = sumAll(node, loss);
  if (reduction == "sum")
    return total;
  Value divisor =
      weights ? sumAll(node, weights) : node.scalarLike(logits, double(ShapedType::getNumElements(targets)));
  return node.create<nn::DivOp>(total, divisor);
}

static void importLikelihoodLoss(NodeContext &node) {
  node.result(0, likelihoodLoss(node, node.operand(0), node.operand(1), node.operand(2)));
}

static void importSoftmaxLoss(NodeContext &node) {
  if (!node.check(NodeContext::rank(node.operand(0)) >= 2, "the scores have no classes"))
    return;
  Value logits = node.create<nn::LogSoftmaxOp>(node.operand(0), 1);
  node.result(0, likelihoodLoss(node, logits, node.operand(1), node.operand(2)));
  node.result(1, logits);
}

void cleave::onnx::registerLoss(Registry &registry) {
  registry.add("NegativeLogLikelihoodLoss", 12, {2, 3}, importLikelihoodLoss);
  registry.add("SoftmaxCrossEntropyLoss", 12, {2, 3, 2}, importSoftmaxLoss);
}
