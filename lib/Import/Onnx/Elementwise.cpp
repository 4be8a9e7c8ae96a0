//===- Elementwise.cpp - arithmetic, comparisons, logic, activations ------===//
//
// Most rows name the op and nothing else. What ONNX has and nn has not is spelled out in ops that shard alike: a mean
// of several operands is their sum over their number, Clip a maximum and a minimum, Selu and Celu are scaled Elus.
// Bounds and slopes become constants of the operand's type, so that nothing is computed in another one.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "Families.h"
#include "NodeContext.h"
#include "Registry.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

template <typename OpTy> static void importUnary(NodeContext &node) {
  node.result(0, node.create<OpTy>(node.operand(0)));
}

template <typename OpTy> static void importBinary(NodeContext &node) {
  node.result(0, node.create<OpTy>(node.operand(0), node.operand(1)));
}

/// Up to opset 6 operands have one shape, unless `broadcast` says that the second one, from dim `axis` of the first on,
/// repeats: then it gets dims of size 1 behind.
static Value alignSecond(NodeContext &node) {
  Value x = node.operand(0), y = node.operand(1);
  bool broadcasts = node.boolAttr("broadcast", false);
  int64_t rank = NodeContext::rank(x), own = NodeContext::rank(y);
  int64_t axis = node.hasAttr("axis") ? node.axis(node.intAttr("axis"), rank) : std::max<int64_t>(rank - own, 0);
  if (node.failed() ||
      !node.check(broadcasts || NodeContext::shape(x) == NodeContext::shape(y),
                  "the operands differ in shape, and 'broadcast' is not set") ||
      !node.check(axis + own <= rank, "the second operand has more dims than the first one has from 'axis' on"))
    return {};
  Ints shape(NodeContext::shape(y));
  shape.append(rank - axis - own, 1);
  return node.reshape(y, shape);
}

template <typename OpTy> static void importBinaryV1(NodeContext &node) {
  node.result(0, node.create<OpTy>(node.operand(0), alignSecond(node)));
}

/// Max, Min and Sum: any number of operands, joined from the left.
template <typename OpTy> static Value joinOperands(NodeContext &node) {
  Value joined = node.operand(0);
  for (Value next : node.getOperands().drop_front())
    joined = node.create<OpTy>(joined, next);
  return joined;
}
template <typename OpTy> static void importVariadic(NodeContext &node) { node.result(0, joinOperands<OpTy>(node)); }

static void importMean(NodeContext &node) {
  Value sum = joinOperands<nn::AddOp>(node);
  if (sum)
    node.result(0, node.create<nn::DivOp>(sum, node.scalarLike(sum, node.getNumOperands())));
}

/// The result has the base's type. An integer base with a float exponent is raised as a float.
static void importPow(NodeContext &node) {
  Value base = node.operand(0), exponent = node.operand(1);
  Type type = NodeContext::elementType(base), exponentType = NodeContext::elementType(exponent);
  if (isa<FloatType>(exponentType) && !isa<FloatType>(type)) {
    Value power = node.create<nn::PowOp>(node.cast(base, exponentType), exponent);
    return node.result(0, node.cast(power, type));
  }
  node.result(0, node.create<nn::PowOp>(base, node.cast(exponent, type)));
}

/// Of floats ONNX defines only the remainder with the sign of the dividend.
static void importMod(NodeContext &node) {
  bool truncated = node.boolAttr("fmod", false);
  if (!truncated &&
      !node.check(!isa_and_present<FloatType>(NodeContext::elementType(node.operand(0))), "floats need 'fmod' = 1"))
    return;
  node.result(0, node.create<nn::ModOp>(node.operand(0), node.operand(1), truncated));
}

static void importBitShift(NodeContext &node) {
  StringRef direction = node.stringAttr("direction");
  if (node.check(direction == "LEFT" || direction == "RIGHT",
                 "attribute 'direction' is '" + direction + "', expected 'LEFT' or 'RIGHT'"))
    node.result(0, node.create<nn::ShiftOp>(node.operand(0), node.operand(1), direction == "RIGHT"));
}

static void importIsInf(NodeContext &node) {
  bool positive = node.boolAttr("detect_positive", true), negative = node.boolAttr("detect_negative", true);
  node.result(0, node.create<nn::IsInfOp>(node.operand(0), positive, negative));
}

