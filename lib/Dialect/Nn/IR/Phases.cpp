//===- Phases.cpp - what windows hand back --------------------------------===//
//
// Along one dim, window o and kernel element k meet at place x = o s + k d - p, for stride s, dilation d and padding p. With x = s i + r in
// phase r these are all k with k d = r + p modulo s: k0, k0 + s / g, k0 + 2 s / g, .. with g = gcd(s, d), or none. Then
//
//   o = i + (r + p - k0 d) / s - j d / g        for the j-th of them
//
// so that a phase is a convolution over i whose windows begin at the last of them, with dilation d / g.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Phases.h"

#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"

#include <numeric>

using namespace mlir;
using namespace cleave::nn;

namespace {
/// One phase of one dim, as a convolution of stride 1: which elements of the kernel it has, the last one first, and what of `out` it reads.
struct Phase {
  int64_t last, step, count; ///< kernel elements last, last - step, ..: `count` of them
  int64_t dilation, low, high;
};
} // namespace

/// Phase `r` of dim `i`, with `size` places; `numWindows` windows hand something back.
static Phase findPhase(const Windows &windows, size_t i, int64_t r, int64_t size, int64_t numWindows) {
  int64_t stride = windows.strides[i], apart = windows.dilations[i], shared = std::gcd(stride, apart);
  int64_t first = 0, beyond = r + windows.low[i];
  while (first < windows.kernel[i] && (beyond - first * apart) % stride != 0)
    ++first;
  Phase phase = {0, stride / shared, 0, apart / shared, 0, 0};
  if (first >= windows.kernel[i])
    return phase;
  phase.count = (windows.kernel[i] - 1 - first) / phase.step + 1;
  phase.last = first + (phase.count - 1) * phase.step;
  int64_t base = (beyond - first * apart) / stride;
  phase.low = (phase.count - 1) * phase.dilation - base;
  phase.high = size - 1 + base - (numWindows - 1);
  return phase;
}

/// A weight [groups * a, b, kernel] as [groups * b, a, kernel].
static Value swapChannels(Composer &f, Value weight, int64_t groups) {
  SmallVector<int64_t> shape(Composer::shape(weight)), apart(shape);
  apart[0] /= groups;
  apart.insert(apart.begin(), groups);
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, apart.size()));
  std::swap(order[1], order[2]);
  shape = {groups * apart[2], apart[1]};
  shape.append(apart.begin() + 3, apart.end());
  return f.reshape(f.transpose(f.reshape(weight, apart), order), shape);
}

/// The convolution of one phase of every dim; zeros, or the bias, where no element of the kernel is of it.
static Value convolvePhase(Composer &f, Value out, Value swapped, Value bias, ArrayRef<Phase> phases, Shape sizes,
                           int64_t groups) {
  size_t count = phases.size();
  SmallVector<int64_t> made = {Composer::shape(out)[0], Composer::shape(swapped)[0]};
  llvm::append_range(made, sizes);
  if (llvm::any_of(phases, [](const Phase &phase) { return phase.count == 0; })) {
    SmallVector<int64_t> perChannel(count + 1, 1);
    perChannel[0] = made[1];
    return f.broadcast(bias ? f.reshape(bias, perChannel) : f.scalarLike(out, 0), made);
  }
  SmallVector<int64_t> starts(2, 0), kernel(Composer::shape(swapped).take_front(2)), steps(2, 1);
  SmallVector<int64_t> skipped(2, 0), read(Composer::shape(out)), ones(count + 2, 1), low, high, dilations;
  for (auto [i, phase] : llvm::enumerate(phases)) {
    starts.push_back(phase.last);
    kernel.push_back(phase.count);
    steps.push_back(phase.count > 1 ? -phase.step : 1);
    // Less than no padding: what is at that end is not read.
    skipped.push_back(std::max<int64_t>(-phase.low, 0));
    read[i + 2] -= skipped.back() + std::max<int64_t>(-phase.high, 0);
    low.push_back(std::max<int64_t>(phase.low, 0));
    high.push_back(std::max<int64_t>(phase.high, 0));
    dilations.push_back(phase.dilation);
  }
  Value part = f.slice(swapped, starts, kernel, steps), input = f.slice(out, skipped, read, ones);
  return f.create<ConvOp>(input, part, bias, Shape(ones).take_front(count), low, high, dilations, groups);
}

Value cleave::nn::joinPhases(Composer &f, ArrayRef<Value> phases, Shape strides, Shape extents) {
  if (phases.size() == 1)
    return phases.front();
  size_t count = extents.size();
  // [phases, n, channels, sizes]  ─▶  [n, channels, size 0, phases of dim 0, size 1, ..]  ─▶  [n, channels, extents]
  SmallVector<int64_t> one(Composer::shape(phases.front())), apart(strides), order, whole(one);
  llvm::append_range(apart, one);
  one.insert(one.begin(), 1);
  SmallVector<Value> stacked = llvm::map_to_vector(phases, [&](Value phase) { return f.reshape(phase, one); });
  order = {int64_t(count), int64_t(count) + 1};
  for (size_t i = 0; i < count; ++i) {
    order.append({int64_t(count + 2 + i), int64_t(i)});
    whole[i + 2] *= strides[i];
  }
  Value together = f.reshape(f.transpose(f.reshape(f.concat(stacked, 0), apart), order), whole);
  for (auto [i, extent] : llvm::enumerate(extents))
    together = f.sliceDim(together, int64_t(i) + 2, 0, extent);
  return together;
}

Value cleave::nn::handBack(Composer &f, Value out, Value weight, Value bias, const Windows &windows, Shape extents,
                           int64_t groups) {
  if (!out || !weight)
    return {};
  size_t count = extents.size();
  Shape numWindows = Composer::shape(out).drop_front(2), strides = windows.strides;
  // All phases of a dim have one size: what is beyond the end is cut.
  SmallVector<int64_t> sizes;
  int64_t numPhases = 1;
  for (auto [extent, stride] : llvm::zip_equal(extents, strides)) {
    sizes.push_back((extent + stride - 1) / stride);
    numPhases *= stride;
  }
  Value swapped = swapChannels(f, weight, groups);
  SmallVector<Value> made;
  for (int64_t number = 0; number < numPhases; ++number) {
    SmallVector<Phase> phases(count);
    int64_t left = number;
    for (size_t i = count; i-- > 0; left /= strides[i])
      phases[i] = findPhase(windows, i, left % strides[i], sizes[i], numWindows[i]);
    made.push_back(convolvePhase(f, out, swapped, bias, phases, sizes, groups));
  }
  return joinPhases(f, made, strides, extents);
}
