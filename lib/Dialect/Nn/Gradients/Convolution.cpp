//===- Convolution.cpp - gradients of convolutions and pools --------------===//
//
// A convolution is linear in input and weight; what it reads with stride s is handed back in s phases a dim (IR/Phases.h):
//
//   y = conv(x, w)       dx = conv(y, w turned around, channels in and out swapped), phase by phase
//                        dw = conv(x, y), batch and channels swapped, strides and dilations swapped
//
// A transposed convolution is a convolution's dx, so its own gradients are a convolution and that one's dw. Sums over windows are
// handed back as sums over windows of what was spread.
//
//===----------------------------------------------------------------------===//
#include "Spread.h"

#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "cleave/Dialect/Nn/IR/Phases.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace cleave::nn;

static SmallVector<int64_t> getOnes(size_t count) { return SmallVector<int64_t>(count, 1); }
static Shape getSpatial(Value value) { return Composer::shape(value).drop_front(2); }

/// `out` with zeros between its elements and around them, so that windows of stride 1 over it give one result for each element of a dim
/// of extent `extents[i]` before the padding `windows.low`.
static Value spreadWindows(Composer &f, Value out, const Windows &windows, Shape extents) {
  for (size_t i = 0; i < extents.size() && out; ++i) {
    int64_t dim = int64_t(i) + 2, reach = windows.getReach(i);
    out = spreadDim(f, out, dim, windows.strides[i]);
    int64_t low = reach - windows.low[i], size = out ? Composer::shape(out)[dim] : 0;
    out = padDim(f, out, dim, low, extents[i] + reach - size - low);
  }
  return out;
}

static Value convolve(Composer &f, Value input, Value weight, Shape strides, Shape low, Shape high, Shape dilations,
                      int64_t groups) {
  return f.create<ConvOp>(input, weight, Value(), strides, low, high, dilations, groups);
}

/// The sums over `dims` of what a bias was added to.
static LogicalResult addBias(GradientBuilder &g, Value bias) {
  return g.addBy(bias, [&] {
    SmallVector<int64_t> others = {0};
    llvm::append_range(others, llvm::seq<int64_t>(2, Composer::rank(g.of())));
    return g.f.sum(g.of(), others);
  });
}

/// dw of a convolution from `input` [n, in, extents] to `out` [n, channels, windows]: [channels, in, kernel]. Samples become the channels that
/// are summed:
///
///   input  [in, n, extents]         as the batch of a convolution with
///   out    [channels, n, windows]   as its weight, whose windows are `dilations` apart
///
/// With groups a batch [in, groups, extents] meets weights [groups * channels, 1, windows], and each group has a result of its own.
static Value correlate(Composer &f, Value batch, Value filters, const Windows &windows, int64_t groups) {
  // As far as the windows reach: what they leave at the end is cut, what they have beyond it is padding.
  SmallVector<int64_t> zeros(windows.kernel.size(), 0);
  for (size_t i = 0; i < zeros.size() && batch && filters; ++i) {
    int64_t dim = int64_t(i) + 2, extent = Composer::shape(batch)[dim];
    int64_t reached = windows.strides[i] * (getSpatial(filters)[i] - 1) + windows.getReach(i) + 1;
    batch = padDim(f, batch, dim, windows.low[i], reached - extent - windows.low[i]);
  }
  // One result for each element of the kernel: the windows are as far apart as its elements were.
  return convolve(f, batch, filters, windows.dilations, zeros, zeros, windows.strides, groups);
}

/// `value` with its first two dims in the other order.
static Value swapFirst(Composer &f, Value value) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, Composer::rank(value)));
  std::swap(order[0], order[1]);
  return f.transpose(value, order);
}

/// The same of a convolution from [n, groups * in, extents] to [n, groups * channels, windows]: [groups * channels, in, kernel]. Samples stay
/// in front of groups, or apart from them, wherever they meet in a dim: what cuts the batch, ranks or microbatches, then cuts that dim.
static Value differentiateWeight(Composer &f, Value input, Value out, const Windows &windows, int64_t groups) {
  if (groups == 1)
    return swapFirst(f, correlate(f, swapFirst(f, input), swapFirst(f, out), windows, 1));
  SmallVector<int64_t> given(Composer::shape(input)), made(Composer::shape(out));
  int64_t samples = given[0], in = given[1] / groups, channels = made[1] / groups;
  auto count = [](Shape shape) { return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>()); };
  // Each sample by itself, and then the sum of them: as good as always, since weights of many groups are small.
  constexpr int64_t manyGroups = 32;
  if (groups > manyGroups || samples * made[1] * in * count(windows.kernel) <= count(given) + count(made)) {
    SmallVector<int64_t> apart(given), batch(given), filters(made);
    apart[1] = groups;
    apart.insert(apart.begin() + 2, in);
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, apart.size()));
    std::rotate(order.begin(), order.begin() + 2, order.begin() + 3);
    batch[0] = in;
    batch[1] = samples * groups;
    filters[0] = samples * made[1];
    filters[1] = 1;
    Value sums = correlate(f, f.reshape(f.transpose(f.reshape(input, apart), order), batch), f.reshape(out, filters),
                           windows, samples * groups);
    SmallVector<int64_t> bySample = {in, samples, made[1]};
    llvm::append_range(bySample, windows.kernel);
    return swapFirst(f, f.sum(f.reshape(sums, bySample), {1}));
  }
  // Such sums would take more than what they are made of: group by group, then.
  SmallVector<Value> parts;
  for (int64_t group = 0; group < groups; ++group)
    parts.push_back(differentiateWeight(f, f.sliceDim(input, 1, group * in, in),
                                        f.sliceDim(out, 1, group * channels, channels), windows, 1));
  return f.concat(parts, 0);
}

