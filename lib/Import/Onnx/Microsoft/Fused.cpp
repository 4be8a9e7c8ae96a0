//===- Fused.cpp - ops that onnxruntime's optimizer writes ----------------===//
//
// Domain com.microsoft: activations with their bias, norms with their residual, products with what follows. Each is
// what it was fused from, as nn has it; what onnxruntime fused, kernels here fuse again. Meanings are those of
// onnxruntime's ContribOperators.md and its CPU kernels.
//
//===----------------------------------------------------------------------===//
#include "../Families.h"
#include "../NodeContext.h"
#include "../Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

/// The operand, and the bias where there is one.
static Value withBias(NodeContext &node, Value x, Value bias) { return bias ? node.create<nn::AddOp>(x, bias) : x; }

// By the error function, except FastGelu, which is the approximation with tanh.
static void importMicrosoftGelu(NodeContext &node) { node.result(0, node.create<nn::GeluOp>(node.operand(0), false)); }
static void importBiasGelu(NodeContext &node) {
  node.result(0, node.create<nn::GeluOp>(withBias(node, node.operand(0), node.operand(1)), false));
}
static void importFastGelu(NodeContext &node) {
  node.result(0, node.create<nn::GeluOp>(withBias(node, node.operand(0), node.operand(1)), true));
}

/// `x * sigmoid(alpha * x)`
static void importQuickGelu(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.operand(0);
  node.result(0, f.mul(x, f.sigmoid(f.mul(x, node.floatAttr("alpha", 1.702f)))));
}

/// The first half of the last dim times the Gelu of the second.
static void importBiasSplitGelu(NodeContext &node) {
  nn::Composer &f = node;
  Value x = f.add(node.operand(0), node.operand(1));
  int64_t dim = NodeContext::rank(x) - 1;
  if (node.failed() ||
      !node.check(dim >= 0 && NodeContext::shape(x)[dim] % 2 == 0, "the last dim does not have two halves"))
    return;
  int64_t half = NodeContext::shape(x)[dim] / 2;
  Value gate = node.create<nn::GeluOp>(node.sliceDim(x, dim, half, half), false);
  node.result(0, f.mul(node.sliceDim(x, dim, 0, half), gate));
}

