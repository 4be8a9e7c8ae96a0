//===- Attention.cpp - gradients of attention and rotary embedding --------===//
//
// The probabilities are computed again from queries and keys, in f32 at least. With s the scores and p their softmax
// (Vaswani et al. 2017):
//
//   y = p v        dv = p^T dy     dp = dy v^T     ds = p (dp - sum(dp p))     dq = ds k scale     dk = ds^T q scale
//
// Heads that share keys have them repeated, as exporters write them. So gradients of attention look alike whoever wrote the attention, and
// become one kernel where they can (`exec-recognize-attention`), which no shardings need to know of.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/Gradients/GradientBuilder.h"
#include "cleave/Dialect/Nn/IR/GradientOf.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <limits>

using namespace mlir;
using namespace cleave::nn;

namespace {
class AttentionRule {
public:
  AttentionRule(GradientBuilder &g, AttentionOp op)
      : g(g), f(g.f), op(op), q(Composer::shape(op.getQuery())), k(Composer::shape(op.getKey())) {}

  LogicalResult run();

private:
  /// Of key heads [b, groups, t, d], in f32 at least: as many heads as queries have.
  Value repeat(Value heads);
  /// The other way: sums of the heads that share keys.
  Value join(Value heads, Value like);
  void computeScores();
  /// Gives the op and its softmax their number.
  void number(Value weights);
  /// A product in which the queries are the letter s, which it tells.
  Value multiply(Value x, Value y, StringRef equation);
  void hide(Value isSeen) { scores = f.select(isSeen, scores, f.scalarLike(scores, -INFINITY)); }

  GradientBuilder &g;
  Composer &f;
  AttentionOp op;
  Shape q, k;
  Value queries, keys, values;
  /// Scores with a cap, before it acts; scores; the softmax.
  Value uncapped, scores, softmax;
};
} // namespace

Value AttentionRule::repeat(Value heads) {
  Shape shape = Composer::shape(heads);
  heads = f.widen(heads);
  if (shape[1] == q[1])
    return heads;
  Value apart = f.reshape(heads, {shape[0], shape[1], 1, shape[2], shape[3]});
  return f.reshape(f.broadcast(apart, {shape[0], shape[1], q[1] / shape[1], shape[2], shape[3]}),
                   {shape[0], q[1], shape[2], shape[3]});
}

Value AttentionRule::join(Value heads, Value like) {
  Shape shape = Composer::shape(like);
  if (shape[1] == q[1])
    return heads;
  return f.sum(f.reshape(heads, {shape[0], shape[1], q[1] / shape[1], shape[2], shape[3]}), {2});
}

void AttentionRule::computeScores() {
  queries = f.widen(op.getQuery());
  keys = repeat(op.getKey());
  values = repeat(op.getValue());
  scores = f.mul(multiply(queries, keys, "bhsd,bhtd->bhst"), op.getScale().convertToDouble());
  if (double cap = op.getSoftcap().convertToDouble(); cap > 0) {
    uncapped = f.tanh(f.div(scores, cap));
    scores = f.mul(uncapped, cap);
  }
  if (Value mask = op.getMask()) {
    if (Composer::elementType(mask).isInteger(1))
      hide(mask);
    else
      scores = f.add(scores, f.cast(mask, Composer::elementType(scores)));
  }
  KeyBand band = op.getBand();
  Value places = band.isEmpty() ? Value() : f.sub(f.iota({1, k[2]}, 1, f.i64()), f.iota({q[2], 1}, 0, f.i64()));
  if (band.low)
    hide(f.ge(places, double(*band.low)));
  if (band.high)
    hide(f.le(places, double(*band.high)));
  softmax = f.create<SoftmaxOp>(scores, int64_t(3));
  number(softmax);
  // A query that sees nothing gives zeros.
  if (op.getMask() || !band.isEmpty())
    softmax = f.select(f.create<IsNanOp>(softmax), f.scalarLike(softmax, 0), softmax);
}

void AttentionRule::number(Value weights) {
  auto made = weights ? weights.getDefiningOp<SoftmaxOp>() : SoftmaxOp();
  if (!made)
    return;
  int64_t count = 0;
  op->getParentOfType<func::FuncOp>().walk([&](AttentionOp other) { count += other->hasAttr(kGradientOfAttr); });
  auto number = IntegerAttr::get(IntegerType::get(op.getContext(), 64), count);
  op->setAttr(kGradientOfAttr, number);
  made->setAttr(kGradientOfAttr, number);
}

Value AttentionRule::multiply(Value x, Value y, StringRef equation) {
  Value product = f.einsum({x, y}, equation);
  if (auto made = product.getDefiningOp<EinsumOp>())
    made->setAttr(kQueriesAttr, StringAttr::get(op.getContext(), "s"));
  return product;
}

LogicalResult AttentionRule::run() {
  computeScores();
  Value out = f.widen(g.of()), query = op.getQuery(), key = op.getKey(), value = op.getValue(), mask = op.getMask();
  Value ofSoftmax = multiply(out, values, "bhsv,bhtv->bhst");
  Value sum = f.sum(f.mul(ofSoftmax, softmax), {3}, /*keepDims=*/true);
  Value ofScores = f.mul(softmax, f.sub(ofSoftmax, sum)), inner = ofScores;
  if (uncapped)
    inner = f.mul(inner, f.sub(1, f.square(uncapped)));
  inner = f.mul(inner, op.getScale().convertToDouble());
  auto byKey = [&] { return join(multiply(inner, queries, "bhst,bhsd->bhtd"), key); };
  auto byValue = [&] { return join(multiply(softmax, out, "bhst,bhsv->bhtv"), value); };
  return success(succeeded(g.addBy(value, byValue)) &&
                 succeeded(g.addBy(query, [&] { return multiply(inner, keys, "bhst,bhtd->bhsd"); })) &&
                 succeeded(g.addBy(key, byKey)) && succeeded(g.add(mask, ofScores)));
}

LogicalResult AttentionOp::differentiate(GradientBuilder &g) { return AttentionRule(g, *this).run(); }

/// Back by the same angles.
LogicalResult RotaryEmbeddingOp::differentiate(GradientBuilder &g) {
  if (g.wants(1) || g.wants(2))
    return g.refuse("angles are not trained");
  return g.add(0, g.f.create<RotaryEmbeddingOp>(g.of(), getCos(), g.f.neg(getSin()), getRotated(), getInterleaved()));
}
