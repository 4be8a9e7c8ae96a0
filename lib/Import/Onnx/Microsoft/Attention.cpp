//===- Attention.cpp - attention as onnxruntime has it --------------------===//
//
// Domain com.microsoft. Three ops, each with its ways to pass heads, masks and caches; all become nn.attention:
//
//   Attention              x W + b, split into q, k and v; cache [2, batch, heads, past, size]
//   MultiHeadAttention     q, k and v, packed or not; caches of keys and of values
//   GroupQueryAttention    fewer heads of keys than of queries; caches of one size for all samples, filled up to a
//                          length per sample; rotary embedding inside
//
// Where onnxruntime adds `mask_filter_value` to scores that are masked out, so is it here: a query that sees nothing
// then looks everywhere alike, and not nowhere.
//
//===----------------------------------------------------------------------===//
#include "Attention.h"
#include "../Families.h"
#include "../NodeContext.h"
#include "../Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// True at positions below the length of the sample: [batch, 1, 1, keys].
static Value belowLength(NodeContext &node, Value lengths, int64_t batch, int64_t keys) {
  nn::Composer &f = node;
  Value place = f.iota({1, 1, 1, keys}, 3, f.i64());
  return f.lt(place, node.reshape(node.cast(lengths, f.i64()), {batch, 1, 1, 1}));
}

/// A mask in one of onnxruntime's forms as what is added to the scores; null where there is none.
///
///   [batch]            the number of keys          [2 batch]               ends, then starts
///   [batch, keys]      not 0: seen                 [batch, queries, keys]  likewise per query
static Value readMask(NodeContext &node, Value mask, Shape scores, double filter, Type type) {
  if (!mask || node.failed())
    return {};
  nn::Composer &f = node;
  int64_t batch = scores[0], queries = scores[2], keys = scores[3];
  Shape shape = NodeContext::shape(mask);
  Value seen;
  if (shape == Shape({batch})) {
    seen = belowLength(node, mask, batch, keys);
  } else if (shape == Shape({2 * batch})) {
    Value start = node.sliceDim(mask, 0, batch, batch);
    seen = f.both(belowLength(node, node.sliceDim(mask, 0, 0, batch), batch, keys),
                  f.negate(belowLength(node, start, batch, keys)));
  } else if (shape == Shape({batch, keys}) || shape == Shape({batch, queries, keys})) {
    Ints wide{batch, 1, shape.size() == 3 ? queries : 1, keys};
    seen = node.cast(node.reshape(mask, wide), f.boolean());
  } else {
    node.check(false, "a mask of this shape is not supported");
    return {};
  }
  return f.select(seen, node.scalar(type, 0), node.scalar(type, filter));
}

/// The sum of what is added to scores; either may be null.
static Value addMasks(NodeContext &node, Value mask, Value bias) {
  return mask && bias ? node.create<nn::AddOp>(mask, bias) : mask ? mask : bias;
}

