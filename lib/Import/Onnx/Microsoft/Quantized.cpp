//===- Quantized.cpp - products of packed weights -------------------------===//
//
// Domain com.microsoft: weights of 4 and 8 bits in blocks, each with a scale and a zero point, and experts of such. Two
// numbers of 4 bits share a byte, the first in the low bits. They are unpacked by integer ops in front of the product,
// so that what is in the file, in memory and on the wire stays packed:
//
//   uint8 [n, blocks, bytes] -> and 15 | shift right 4 -> [n, blocks, size] -> (q - zero) * scale -> [n, k]
//
//===----------------------------------------------------------------------===//
#include "../Families.h"
#include "../NodeContext.h"
#include "../PackedTensor.h"
#include "../Registry.h"
#include "Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// Whether an element type is that of packed bytes.
static bool isBytes(Value value) {
  Type type = NodeContext::elementType(value);
  return type && type.isUnsignedInteger(8);
}

/// `(q - zero) * scale` of numbers in blocks [.., blocks, size]; scale [.., blocks], zero as the scale or null, which is
/// the middle of the range. In `type`.
static Value scaleBlocks(NodeContext &node, Value numbers, Value scale, Value zero, int64_t bits, Type type) {
  if (node.failed())
    return {};
  nn::Composer &f = node;
  int64_t rank = NodeContext::rank(numbers);
  Value real = node.cast(numbers, type);
  Value middle = zero ? node.unsqueeze(node.cast(zero, type), {rank - 1}) : node.scalar(type, double(1 << (bits - 1)));
  return f.mul(f.sub(real, middle), node.unsqueeze(node.cast(scale, type), {rank - 1}));
}

/// Zero points of blocks, packed along the last dim, as many as there are.
static Value unpackZeros(NodeContext &node, Value zeros, Shape scale, int64_t bits) {
  if (!zeros || !isBytes(zeros))
    return zeros ? node.reshape(zeros, scale) : zeros;
  Ints packed(scale);
  packed.back() = (scale.back() * bits + 7) / 8;
  if (!node.check(ShapedType::getNumElements(packed) == ShapedType::getNumElements(NodeContext::shape(zeros)),
                  "the zero points do not have one number per block"))
    return {};
  Value all = unpackBits(node, node.reshape(zeros, packed), bits);
  return node.sliceDim(all, scale.size() - 1, 0, scale.back());
}

/// Others share bytes in ways of their own.
static bool checkBits(NodeContext &node, int64_t bits) {
  return node.check(bits == 4 || bits == 8, Twine(bits) + " bits are not supported, only 4 and 8");
}

//===----------------------------------------------------------------------===//
// MatMulNBits
//===----------------------------------------------------------------------===//

/// `A * dequantized(B)^T`. Operands: A [.., k], B [n, blocks, bytes], scales [n, blocks], zero points, g_idx, bias.
static void importMatMulNBits(NodeContext &node) {
  nn::Composer &f = node;
  Value a = node.operand(0), packed = node.operand(1), scales = node.operand(2), bias = node.operand(5);
  int64_t depth = node.intAttr("K"), columns = node.intAttr("N"), bits = node.intAttr("bits", 4),
          size = node.intAttr("block_size");
  for (StringRef name : {"accuracy_level", "weight_prepacked"})
    node.ignoreAttr(name);
  if (node.failed() || !checkBits(node, bits) ||
      !node.check(depth > 0 && columns > 0 && size >= 16 && size <= (1 << 20), "K, N or block_size is out of range"))
    return;
  int64_t blocks = (depth + size - 1) / size;
  Ints perBlock{columns, blocks};
  if (!node.check(isBytes(packed) && NodeContext::shape(packed) == Shape({columns, blocks, size * bits / 8}),
                  "B must be uint8 [" + Twine(columns) + ", " + Twine(blocks) + ", " + Twine(size * bits / 8) + "]") ||
      !node.check(ShapedType::getNumElements(NodeContext::shape(scales)) == columns * blocks,
                  "the scales do not have one number per block") ||
      !node.check(NodeContext::rank(a) > 0 && NodeContext::shape(a).back() == depth, "A does not end in dim K"))
    return;
  Value zeros = unpackZeros(node, node.operand(3), perBlock, bits);
  Type type = NodeContext::elementType(a);
  Value numbers = unpackBits(node, packed, bits);
  scales = node.reshape(scales, perBlock);
  Value weight;
  if (Value groups = node.operand(4)) {
    if (!node.check(NodeContext::rank(groups) == 1 && NodeContext::shape(groups)[0] >= depth,
                    "'g_idx' must have a block for each of the " + Twine(depth) + " columns"))
      return;
    // onnxruntime has no other; with zero points it computes as if there were none.
    if (!node.check(bits == 4 && !zeros, "'g_idx' is supported with 4 bits and without zero points only"))
      return;
    // A column may have the scale of any block: each is a block of its own.
    groups = node.sliceDim(groups, 0, 0, depth);
    Value apart = node.sliceDim(node.reshape(numbers, {columns, blocks * size}), 1, 0, depth);
    weight = scaleBlocks(node, node.unsqueeze(apart, {2}), f.gather(scales, groups, 1), Value(), bits, type);
    weight = node.reshape(weight, {columns, depth});
  } else {
    weight = scaleBlocks(node, numbers, scales, zeros, bits, type);
    weight = node.sliceDim(node.reshape(weight, {columns, blocks * size}), 1, 0, depth);
  }
  Value y = matmul(node, a, node.transpose(weight, {1, 0}));
  node.result(0, bias ? f.add(y, bias) : y);
}

