//===- LinearAttention.cpp - recurrent mixing, and attention with code ----===//
//
// Ops of opset 26 and 27 that keep a state from call to call, or take a piece of graph:
//
//   CausalConvWithState   past [b, c, k-1] | x [b, c, t] -> depthwise convolution, last k-1 kept
//   LinearAttention       S_t = decay S_{t-1} + beta k_t (v_t - S_{t-1}^T k_t)^T;  o_t = S_t^T q_t
//   FlexAttention         softmax(scores(q k^T)) v, with a graph for the scores and one for the probabilities
//
// The recurrence is unrolled: a step is a few einsums, in which batch and heads stay dims of their own, so that they
// shard. Long sequences would make long programs, and are refused.
//
//===----------------------------------------------------------------------===//
#include "Graph/GraphImporter.h"
#include "NodeContext.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// How many steps of a recurrence are spelled out.
constexpr int64_t kMaxSteps = 256;

static void importCausalConv(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.operand(0), weight = node.operand(1), past = node.operand(3);
  StringRef activation = node.stringAttr("activation", StringRef("none"));
  Shape shape = NodeContext::shape(x), kernel = NodeContext::shape(weight);
  if (!node.check(shape.size() == 3 && kernel.size() == 3 && kernel[0] == shape[1] && kernel[1] == 1 && kernel[2] >= 1,
                  "the input must be [batch, channels, length] and the weight [channels, 1, size]") ||
      !node.check(llvm::is_contained({"none", "silu", "swish"}, activation),
                  "attribute 'activation' is '" + activation + "', which is not known"))
    return;
  int64_t kept = kernel[2] - 1, channels = shape[1], length = shape[2];
  if (!node.check(!past || NodeContext::shape(past) == Shape({shape[0], channels, kept}),
                  "the past state must be [batch, channels, size - 1]"))
    return;
  Value all = past ? node.concat({past, x}, 2) : f.pad(x, {0, 0, kept}, {0, 0, 0});
  Value y = node.create<nn::ConvOp>(all, weight, node.operand(2), Ints{1}, Ints{0}, Ints{0}, Ints{1}, channels);
  node.result(0, activation == "none" ? y : node.create<nn::SiluOp>(y));
  node.result(1, node.sliceDim(all, 2, length, kept));
}

//===----------------------------------------------------------------------===//
// LinearAttention
//===----------------------------------------------------------------------===//

namespace {
/// Everything in f32 (f64 of f64) and in 4 dims: [batch, steps, heads, size].
class Recurrence {
public:
  explicit Recurrence(NodeContext &node) : node(node), f(node) {}
  void import();

private:
  bool readOperands();
  Value split(Value value, int64_t heads);
  Value at(Value value, int64_t step) {
    Ints shape(NodeContext::shape(value));
    return node.reshape(node.sliceDim(value, 1, step, 1), {shape[0], shape[2], shape[3]});
  }
  Value step(int64_t step);

  NodeContext &node;
  nn::Composer &f;
  Type type;
  Value query, key, value, decay, beta, state;
  int64_t heads = 0, kvHeads = 0;
  double scale = 0;
};
} // namespace

Value Recurrence::split(Value packed, int64_t parts) {
  Shape shape = NodeContext::shape(packed);
  if (!node.check(shape.size() == 3 && parts > 0 && shape[2] % parts == 0,
                  "an operand is not [batch, length, " + Twine(parts) + " heads * size]"))
    return {};
  return node.reshape(node.cast(packed, type), {shape[0], shape[1], parts, shape[2] / parts});
}

bool Recurrence::readOperands() {
  heads = node.intAttr("q_num_heads"), kvHeads = node.intAttr("kv_num_heads");
  scale = node.floatAttr("scale", 0);
  StringRef rule = node.stringAttr("update_rule", StringRef("gated_delta"));
  node.ignoreAttr("chunk_size"); // How to compute it on other devices.
  bool isGated = rule.starts_with("gated"), isDelta = rule.ends_with("delta");
  if (!node.check(llvm::is_contained({"linear", "gated", "delta", "gated_delta"}, rule),
                  "attribute 'update_rule' is '" + rule + "', which is not known") ||
      !node.check(kvHeads > 0 && heads > 0 && heads % kvHeads == 0,
                  Twine(kvHeads) + " heads of keys do not divide " + Twine(heads) + " of queries") ||
      !node.check(!isGated || node.hasOperand(4), "'update_rule' " + rule + " needs 'decay'") ||
      !node.check(!isDelta || node.hasOperand(5), "'update_rule' " + rule + " needs 'beta'"))
    return false;
  bool isDouble = isa<Float64Type>(NodeContext::elementType(node.operand(0)));
  type = isDouble ? NodeContext::elementType(node.operand(0)) : f.f32();
  query = split(node.operand(0), heads), key = split(node.operand(1), kvHeads), value = split(node.operand(2), kvHeads);
  if (isGated)
    decay = f.exp(split(node.operand(4), kvHeads));
  // One rate for all heads, or one each.
  if (isDelta)
    beta = split(node.operand(5), NodeContext::rank(node.operand(5)) == 3 ? NodeContext::shape(node.operand(5))[2] : 1);
  if (node.failed())
    return false;
  Shape q = NodeContext::shape(query), k = NodeContext::shape(key), v = NodeContext::shape(value);
  auto fits = [&](Value given) {
    Shape shape = NodeContext::shape(given);
    return !given || (shape[0] == k[0] && shape[1] == k[1] && (shape[2] == kvHeads || shape[2] == 1) &&
                      (shape[3] == k[3] || shape[3] == 1));
  };
  if (!node.check(q[3] == k[3] && q.take_front(2) == k.take_front(2) && k.take_front(3) == v.take_front(3) &&
                      fits(decay) && fits(beta),
                  "query, key, value, decay and beta do not agree in their dims") ||
      !node.check(q[1] <= kMaxSteps, "a recurrence of " + Twine(q[1]) + " steps would be unrolled, more than the " +
                                         Twine(kMaxSteps) + " that are"))
    return false;
  if (scale == 0)
    scale = 1 / std::sqrt(double(k[3]));
  Ints shape{k[0], kvHeads, k[3], v[3]};
  Value past = node.operand(3);
  if (!node.check(!past || NodeContext::shape(past) == Shape(shape),
                  "the past state must be [batch, heads, key size, value size]"))
    return false;
  state = past ? node.cast(past, type) : node.broadcast(node.scalar(type, 0), shape);
  return !node.failed();
}

