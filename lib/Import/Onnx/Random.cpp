//===- Random.cpp - ops that draw random numbers --------------------------===//
//
// The generator is that of Dialect/Nn/IR/Random.h: each number is a function of its place and of the node's key. The key is made
// of `seed`: its 32 bits as a float, or of an integer the lower ones; of a node without one, of the name of its first output.
// Numbers are thus the same in every run of a program: ONNX leaves that open.
//
//===----------------------------------------------------------------------===//
#include "Random.h"
#include "Graph/GraphImporter.h"
#include "NodeContext.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "cleave/Dialect/Nn/IR/Random.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

RandomNumbers::RandomNumbers(NodeContext &node) : node(node) {
  // Of Dropout alone it is an integer.
  if (node.hasAttr("seed"))
    key = node.getOpType() == "Dropout" ? uint32_t(node.intAttr("seed"))
                                        : llvm::bit_cast<uint32_t>(float(node.floatAttr("seed")));
  else
    key = nn::makeRandomKey(node.getNode().output.empty() ? StringRef() : node.getNode().output.front());
}

std::pair<Value, Value> RandomNumbers::words(Shape shape) { return nn::composeRandomWords(node, shape, key); }

/// The upper 24 bits of a word, which f32 holds exactly, in [0, 1).
static Value toUnit(NodeContext &node, Value word, Type type) {
  nn::Composer &f = node;
  return f.mul(node.cast(f.shiftRight(word, 8), type), 0x1p-24);
}

Value RandomNumbers::uniform(Shape shape, Type type) { return toUnit(node, words(shape).first, type); }