//===----------------------------------------------------------------------===//
// GatherBlockQuantized
//===----------------------------------------------------------------------===//

/// Rows are gathered packed, then only those are dequantized. Operands: data, indices, scales, zero points.
static void importGatherBlockQuantized(NodeContext &node) {
  nn::Composer &f = node;
  Value data = node.operand(0), indices = node.operand(1), scales = node.operand(2), zeros = node.operand(3);
  int64_t rank = NodeContext::rank(data), bits = node.intAttr("bits", 4), size = node.intAttr("block_size", 128);
  int64_t axis = node.axis(node.intAttr("gather_axis", 0), rank),
          blocked = node.axis(node.intAttr("quantize_axis", 1), rank, "quantize_axis");
  if (node.failed() || !checkBits(node, bits) || !node.check(isBytes(data), "the data must be uint8") ||
      !node.check(rank == 2 && axis == 0 && blocked == 1,
                  "only rows of a matrix that is quantized along them can be gathered") ||
      !node.check(size >= 16 && size <= (1 << 20), "attribute 'block_size' is " + Twine(size)))
    return;
  int64_t columns = NodeContext::shape(data)[1] * 8 / bits, blocks = (columns + size - 1) / size;
  Ints perBlock{NodeContext::shape(data)[0], blocks};
  if (!node.check(NodeContext::shape(scales) == Shape(perBlock), "the scales do not have one number per block"))
    return;
  zeros = unpackZeros(node, zeros, perBlock, bits);
  auto rows = [&](Value table) { return table ? f.gather(table, indices, 0) : table; };
  Value numbers = unpackBits(node, rows(data), bits);
  int64_t last = NodeContext::rank(numbers) - 1;
  if (node.failed())
    return;
  Ints low(last + 1, 0), high(last + 1, 0), apart(NodeContext::shape(numbers));
  high[last] = blocks * size - columns;
  apart[last] = blocks;
  apart.push_back(size);
  numbers = node.reshape(f.pad(numbers, low, high), apart);
  Value real = scaleBlocks(node, numbers, rows(scales), rows(zeros), bits, NodeContext::elementType(scales));
  Ints joined(Shape(apart).drop_back());
  joined[last] = blocks * size;
  node.result(0, node.sliceDim(node.reshape(real, joined), last, 0, columns));
}

//===----------------------------------------------------------------------===//
// QAttention
//===----------------------------------------------------------------------===//

/// Operands: x, weight, bias, scales of both, mask, zero points of both, past. The product is one of integers.
static void importQAttention(NodeContext &node) {
  nn::Composer &f = node;
  PackedAttention options = readPackedAttention(node);
  if (!node.check(NodeContext::rank(node.operand(0)) == 3 && NodeContext::rank(node.operand(1)) == 2,
                  "the input must have 3 dims and the weight 2"))
    return;
  auto centered = [&](unsigned index, unsigned zero) {
    Value wide = node.cast(node.operand(index), f.i32());
    return node.hasOperand(zero) ? f.sub(wide, node.cast(node.operand(zero), f.i32())) : wide;
  };
  Value sums = matmul(node, centered(0, 6), centered(1, 7));
  Value scale = f.mul(node.operand(3), node.operand(4));
  options.mask = node.operand(5), options.past = node.operand(8);
  Value packed = f.mul(node.cast(sums, NodeContext::elementType(scale)), scale);
  node.result(0, attendPacked(node, f.add(packed, node.operand(2)), options));
}