/// What products and convolutions are followed by, by its ONNX name; `first` and `second` are its parameters, if given.
static Value activate(NodeContext &node, StringRef name, Value x, std::optional<double> first,
                      std::optional<double> second) {
  nn::Composer &f = node;
  if (name.empty())
    return x;
  if (name == "Relu")
    return node.create<nn::ReluOp>(x);
  if (name == "Tanh")
    return f.tanh(x);
  if (name == "Sigmoid")
    return f.sigmoid(x);
  if (name == "Softplus")
    return node.create<nn::SoftplusOp>(x);
  if (name == "HardSwish")
    return node.create<nn::HardSwishOp>(x);
  if (name == "Gelu")
    return node.create<nn::GeluOp>(x, false);
  if (name == "LeakyRelu")
    return node.create<nn::LeakyReluOp>(x, APFloat(first.value_or(0.01f)));
  if (name == "Elu")
    return node.create<nn::EluOp>(x, APFloat(first.value_or(1.0)));
  if (name == "HardSigmoid")
    return node.create<nn::HardSigmoidOp>(x, APFloat(first.value_or(0.2f)), APFloat(second.value_or(0.5)));
  if (name == "Clip")
    return f.min(f.max(x, first.value_or(-std::numeric_limits<float>::max())),
                 second.value_or(std::numeric_limits<float>::max()));
  node.check(false, "attribute 'activation' is '" + name + "', which is not supported");
  return {};
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// Operands: x, skip, scale, then shift (not of the simplified form) and bias. Results: the norm, two for training, and
/// the sum that is normalized. The skip may lack batch dims.
static void importSkipNorm(NodeContext &node, bool isSimplified) {
  nn::Composer &f = node;
  double epsilon = node.floatAttr("epsilon", 1e-12f);
  Value sum = f.add(node.operand(0), node.operand(1));
  sum = withBias(node, sum, node.operand(isSimplified ? 3 : 4));
  if (node.failed() || !node.check(NodeContext::shape(sum) == NodeContext::shape(node.operand(0)),
                                   "the skip or bias does not broadcast to the input"))
    return;
  int64_t dim = NodeContext::rank(sum) - 1;
  node.result(0, isSimplified
                     ? node.create<nn::RmsNormOp>(sum, node.operand(2), dim, APFloat(epsilon))
                     : node.create<nn::LayerNormOp>(sum, node.operand(2), node.operand(3), dim, APFloat(epsilon)));
  node.result(3, sum);
}
static void importSkipLayerNorm(NodeContext &node) { importSkipNorm(node, false); }
static void importSkipRmsNorm(NodeContext &node) { importSkipNorm(node, true); }

/// onnxruntime puts this one into ONNX's own domain, too.
static void importRmsNorm(NodeContext &node) {
  Value x = node.operand(0);
  int64_t axis = node.axis(node.intAttr("axis", -1), NodeContext::rank(x));
  double epsilon = node.floatAttr("epsilon", 1e-5f);
  node.ignoreAttr("stash_type"); // Moments are computed in f32 or wider in any case.
  node.result(0, node.create<nn::RmsNormOp>(x, node.operand(1), axis, APFloat(epsilon)));
}

/// Operands: ids, segments, tables of words, positions and segments, scale, shift, mask, position ids. The second result
/// is the number of tokens per sample, which is 0 where no mask is given.
static void importEmbedLayerNorm(NodeContext &node) {
  nn::Composer &f = node;
  Value ids = node.operand(0), segments = node.operand(1), mask = node.operand(7), positions = node.operand(8);
  double epsilon = node.floatAttr("epsilon", 1e-12f);
  node.ignoreAttr("mask_index_type");
  if (!node.require({2, 3, 5, 6}) || !node.check(NodeContext::rank(ids) == 2, "the ids must be [batch, sequence]") ||
      !node.check(!segments || node.hasOperand(4), "there are segments, but no table for them"))
    return;
  Ints shape(NodeContext::shape(ids));
  Value words = f.gather(node.operand(2), ids, 0), places = node.operand(3);
  if (positions)
    places = f.gather(places, positions, 0);
  else if (node.check(NodeContext::rank(places) == 2 && NodeContext::shape(places)[0] >= shape[1],
                      "the sequence is longer than the table of positions"))
    places = node.unsqueeze(node.sliceDim(places, 0, 0, shape[1]), {0});
  Value sum = f.add(words, places);
  if (segments)
    sum = f.add(sum, f.gather(node.operand(4), segments, 0));
  node.result(0, node.create<nn::LayerNormOp>(sum, node.operand(5), node.operand(6), 2, APFloat(epsilon)));
  Value count = mask ? f.sum(node.cast(mask, f.i32()), Ints{1}) : node.broadcast(node.scalar(f.i32(), 0), {shape[0]});
  node.result(1, count);
  node.result(2, sum);
}

/// Channels last, unless the model says otherwise; with Silu behind where `activation` is 1.
static Value groupNorm(NodeContext &node, Value x) {
  int64_t groups = node.intAttr("groups"), rank = NodeContext::rank(x);
  double epsilon = node.floatAttr("epsilon", 1e-5f);
  bool isLast = node.boolAttr("channels_last", true), isActive = node.boolAttr("activation", false);
  if (node.failed() || !node.check(rank >= 3, "the input has no spatial dims"))
    return {};
  Ints toFirst = llvm::to_vector(llvm::seq<int64_t>(0, rank)), toLast(toFirst);
  if (isLast) {
    std::rotate(toFirst.begin() + 1, toFirst.end() - 1, toFirst.end());
    std::rotate(toLast.begin() + 1, toLast.begin() + 2, toLast.end());
  }
  Type type = NodeContext::elementType(x);
  Value y = node.create<nn::GroupNormOp>(node.transpose(x, toFirst), node.cast(node.operand(1), type),
                                         node.cast(node.operand(2), type), groups, APFloat(epsilon));
  if (isActive)
    y = node.create<nn::SiluOp>(y);
  return node.transpose(y, toLast);
}
static void importGroupNorm(NodeContext &node) { node.result(0, groupNorm(node, node.operand(0))); }

/// The skip is as the input, or [batch, channels].
static void importSkipGroupNorm(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.operand(0), skip = node.operand(3);
  if (NodeContext::rank(skip) == 2 && NodeContext::rank(x) == 4)
    skip = node.unsqueeze(skip, {1, 2});
  Value sum = withBias(node, f.add(x, skip), node.operand(4));
  node.result(0, groupNorm(node, sum));
  node.result(1, sum);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// `transBatch`: [m, batch.., k] instead of [batch.., m, k]; `trans` swaps the last two dims after that.
static Value orient(NodeContext &node, Value x, bool trans, bool transBatch) {
  int64_t rank = NodeContext::rank(x);
  Ints order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (transBatch && rank > 2)
    std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (trans && rank > 1)
    std::swap(order[rank - 1], order[rank - 2]);
  return node.transpose(x, order);
}

/// A product with its transposes and a factor in it.
static void importFusedMatMul(NodeContext &node) {
  nn::Composer &f = node;
  bool transA = node.boolAttr("transA", false), transB = node.boolAttr("transB", false);
  Value a = orient(node, node.operand(0), transA, node.boolAttr("transBatchA", false));
  Value b = orient(node, node.operand(1), transB, node.boolAttr("transBatchB", false));
  double alpha = node.floatAttr("alpha", 1.0);
  Value y = matmul(node, a, b);
  node.result(0, alpha == 1 ? y : f.mul(y, alpha));
}

/// `activation(alpha * A' * B' + beta * C)`
static void importFusedGemm(NodeContext &node) {
  nn::Composer &f = node;
  double alpha = node.floatAttr("alpha", 1.0), beta = node.floatAttr("beta", 1.0);
  Value a = orient(node, node.operand(0), node.boolAttr("transA", false), false);
  Value b = orient(node, node.operand(1), node.boolAttr("transB", false), false), c = node.operand(2);
  Value y = matmul(node, a, b);
  if (alpha != 1)
    y = f.mul(y, alpha);
  if (c)
    y = f.add(y, beta == 1 ? c : f.mul(c, beta));
  auto parameter = [&](StringRef name) {
    return node.hasAttr(name) ? std::optional(node.floatAttr(name)) : std::nullopt;
  };
  std::optional<double> first = parameter("activation_alpha"), second = parameter("activation_beta");
  node.ignoreAttr("activation_gamma"); // No activation that is known here has a third one.
  node.result(0, activate(node, node.stringAttr("activation", StringRef("")), y, first, second));
}

/// A convolution, a residual on top, then the activation.
static void importFusedConv(NodeContext &node) {
  nn::Composer &f = node;
  Value y = convolve(node, node.operand(0), node.operand(1), node.operand(2));
  if (node.hasOperand(3))
    y = f.add(y, node.operand(3));
  SmallVector<double> parameters = node.floatsAttr("activation_params").value_or(SmallVector<double>());
  auto at = [&](unsigned i) { return i < parameters.size() ? std::optional(parameters[i]) : std::nullopt; };
  node.result(0, activate(node, node.stringAttr("activation", StringRef("")), y, at(0), at(1)));
}

/// Input, result and weight have their channels last.
static void importNhwcConv(NodeContext &node) {
  int64_t rank = NodeContext::rank(node.operand(0));
  if (!node.check(rank >= 3 && NodeContext::rank(node.operand(1)) == rank, "input and weight differ in rank"))
    return;
  Ints toFirst = llvm::to_vector(llvm::seq<int64_t>(0, rank)), toLast(toFirst);
  std::rotate(toFirst.begin() + 1, toFirst.end() - 1, toFirst.end());
  std::rotate(toLast.begin() + 1, toLast.begin() + 2, toLast.end());
  Value x = node.transpose(node.operand(0), toFirst), weight = node.transpose(node.operand(1), toFirst);
  node.result(0, node.transpose(convolve(node, x, weight, node.operand(2)), toLast));
}

void cleave::onnx::registerMicrosoftFused(Registry &registry) {
  Arity one{1, 1}, two{2, 2};
  registry.add("com.microsoft.BiasGelu", two, importBiasGelu);
  registry.add("com.microsoft.BiasSplitGelu", two, importBiasSplitGelu);
  registry.add("com.microsoft.EmbedLayerNormalization", {1, 9, 3}, importEmbedLayerNorm);
  registry.add("com.microsoft.FastGelu", {1, 2}, importFastGelu);
  registry.add("com.microsoft.FusedConv", {2, 4}, importFusedConv);
  registry.add("com.microsoft.FusedGemm", {2, 3}, importFusedGemm);
  registry.add("com.microsoft.FusedMatMul", two, importFusedMatMul);
  registry.add("com.microsoft.Gelu", one, importMicrosoftGelu);
  registry.add("com.microsoft.GroupNorm", {3, 3}, importGroupNorm);
  registry.add("com.microsoft.NhwcConv", {2, 3}, importNhwcConv);
  registry.add("com.microsoft.QuickGelu", one, importQuickGelu);
  registry.add("com.microsoft.SimplifiedLayerNormalization", {2, 2, 2}, importRmsNorm);
  registry.add("com.microsoft.SkipGroupNorm", {4, 5, 2}, importSkipGroupNorm);
  registry.add("com.microsoft.SkipLayerNormalization", {3, 5, 4}, importSkipLayerNorm);
  registry.add("com.microsoft.SkipSimplifiedLayerNormalization", {3, 4, 4}, importSkipRmsNorm);
  registry.add("com.microsoft.TransposeMatMul", two, importFusedMatMul);
  // onnxruntime writes these under ONNX's name.
  registry.add("SimplifiedLayerNormalization", {2, 2, 2}, importRmsNorm);
}
