//===- Attention.cpp - gradients of attention and rotary embedding --------===//
//
// The probabilities are computed again from queries and keys, in f32 at least. With s the scores and p their softmax
// (Vaswani et al. 2017):
//
//   y = p v        dv = p^T dy     dp = dy v^T     ds = p (dp - sum(dp p))     dq = ds k scale     dk = ds^T q scale
//
// Heads that share keys are a dim of their own: queries [b, keyHeads, heads / keyHeads, s, d].
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/Gradients/GradientBuilder.h"

using namespace mlir;
using namespace cleave::nn;

namespace {
/// Below every score that counts, and above what overflows.
constexpr double kHidden = -1e30;

class AttentionRule {
public:
  AttentionRule(GradientBuilder &g, AttentionOp op)
      : g(g), f(g.f), op(op), q(Composer::shape(op.getQuery())), k(Composer::shape(op.getKey())), groups(k[1]),
        shared(q[1] / k[1]) {}

  LogicalResult run();

private:
  /// Of heads [b, heads, s, d]: [b, groups, shared, s, d].
  Value split(Value heads) {
    Shape shape = Composer::shape(heads);
    return f.reshape(f.widen(heads), {shape[0], groups, shared, shape[2], shape[3]});
  }
  /// Dims of a mask of any rank as [b, groups, shared, s, t], 1 where it repeats.
  Value splitMask(Value mask);
  void computeScores();

  GradientBuilder &g;
  Composer &f;
  AttentionOp op;
  Shape q, k;
  int64_t groups, shared;
  Value queries, keys, values;
  /// Scores with a cap, before it acts; scores; the softmax.
  Value uncapped, scores, softmax;
};
} // namespace

Value AttentionRule::splitMask(Value mask) {
  SmallVector<int64_t> shape(Composer::shape(mask));
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  bool isPerHead = shape[1] != 1;
  return f.reshape(mask, {shape[0], isPerHead ? groups : 1, isPerHead ? shared : 1, shape[2], shape[3]});
}

void AttentionRule::computeScores() {
  queries = split(op.getQuery());
  keys = f.widen(op.getKey());
  values = f.widen(op.getValue());
  scores = f.mul(f.einsum({queries, keys}, "bghsd,bgtd->bghst"), op.getScale().convertToDouble());
  if (double cap = op.getSoftcap().convertToDouble(); cap > 0) {
    uncapped = f.tanh(f.div(scores, cap));
    scores = f.mul(uncapped, cap);
  }
  Value hidden = f.scalarLike(scores, kHidden);
  if (Value mask = op.getMask()) {
    Value apart = splitMask(mask);
    bool isBool = Composer::elementType(mask).isInteger(1);
    scores = isBool ? f.select(apart, scores, hidden)
                    : f.max(f.add(scores, f.cast(apart, Composer::elementType(scores))), hidden);
  }
  KeyBand band = op.getBand();
  Value places = band.isEmpty() ? Value() : f.sub(f.iota({1, k[2]}, 1, f.i64()), f.iota({q[2], 1}, 0, f.i64()));
  if (band.low)
    scores = f.select(f.ge(places, double(*band.low)), scores, hidden);
  if (band.high)
    scores = f.select(f.le(places, double(*band.high)), scores, hidden);
  // A query that sees nothing gives zeros.
  // The softmax by hand: terms that are hidden are 0, and so is the sum where all are.
  Value most = f.reduce(ReduceKind::Max, scores, {4}, /*keepDims=*/true);
  Value terms = f.select(f.gt(scores, hidden), f.exp(f.sub(scores, most)), 0);
  softmax = f.div(terms, f.max(f.sum(terms, {4}, /*keepDims=*/true), 1e-30));
}

LogicalResult AttentionRule::run() {
  computeScores();
  Value out = split(g.of()), query = op.getQuery(), key = op.getKey(), value = op.getValue(), mask = op.getMask();
  Value ofSoftmax = f.einsum({out, values}, "bghsv,bgtv->bghst");
  Value sum = f.sum(f.mul(ofSoftmax, softmax), {4}, /*keepDims=*/true);
  Value ofScores = f.mul(softmax, f.sub(ofSoftmax, sum)), inner = ofScores;
  if (uncapped)
    inner = f.mul(inner, f.sub(1, f.square(uncapped)));
  inner = f.mul(inner, op.getScale().convertToDouble());
  auto byQuery = [&] { return f.reshape(f.einsum({inner, keys}, "bghst,bgtd->bghsd"), q); };
  auto byMask = [&] {
    Value apart = g.sumTo(ofScores, Composer::shape(splitMask(mask)));
    return f.reshape(apart, Composer::shape(mask));
  };
  return success(succeeded(g.addBy(value, [&] { return f.einsum({softmax, out}, "bghst,bghsv->bgtv"); })) &&
                 succeeded(g.addBy(query, byQuery)) &&
                 succeeded(g.addBy(key, [&] { return f.einsum({inner, queries}, "bghst,bghsd->bgtd"); })) &&
                 succeeded(g.addBy(mask, byMask)));
}

LogicalResult AttentionOp::differentiate(GradientBuilder &g) { return AttentionRule(g, *this).run(); }

/// Back by the same angles.
LogicalResult RotaryEmbeddingOp::differentiate(GradientBuilder &g) {
  if (g.wants(1) || g.wants(2))
    return g.refuse("angles are not trained");
  return g.add(0, g.f.create<RotaryEmbeddingOp>(g.of(), getCos(), g.f.neg(getSin()), getRotated(), getInterleaved()));
}
