//===- Normalization.cpp - lowerings of norms -----------------------------===//
//
// Norms are put together from reductions and elementwise ops, in f32 (f64 for f64) and with one rounding at the end. The
// mean comes first, then the mean of the squares of what differs from it: `E[x^2] - E[x]^2` would cancel.
//
//===----------------------------------------------------------------------===//
#include "Compose.h"
#include "Emitter.h"

#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using Relation = ElementBuilder::Relation;

/// `x`, where it is not centered, over its root mean square along `dims`.
static Value normalize(Composer &c, Value x, ArrayRef<int64_t> dims, double epsilon, bool isCentered) {
  if (isCentered)
    x = c.sub(x, c.mean(x, dims, /*keepDims=*/true));
  Value variance = c.mean(c.square(x), dims, /*keepDims=*/true);
  Value shifted = c.add(variance, epsilon);
  return c.mul(x, c.reciprocal(c.sqrt(shifted)));
}

/// Layer and RMS normalization: the dims from `dim` on.
static Value normalizeRows(OpBuilder &b, Operation *op, Value input, Value scale, Value bias, int64_t dim,
                           double epsilon, bool isCentered) {
  Composer c(b, op);
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(dim, getShape(input).size()));
  Value y = normalize(c, c.toCompute(input), dims, epsilon, isCentered);
  if (scale)
    y = c.mul(y, c.toCompute(scale));
  if (bias)
    y = c.add(y, c.toCompute(bias));
  return c.cast(y, getElementType(op->getResult(0)));
}

/// Scale and bias may be missing.
static Value expandLayerNorm(OpBuilder &b, nn::LayerNormOp op) {
  return normalizeRows(b, op, op.getInput(), op.getScale(), op.getBias(), op.getDim(),
                       op.getEpsilon().convertToDouble(), true);
}
static Value expandRmsNorm(OpBuilder &b, nn::RmsNormOp op) {
  return normalizeRows(b, op, op.getInput(), op.getScale(), {}, op.getDim(), op.getEpsilon().convertToDouble(), false);
}

/// A vector of channels in a shape that broadcasts against [batch, channels, spatial..], in the compute type.
static Value alongChannels(Composer &c, Value vector, size_t rank) {
  SmallVector<int64_t> shape(rank - 1, 1);
  shape[0] = getShape(vector)[0];
  return c.toCompute(c.reshape(vector, shape));
}

/// Statistics are given: elementwise, with one factor a channel.
static Value expandBatchNorm(OpBuilder &b, nn::BatchNormOp op) {
  Composer c(b, op);
  size_t rank = getShape(op.getInput()).size();
  Value x = c.toCompute(op.getInput()), variance = alongChannels(c, op.getVariance(), rank);
  Value deviation = c.sqrt(c.add(variance, op.getEpsilon().convertToDouble()));
  Value factor = c.div(alongChannels(c, op.getScale(), rank), deviation);
  Value centered = c.sub(x, alongChannels(c, op.getMean(), rank));
  Value y = c.add(c.mul(centered, factor), alongChannels(c, op.getBias(), rank));
  return c.cast(y, getElementType(op.getResult()));
}

/// A group is contiguous, so that it can be a row.
static Value expandGroupNorm(OpBuilder &b, nn::GroupNormOp op) {
  Composer c(b, op);
  ArrayRef<int64_t> shape = getShape(op.getInput());
  int64_t groups = op.getGroups(), length = shape[1] / groups * countElements(shape.drop_front(2));
  Value x = c.reshape(c.toCompute(op.getInput()), {shape[0], groups, length});
  Value y = c.reshape(normalize(c, x, {2}, op.getEpsilon().convertToDouble(), true), shape);
  y = c.mul(y, alongChannels(c, op.getScale(), shape.size()));
  y = c.add(y, alongChannels(c, op.getBias(), shape.size()));
  return c.cast(y, getElementType(op.getResult()));
}

/// Of an even number of channels, the odd one comes after.
static Value pullLrn(Emitter &e, nn::LrnOp op, const Point &point) {
  if (point[1].lane)
    return e.perLane(op.getResult(), point);
  int64_t channels = getShape(op.getInput())[1], size = op.getSize();
  PlaceBuilder &p = e.places;
  Value first = p.clamp(p.add(point[1].base, -std::min((size - 1) / 2, channels)), 0, channels);
  Value end = p.clamp(p.add(point[1].base, std::min(size / 2, channels) + 1), 0, channels);
  Type compute = e.withLanes(ElementBuilder::getComputeType(getElementType(op.getInput())));
  Values sum = e.loop(first, end, 1, {e.elements.number(compute, 0)}, [&](Value channel, Values carried) {
    Point at = point;
    at[1] = {channel};
    Value x = e.elements.widen(e.eval(op.getInput(), at));
    return Values{e.elements.fma(x, x, carried[0])};
  });
  Value x = e.elements.widen(e.eval(op.getInput(), point));
  Value base = e.elements.add(e.elements.mul(sum[0], op.getAlpha().convertToDouble() / double(size)),
                              op.getK().convertToDouble());
  Value root = e.elements.power(base, e.elements.like(base, op.getBeta().convertToDouble()), false);
  return e.elements.narrow(e.elements.divide(x, root, false), getElementType(op.getResult()));
}

void cleave::codegen::registerNormalization(LoweringTable &table) {
  table.addExpand<nn::LayerNormOp>(expandLayerNorm);
  table.addExpand<nn::RmsNormOp>(expandRmsNorm);
  table.addExpand<nn::BatchNormOp>(expandBatchNorm);
  table.addExpand<nn::GroupNormOp>(expandGroupNorm);
  table.addPull<nn::LrnOp>(pullLrn);
}