//===----------------------------------------------------------------------===//
// MoE, QMoE
//===----------------------------------------------------------------------===//

namespace {
/// Experts as [experts, out, in] each, with biases [experts, out] or null.
struct Experts {
  Value first, firstBias, second, secondBias, third, thirdBias;
  int64_t count() const { return NodeContext::shape(first)[0]; }
};
} // namespace

/// The share of each expert per token, [tokens, experts]: the k largest of the softmax, others 0; with
/// `normalize_routing_weights` these k sum to 1.
static Value routeTokens(NodeContext &node, Value scores) {
  nn::Composer &f = node;
  int64_t k = node.intAttr("k", 1), experts = NodeContext::shape(scores)[1];
  bool normalizes = node.boolAttr("normalize_routing_weights", false);
  node.check(!node.boolAttr("use_sparse_mixer", false), "attribute 'use_sparse_mixer' is not supported");
  if (node.failed() || !node.check(k >= 1 && k <= experts, "attribute 'k' is " + Twine(k)))
    return {};
  Value all = node.create<nn::SoftmaxOp>(node.cast(scores, f.f32()), 1);
  auto top = node.createAll<nn::TopKOp>(all, k, 1, false);
  if (top.empty())
    return {};
  Value share = top[0];
  if (normalizes)
    share = f.div(share, f.sum(share, Ints{1}, true));
  // Of equal experts top-k takes the first; so a place is asked for, not a threshold.
  Value table = node.cast(node.vector({0, 1}), f.f32());
  Value chosen = node.create<nn::OneHotOp>(top[1], table, experts, 2);
  return f.einsum({share, chosen}, "tk,tke->te");
}

/// Gates and what they are for, in turn along the last dim, from [.., 2 n] to [.., n]: `g sigmoid(alpha g) (x + beta)`, both clamped before.
static Value activateGates(NodeContext &node, Value both) {
  nn::Composer &f = node;
  double alpha = node.floatAttr("activation_alpha", 1.0), beta = node.floatAttr("activation_beta", 0.0),
         limit = node.floatAttr("swiglu_limit", std::numeric_limits<double>::infinity());
  int64_t rank = NodeContext::rank(both);
  if (node.failed() ||
      !node.check(node.intAttr("swiglu_fusion", 0) == 1,
                  "'swiglu' is supported with 'swiglu_fusion' 1 only, gates in turn with what they are for") ||
      !node.check(NodeContext::shape(both).back() % 2 == 0, "weights of gates do not have two halves"))
    return {};
  Ints pairs(NodeContext::shape(both)), single(pairs);
  single.back() /= 2;
  pairs.back() /= 2;
  pairs.push_back(2);
  Value apart = node.reshape(both, pairs);
  auto half = [&](int64_t which) { return node.reshape(node.sliceDim(apart, rank, which, 1), single); };
  Value gate = half(0), linear = half(1);
  if (std::isfinite(limit)) {
    gate = f.min(gate, limit);
    linear = f.clamp(linear, -limit, limit);
  }
  return f.mul(f.mul(gate, f.sigmoid(f.mul(gate, alpha))), f.add(linear, beta));
}