/// By input, weight and bias.
LogicalResult ConvOp::differentiate(GradientBuilder &g) {
  Value input = getInput(), weight = getWeight();
  Windows windows = {getSpatial(weight), getStrides(), getPadsLow(), getDilations()};
  int64_t groups = getGroups();
  auto byInput = [&] { return handBack(g.f, g.of(), weight, Value(), windows, getSpatial(input), groups); };
  auto byWeight = [&] { return differentiateWeight(g.f, input, g.of(), windows, groups); };
  return success(succeeded(g.addBy(input, byInput)) && succeeded(g.addBy(weight, byWeight)) &&
                 succeeded(addBias(g, getBias())));
}

/// The convolution that it is the dx of reads the result, and gives the input.
LogicalResult ConvTransposeOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  Value input = getInput(), weight = getWeight();
  Windows windows = {getSpatial(weight), getStrides(), getPadsLow(), getDilations()};
  int64_t groups = getGroups();
  auto byInput = [&] {
    Value out = g.of();
    SmallVector<int64_t> zeros(windows.kernel.size(), 0);
    for (size_t i = 0; i < zeros.size() && out; ++i) {
      int64_t reached = windows.strides[i] * (getSpatial(input)[i] - 1) + windows.getReach(i) + 1;
      out = padDim(f, out, int64_t(i) + 2, windows.low[i], reached - getSpatial(g.of())[i] - windows.low[i]);
    }
    return convolve(f, out, weight, windows.strides, zeros, zeros, windows.dilations, groups);
  };
  auto byWeight = [&] { return differentiateWeight(f, g.of(), input, windows, groups); };
  return success(succeeded(g.addBy(input, byInput)) && succeeded(g.addBy(weight, byWeight)) &&
                 succeeded(addBias(g, getBias())));
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

/// Hands the number of each window to all of its elements, and adds up.
static Value sumOverWindows(Composer &f, Value out, const Windows &windows, Shape extents) {
  Value spread = spreadWindows(f, out, windows, extents);
  int64_t count = 1;
  for (int64_t size : windows.kernel)
    count *= size;
  SmallVector<int64_t> ones = getOnes(extents.size()), zeros(extents.size(), 0);
  Value mean = f.create<PoolOp>(PoolKind::Average, spread, windows.kernel, ones, zeros, zeros, windows.dilations,
                                /*countPads=*/true, /*ceil=*/false, int64_t(2));
  return f.mul(mean, double(count));
}

/// By how many elements an average divides along spatial dim `i`, for each window.
static Value countAveraged(Composer &f, PoolOp pool, size_t i, int64_t numWindows, int64_t rank, Type type) {
  int64_t extent = getSpatial(pool.getInput())[i], low = pool.getPadsLow()[i];
  SmallVector<double> counts;
  for (int64_t window = 0; window < numWindows; ++window) {
    int64_t count = 0;
    for (int64_t tap = 0; tap < pool.getKernel()[i]; ++tap) {
      int64_t at = window * pool.getStrides()[i] - low + tap * pool.getDilations()[i];
      count += pool.getCountPads() ? at < extent + pool.getPadsHigh()[i] : at >= 0 && at < extent;
    }
    counts.push_back(double(std::max<int64_t>(count, 1)));
  }
  SmallVector<int64_t> shape(rank, 1);
  shape[i + 2] = numWindows;
  if (llvm::all_equal(counts))
    return f.scalar(type, counts.front());
  SmallVector<Attribute> numbers =
      llvm::map_to_vector(counts, [&](double count) -> Attribute { return FloatAttr::get(type, count); });
  return f.literal(DenseElementsAttr::get(RankedTensorType::get(shape, type), numbers));
}

