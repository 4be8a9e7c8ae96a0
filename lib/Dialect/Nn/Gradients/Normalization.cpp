//===- Normalization.cpp - gradients of norms -----------------------------===//
//
// As their formulas, with x^ the normalized input:
//
//   y = x^ * scale + bias,  dx = (dx^ - mean(dx^) - x^ * mean(dx^ * x^)) / deviation       (Ba et al. 2016; without means: RMS norm)
//
// in f32 at least, as they are computed.
//
//===----------------------------------------------------------------------===//
#include "Spread.h"

#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"

using namespace mlir;
using namespace cleave::nn;

namespace {
/// A norm over `dims` of x, centered (layer and group norm) or not (RMS norm).
struct Normalized {
  Normalized(Composer &f, Value x, Shape dims, double epsilon, bool isCentered)
      : f(f), dims(dims), isCentered(isCentered) {
    if (isCentered)
      x = f.sub(x, f.mean(x, dims, /*keepDims=*/true));
    deviation = f.sqrt(f.add(f.mean(f.square(x), dims, /*keepDims=*/true), epsilon));
    normal = f.div(x, deviation);
  }

  /// The gradient of x by that of the normalized input.
  Value differentiate(Value inner) {
    Value along = f.mul(normal, f.mean(f.mul(inner, normal), dims, /*keepDims=*/true));
    if (isCentered)
      along = f.add(along, f.mean(inner, dims, /*keepDims=*/true));
    return f.div(f.sub(inner, along), deviation);
  }

  Composer &f;
  Shape dims;
  bool isCentered;
  Value deviation, normal;
};
} // namespace

/// Of a norm with scale and bias along the normalized dims.
static LogicalResult differentiateRows(GradientBuilder &g, Value input, Value scale, Value bias, Shape dims,
                                       double epsilon, bool isCentered) {
  Composer &f = g.f;
  Normalized norm(f, f.widen(input), dims, epsilon, isCentered);
  Value out = f.widen(g.of());
  auto byInput = [&] { return norm.differentiate(scale ? f.mul(out, f.widen(scale)) : out); };
  return success(succeeded(g.addBy(input, byInput)) &&
                 succeeded(g.addBy(scale, [&] { return f.mul(out, norm.normal); })) && succeeded(g.add(bias, out)));
}

/// Over the dims from `dim` on, with means.
LogicalResult LayerNormOp::differentiate(GradientBuilder &g) {
  return differentiateRows(g, getInput(), getScale(), getBias(), getDimsFrom(getInput(), getDim()),
                           getEpsilon().convertToDouble(), /*isCentered=*/true);
}

/// The same without means, and without a bias.
LogicalResult RmsNormOp::differentiate(GradientBuilder &g) {
  return differentiateRows(g, getInput(), getScale(), {}, getDimsFrom(getInput(), getDim()),
                           getEpsilon().convertToDouble(), /*isCentered=*/false);
}

//===----------------------------------------------------------------------===//
// Per channel
//===----------------------------------------------------------------------===//

static SmallVector<int64_t> getDimsBesideChannels(Value input) {
  SmallVector<int64_t> others = {0};
  llvm::append_range(others, llvm::seq<int64_t>(2, Composer::rank(input)));
  return others;
}

/// A vector of channels to multiply with `input`, in f32 at least.
static Value spreadChannels(Composer &f, Value vector, Value input) {
  SmallVector<int64_t> channel(Composer::rank(input) - 1, 1);
  channel[0] = Composer::shape(input)[1];
  return f.reshape(f.widen(vector), channel);
}

