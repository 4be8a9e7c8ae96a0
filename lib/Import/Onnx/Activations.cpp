//===- Activations.cpp - activation functions -----------------------------===//
#include "NodeContext.h"
#include "Registry.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

template <typename OpTy> static void importUnary(NodeContext &node) {
  node.result(0, node.create<OpTy>(node.operand(0)));
}

static APFloat real(double value) { return APFloat(value); }

static void importLeakyRelu(NodeContext &node) {
  node.result(0, node.create<nn::LeakyReluOp>(node.operand(0), real(node.floatAttr("alpha", 0.01f))));
}

static void importElu(NodeContext &node) {
  node.result(0, node.create<nn::EluOp>(node.operand(0), real(node.floatAttr("alpha", 1.0))));
}

/// `gamma * elu(x, alpha)`: both branches carry the factor.
static void importSelu(NodeContext &node) {
  double alpha = node.floatAttr("alpha", 1.67326319217681884765625);
  double gamma = node.floatAttr("gamma", 1.05070102214813232421875);
  Value elu = node.create<nn::EluOp>(node.operand(0), real(alpha));
  node.result(0, node.create<nn::MulOp>(elu, node.scalarLike(elu, gamma)));
}

/// `max(0, x) + min(0, alpha * (e^(x / alpha) - 1))`, which is `alpha * elu(x / alpha)` with slope 1.
static void importCelu(NodeContext &node) {
  double alpha = node.floatAttr("alpha", 1.0);
  if (!node.check(alpha > 0, "attribute 'alpha' is not positive"))
    return;
  Value x = node.operand(0);
  Value scaled = node.create<nn::DivOp>(x, node.scalarLike(x, alpha));
  Value elu = node.create<nn::EluOp>(scaled, real(1.0));
  node.result(0, node.create<nn::MulOp>(elu, node.scalarLike(x, alpha)));
}

static void importHardSigmoid(NodeContext &node) {
  double alpha = node.floatAttr("alpha", 0.2f), beta = node.floatAttr("beta", 0.5);
  node.result(0, node.create<nn::HardSigmoidOp>(node.operand(0), real(alpha), real(beta)));
}

static void importGelu(NodeContext &node) {
  StringRef form = node.stringAttr("approximate", StringRef("none"));
  if (node.check(form == "none" || form == "tanh",
                 "attribute 'approximate' is '" + form + "', expected 'none' or 'tanh'"))
    node.result(0, node.create<nn::GeluOp>(node.operand(0), form == "tanh"));
}

/// `x * sigmoid(alpha * x)`
static void importSwish(NodeContext &node) {
  Value x = node.operand(0);
  double alpha = node.floatAttr("alpha", 1.0);
  if (alpha == 1.0)
    return node.result(0, node.create<nn::SiluOp>(x));
  Value scaled = node.create<nn::MulOp>(x, node.scalarLike(x, alpha));
  node.result(0, node.create<nn::MulOp>(x, node.create<nn::SigmoidOp>(scaled)));
}

/// The slope broadcasts to the input, never the other way round.
static void importPRelu(NodeContext &node) {
  Value y = node.create<nn::PreluOp>(node.operand(0), node.operand(1));
  if (y && node.check(NodeContext::shape(y) == NodeContext::shape(node.operand(0)),
                      "the slope does not broadcast to the input"))
    node.result(0, y);
}

/// In inference the identity; the mask, where asked for, keeps everything.
static void importDropout(NodeContext &node) {
  node.ignoreAttr("seed");
  node.ignoreAttr("ratio");
  if (node.hasOperand(2) && !node.check(node.constantInt(2) == 0, "training mode is not supported"))
    return;
  node.result(0, node.operand(0));
  if (node.wantsResult(1))
    node.result(1, node.broadcast(node.scalar(node.getBuilder().getI1Type(), 1), NodeContext::shape(node.operand(0))));
}

void cleave::onnx::registerActivations(Registry &registry) {
  Arity one{1, 1};
  registry.add("Celu", 12, one, importCelu);
  registry.add("Dropout", 7, {1, 1, 2}, importDropout);
  registry.add("Dropout", 12, {1, 3, 2}, importDropout);
  registry.add("Elu", 6, one, importElu);
  registry.add("Gelu", 20, one, importGelu);
  registry.add("HardSigmoid", 6, one, importHardSigmoid);
  registry.add("HardSwish", 14, one, importUnary<nn::HardSwishOp>);
  registry.add("LeakyRelu", 6, one, importLeakyRelu);
  registry.add("PRelu", 7, {2, 2}, importPRelu);
  registry.add("Relu", 6, one, importUnary<nn::ReluOp>);
  registry.add("Selu", 6, one, importSelu);
  registry.add("Sigmoid", 6, one, importUnary<nn::SigmoidOp>);
  registry.add("Softplus", 1, one, importUnary<nn::SoftplusOp>);
  registry.add("Swish", 24, one, importSwish);
  registry.add("Tanh", 6, one, importUnary<nn::TanhOp>);
}