/// Tap by tap: each is a slice of the padded input with strides, and its elements that are their window's maximum, and the first ones,
/// take its gradient. What is handed back is added up phase by phase, each as small as the result.
static Value differentiateMax(GradientBuilder &g, PoolOp pool, const Windows &windows) {
  Composer &f = g.f;
  Value input = pool.getInput(), y = g.result(), left = g.of();
  Shape extents = getSpatial(input), shape = Composer::shape(y);
  SmallVector<int64_t> low(2, 0), high(2, 0), steps(2, 1), tap(windows.kernel.size(), 0);
  for (size_t i = 0; i < extents.size(); ++i) {
    int64_t reached = windows.strides[i] * (shape[i + 2] - 1) + windows.getReach(i) + 1;
    low.push_back(windows.low[i]);
    high.push_back(std::max<int64_t>(reached - extents[i] - windows.low[i], 0));
    steps.push_back(windows.strides[i]);
  }
  auto least = FloatAttr::get(Composer::elementType(input),
                              APFloat::getLargest(cast<FloatType>(Composer::elementType(input)).getFloatSemantics(),
                                                  /*Negative=*/true))
                   .getValueAsDouble();
  Value padded = f.pad(input, low, high, least);
  SmallVector<Value> sums(
      std::accumulate(windows.strides.begin(), windows.strides.end(), size_t(1), std::multiplies<>()));
  for (bool isLast = false; !isLast && left;) {
    SmallVector<int64_t> starts(2, 0);
    for (size_t i = 0; i < tap.size(); ++i)
      starts.push_back(tap[i] * windows.dilations[i]);
    Value hits = f.eq(f.slice(padded, starts, shape, steps), y);
    Value part = f.select(hits, left, 0);
    // The next taps get nothing of a window that has had its maximum.
    left = f.select(hits, f.scalarLike(left, 0), left);
    // Window o has this tap at place o s + k d - p: of one phase, and so many windows on.
    size_t number = 0;
    for (size_t i = 0; i < tap.size() && part; ++i) {
      int64_t dim = int64_t(i) + 2, stride = windows.strides[i], at = starts[dim] - windows.low[i];
      int64_t on = llvm::divideFloorSigned(at, stride), size = llvm::divideCeilSigned(extents[i], stride);
      // Of all windows it may be in the padding.
      bool isRead = on < size && on + shape[dim] > 0;
      part = isRead ? padDim(f, part, dim, on, size - shape[dim] - on) : Value();
      number = number * stride + size_t(at - on * stride);
    }
    if (part)
      sums[number] = sums[number] ? f.add(sums[number], part) : part;
    isLast = true;
    for (size_t i = tap.size(); i-- > 0 && isLast;)
      tap[i] = (isLast = tap[i] + 1 == windows.kernel[i]) ? 0 : tap[i] + 1;
  }
  // Places that no window reads.
  for (Value &sum : sums)
    if (!sum && left) {
      SmallVector<int64_t> size(shape);
      for (auto [i, stride] : llvm::enumerate(windows.strides))
        size[i + 2] = llvm::divideCeilSigned(extents[i], stride);
      sum = f.broadcast(f.scalarLike(left, 0), size);
    }
  return left ? joinPhases(f, sums, windows.strides, extents) : Value();
}

/// One window over everything: the first element that is the maximum takes all.
static Value differentiateGlobalMax(GradientBuilder &g, Value input) {
  Composer &f = g.f;
  Shape shape = Composer::shape(input);
  int64_t count = 1;
  for (int64_t extent : shape.drop_front(2))
    count *= extent;
  SmallVector<int64_t> flat = {shape[0], shape[1], count}, one = {shape[0], shape[1], 1};
  Value hits = f.cast(f.eq(f.reshape(input, flat), f.reshape(g.result(), one)), f.i32());
  Value before = f.create<CumsumOp>(hits, int64_t(2), /*exclusive=*/true, /*reverse=*/false);
  Value isFirst = f.both(f.eq(hits, 1), f.eq(before, 0));
  return f.reshape(f.select(isFirst, f.reshape(g.of(), one), 0), shape);
}

/// By its kind; integers have none.
LogicalResult PoolOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  Value input = getInput(), out = g.of();
  Windows windows = {getKernel(), getStrides(), getPadsLow(), getDilations()};
  Shape extents = getSpatial(input);
  if (getKind() == PoolKind::Max) {
    bool isGlobal = getKernel() == extents && llvm::all_of(getSpatial(out), [](int64_t n) { return n == 1; }) &&
                    llvm::all_of(getPadsLow(), [](int64_t pad) { return pad == 0; }) &&
                    llvm::all_of(getDilations(), [](int64_t apart) { return apart == 1; });
    return g.add(0, isGlobal ? differentiateGlobalMax(g, input) : differentiateMax(g, *this, windows));
  }
  if (getKind() == PoolKind::Average) {
    for (size_t i = 0; i < extents.size(); ++i)
      out = f.div(
          out, countAveraged(f, *this, i, getSpatial(g.of())[i], Composer::rank(input), Composer::elementType(input)));
    return g.add(0, sumOverWindows(f, out, windows, extents));
  }
  // y^p is the sum of |x|^p: dy/dx = sign(x) (|x| / y)^(p - 1), and nothing where a window holds zeros alone.
  double p = double(getP());
  Value y = g.result(), size = f.abs(input);
  Value share = f.select(f.gt(y, 0), f.div(out, p == 1 ? f.scalarLike(y, 1) : f.pow(y, f.scalarLike(y, p - 1))), 0);
  Value slope = p == 1   ? f.create<SignOp>(input)
                : p == 2 ? input
                         : f.mul(f.create<SignOp>(input), f.pow(size, f.scalarLike(size, p - 1)));
  return g.add(0, f.mul(slope, sumOverWindows(f, share, windows, extents)));
}