/// With statistics that are given. Their gradients are those of bias and scale by a factor a channel, so that statistics of a batch
/// cost no further vectors: with k = scale / deviation, d mean = -k d bias, and d variance = -k / deviation d scale / 2.
LogicalResult BatchNormOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  Value input = getInput(), out = f.widen(g.of());
  SmallVector<int64_t> others = getDimsBesideChannels(input);
  Value deviation = f.sqrt(f.add(f.widen(getVariance()), getEpsilon().convertToDouble()));
  Value factor = f.div(f.widen(getScale()), deviation), ofScale, ofBias;
  if (g.wants(getBias()) || g.wants(getMean()))
    ofBias = f.sum(out, others);
  if (g.wants(getScale()) || g.wants(getVariance())) {
    Value centered = f.sub(f.widen(input), spreadChannels(f, getMean(), input));
    ofScale = f.sum(f.mul(out, f.div(centered, spreadChannels(f, deviation, input))), others);
  }
  auto byVariance = [&] { return f.mul(f.mul(f.div(factor, deviation), ofScale), -0.5); };
  return success(succeeded(g.addBy(input, [&] { return f.mul(out, spreadChannels(f, factor, input)); })) &&
                 succeeded(g.add(getScale(), ofScale)) && succeeded(g.add(getBias(), ofBias)) &&
                 succeeded(g.addBy(getMean(), [&] { return f.neg(f.mul(factor, ofBias)); })) &&
                 succeeded(g.addBy(getVariance(), byVariance)));
}

/// Channels of a group are a dim of their own: [n, groups, channels / groups, spatial].
LogicalResult GroupNormOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  Value input = getInput();
  Shape shape = Composer::shape(input);
  int64_t groups = getGroups();
  SmallVector<int64_t> apart(shape), channels(shape.size(), 1);
  apart[1] = groups;
  apart.insert(apart.begin() + 2, shape[1] / groups);
  channels[0] = groups;
  channels[1] = shape[1] / groups;
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(2, apart.size()));
  Normalized norm(f, f.reshape(f.widen(input), apart), dims, getEpsilon().convertToDouble(), /*isCentered=*/true);
  Value out = f.reshape(f.widen(g.of()), apart);
  SmallVector<int64_t> others = getDimsBesideChannels(input);
  auto perChannel = [&](Value value) { return f.sum(f.reshape(value, shape), others); };
  auto byInput = [&] {
    Value inner = f.mul(out, f.reshape(f.widen(getScale()), channels));
    return f.reshape(norm.differentiate(inner), shape);
  };
  return success(succeeded(g.addBy(input, byInput)) &&
                 succeeded(g.addBy(getScale(), [&] { return perChannel(f.mul(out, norm.normal)); })) &&
                 succeeded(g.addBy(getBias(), [&] { return perChannel(out); })));
}

//===----------------------------------------------------------------------===//
// Local response normalization
//===----------------------------------------------------------------------===//

/// Sums over `size` channels, from `low` before on.
static Value sumChannels(Composer &f, Value value, int64_t size, int64_t low) {
  if (!value)
    return {};
  int64_t channels = Composer::shape(value)[1];
  Value padded = padDim(f, value, 1, low, size - 1 - low), sum;
  for (int64_t i = 0; i < size; ++i) {
    Value part = f.sliceDim(padded, 1, i, channels);
    sum = sum ? f.add(sum, part) : part;
  }
  return sum;
}

/// y = x S^-beta with S = k + alpha / size * (sum of squares of the channels around):
/// dx = d S^-beta - 2 alpha beta / size * x * (sum of d x S^(-beta - 1) over the mirrored window).
LogicalResult LrnOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  int64_t size = getSize(), low = (size - 1) / 2;
  double alpha = getAlpha().convertToDouble() / double(size), beta = getBeta().convertToDouble();
  Value x = f.widen(getInput()), out = f.widen(g.of());
  Value sum = f.add(f.mul(sumChannels(f, f.square(x), size, low), alpha), getK().convertToDouble());
  Value power = f.pow(sum, f.scalarLike(sum, -beta));
  Value direct = f.mul(out, power), shared = sumChannels(f, f.div(f.mul(direct, x), sum), size, size - 1 - low);
  return g.add(0, f.sub(direct, f.mul(f.mul(x, shared), 2 * alpha * beta)));
}