Value cleave::onnx::attendPacked(NodeContext &node, Value packed, const PackedAttention &options) {
  Shape shape = NodeContext::shape(packed);
  if (node.failed() || !node.check(options.heads > 0, "attribute 'num_heads' is " + Twine(options.heads)))
    return {};
  Ints sizes = options.sizes;
  int64_t batch = shape[0], length = shape[1], start = 0;
  if (sizes.empty())
    sizes = Ints(3, shape[2] / 3);
  if (!node.check(sizes.size() == 3 && sizes[0] + sizes[1] + sizes[2] == shape[2],
                  "the weight does not have the columns of q, k and v"))
    return {};
  SmallVector<Value> parts;
  for (int64_t size : sizes) {
    parts.push_back(splitHeads(node, node.sliceDim(packed, 2, start, size), options.heads));
    start += size;
  }
  Value q = parts[0], k = parts[1], v = parts[2];
  if (node.failed())
    return {};
  int64_t past = 0;
  if (options.past) {
    Ints cache(NodeContext::shape(options.past));
    if (!node.check(cache.size() == 5 && cache[0] == 2, "the past must be [2, batch, heads, length, size]"))
      return {};
    past = cache[3];
    Ints own(Shape(cache).drop_front());
    k = node.concat({node.reshape(node.sliceDim(options.past, 0, 0, 1), own), k}, 2);
    v = node.concat({node.reshape(node.sliceDim(options.past, 0, 1, 1), own), v}, 2);
  }
  if (node.wantsResult(1))
    node.result(1, node.concat({node.unsqueeze(k, {0}), node.unsqueeze(v, {0})}, 0));
  if (node.failed())
    return {};
  double scale = options.scale ? options.scale : 1 / std::sqrt(double(NodeContext::shape(q)[3]));
  Type type = NodeContext::elementType(q);
  Value mask = readMask(node, options.mask, {batch, options.heads, length, past + length}, options.filter, type);
  mask = addMasks(node, mask, options.bias);
  Value y = node.create<nn::AttentionOp>(q, k, v, mask, APFloat(scale), options.isCausal, options.isCausal ? past : 0,
                                         APFloat(0.0), /*left=*/IntegerAttr(), /*right=*/IntegerAttr());
  return joinHeads(node, y);
}

PackedAttention cleave::onnx::readPackedAttention(NodeContext &node) {
  PackedAttention options;
  options.heads = node.intAttr("num_heads");
  options.isCausal = node.boolAttr("unidirectional", false);
  options.filter = node.floatAttr("mask_filter_value", -10000.0);
  options.scale = node.hasAttr("scale") ? node.floatAttr("scale") : 0;
  options.sizes = node.intsAttr("qkv_hidden_sizes").value_or(Ints());
  node.check(!node.boolAttr("do_rotary", false), "attribute 'do_rotary' is not supported");
  node.check(node.intAttr("past_present_share_buffer", 0) == 0,
             "attribute 'past_present_share_buffer' is not supported");
  node.ignoreAttr("rotary_embedding_dim");
  return options;
}

/// Operands: x, weight, bias, mask, past, what is added to scores.
static void importMicrosoftAttention(NodeContext &node) {
  nn::Composer &f = node;
  PackedAttention options = readPackedAttention(node);
  Value x = node.operand(0), bias = node.operand(2);
  if (!node.check(NodeContext::rank(x) == 3 && NodeContext::rank(node.operand(1)) == 2,
                  "the input must have 3 dims and the weight 2"))
    return;
  options.mask = node.operand(3), options.past = node.operand(4), options.bias = node.operand(5);
  Value packed = matmul(node, x, node.operand(1));
  node.result(0, attendPacked(node, bias ? f.add(packed, bias) : packed, options));
}

//===----------------------------------------------------------------------===//
// MultiHeadAttention
//===----------------------------------------------------------------------===//

namespace {
/// q, k and v as [batch, heads, length, size].
struct Heads {
  Value q, k, v;
};
} // namespace

/// Part `index` of [batch, length, heads, parts, size].
static Value takePart(NodeContext &node, Value packed, int64_t index) {
  Ints shape(NodeContext::shape(packed));
  Value part = node.sliceDim(packed, 3, index, 1);
  return node.transpose(node.reshape(part, {shape[0], shape[1], shape[2], shape[4]}), {0, 2, 1, 3});
}

