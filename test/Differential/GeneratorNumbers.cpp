//===- GeneratorNumbers.cpp - quantized numbers, bits, rows ---------------===//
//
// Several ops at a time, as models have them together. What rounds to few bits jumps, so it reads arguments alone, and its
// scales are made of arguments by ops that round alike everywhere: |x| + 1/16.
//
//===----------------------------------------------------------------------===//
#include "GeneratorImpl.h"

#include "llvm/Support/FormatVariadic.h"

using namespace cleave::test;
using llvm::formatv;
using llvm::SmallVector;

/// Sums along one dim, which is not always the last, without that dim in their shape, put beside what they are sums of again: what
/// frameworks write for a norm that they have no op for.
bool Generator::addRows() {
  static constexpr const char *kinds[] = {"sum", "mean", "max", "min"}, *ops[] = {"sub", "mul", "add"};
  const Value *found = pickValue(2);
  if (!found)
    return false;
  Value x = *found;
  int64_t dim = below(x.shape.size());
  SmallVector<int64_t> row(x.shape), kept(x.shape);
  row.erase(row.begin() + dim);
  kept[dim] = 1;
  for (int64_t i = 0, count = 1 + below(2); i < count; ++i) {
    Value whole = values.back(), of = x;
    if (i > 0 && chance(60)) // of what there is by now
      of = whole;
    else if (chance(50))
      of = addInner(formatv("nn.tanh {0}", x.name), {&x}, x.shape, "f32");
    if (of.shape != x.shape || of.elementType != "f32")
      of = x;
    Value sums = addInner(formatv("nn.reduce {0} {1} dims [{2}]", pick(kinds), of.name, dim), {&of}, row, "f32");
    if (chance(50))
      sums = addInner(formatv("nn.sigmoid {0}", sums.name), {&sums}, row, "f32");
    Value beside = addInner(formatv("nn.reshape {0}", sums.name), {&sums}, kept, "f32");
    if (!add(formatv("nn.{0} {1}, {2}", pick(ops), x.name, beside.name), {&x, &beside}, x.shape))
      return false;
    x = values.back();
  }
  return true;
}

/// An argument, quantized and back, with one scale for all, along a dim, or for blocks; with zero points now and then.
bool Generator::addQuantized() {
  static constexpr const char *types[] = {"i8", "ui8", "i8", "ui8", "i4", "ui4", "i16"};
  const Value *found = pickArgument(1);
  if (!found)
    return false;
  Value x = *found;
  std::string type = pick(types);
  int64_t dim = below(x.shape.size()), block = 0;
  SmallVector<int64_t> shape;
  if (chance(35)) {
    block = 1 + below(x.shape[dim]);
    shape = x.shape;
    shape[dim] = (shape[dim] + block - 1) / block;
  } else if (chance(60)) {
    shape = {x.shape[dim]};
  }
  std::string along = formatv(" dim {0}{1}", dim, block ? formatv(" block {0}", block).str() : "");
  bool hasZero = chance(50);
  Value zero;
  if (hasZero)
    zero = addArgument(shape, type);
  auto makeScale = [&] {
    Value drawn = addArgument(shape, "f32");
    Value size = addInner(formatv("nn.abs {0}", drawn.name), {&drawn}, shape, "f32");
    Value least = addInner("nn.constant dense<0.0625>", {}, {}, "f32");
    return addInner(formatv("nn.add {0}, {1}", size.name, least.name), {&size, &least}, shape, "f32");
  };
  Value scale = makeScale(), back = chance(70) ? scale : makeScale();
  SmallVector<const Value *> operands = {&x, &scale};
  std::string zeros = hasZero ? ", " + zero.name : "";
  if (hasZero)
    operands.push_back(&zero);
  Value numbers =
      addInner(formatv("nn.quantize {0}, {1}{2}{3}", x.name, scale.name, zeros, along), operands, x.shape, type);
  operands[0] = &numbers, operands[1] = &back;
  return add(formatv("nn.dequantize {0}, {1}{2}{3}", numbers.name, back.name, zeros, along), operands, x.shape);
}

/// Bytes times bytes in i32, as quantized models multiply, and back to small floats.
bool Generator::addIntegerProduct() {
  static constexpr const char *types[] = {"i8", "ui8"};
  int64_t rows = pickSize(), depth = pickSize(), columns = pickSize();
  if (rows * depth > kMaxElements || depth * columns > kMaxElements || rows * columns > kMaxElements)
    return false;
  auto widen = [&](SmallVector<int64_t> shape) {
    std::string type = pick(types);
    Value x = addArgument(shape, type);
    Value wide = addInner(formatv("nn.cast {0}", x.name), {&x}, shape, "i32");
    if (chance(40))
      return wide;
    Value zero = addArgument(chance(50) ? SmallVector<int64_t>{} : SmallVector<int64_t>{shape.back()}, type);
    Value wideZero = addInner(formatv("nn.cast {0}", zero.name), {&zero}, zero.shape, "i32");
    return addInner(formatv("nn.sub {0}, {1}", wide.name, wideZero.name), {&wide, &wideZero}, shape, "i32");
  };
  Value left = widen({rows, depth}), right = widen({depth, columns});
  Value sums = addInner(formatv("nn.einsum {0}, {1} \"ik,kj->ij\"", left.name, right.name), {&left, &right},
                        {rows, columns}, "i32");
  Value real = addInner(formatv("nn.cast {0}", sums.name), {&sums}, {rows, columns}, "f32");
  // A power of two: sums of bytes are some thousands.
  Value scale = addInner("nn.constant dense<0.0001220703125>", {}, {}, "f32");
  return add(formatv("nn.mul {0}, {1}", real.name, scale.name), {&real, &scale}, {rows, columns});
}

/// The sign turned or dropped in the bits of floats. Regions of kernels are of any float: they have none.
bool Generator::addBits() {
  if (!hasAnnotations)
    return false;
  Value x = *pickValue();
  Value bits = addInner(formatv("nn.bitcast {0}", x.name), {&x}, x.shape, "i32");
  bool turns = chance(50);
  Value mask = addInner(turns ? "nn.constant dense<-2147483648>" : "nn.constant dense<2147483647>", {}, {}, "i32");
  Value other = addInner(formatv("nn.bitwise_{0} {1}, {2}", turns ? "xor" : "and", bits.name, mask.name),
                         {&bits, &mask}, x.shape, "i32");
  return add(formatv("nn.bitcast {0}", other.name), {&other}, x.shape);
}