/// Updates the state [b, g, k, v]; the output of one step, [b, heads * v].
Value Recurrence::step(int64_t at_) {
  Value k = at(key, at_), v = at(value, at_), q = at(query, at_);
  if (node.failed())
    return {};
  if (decay)
    state = f.mul(state, node.unsqueeze(at(decay, at_), {3}));
  Value written = v;
  if (beta)
    written = f.mul(f.sub(v, f.einsum({state, k}, "bgkv,bgk->bgv")), at(beta, at_));
  state = f.add(state, f.einsum({k, written}, "bgk,bgv->bgkv"));
  Ints shape(NodeContext::shape(q));
  Value grouped = node.reshape(q, {shape[0], kvHeads, heads / kvHeads, shape[2]});
  Value y = f.mul(f.einsum({grouped, state}, "bghk,bgkv->bghv"), scale);
  return y ? node.reshape(y, {shape[0], 1, heads * NodeContext::shape(y)[3]}) : y;
}

void Recurrence::import() {
  if (!readOperands())
    return;
  SmallVector<Value> outputs;
  for (int64_t i = 0, n = NodeContext::shape(query)[1]; i < n && !node.failed(); ++i)
    outputs.push_back(step(i));
  if (node.failed() || !node.check(!outputs.empty(), "the sequence is empty"))
    return;
  node.result(0, node.cast(node.concat(outputs, 1), NodeContext::elementType(node.operand(0))));
  Type stateType = NodeContext::elementType(node.hasOperand(3) ? node.operand(3) : node.operand(0));
  node.result(1, node.cast(state, stateType));
}

static void importLinearAttention(NodeContext &node) { Recurrence(node).import(); }

//===----------------------------------------------------------------------===//
// FlexAttention
//===----------------------------------------------------------------------===//

/// The graph of an attribute on one tensor, whose shape it must keep; the tensor itself where there is no such graph.
static Value modify(NodeContext &node, StringRef name, Value value) {
  if (node.failed() || !node.hasAttr(name))
    return value;
  const GraphProto *graph = node.graphAttr(name);
  auto results = graph ? node.getImporter().importBody(node, *graph, Bound{value, nullptr}, name, /*isRepeated=*/false)
                       : std::nullopt;
  if (!results)
    return {};
  Value result = results->size() == 1 ? results->front().value : Value();
  node.check(result && result.getType() == value.getType(),
             "the graph of '" + name + "' changes the shape or the type");
  return result;
}

/// Without graphs it is plain attention.
static void importFlexAttention(NodeContext &node) {
  nn::Composer &f = node;
  Value q = node.operand(0), k = node.operand(1), v = node.operand(2);
  if (!node.check(NodeContext::rank(q) == 4 && NodeContext::rank(k) == 4 && NodeContext::rank(v) == 4,
                  "Q, K and V must have 4 dims"))
    return;
  Ints shape(NodeContext::shape(q));
  Shape keys = NodeContext::shape(k), values = NodeContext::shape(v);
  Type type = NodeContext::elementType(q), wide = isa<Float64Type>(type) ? type : f.f32();
  if (node.hasAttr("softmax_precision"))
    wide = node.typeAttr("softmax_precision");
  double scale = node.floatAttr("scale", 1 / std::sqrt(double(shape[3])));
  if (node.failed() || !node.check(keys[1] > 0 && shape[1] % keys[1] == 0, "the heads of K do not divide those of Q"))
    return;
  if (!node.hasAttr("score_mod") && !node.hasAttr("prob_mod"))
    return node.result(0, node.create<nn::AttentionOp>(q, k, v, Value(), APFloat(scale), false, 0, APFloat(0.0),
                                                       IntegerAttr(), IntegerAttr()));
  int64_t groups = shape[1] / keys[1];
  Value grouped = node.reshape(q, {shape[0], keys[1], groups, shape[2], shape[3]});
  Value scores = f.mul(f.einsum({grouped, k}, "bghsd,bgtd->bghst"), scale);
  scores = node.cast(node.reshape(scores, {shape[0], shape[1], shape[2], keys[2]}), wide);
  Value shares = node.create<nn::SoftmaxOp>(modify(node, "score_mod", scores), 3);
  shares = node.cast(modify(node, "prob_mod", shares), type);
  shares = node.reshape(shares, {shape[0], keys[1], groups, shape[2], keys[2]});
  node.result(0, node.reshape(f.einsum({shares, v}, "bghst,bgtd->bghsd"), {shape[0], shape[1], shape[2], values[3]}));
}

void cleave::onnx::registerLinearAttention(Registry &registry) {
  registry.add("CausalConvWithState", 27, {2, 4, 2}, importCausalConv);
  registry.add("LinearAttention", 27, {3, 6, 2}, importLinearAttention);
  registry.add("ai.onnx.preview.FlexAttention", {3, 3}, importFlexAttention);
}