/// Forms of the operands: all in one [b, s, h, 3, d]; keys and values in one [b, t, h, 2, d]; each [b, t, h * d]; or keys
/// and values that are in heads already [b, h, t, d], as a cache of cross attention has them.
static Heads readHeads(NodeContext &node, int64_t heads) {
  Value query = node.operand(0), key = node.operand(1), value = node.operand(2), bias = node.operand(3);
  int64_t rank = NodeContext::rank(query);
  if (!node.check(heads > 0, "attribute 'num_heads' is " + Twine(heads)))
    return {};
  if (rank == 5 && !key) {
    if (!node.check(NodeContext::shape(query)[3] == 3 && !bias, "packed q, k and v have another shape, or a bias"))
      return {};
    return {takePart(node, query, 0), takePart(node, query, 1), takePart(node, query, 2)};
  }
  if (!node.check(rank == 3 && key, "the query must be [batch, length, hidden], and a key must be there"))
    return {};
  int64_t hidden = NodeContext::shape(query)[2], start = 0;
  auto biased = [&](Value part, int64_t size) {
    Value own = bias ? node.sliceDim(bias, 0, start, size) : Value();
    start += size;
    return bias ? Value(node.create<nn::AddOp>(part, own)) : part;
  };
  Heads parts;
  parts.q = splitHeads(node, biased(query, hidden), heads);
  if (NodeContext::rank(key) == 5) {
    if (!node.check(NodeContext::shape(key)[3] == 2 && !value && !bias,
                    "packed keys and values have another shape, or a bias"))
      return {};
    parts.k = takePart(node, key, 0), parts.v = takePart(node, key, 1);
    return parts;
  }
  if (!node.check(value != nullptr, "keys without values"))
    return {};
  if (NodeContext::rank(key) == 4) {
    parts.k = key, parts.v = value;
    return parts;
  }
  if (!node.check(NodeContext::rank(key) == 3 && NodeContext::rank(value) == 3, "keys and values must have 3 dims"))
    return {};
  parts.k = splitHeads(node, biased(key, NodeContext::shape(key)[2]), heads);
  parts.v = splitHeads(node, biased(value, NodeContext::shape(value)[2]), heads);
  return parts;
}

/// Operands: query, key, value, bias, mask of keys, what is added to scores, past keys, past values.
static void importMultiHead(NodeContext &node) {
  int64_t heads = node.intAttr("num_heads");
  double filter = node.floatAttr("mask_filter_value", -10000.0), given = node.floatAttr("scale", 0);
  bool isCausal = node.boolAttr("unidirectional", false);
  Heads parts = readHeads(node, heads);
  if (node.failed() || !node.check(node.hasOperand(6) == node.hasOperand(7), "past key and value go together"))
    return;
  int64_t past = 0;
  if (node.hasOperand(6)) {
    if (!node.check(NodeContext::rank(node.operand(6)) == 4 && NodeContext::rank(node.operand(7)) == 4,
                    "past key and value must have 4 dims"))
      return;
    past = NodeContext::shape(node.operand(6))[2];
    parts.k = node.concat({node.operand(6), parts.k}, 2);
    parts.v = node.concat({node.operand(7), parts.v}, 2);
  }
  if (node.failed())
    return;
  Shape q = NodeContext::shape(parts.q), k = NodeContext::shape(parts.k);
  Type type = NodeContext::elementType(parts.q);
  Value mask = addMasks(node, readMask(node, node.operand(4), {q[0], q[1], q[2], k[2]}, filter, type), node.operand(5));
  double scale = given ? given : 1 / std::sqrt(double(q[3]));
  Value y = node.create<nn::AttentionOp>(parts.q, parts.k, parts.v, mask, APFloat(scale), isCausal, isCausal ? past : 0,
                                         APFloat(0.0), /*left=*/IntegerAttr(), /*right=*/IntegerAttr());
  node.result(0, joinHeads(node, y));
  node.result(1, parts.k);
  node.result(2, parts.v);
}

//===----------------------------------------------------------------------===//
// GroupQueryAttention
//===----------------------------------------------------------------------===//

namespace {
/// Operands: query (or q, k and v in one), key, value, past key, past value, lengths - 1 per sample, total length, cos,
/// sin, positions, what is added to scores, sinks, scales of a quantized cache of keys and of values.
class GroupQuery {
public:
  explicit GroupQuery(NodeContext &node) : node(node), f(node), cache(node) {}
  void import();

private:
  bool readAttributes();
  bool readHeads();
  bool readLengths();
  Value rotate(Value x);
  Value append(Value past, Value fresh);
  Value makeMask(int64_t keys);
  Value addSink(Value mask, int64_t keys);

