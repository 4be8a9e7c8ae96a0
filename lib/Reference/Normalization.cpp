//===- Normalization.cpp - norms ------------------------------------------===//
//
// Moments are summed as doubles: first the mean, then the squares of what differs from it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"
#include "Kernels.h"
#include "Loops.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

namespace {
/// Mean, and one over the standard deviation.
struct Moments {
  double mean, scale;
};
} // namespace

/// In two passes, the mean first: `E[x^2] - E[x]^2` cancels. RMS norms are not centered: their mean is 0.
template <typename C> static Moments getMoments(const C *x, int64_t count, double epsilon, bool isCentered) {
  double sum = 0, squares = 0;
  if (isCentered)
    for (int64_t i = 0; i < count; ++i)
      sum += x[i];
  double mean = sum / count;
  for (int64_t i = 0; i < count; ++i)
    squares += (x[i] - mean) * (x[i] - mean);
  return {mean, 1 / std::sqrt(squares / count + epsilon)};
}

/// `tensor` repeated to `shape`, or `otherwise` everywhere where there is no tensor.
template <typename C>
static std::vector<C> getFactors(const Tensor *tensor, ArrayRef<int64_t> shape, double otherwise) {
  std::vector<C> factors(product(shape), C(otherwise));
  if (tensor)
    loadElements<C>(broadcastTo(*tensor, shape), 0, factors.size(), factors.data());
  return factors;
}

/// Layer and RMS normalization: every row of `x` (the dims from `dim` on).
static Tensor normalizeRows(Operation *op, const Tensor &input, const Tensor *scale, const Tensor *bias, int64_t dim,
                            double epsilon, bool isCentered) {
  return dispatchFloat(input.getElementType(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    ArrayRef<int64_t> rowShape = input.getShape().drop_front(dim);
    int64_t length = product(rowShape);
    std::vector<C> factors = getFactors<C>(scale, rowShape, 1), offsets = getFactors<C>(bias, rowShape, 0);
    Elements<C> x(input);
    ResultBuffer<C> result(getResultType(op));
    for (int64_t start = 0; start < x.size(); start += length) {
      const C *row = x.data() + start;
      C *to = result.data() + start;
      Moments moments = getMoments(row, length, epsilon, isCentered);
      for (int64_t i = 0; i < length; ++i)
        to[i] = C((row[i] - moments.mean) * moments.scale) * factors[i] + offsets[i];
    }
    return result.finish();
  });
}

/// Scale and bias may each be absent, and operands then move up.
static Tensor layerNorm(nn::LayerNormOp op, Operands in) {
  const Tensor *next = in.begin() + 1;
  const Tensor *scale = op.getScale() ? next++ : nullptr;
  const Tensor *bias = op.getBias() ? next : nullptr;
  return normalizeRows(op, in[0], scale, bias, op.getDim(), op.getEpsilon().convertToDouble(), true);
}

static Tensor rmsNorm(nn::RmsNormOp op, Operands in) {
  return normalizeRows(op, in[0], in.size() > 1 ? &in[1] : nullptr, nullptr, op.getDim(),
                       op.getEpsilon().convertToDouble(), false);
}

/// The statistics are operands, one number per channel.
template <typename C> static Tensor batchNorm(nn::BatchNormOp op, Operands in) {
  Elements<C> x(in[0]), scale(in[1]), bias(in[2]), mean(in[3]), variance(in[4]);
  ResultBuffer<C> result(getResultType(op));
  int64_t channels = in[0].getShape()[1], inner = product(in[0].getShape().drop_front(2));
  C epsilon = C(op.getEpsilon().convertToDouble());
  for (int64_t plane = 0; plane * inner < x.size(); ++plane) {
    int64_t channel = plane % channels;
    C factor = scale[channel] / std::sqrt(variance[channel] + epsilon);
    for (int64_t i = plane * inner; i < (plane + 1) * inner; ++i)
      result[i] = (x[i] - mean[channel]) * factor + bias[channel];
  }
  return result.finish();
}

/// A group is contiguous: its channels are neighbors, and spatial dims come after channels.
template <typename C> static Tensor groupNorm(nn::GroupNormOp op, Operands in) {
  Elements<C> x(in[0]), scale(in[1]), bias(in[2]);
  ResultBuffer<C> result(getResultType(op));
  int64_t channels = in[0].getShape()[1], inner = product(in[0].getShape().drop_front(2));
  int64_t perGroup = channels / op.getGroups(), length = perGroup * inner;
  for (int64_t start = 0; start < x.size(); start += length) {
    Moments moments = getMoments(x.data() + start, length, op.getEpsilon().convertToDouble(), true);
    for (int64_t i = start; i < start + length; ++i) {
      int64_t channel = i / inner % channels;
      result[i] = C((x[i] - moments.mean) * moments.scale) * scale[channel] + bias[channel];
    }
  }
  return result.finish();
}

/// `x / (k + alpha / size * sum of squares over neighboring channels) ^ beta`
template <typename C> static Tensor lrn(nn::LrnOp op, Operands in) {
  Elements<C> x(in[0]);
  ResultBuffer<C> result(getResultType(op));
  ArrayRef<int64_t> shape = in[0].getShape();
  int64_t channels = shape[1], inner = product(shape.drop_front(2)), size = op.getSize();
  double alpha = op.getAlpha().convertToDouble() / size, beta = op.getBeta().convertToDouble();
  double k = op.getK().convertToDouble();
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t channel = i / inner % channels, first = i - channel * inner;
    // Of an even number of channels, the odd one comes after.
    int64_t begin = std::max<int64_t>(channel - (size - 1) / 2, 0);
    int64_t end = channel + std::min(size / 2, channels - 1 - channel) + 1;
    double squares = 0;
    for (int64_t other = begin; other < end; ++other)
      squares += double(x[first + other * inner]) * x[first + other * inner];
    result[i] = C(x[i] / std::pow(k + alpha * squares, beta));
  }
  return result.finish();
}

void cleave::reference::registerNormalization(KernelTable &table) {
  table.add<nn::LayerNormOp>(layerNorm);
  table.add<nn::RmsNormOp>(rmsNorm);
  table.add<nn::BatchNormOp>([](nn::BatchNormOp op, Operands in) {
    return dispatchFloat(in[0].getElementType(),
                         [&](auto tag) { return batchNorm<typename decltype(tag)::type>(op, in); });
  });
  table.add<nn::GroupNormOp>([](nn::GroupNormOp op, Operands in) {
    return dispatchFloat(in[0].getElementType(),
                         [&](auto tag) { return groupNorm<typename decltype(tag)::type>(op, in); });
  });
  table.add<nn::LrnOp>([](nn::LrnOp op, Operands in) {
    return dispatchFloat(in[0].getElementType(), [&](auto tag) { return lrn<typename decltype(tag)::type>(op, in); });
  });
}
