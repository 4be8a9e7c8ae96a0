//===- Attention.cpp - attention and rotary embedding ---------------------===//
//
// Both ops take [batch, heads, sequence, size], or [batch, sequence, heads * size] with the number of heads as an
// attribute; nn has the first form only:
//
//   q [b, s, h*d] -> reshape [b, s, h, d] -> transpose [b, h, s, d] -> nn.attention -> transpose -> reshape [b, s, h*d]
//
//===----------------------------------------------------------------------===//
#include "Families.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/NnOps.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// [batch, sequence, heads * size] as [batch, heads, sequence, size]; heads are major in the hidden dim.
Value cleave::onnx::splitHeads(NodeContext &node, Value value, int64_t heads) {
  if (!value || node.failed())
    return {};
  Shape shape = NodeContext::shape(value);
  if (!node.check(heads > 0 && shape[2] % heads == 0,
                  Twine(heads) + " heads do not divide the hidden size " + Twine(shape[2])))
    return {};
  return node.transpose(node.reshape(value, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

/// The way back.
Value cleave::onnx::joinHeads(NodeContext &node, Value value) {
  if (!value)
    return {};
  Ints shape(NodeContext::shape(value));
  return node.reshape(node.transpose(value, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// One Attention node, its operands in 4 dims and its caches joined.
class AttentionImporter {
public:
  explicit AttentionImporter(NodeContext &node) : node(node) {}
  void import();

private:
  bool readOperands();
  bool readMask();
  Value makeScores(int64_t mode);

  NodeContext &node;
  Value query, key, value, mask;
  bool isFlat = false, isCausal = false;
  int64_t past = 0;
  double scale = 0, softcap = 0;
};
} // namespace

/// All forms become one: four dims, with the cache in front of the new keys and values, so that the op knows no cache.
bool AttentionImporter::readOperands() {
  query = node.operand(0), key = node.operand(1), value = node.operand(2);
  int64_t rank = NodeContext::rank(query);
  int64_t heads = node.intAttr("q_num_heads", 0), kvHeads = node.intAttr("kv_num_heads", 0);
  if (!node.check((rank == 3 || rank == 4) && NodeContext::rank(key) == rank && NodeContext::rank(value) == rank,
                  "Q, K and V must have 3 or 4 dims"))
    return false;
  isFlat = rank == 3;
  if (isFlat) {
    query = splitHeads(node, query, heads);
    key = splitHeads(node, key, kvHeads);
    value = splitHeads(node, value, kvHeads);
  }
  if (!node.check(node.hasOperand(4) == node.hasOperand(5), "past key and value go together") || node.failed())
    return false;
  if (node.hasOperand(4)) {
    if (!node.check(NodeContext::rank(node.operand(4)) == 4 && NodeContext::rank(node.operand(5)) == 4,
                    "past key and value must have 4 dims"))
      return false;
    past = NodeContext::shape(node.operand(4))[2];
    key = node.concat({node.operand(4), key}, 2);
    value = node.concat({node.operand(5), value}, 2);
  }
  if (node.failed())
    return false;
  isCausal = node.boolAttr("is_causal", false);
  softcap = node.floatAttr("softcap", 0.0);
  scale = node.floatAttr("scale", 1.0 / std::sqrt(double(NodeContext::shape(query)[3])));
  node.ignoreAttr("softmax_precision"); // Ours is f32 or wider.
  return !node.failed();
}

/// The mask covers all keys, and leaves out those that `nonpad_kv_seqlen` says are padding.
bool AttentionImporter::readMask() {
  mask = node.operand(3);
  Type boolean = node.getBuilder().getI1Type(), i64 = node.getBuilder().getI64Type();
  int64_t keys = NodeContext::shape(key)[2];
  double never = -std::numeric_limits<double>::infinity();
  if (mask && NodeContext::rank(mask) > 0) {
    int64_t rank = NodeContext::rank(mask), missing = keys - NodeContext::shape(mask).back();
    // A mask that is shorter than the keys hides the rest, from opset 24 on.
    if (node.getOpset() >= 24 && missing > 0) {
      Ints low(rank, 0), high(rank, 0);
      high.back() = missing;
      bool isBool = NodeContext::elementType(mask) == boolean;
      Value fill = node.scalarLike(mask, isBool ? 0 : never);
      mask = node.create<nn::PadOp>(nn::PadMode::Constant, mask, fill, low, high);
    }
  }
  if (Value lengths = node.operand(6)) {
    int64_t batch = NodeContext::shape(query)[0];
    if (!node.check(NodeContext::shape(lengths) == Shape({batch}), "there must be one length per batch element"))
      return false;
    Value place = node.createTyped<nn::IotaOp>(RankedTensorType::get({1, 1, 1, keys}, i64), 3, 0, 1);
    Value seen = node.create<nn::LtOp>(place, node.reshape(node.cast(lengths, i64), {batch, 1, 1, 1}));
    if (!mask)
      mask = seen;
    else if (NodeContext::elementType(mask) == boolean)
      mask = node.create<nn::AndOp>(mask, seen);
    else
      mask = node.create<nn::SelectOp>(seen, mask, node.scalarLike(mask, never));
  }
  return !node.failed();
}

/// The scores that the fourth output asks for, spelled out.
///
///   mode 0  scaled q k^T     1  capped     2  and masked     3  after the softmax
Value AttentionImporter::makeScores(int64_t mode) {
  Ints q(NodeContext::shape(query)), k(NodeContext::shape(key));
  if (!node.check(k[1] > 0 && q[1] % k[1] == 0, "the heads of K do not divide those of Q"))
    return {};
  Value grouped = node.reshape(query, {q[0], k[1], q[1] / k[1], q[2], q[3]});
  Value scores = node.create<nn::EinsumOp>(ValueRange{grouped, key}, "bhgsd,bhtd->bhgst");
  scores = node.create<nn::MulOp>(node.reshape(scores, {q[0], q[1], q[2], k[2]}), node.scalarLike(query, scale));
  if (mode >= 1 && softcap > 0) {
    Value cap = node.scalarLike(query, softcap);
    scores = node.create<nn::MulOp>(node.create<nn::TanhOp>(node.create<nn::DivOp>(scores, cap)), cap);
  }
  if (mode < 2)
    return scores;
  Value never = node.scalarLike(query, -std::numeric_limits<double>::infinity());
  if (mask && NodeContext::elementType(mask) == node.getBuilder().getI1Type())
    scores = node.create<nn::SelectOp>(mask, scores, never);
  else if (mask)
    scores = node.create<nn::AddOp>(scores, mask);
  if (isCausal) {
    Type i64 = node.getBuilder().getI64Type();
    Value row = node.createTyped<nn::IotaOp>(RankedTensorType::get({q[2], 1}, i64), 0, past, 1);
    Value column = node.createTyped<nn::IotaOp>(RankedTensorType::get({1, k[2]}, i64), 1, 0, 1);
    scores = node.create<nn::SelectOp>(node.create<nn::GeOp>(row, column), scores, never);
  }
  return mode == 2 ? scores : node.create<nn::SoftmaxOp>(scores, 3);
}

/// The scores exist in no op: who asks for them gets them computed a second time.
void AttentionImporter::import() {
  int64_t mode = node.intAttr("qk_matmul_output_mode", 0);
  if (!readOperands() || !readMask() ||
      !node.check(mode >= 0 && mode <= 3, "attribute 'qk_matmul_output_mode' is " + Twine(mode)))
    return;
  Value result = node.create<nn::AttentionOp>(query, key, value, mask, APFloat(scale), isCausal, isCausal ? past : 0,
                                              APFloat(softcap), /*left=*/IntegerAttr(), /*right=*/IntegerAttr());
  node.result(0, isFlat ? joinHeads(node, result) : result);
  node.result(1, key);
  node.result(2, value);
  if (node.wantsResult(3))
    node.result(3, makeScores(mode));
}

static void importAttention(NodeContext &node) { AttentionImporter(node).import(); }

//===----------------------------------------------------------------------===//
// RotaryEmbedding
//===----------------------------------------------------------------------===//

/// Positions, where given, select rows of the caches; without them the caches are [batch, sequence, rotated / 2].
static void importRotaryEmbedding(NodeContext &node) {
  Value x = node.operand(0), cos = node.operand(1), sin = node.operand(2), positions = node.operand(3);
  bool interleaved = node.boolAttr("interleaved", false);
  int64_t rotated = node.intAttr("rotary_embedding_dim", 0), heads = node.intAttr("num_heads", 0),
          rank = NodeContext::rank(x);
  if (!node.check(rank == 3 || rank == 4, "the input must have 3 or 4 dims"))
    return;
  Value apart = rank == 3 ? splitHeads(node, x, heads) : x;
  if (positions) {
    cos = node.create<nn::GatherOp>(cos, positions, 0);
    sin = node.create<nn::GatherOp>(sin, positions, 0);
  }
  if (node.failed())
    return;
  int64_t size = rotated ? rotated : NodeContext::shape(apart)[3];
  Value y = node.create<nn::RotaryEmbeddingOp>(apart, cos, sin, size, interleaved);
  node.result(0, rank == 3 ? joinHeads(node, y) : y);
}

void cleave::onnx::registerAttention(Registry &registry) {
  registry.add("Attention", 23, {3, 6, 4}, importAttention);
  registry.add("Attention", 24, {3, 7, 4}, importAttention);
  registry.add("RotaryEmbedding", 23, {3, 4}, importRotaryEmbedding);
}