  NodeContext &node;
  nn::Composer &f;
  QuantizedCache cache;
  Value q, k, v;
  /// How many keys the cache of each sample holds: [batch], or the number itself where it is known.
  Value filled;
  int64_t known = 0;
  int64_t heads = 0, kvHeads = 0, total = 0, batch = 0, length = 0, cached = 0, window = -1;
  bool rotates = false, isInterleaved = false, hasSink = false;
  double scale = 0, softcap = 0;
};
} // namespace

/// What nn.attention has no form for is refused by name: a model that had it ignored would give other numbers.
bool GroupQuery::readAttributes() {
  heads = node.intAttr("num_heads"), kvHeads = node.intAttr("kv_num_heads");
  scale = node.floatAttr("scale", 0), softcap = node.floatAttr("softcap", 0);
  rotates = node.boolAttr("do_rotary", false), isInterleaved = node.boolAttr("rotary_interleaved", false);
  window = node.intAttr("local_window_size", -1);
  node.check(window == -1 || window > 0,
             "attribute 'local_window_size' is " + Twine(window) + ", expected -1 or more than 0");
  hasSink = node.intAttr("smooth_softmax", 0) > 0 || node.hasOperand(11);
  node.check(node.intAttr("qk_output", 0) == 0, "attribute 'qk_output' is not supported");
  cache.readAttributes();
  node.check(!node.hasOperand(11) || NodeContext::shape(node.operand(11)) == Shape({heads}),
             "the sinks must be [" + Twine(heads) + "]");
  return !node.failed() && node.check(kvHeads > 0 && heads % kvHeads == 0,
                                      Twine(kvHeads) + " heads of keys do not divide " + Twine(heads) + " of queries");
}

/// q, k and v in heads; where they come in one, queries stand first.
bool GroupQuery::readHeads() {
  Value query = node.operand(0), key = node.operand(1), value = node.operand(2);
  if (!node.check(NodeContext::rank(query) == 3, "the query must be [batch, length, hidden]") ||
      !node.check(!key == !value, "key and value go together"))
    return false;
  Shape shape = NodeContext::shape(query);
  batch = shape[0], length = shape[1];
  if (!key) {
    int64_t size = shape[2] / (heads + 2 * kvHeads);
    if (!node.check(size * (heads + 2 * kvHeads) == shape[2], "packed q, k and v do not have equal heads"))
      return false;
    key = node.sliceDim(query, 2, heads * size, kvHeads * size);
    value = node.sliceDim(query, 2, (heads + kvHeads) * size, kvHeads * size);
    query = node.sliceDim(query, 2, 0, heads * size);
  }
  q = splitHeads(node, query, heads), k = splitHeads(node, key, kvHeads), v = splitHeads(node, value, kvHeads);
  return !node.failed() && cache.readOperands(kvHeads, NodeContext::shape(k)[3]);
}

/// A prompt starts at 0 in every sample; else the cache holds what is not new. Of one sample that is known, since the
/// total is.
bool GroupQuery::readLengths() {
  if (!node.check(node.tryConstant(6).has_value(), "the total length must be known at import" + node.explainUnknown()))
    return false;
  total = node.constantInt(6);
  cached = node.hasOperand(3) ? NodeContext::shape(node.operand(3))[2] : 0;
  if (!node.check(total >= length, "the total length " + Twine(total) + " is below that of the query") ||
      !node.check(ShapedType::getNumElements(NodeContext::shape(node.operand(5))) == batch,
                  "there must be one length per sample"))
    return false;
  known = total - length;
  if (known > 0 && batch > 1)
    filled = f.sub(node.reshape(node.cast(node.operand(5), f.i64()), {batch}), double(length - 1));
  return node.check(known == 0 || cached >= known, "the cache is shorter than what it is said to hold");
}