/// Box and Muller: `sqrt(-2 ln u) cos(2 pi v)`, with u in (0, 1].
Value RandomNumbers::normal(Shape shape, Type type) {
  nn::Composer &f = node;
  auto [first, second] = words(shape);
  Value u = f.add(toUnit(node, first, type), 0x1p-24), v = toUnit(node, second, type);
  return f.mul(f.sqrt(f.mul(f.log(u), -2)), f.cos(f.mul(v, 2 * llvm::numbers::pi)));
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// What numbers of `type` are computed in.
static Type wide(NodeContext &node, Type type) {
  return type && type.isF64() ? type : Type(node.getBuilder().getF32Type());
}

namespace {
/// The numbers that a node draws.
struct Drawn {
  Ints shape;
  Type type;
};
} // namespace

/// The shape from attribute `shape`, or of the operand; the type from `dtype`, or the operand, or f32.
static std::optional<Drawn> readDrawn(NodeContext &node, bool isLike) {
  Drawn drawn;
  drawn.shape = isLike ? Ints(NodeContext::shape(node.operand(0))) : node.intsAttr("shape").value_or(Ints());
  if (node.hasAttr("dtype"))
    drawn.type = node.typeAttr("dtype");
  else
    drawn.type = isLike ? NodeContext::elementType(node.operand(0)) : Type(node.getBuilder().getF32Type());
  if (node.failed() || !node.check(isa<FloatType>(drawn.type), "random numbers of integers are not supported") ||
      !node.checkSize(drawn.shape, drawn.type))
    return std::nullopt;
  return drawn;
}

/// `low + (high - low) * u`
template <bool isLike> static void importUniform(NodeContext &node) {
  nn::Composer &f = node;
  double low = node.floatAttr("low", 0.0), high = node.floatAttr("high", 1.0);
  RandomNumbers numbers(node);
  if (std::optional<Drawn> drawn = readDrawn(node, isLike)) {
    Value u = numbers.uniform(drawn->shape, wide(node, drawn->type));
    node.result(0, node.cast(f.add(f.mul(u, high - low), low), drawn->type));
  }
}

/// `mean + scale * n`
template <bool isLike> static void importNormal(NodeContext &node) {
  nn::Composer &f = node;
  double mean = node.floatAttr("mean", 0.0), scale = node.floatAttr("scale", 1.0);
  RandomNumbers numbers(node);
  if (std::optional<Drawn> drawn = readDrawn(node, isLike)) {
    Value n = numbers.normal(drawn->shape, wide(node, drawn->type));
    node.result(0, node.cast(f.add(f.mul(n, scale), mean), drawn->type));
  }
}

/// 1 with the probability that the operand says.
static void importBernoulli(NodeContext &node) {
  nn::Composer &f = node;
  Value p = node.operand(0);
  RandomNumbers numbers(node);
  Type type = node.hasAttr("dtype") ? node.typeAttr("dtype") : NodeContext::elementType(p),
       real = wide(node, NodeContext::elementType(p));
  node.result(0, node.cast(f.lt(numbers.uniform(NodeContext::shape(p), real), node.cast(p, real)), type));
}

/// Draws classes: the first one whose cumulated probability is above the number.
static void importMultinomial(NodeContext &node) {
  nn::Composer &f = node;
  Value scores = node.operand(0);
  int64_t count = node.intAttr("sample_size", 1);
  Type type = node.typeAttr("dtype", INT32), real = wide(node, NodeContext::elementType(scores));
  RandomNumbers numbers(node);
  Ints shape(NodeContext::shape(scores));
  if (node.failed() || !node.check(shape.size() == 2 && shape[1] > 0, "the input must be [batch, classes]") ||
      !node.check(count > 0, "attribute 'sample_size' is " + Twine(count)) || !node.checkSize({shape[0], count}, real))
    return;
  Value share = node.create<nn::SoftmaxOp>(node.cast(scores, real), 1);
  Value below = node.create<nn::CumsumOp>(share, 1, false, false);
  Value drawn = numbers.uniform({shape[0], count}, real);
  Value passed = f.le(node.unsqueeze(below, {1}), node.unsqueeze(drawn, {2}));
  Value index = f.sum(node.cast(passed, f.i64()), Ints{2});
  node.result(0, node.cast(f.min(index, double(shape[1] - 1)), type)); // sums may end below 1
}

/// Of a model that will be trained with it: the identity, which says how much of it is passed over.
static bool keepDropout(NodeContext &node, double ratio) {
  Value x = node.operand(0);
  if (!node.getImporter().getOptions().keepsDropout || node.failed() || node.wantsResult(1))
    return false;
  if (node.getOpset() >= 12 && node.hasOperand(1)) {
    SmallVector<double> given = node.constantFloats(1);
    if (node.failed() || !node.check(given.size() == 1, "the ratio must be one number"))
      return true;
    ratio = given.front();
  }
  OpBuilder &builder = node.getOpBuilder();
  StringAttr name = builder.getStringAttr(node.getNode().output.front());
  auto pin = spmd::PinOp::create(builder, node.getLoc(), x, name, spmd::AnnotationAttr());
  pin->setDiscardableAttr(spmd::kDropoutAttr, builder.getF64FloatAttr(ratio));
  node.result(0, pin);
  return true;
}

/// In inference the identity; the mask, where asked for, keeps everything. In training an element stays, scaled, where
/// its number is not below the ratio.
static void importDropout(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.operand(0);
  bool isOld = node.getOpset() < 12, isTraining = node.getOpset() < 7 && !node.boolAttr("is_test", false);
  double attribute = isOld ? node.floatAttr("ratio", 0.5) : 0.5;
  RandomNumbers numbers(node);
  if (!isOld && node.hasOperand(2))
    isTraining = node.constantInt(2) != 0;
  if (node.failed() || keepDropout(node, attribute))
    return;
  Ints shape(NodeContext::shape(x));
  if (!isTraining) {
    node.result(0, x);
    if (node.wantsResult(1))
      node.result(1, node.broadcast(node.scalar(f.boolean(), 1), shape));
    return;
  }
  Type type = NodeContext::elementType(x), real = wide(node, type);
  Value ratio =
      !isOld && node.hasOperand(1) ? node.cast(node.reshape(node.operand(1), {}), real) : node.scalar(real, attribute);
  Value kept = f.ge(numbers.uniform(shape, real), ratio);
  Value y = f.div(node.cast(x, real), f.sub(1, ratio));
  node.result(0, node.cast(f.select(kept, y, 0), type));
  node.result(1, kept);
}

void cleave::onnx::registerRandom(Registry &registry) {
  Arity none{0, 0}, one{1, 1};
  registry.add("Bernoulli", 15, one, importBernoulli);
  registry.add("Dropout", 6, {1, 1, 2}, importDropout);
  registry.add("Dropout", 12, {1, 3, 2}, importDropout);
  registry.add("Multinomial", 7, one, importMultinomial);
  registry.add("RandomNormal", none, importNormal<false>);
  registry.add("RandomNormalLike", one, importNormal<true>);
  registry.add("RandomUniform", none, importUniform<false>);
  registry.add("RandomUniformLike", one, importUniform<true>);
}
