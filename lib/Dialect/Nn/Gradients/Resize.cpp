//===- Resize.cpp - gradients of resampling -------------------------------===//
//
// Along each dim the result is a matrix of few numbers a row times the operand; its gradient is the transposed matrix times the result's.
// Where each element is repeated as often, it is the sum of its copies.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Resize.h"
#include "cleave/Dialect/Nn/Gradients/GradientBuilder.h"
#include "cleave/Dialect/Nn/IR/Sampling.h"

using namespace mlir;
using namespace cleave::nn;

/// True if position i of the result is position i / factor of the operand.
static bool repeatsEach(const Taps &taps, int64_t factor) {
  if (taps.count != 1 || factor < 1)
    return false;
  for (auto [i, position] : llvm::enumerate(taps.positions))
    if (position != int64_t(i) / factor || taps.weights[i] != 1)
      return false;
  return true;
}

/// [result, operand]: what position of the operand counts how much.
static Value makeMatrix(Composer &f, const Taps &taps, int64_t from, int64_t to, Type type) {
  SmallVector<double> numbers(to * from, 0);
  for (int64_t i = 0; i < to * taps.count; ++i)
    numbers[i / taps.count * from + taps.positions[i]] += taps.weights[i];
  SmallVector<Attribute> entries =
      llvm::map_to_vector(numbers, [&](double number) -> Attribute { return FloatAttr::get(type, number); });
  return f.literal(DenseElementsAttr::get(RankedTensorType::get({to, from}, type), entries));
}

/// One dim of the gradient, from the result's extent to the operand's.
static Value undoDim(Composer &f, ResizeOp op, Value out, int64_t dim) {
  SmallVector<int64_t> shape(Composer::shape(out));
  int64_t from = Composer::shape(op.getInput())[dim], to = shape[dim], rank = int64_t(shape.size());
  Taps taps = getTaps(op, dim);
  if (to % from == 0 && repeatsEach(taps, to / from)) {
    shape[dim] = from;
    shape.insert(shape.begin() + dim + 1, to / from);
    return f.sum(f.reshape(out, shape), {dim + 1});
  }
  std::string letters;
  for (int64_t i = 0; i < rank; ++i)
    letters += char('a' + i);
  std::string result = letters;
  result[dim] = 'z';
  return f.einsum({out, makeMatrix(f, taps, from, to, Composer::elementType(out))},
                  letters + "," + letters[dim] + "z->" + result);
}

LogicalResult ResizeOp::differentiate(GradientBuilder &g) {
  Value out = g.f.widen(g.of());
  for (int64_t dim = Composer::rank(out); dim-- > 0 && out;)
    if (!keepsDim(*this, dim))
      out = undoDim(g.f, *this, out, dim);
  return g.add(0, out);
}