/// By the position in the sample, or by the positions that are given.
Value GroupQuery::rotate(Value x) {
  if (!rotates)
    return x;
  Value cos = node.operand(7), sin = node.operand(8), positions = node.operand(9);
  bool isThere = NodeContext::rank(cos) == 2 && NodeContext::rank(sin) == 2;
  if (!node.check(isThere, "'do_rotary' needs tables of cos and sin, of 2 dims") || node.failed())
    return {};
  if (!positions) {
    positions = f.iota({1, length}, 1, f.i64(), filled ? 0 : known);
    if (filled)
      positions = f.add(positions, node.reshape(filled, {batch, 1}));
  }
  int64_t rotated = 2 * NodeContext::shape(cos).back();
  Value y = node.create<nn::RotaryEmbeddingOp>(x, f.gather(cos, positions, 0), f.gather(sin, positions, 0), rotated,
                                               isInterleaved);
  return y;
}

/// Puts new keys or values behind those that are there: [batch, heads, max(cached, total), size].
Value GroupQuery::append(Value past, Value fresh) {
  int64_t keys = std::max(cached, total);
  if (node.failed())
    return {};
  // Of a buffer, what lies behind the end of a sample stays as it is.
  if (past && filled) {
    Ints shape(NodeContext::shape(fresh));
    Value place = f.add(f.iota({1, 1, length, 1}, 2, f.i64()), node.reshape(filled, {batch, 1, 1, 1}));
    // A cache that is no buffer is copied anyway, and onnxruntime leaves zeros there.
    if (cached < total)
      past = f.select(node.reshape(belowLength(node, filled, batch, cached), {batch, 1, cached, 1}), past, 0);
    Value wide = f.pad(past, {0, 0, 0, 0}, {0, 0, keys - cached, 0});
    return node.create<nn::ScatterElementsOp>(nn::ScatterKind::Set, wide, node.broadcast(place, shape), fresh, 2);
  }
  SmallVector<Value> parts;
  if (past && known > 0)
    parts.push_back(node.sliceDim(past, 2, 0, known));
  parts.push_back(fresh);
  if (past && keys > total)
    parts.push_back(node.sliceDim(past, 2, total, keys - total));
  return node.concat(parts, 2);
}

/// Where the samples' lengths are known, being causal says all. Else key j is seen by query s up to filled + s, and of a
/// window from so many, its own among them.
Value GroupQuery::makeMask(int64_t keys) {
  if (!filled && !hasSink)
    return {};
  Value last = f.iota({1, 1, length, 1}, 2, f.i64(), filled ? int64_t(0) : known);
  if (filled)
    last = f.add(last, node.reshape(filled, {batch, 1, 1, 1}));
  Value key = f.iota({1, 1, 1, keys}, 3, f.i64()), seen = f.le(key, last);
  return window < 0 ? seen : f.both(seen, f.gt(key, f.sub(last, double(window))));
}

/// One key more, of zeros, whose score is the sink of its head (0 without sinks): it takes its part of the softmax, and gives nothing.
Value GroupQuery::addSink(Value mask, int64_t keys) {
  Type type = NodeContext::elementType(q);
  if (NodeContext::elementType(mask).isInteger(1))
    mask = f.select(mask, node.scalar(type, 0), node.scalar(type, -std::numeric_limits<double>::infinity()));
  Value sink = node.hasOperand(11) ? node.reshape(node.operand(11), {1, heads, 1, 1}) : node.scalar(type, 0);
  Ints shape{NodeContext::shape(mask)[0], heads, length, keys};
  mask = node.broadcast(mask, shape);
  shape.back() = 1;
  return node.concat({mask, node.broadcast(sink, shape)}, 3);
}

