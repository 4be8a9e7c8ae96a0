//===- Conversion.cpp - gradients of casts and quantized weights ----------===//
//
// Between floats a cast is linear. Quantized numbers are integers and not trained; their scales are, and what they are multiplied with.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/Gradients/GradientBuilder.h"

using namespace mlir;
using namespace cleave::nn;

LogicalResult CastOp::differentiate(GradientBuilder &g) {
  return getBits() ? g.refuse("it reads the bits of a number") : g.add(0, g.of());
}

/// Sums of the elements that share a scale: those of a block of `dim`, of which the last one may be shorter, or of all other dims.
LogicalResult DequantizeOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  Value input = getInput(), scale = getScale();
  if (g.wants(input))
    return g.refuse("numbers of so few bits are not trained");
  if (!g.wants(scale))
    return success();
  SmallVector<int64_t> shape(Composer::shape(input));
  int64_t dim = getDim(), block = getBlock();
  Value ones = f.broadcast(f.scalar(Composer::elementType(scale), 1), Composer::shape(scale));
  // (x - zero point) is what a scale of 1 gives.
  Value steps = f.createTyped<DequantizeOp>(getResult().getType(), input, ones, getZeroPoint(), dim, block);
  Value product = f.mul(f.widen(g.of()), f.widen(steps));
  SmallVector<int64_t> others = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
  if (Composer::rank(scale) == 0)
    return g.add(scale, f.sum(product, others));
  if (block == 0) {
    others.erase(others.begin() + dim);
    return g.add(scale, f.sum(product, others));
  }
  int64_t numBlocks = Composer::shape(scale)[dim];
  SmallVector<int64_t> low(shape.size(), 0), high(low);
  high[dim] = numBlocks * block - shape[dim];
  product = f.pad(product, low, high);
  shape[dim] = numBlocks;
  shape.insert(shape.begin() + dim + 1, block);
  return g.add(scale, f.sum(f.reshape(product, shape), {dim + 1}));
}