static void importWhere(NodeContext &node) {
  node.result(0, node.create<nn::SelectOp>(node.operand(0), node.operand(1), node.operand(2)));
}

/// `min(max(x, low), high)`, absent bounds left out.
static Value clip(NodeContext &node, Value low, Value high) {
  Value clipped = node.operand(0);
  if (low)
    clipped = node.create<nn::MaxOp>(clipped, low);
  if (high)
    clipped = node.create<nn::MinOp>(clipped, high);
  return clipped;
}

/// Bounds are attributes; the defaults are the ends of f32.
static void importClipV6(NodeContext &node) {
  Value x = node.operand(0), low, high;
  if (node.hasAttr("min"))
    low = node.scalarLike(x, node.floatAttr("min"));
  if (node.hasAttr("max"))
    high = node.scalarLike(x, node.floatAttr("max"));
  node.result(0, clip(node, low, high));
}

/// A bound is a scalar; exporters also write it as a tensor of one element.
static void importClipV11(NodeContext &node) {
  auto bound = [&](unsigned index) -> Value {
    if (!node.hasOperand(index))
      return {};
    ArrayRef<int64_t> shape = NodeContext::shape(node.operand(index));
    if (!node.check(ShapedType::getNumElements(shape) == 1, "bounds must be scalars"))
      return {};
    return node.reshape(node.operand(index), {});
  };
  Value low = bound(1), high = bound(2);
  node.result(0, clip(node, low, high));
}

//===----------------------------------------------------------------------===//
// Activation functions
//===----------------------------------------------------------------------===//

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

/// Both forms stay what the model says: they differ by more than rounding.
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

/// The slope broadcasts to the input, never the other way round. Up to opset 6 it is a vector of channels.
static void importPRelu(NodeContext &node) {
  Value slope = node.operand(1);
  if (node.getOpset() < 7 && NodeContext::rank(slope) == 1 && NodeContext::rank(node.operand(0)) > 1) {
    Ints shape(NodeContext::rank(node.operand(0)) - 1, 1);
    shape[0] = NodeContext::shape(slope)[0];
    slope = node.reshape(slope, shape);
  }
  Value y = node.create<nn::PreluOp>(node.operand(0), slope);
  if (y && node.check(NodeContext::shape(y) == NodeContext::shape(node.operand(0)),
                      "the slope does not broadcast to the input"))
    node.result(0, y);
}

namespace {
/// Rows of each operand are rows of the result.
struct ByElement {
  Registry &all;

  void add(StringRef opType, unsigned sinceVersion, Arity arity, ImportFn import) {
    all.add(opType, sinceVersion, arity, import).follow(findBroadcastRows);
  }
  void add(StringRef opType, Arity arity, ImportFn import) { add(opType, 1, arity, import); }
};
} // namespace