/// The cache is set as it is, with its room at the end; attention gets what is filled of it.
void GroupQuery::import() {
  if (!node.require({5, 6}) || !readAttributes() || !readHeads() || !readLengths())
    return;
  q = rotate(q), k = rotate(k);
  Type type = NodeContext::elementType(q);
  k = append(cache.open(node.operand(3)), cache.narrow(k, /*isKey=*/true));
  v = append(cache.open(node.operand(4)), cache.narrow(v, /*isKey=*/false));
  if (node.failed())
    return;
  node.result(1, cache.close(k));
  node.result(2, cache.close(v));
  // A buffer is longer than what is in it.
  Value keys = cache.widen(node.sliceDim(k, 2, 0, total), /*isKey=*/true, type);
  Value values = cache.widen(node.sliceDim(v, 2, 0, total), /*isKey=*/false, type), mask = makeMask(total);
  bool isCausal = !filled && !hasSink;
  if (Value bias = node.operand(10)) {
    if (mask)
      mask = f.select(mask, node.scalarLike(bias, 0), node.scalarLike(bias, -std::numeric_limits<double>::infinity()));
    mask = addMasks(node, mask, bias);
  }
  if (hasSink && !node.failed()) {
    mask = addSink(mask, total);
    keys = f.pad(keys, {0, 0, 0, 0}, {0, 0, 1, 0}), values = f.pad(values, {0, 0, 0, 0}, {0, 0, 1, 0});
  }
  if (scale == 0)
    scale = 1 / std::sqrt(double(NodeContext::shape(q)[3]));
  IntegerAttr left = isCausal && window > 0 ? node.getBuilder().getI64IntegerAttr(window - 1) : IntegerAttr();
  Value y = node.create<nn::AttentionOp>(q, keys, values, mask, APFloat(scale), isCausal, isCausal ? known : 0,
                                         APFloat(softcap), left, /*right=*/IntegerAttr());
  node.result(0, joinHeads(node, y));
}

static void importGroupQuery(NodeContext &node) { GroupQuery(node).import(); }

//===----------------------------------------------------------------------===//
// RotaryEmbedding
//===----------------------------------------------------------------------===//

/// Positions are [batch, length], or one, where the first row of all samples is. Tables are [rows, rotated / 2].
static void importRotary(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.operand(0), positions = node.operand(1), cos = node.operand(2), sin = node.operand(3);
  int64_t heads = node.intAttr("num_heads", 0), rotated = node.intAttr("rotary_embedding_dim", 0),
          rank = NodeContext::rank(x);
  bool isInterleaved = node.boolAttr("interleaved", false);
  node.check(node.floatAttr("scale", 1.0) == 1, "attribute 'scale' is not supported");
  node.check(!node.boolAttr("is_packed_batching", false), "attribute 'is_packed_batching' is not supported");
  if (node.failed() || !node.check(rank == 3 || rank == 4, "the input must have 3 or 4 dims") ||
      !node.check(NodeContext::rank(cos) == 2 && NodeContext::rank(sin) == 2, "the tables must have 2 dims"))
    return;
  int64_t half = NodeContext::shape(cos)[1];
  if (heads == 0 && rank == 3 && half > 0)
    heads = NodeContext::shape(x)[2] / (2 * half);
  Value apart = rank == 3 ? splitHeads(node, x, heads) : x;
  if (node.failed())
    return;
  int64_t length = NodeContext::shape(apart)[2];
  if (ShapedType::getNumElements(NodeContext::shape(positions)) == 1) {
    positions = f.add(node.reshape(node.cast(positions, f.i64()), {1, 1}), f.iota({1, length}, 1, f.i64()));
  } else if (!node.check(NodeContext::rank(positions) == 2, "the positions must be one, or [batch, length]")) {
    return;
  }
  Value y = node.create<nn::RotaryEmbeddingOp>(apart, f.gather(cos, positions, 0), f.gather(sin, positions, 0),
                                               rotated ? rotated : 2 * half, isInterleaved);
  node.result(0, rank == 3 ? joinHeads(node, y) : y);
}

void cleave::onnx::registerMicrosoftAttention(Registry &registry) {
  registry.add("com.microsoft.Attention", {2, 6, 2}, importMicrosoftAttention);
  registry.add("com.microsoft.GroupQueryAttention", {1, 14, 3}, importGroupQuery);
  registry.add("com.microsoft.MultiHeadAttention", {1, 8, 3}, importMultiHead);
  registry.add("com.microsoft.RotaryEmbedding", {4, 4}, importRotary);
}
