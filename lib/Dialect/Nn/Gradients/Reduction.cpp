//===- Reduction.cpp - gradients of reductions and softmax ----------------===//
//
// A sum's gradient is repeated, an extreme's goes to the elements that are it, a softmax's loses its mean along the dim:
//
//   y = softmax(x)    dx = y (dy - sum(dy y))        y = log softmax(x)    dx = dy - e^y sum(dy)
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "cleave/Dialect/Nn/Gradients/GradientBuilder.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"

using namespace mlir;
using namespace cleave::nn;

/// Of several largest elements each has an equal share.
static Value differentiateExtreme(Composer &f, Value x, Value most, Value gradient, Shape dims) {
  Value share = f.cast(f.eq(x, most), Composer::elementType(x));
  return f.mul(f.div(gradient, f.sum(share, dims, /*keepDims=*/true)), share);
}

/// The product of all other elements: y / x where nothing is 0, and otherwise the product of those that are not 0, if x is the only one
/// that is.
static Value differentiateProduct(Composer &f, Value x, Value gradient, Shape dims) {
  Value isZero = f.eq(x, 0), factors = f.select(isZero, f.scalarLike(x, 1), x);
  Value rest = f.reduce(ReduceKind::Prod, factors, dims, /*keepDims=*/true);
  Value count = f.sum(f.cast(isZero, Composer::elementType(x)), dims, /*keepDims=*/true);
  Value ofZero = f.select(f.eq(count, 1), rest, 0), ofOther = f.select(f.eq(count, 0), f.div(rest, factors), 0);
  return f.mul(gradient, f.select(isZero, ofZero, ofOther));
}

LogicalResult ReduceOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  Value x = getInput();
  Shape dims = getDims(), shape = Composer::shape(x);
  auto keep = [&](Value value) { return getKeepDims() ? value : f.unsqueeze(value, dims); };
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= shape[dim];
  switch (getKind()) {
  case ReduceKind::Sum:
    return g.add(0, f.broadcast(keep(g.of()), shape));
  case ReduceKind::Mean:
    return g.add(0, f.broadcast(f.div(keep(g.of()), double(count)), shape));
  case ReduceKind::Max:
  case ReduceKind::Min:
    return g.add(0, differentiateExtreme(f, x, keep(g.result()), keep(g.of()), dims));
  case ReduceKind::Prod:
    return g.add(0, differentiateProduct(f, x, keep(g.of()), dims));
  }
  return failure();
}

/// Sums over `dim`. Where one element of each line is picked by its place, as the rule of gather_elements does, that is the sum, and
/// nothing is added up:
///
///   select(iota == select(index < 0, ..), d, 0)  ─▶  d
static Value sumLines(Composer &f, Value value, int64_t dim) {
  if (auto select = value ? value.getDefiningOp<SelectOp>() : SelectOp())
    if (auto same = select.getCondition().getDefiningOp<EqOp>())
      if (auto places = same.getLhs().getDefiningOp<IotaOp>();
          places && int64_t(places.getDim()) == dim && Composer::shape(select.getLhs())[dim] == 1 &&
          Composer::shape(same.getRhs())[dim] == 1 && same.getRhs().getDefiningOp<SelectOp>())
        return select.getLhs();
  return f.sum(value, {dim}, /*keepDims=*/true);
}

/// dx = y (dy - sum(dy y))
LogicalResult SoftmaxOp::differentiate(GradientBuilder &g) {
  Value all = g.f.sum(g.f.mul(g.of(), g.result()), {int64_t(getDim())}, /*keepDims=*/true);
  return g.add(0, g.f.mul(g.result(), g.f.sub(g.of(), all)));
}

/// dx = dy - e^y sum(dy)
LogicalResult LogSoftmaxOp::differentiate(GradientBuilder &g) {
  Value all = sumLines(g.f, g.of(), getDim());
  return g.add(0, g.f.sub(g.of(), g.f.mul(g.f.exp(g.result()), all)));
}

/// Element i is in all sums from i on: the running sum from the other end.
LogicalResult CumsumOp::differentiate(GradientBuilder &g) {
  return g.add(0, g.f.create<CumsumOp>(g.of(), int64_t(getDim()), getExclusive(), !getReverse()));
}

/// Back to the places where they were found.
LogicalResult TopKOp::differentiate(GradientBuilder &g) {
  if (!g.of())
    return success();
  return g.add(0, g.f.create<ScatterElementsOp>(ScatterKind::Add, g.zerosLike(g.operand(0)), getIndices(), g.of(),
                                                int64_t(getDim())));
}