/// Every expert sees every token here, which is exact, and the shares take the sum. Sharded over experts each rank has
/// its own.
static void runExperts(NodeContext &node, const Experts &experts) {
  nn::Composer &f = node;
  Value x = node.operand(0);
  StringRef activation = node.stringAttr("activation_type", StringRef("relu"));
  Ints shape(NodeContext::shape(x));
  if (node.failed() || !node.check(!shape.empty(), "the input is a scalar"))
    return;
  int64_t hidden = shape.back(), tokens = ShapedType::getNumElements(shape) / std::max<int64_t>(hidden, 1);
  Value flat = node.reshape(x, {tokens, hidden}), share = routeTokens(node, node.operand(1));
  auto product = [&](Value input, Value weight, Value bias, StringRef equation) {
    Value y = f.einsum({input, weight}, equation);
    return bias ? f.add(y, node.unsqueeze(bias, {1})) : y;
  };
  Value inner = product(flat, experts.first, experts.firstBias, "th,eih->eti");
  if (activation == "relu")
    inner = node.create<nn::ReluOp>(inner);
  else if (activation == "gelu")
    inner = node.create<nn::GeluOp>(inner, true); // as onnxruntime's kernel has it
  else if (activation == "silu")
    inner = node.create<nn::SiluOp>(inner);
  else if (activation == "swiglu")
    inner = activateGates(node, inner);
  else if (activation != "identity")
    node.check(false, "attribute 'activation_type' is '" + activation + "', which is not supported");
  if (experts.third)
    inner = f.mul(inner, product(flat, experts.third, experts.thirdBias, "th,eih->eti"));
  Value y = product(inner, experts.second, experts.secondBias, "eti,ehi->eth");
  y = f.einsum({y, node.cast(share, NodeContext::elementType(x))}, "eth,te->th");
  node.result(0, node.reshape(y, shape));
}

static void ignoreSwiglu(NodeContext &node) {
  for (StringRef name : {"activation_alpha", "activation_beta", "swiglu_fusion", "swiglu_limit"})
    node.ignoreAttr(name); // Of 'swiglu' only.
}

/// Operands: x, scores of the router, three weights, each with a bias.
static void importMoe(NodeContext &node) {
  ignoreSwiglu(node);
  if (!node.require({4}))
    return;
  Experts experts{node.operand(2), node.operand(3), node.operand(4), node.operand(5), node.operand(6), node.operand(7)};
  if (node.check(NodeContext::rank(experts.first) == 3 && NodeContext::rank(experts.second) == 3 &&
                     NodeContext::rank(node.operand(1)) == 2,
                 "weights must be [experts, out, in], and scores [tokens, experts]"))
    runExperts(node, experts);
}

/// Likewise with a scale behind each weight: one per row, or one per block of it. Weights are packed along their last
/// dim.
static void importQMoe(NodeContext &node) {
  ignoreSwiglu(node);
  int64_t bits = node.intAttr("expert_weight_bits", 4), size = node.intAttr("block_size", 0);
  if (!checkBits(node, bits) || !node.require({5}))
    return;
  Type type = NodeContext::elementType(node.operand(0));
  for (unsigned i = 11; i < node.getNumOperands(); ++i)
    node.check(!node.hasOperand(i), "zero points of experts are not supported");
  auto weight = [&](unsigned index) -> Value {
    if (!node.hasOperand(index) || node.failed())
      return {};
    Value packed = node.operand(index), scale = node.operand(index + 1);
    if (!node.check(isBytes(packed) && NodeContext::rank(packed) == 3 && scale,
                    "weights of experts must be uint8 [experts, out, bytes], with scales"))
      return {};
    Value numbers = unpackBits(node, packed, bits);
    Ints shape(NodeContext::shape(numbers));
    int64_t block = size > 0 ? size : shape[2], blocks = shape[2] / block;
    if (!node.check(blocks * block == shape[2], "a block size that does not divide the weight is not supported"))
      return {};
    Ints perBlock{shape[0], shape[1], blocks};
    if (!node.check(ShapedType::getNumElements(NodeContext::shape(scale)) == ShapedType::getNumElements(perBlock),
                    "the scales do not have one number per block"))
      return {};
    Value apart = node.reshape(numbers, {shape[0], shape[1], blocks, block});
    return node.reshape(scaleBlocks(node, apart, node.reshape(scale, perBlock), Value(), bits, type), shape);
  };
  Experts experts{weight(2), node.operand(4), weight(5), node.operand(7), weight(8), node.operand(10)};
  if (!node.failed())
    runExperts(node, experts);
}

void cleave::onnx::registerMicrosoftQuantized(Registry &registry) {
  registry.add("com.microsoft.GatherBlockQuantized", {3, 4}, importGatherBlockQuantized);
  registry.add("com.microsoft.MatMulNBits", {3, 6}, importMatMulNBits);
  registry.add("com.microsoft.MoE", {3, 8}, importMoe);
  registry.add("com.microsoft.QAttention", {5, 9, 2}, importQAttention);
  registry.add("com.microsoft.QMoE", {4, 14}, importQMoe);
}