void cleave::onnx::registerElementwise(Registry &all) {
  Arity one{1, 1}, two{2, 2}, many{1, Arity::kAny};
  ByElement registry{all};
  registry.add("Abs", one, importUnary<nn::AbsOp>);
  registry.add("Acos", one, importUnary<nn::AcosOp>);
  registry.add("Acosh", one, importUnary<nn::AcoshOp>);
  registry.add("Asin", one, importUnary<nn::AsinOp>);
  registry.add("Asinh", one, importUnary<nn::AsinhOp>);
  registry.add("Atan", one, importUnary<nn::AtanOp>);
  registry.add("Atanh", one, importUnary<nn::AtanhOp>);
  registry.add("BitwiseNot", 18, one, importUnary<nn::BitwiseNotOp>);
  registry.add("Ceil", one, importUnary<nn::CeilOp>);
  registry.add("Cos", one, importUnary<nn::CosOp>);
  registry.add("Cosh", one, importUnary<nn::CoshOp>);
  registry.add("Erf", 9, one, importUnary<nn::ErfOp>);
  registry.add("Exp", one, importUnary<nn::ExpOp>);
  registry.add("Floor", one, importUnary<nn::FloorOp>);
  registry.add("IsInf", 10, one, importIsInf);
  registry.add("IsNaN", 9, one, importUnary<nn::IsNanOp>);
  registry.add("Log", one, importUnary<nn::LogOp>);
  registry.add("Neg", one, importUnary<nn::NegOp>);
  registry.add("Not", one, importUnary<nn::NotOp>);
  registry.add("Reciprocal", one, importUnary<nn::ReciprocalOp>);
  registry.add("Round", 11, one, importUnary<nn::RoundOp>);
  registry.add("Sign", 9, one, importUnary<nn::SignOp>);
  registry.add("Sin", one, importUnary<nn::SinOp>);
  registry.add("Sinh", one, importUnary<nn::SinhOp>);
  registry.add("Sqrt", one, importUnary<nn::SqrtOp>);
  registry.add("Tan", one, importUnary<nn::TanOp>);

  registry.add("Add", two, importBinaryV1<nn::AddOp>);
  registry.add("And", two, importBinaryV1<nn::AndOp>);
  registry.add("Div", two, importBinaryV1<nn::DivOp>);
  registry.add("Equal", two, importBinaryV1<nn::EqOp>);
  registry.add("Greater", two, importBinaryV1<nn::GtOp>);
  registry.add("Less", two, importBinaryV1<nn::LtOp>);
  registry.add("Mul", two, importBinaryV1<nn::MulOp>);
  registry.add("Or", two, importBinaryV1<nn::OrOp>);
  registry.add("Pow", two, importBinaryV1<nn::PowOp>);
  registry.add("Sub", two, importBinaryV1<nn::SubOp>);
  registry.add("Xor", two, importBinaryV1<nn::XorOp>);

  registry.add("Add", 7, two, importBinary<nn::AddOp>);
  registry.add("And", 7, two, importBinary<nn::AndOp>);
  registry.add("BitShift", 11, two, importBitShift);
  registry.add("BitwiseAnd", 18, two, importBinary<nn::BitwiseAndOp>);
  registry.add("BitwiseOr", 18, two, importBinary<nn::BitwiseOrOp>);
  registry.add("BitwiseXor", 18, two, importBinary<nn::BitwiseXorOp>);
  registry.add("Div", 7, two, importBinary<nn::DivOp>);
  registry.add("Equal", 7, two, importBinary<nn::EqOp>);
  registry.add("Greater", 7, two, importBinary<nn::GtOp>);
  registry.add("GreaterOrEqual", 12, two, importBinary<nn::GeOp>);
  registry.add("Less", 7, two, importBinary<nn::LtOp>);
  registry.add("LessOrEqual", 12, two, importBinary<nn::LeOp>);
  registry.add("Mod", 10, two, importMod);
  registry.add("Mul", 7, two, importBinary<nn::MulOp>);
  registry.add("Or", 7, two, importBinary<nn::OrOp>);
  registry.add("Pow", 7, two, importPow);
  registry.add("Sub", 7, two, importBinary<nn::SubOp>);
  registry.add("Xor", 7, two, importBinary<nn::XorOp>);

  registry.add("Clip", 6, one, importClipV6);
  registry.add("Clip", 11, {1, 3}, importClipV11);
  registry.add("Max", many, importVariadic<nn::MaxOp>);
  registry.add("Mean", many, importMean);
  registry.add("Min", many, importVariadic<nn::MinOp>);
  registry.add("Sum", many, importVariadic<nn::AddOp>);
  registry.add("Where", 9, {3, 3}, importWhere);

  registry.add("Celu", 12, one, importCelu);
  registry.add("Elu", 6, one, importElu);
  registry.add("Gelu", 20, one, importGelu);
  registry.add("HardSigmoid", 6, one, importHardSigmoid);
  registry.add("HardSwish", 14, one, importUnary<nn::HardSwishOp>);
  registry.add("LeakyRelu", 6, one, importLeakyRelu);
  all.add("PRelu", 6, {2, 2}, importPRelu); // a slope may be for each channel
  registry.add("Relu", 6, one, importUnary<nn::ReluOp>);
  registry.add("Selu", 6, one, importSelu);
  registry.add("Sigmoid", 6, one, importUnary<nn::SigmoidOp>);
  registry.add("Softplus", 1, one, importUnary<nn::SoftplusOp>);
  registry.add("Swish", 24, one, importSwish);
  registry.add("Tanh", 6, one, importUnary<nn::TanhOp>);
}
