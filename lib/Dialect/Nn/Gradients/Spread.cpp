//===- Spread.cpp - elements put apart and turned around ------------------===//
//
// All is movement: dims of size 1 that are padded put elements apart, and a slice with step -1 turns them around.
//
//===----------------------------------------------------------------------===//
#include "Spread.h"

using namespace mlir;
using namespace cleave::nn;

Value cleave::nn::flip(Composer &f, Value value, int64_t dim) {
  if (!value)
    return {};
  SmallVector<int64_t> sizes(Composer::shape(value)), starts(sizes.size(), 0), steps(sizes.size(), 1);
  if (sizes[dim] < 2)
    return value;
  starts[dim] = sizes[dim] - 1;
  steps[dim] = -1;
  return f.slice(value, starts, sizes, steps);
}

/// Each element becomes a dim of its own, which is padded:  a b  ─▶  a 0 0 | b 0 0  ─▶  a 0 0 b
Value cleave::nn::spreadDim(Composer &f, Value value, int64_t dim, int64_t step) {
  if (!value)
    return {};
  SmallVector<int64_t> shape(Composer::shape(value));
  int64_t size = shape[dim];
  if (step == 1 || size == 1)
    return value;
  SmallVector<int64_t> apart(shape);
  apart.insert(apart.begin() + dim + 1, 1);
  value = padDim(f, f.reshape(value, apart), dim + 1, 0, step - 1);
  shape[dim] = size * step;
  return f.sliceDim(f.reshape(value, shape), dim, 0, (size - 1) * step + 1);
}

Value cleave::nn::padDim(Composer &f, Value value, int64_t dim, int64_t low, int64_t high) {
  if (!value)
    return {};
  int64_t size = Composer::shape(value)[dim], rank = Composer::rank(value);
  if (low < 0 || high < 0) {
    int64_t first = std::max<int64_t>(-low, 0), last = size - std::max<int64_t>(-high, 0);
    value = f.sliceDim(value, dim, first, last - first);
  }
  if (low <= 0 && high <= 0)
    return value;
  SmallVector<int64_t> lows(rank, 0), highs(rank, 0);
  lows[dim] = std::max<int64_t>(low, 0);
  highs[dim] = std::max<int64_t>(high, 0);
  return f.pad(value, lows, highs);
}
