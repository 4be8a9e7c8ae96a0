//===- Movement.cpp - gradients of movement -------------------------------===//
//
// Elements change place, so their gradients go back where they came from; what is there several times gets the sum, and what
// was left out gets zeros.
//
//===----------------------------------------------------------------------===//
#include "Spread.h"

#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

using namespace mlir;
using namespace cleave::nn;

/// The same elements in the operand's dims.
LogicalResult ReshapeOp::differentiate(GradientBuilder &g) {
  return g.add(0, g.f.reshape(g.of(), Composer::shape(g.operand(0))));
}

/// By the inverse permutation.
LogicalResult TransposeOp::differentiate(GradientBuilder &g) {
  SmallVector<int64_t> back(getPermutation().size());
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    back[from] = to;
  return g.add(0, g.f.transpose(g.of(), back));
}

/// What was repeated is summed by whoever takes the gradient.
LogicalResult BroadcastOp::differentiate(GradientBuilder &g) { return g.add(0, g.of()); }

/// Each operand has its part of the result's gradient.
LogicalResult ConcatOp::differentiate(GradientBuilder &g) {
  int64_t at = 0, dim = getDim();
  for (Value input : getInputs()) {
    int64_t size = Composer::shape(input)[dim];
    if (failed(g.addBy(input, [&] { return g.f.sliceDim(g.of(), dim, at, size); })))
      return failure();
    at += size;
  }
  return success();
}

/// Parts that nothing is made of have zeros.
LogicalResult SplitOp::differentiate(GradientBuilder &g) {
  SmallVector<Value> parts;
  for (auto [i, result] : llvm::enumerate(getResults()))
    parts.push_back(g.of(i) ? g.of(i) : g.zerosLike(result));
  return g.add(0, g.f.concat(parts, getDim()));
}

/// A step to the front turns the elements around: from the last one on, it is one to the back.
LogicalResult SliceOp::differentiate(GradientBuilder &g) {
  Value part = g.of();
  Shape shape = Composer::shape(g.operand(0));
  if (cast<RankedTensorType>(part.getType()).getNumElements() == 0)
    return g.add(0, g.zerosLike(g.operand(0)));
  for (int64_t dim = 0; dim < int64_t(shape.size()) && part; ++dim) {
    int64_t size = Composer::shape(part)[dim], start = getStarts()[dim], step = getSteps()[dim];
    if (size == shape[dim] && step == 1)
      continue;
    if (step < 0) {
      part = flip(g.f, part, dim);
      start += (size - 1) * step;
      step = -step;
    }
    part = spreadDim(g.f, part, dim, step);
    part = padDim(g.f, part, dim, start, shape[dim] - start - ((size - 1) * step + 1));
  }
  return g.add(0, part);
}

/// What one dim of padding repeats goes back to the elements that it shows.
///
///   reflect:  c b | a b c d | c b      low 2: of b and c, turned around, behind a
///   edge:     a a | a b c d | d d      the sum, to the end
///   wrap:     c d | a b c d | a b      to the other end
static Value foldPad(Composer &f, PadMode mode, Value part, int64_t dim, int64_t low, int64_t high) {
  int64_t size = Composer::shape(part)[dim] - low - high;
  Value sum = f.sliceDim(part, dim, low, size);
  auto addBack = [&](int64_t from, int64_t count, bool isLow) {
    if (count == 0)
      return;
    Value beyond = f.sliceDim(part, dim, from, count);
    int64_t at = 0;
    if (mode == PadMode::Edge) {
      beyond = f.sum(beyond, {dim}, /*keepDims=*/true);
      count = 1;
      at = isLow ? 0 : size - 1;
    } else if (mode == PadMode::Reflect) {
      beyond = flip(f, beyond, dim);
      at = isLow ? 1 : size - 1 - count;
    } else {
      at = isLow ? size - count : 0;
    }
    sum = f.add(sum, padDim(f, beyond, dim, at, size - at - count));
  };
  // A wrap may go around more than once.
  for (int64_t left = low; left > 0; left -= std::min(left, size))
    addBack(left - std::min(left, size), std::min(left, size), /*isLow=*/true);
  for (int64_t done = 0; done < high; done += std::min(high - done, size))
    addBack(low + size + done, std::min(high - done, size), /*isLow=*/false);
  return sum;
}

/// A number that pads has the sum of all that is not the operand's.
LogicalResult PadOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  Value part = g.of(), value = getValue();
  if (getMode() != PadMode::Constant) {
    for (int64_t dim = 0; dim < int64_t(getLow().size()) && part; ++dim)
      if (getLow()[dim] || getHigh()[dim])
        part = foldPad(f, getMode(), part, dim, getLow()[dim], getHigh()[dim]);
    return g.add(0, part);
  }
  Value inner = f.slice(part, getLow(), Composer::shape(getInput()), SmallVector<int64_t>(getLow().size(), 1));
  auto byValue = [&] {
    SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, Composer::rank(part)));
    return f.sub(f.sum(part, all), f.sum(inner, all));
  };
  return success(succeeded(g.add(getInput(), inner)) && succeeded(g.addBy(value, byValue)));
}

/// On to the place from where it came.
LogicalResult RotateOp::differentiate(GradientBuilder &g) {
  int64_t size = Composer::shape(g.of())[getDim()], amount = getAmount();
  return g.add(0, amount ? g.f.create<RotateOp>(g.of(), getDim(), size - amount) : g.of());
}

/// What was cleared stays so.
LogicalResult TriluOp::differentiate(GradientBuilder &g) {
  return g.add(0, g.f.create<TriluOp>(g.of(), getOffset(), getUpper()));
}
