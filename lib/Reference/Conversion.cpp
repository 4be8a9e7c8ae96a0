//===- Conversion.cpp - cast, quantize, dequantize ------------------------===//
//
// Every conversion goes through the compute type of the operand, which holds its elements exactly, so it rounds once.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "Kernels.h"
#include "Loops.h"

#include <algorithm>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

namespace {
/// Smallest and largest value of an integer type, as doubles: the largest that is not beyond it.
struct Range {
  double low, high;
};
} // namespace

static Range getRange(Type elementType) {
  unsigned width = elementType.getIntOrFloatBitWidth();
  if (elementType.isUnsignedInteger())
    return {0, width == 64 ? 0x1.fffffffffffffp63 : std::ldexp(1.0, width) - 1};
  return {-std::ldexp(1.0, width - 1), width == 64 ? 0x1.fffffffffffffp62 : std::ldexp(1.0, width - 1) - 1};
}

/// `value` in the nearest value of the range; NaN becomes 0.
static double saturate(double value, Range range) {
  return std::isnan(value) ? 0 : std::min(std::max(value, range.low), range.high);
}

/// Integers that leave the range of the result's integer type stop at its ends.
template <typename C> static C saturateInteger(C value, Type to) {
  unsigned width = to.getIntOrFloatBitWidth();
  if (to.isUnsignedInteger()) {
    uint64_t high = ~uint64_t(0) >> (64 - width);
    return value < 0 ? C(0) : uint64_t(value) > high ? C(high) : value;
  }
  int64_t high = int64_t(~uint64_t(0) >> (65 - width));
  if constexpr (std::is_same_v<C, uint64_t>)
    return value > uint64_t(high) ? C(high) : value;
  else
    return std::min<C>(std::max<C>(value, -high - 1), high);
}

/// A float, truncated, as the nearest integer in the range of `to`, by way of the 64-bit type of its signedness.
template <typename Wide> static Wide saturateFloat(double value, Type to) {
  using Limits = std::numeric_limits<Wide>;
  if (std::isnan(value))
    return 0;
  if (value >= std::ldexp(1.0, Limits::digits))
    return saturateInteger(Limits::max(), to);
  return saturateInteger(value <= double(Limits::min()) ? Limits::min() : Wide(value), to);
}

/// Largest finite value of a float type.
static double getLargest(FloatType type) {
  return llvm::APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
}

/// One element on its way into a saturating cast to `to`.
template <typename C> static C saturateElement(C value, Type to) {
  if (to.isInteger(1))
    return value;
  if constexpr (std::is_floating_point_v<C>) {
    if (auto floatType = dyn_cast<FloatType>(to)) {
      double largest = getLargest(floatType);
      bool staysInfinite = std::isinf(value) && floatType.getWidth() > 8;
      return staysInfinite || std::isnan(value) || std::abs(double(value)) <= largest
                 ? value
                 : C(std::copysign(largest, double(value)));
    }
    return value;
  } else {
    return isa<FloatType>(to) ? value : saturateInteger(value, to);
  }
}

/// Converts run by run; `fn` may change an element before it is stored.
template <typename C, typename Fn> static Tensor convert(const Tensor &x, RankedTensorType type, Fn fn) {
  return mapUnary<C>(x, type, fn);
}

static Tensor castTo(const Tensor &x, RankedTensorType type, bool saturating) {
  Type to = type.getElementType();
  if (x.getElementType() == to)
    return x;
  // Integers pass the largest float of 8 bits, too.
  if (saturating && x.getElementType().isInteger() && isa<FloatType>(to) && to.getIntOrFloatBitWidth() <= 8)
    return castTo(castElements(x, Float64Type::get(to.getContext())), type, saturating);
  return dispatchCompute(x.getElementType(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    if (!saturating)
      return convert<C>(x, type, [](C value) { return value; });
    if (std::is_floating_point_v<C> && to.isInteger() && !to.isInteger(1))
      return to.isUnsignedInteger()
                 ? mapUnary<C, uint64_t>(x, type, [to](C value) { return saturateFloat<uint64_t>(double(value), to); })
                 : mapUnary<C, int64_t>(x, type, [to](C value) { return saturateFloat<int64_t>(double(value), to); });
    return convert<C>(x, type, [to](C value) { return saturateElement(value, to); });
  });
}

/// Low bits of bytes, as elements of at most 8 bits.
static Tensor takeBits(const Tensor &x, RankedTensorType type) {
  Tensor result = Tensor::zeros(type);
  unsigned mask = (1u << type.getElementTypeBitWidth()) - 1;
  llvm::transform(x.as<uint8_t>(), result.write<uint8_t>().begin(), [mask](uint8_t byte) { return byte & mask; });
  return result;
}

/// Elements as they lie in memory, byte by byte.
static Tensor evaluateBitcast(nn::BitcastOp op, const Tensor &x) {
  RankedTensorType type = getResultType(op);
  if (x.getElementType() == type.getElementType())
    return x;
  Tensor result = Tensor::zeros(type);
  if (type.getElementType().isInteger(1))
    llvm::transform(x.getBytes(), result.write<bool>().begin(), [](char byte) { return byte != 0; });
  else
    llvm::copy(x.getBytes(), result.write<char>().begin());
  return result;
}

/// The power of two that `value` goes to, by its exponent and fraction: of f32, as ONNX has it.
static float roundToPower(float value, nn::Rounding rounding, bool saturating) {
  uint32_t bits = llvm::bit_cast<uint32_t>(value) & 0x7fffffff;
  if (bits >= 0x7f800000)
    return std::numeric_limits<float>::quiet_NaN();
  uint32_t exponent = bits >> 23, fraction = bits & 0x7fffff;
  bool goesUp =
      rounding == nn::Rounding::Up ? fraction > 0 : fraction > 0x400000 || (fraction == 0x400000 && exponent > 0);
  exponent += rounding != nn::Rounding::Down && goesUp;
  return widenSmallFloat(ElementKind::F8E8M0FNU, std::min<uint32_t>(exponent, saturating ? 0xfe : 0xff));
}

static Tensor evaluateCast(nn::CastOp op, const Tensor &x) {
  RankedTensorType type = getResultType(op);
  if (op.getBits())
    return takeBits(x, type);
  bool isSame = x.getElementType() == type.getElementType();
  if (!isa<Float8E8M0FNUType>(type.getElementType()) || isSame)
    return castTo(x, type, op.getSaturate());
  Type f32 = Float32Type::get(op.getContext());
  return mapUnary<float>(castElements(x, f32), type,
                         [&](float value) { return roundToPower(value, op.getRounding(), op.getSaturate()); });
}

Tensor cleave::reference::castElements(const Tensor &x, Type element) {
  return castTo(x, RankedTensorType::get(x.getShape(), element), false);
}

/// A scalar, or a vector along `dim` of a tensor of `rank` dims, in a shape that broadcasts against it.
static Tensor alongDim(const Tensor &vector, int64_t dim, int64_t rank) {
  SmallVector<int64_t> shape(rank, 1);
  if (vector.getNumElements() != 1)
    shape[dim] = vector.getNumElements();
  return vector.reshaped(shape);
}

/// An element for each of `shape`: those for blocks along `dim`, repeated.
static Tensor repeatBlocks(const Tensor &blocks, int64_t dim, int64_t block, ArrayRef<int64_t> shape) {
  Tensor result = Tensor::zeros(RankedTensorType::get(shape, blocks.getElementType()));
  int64_t row = product(shape.drop_front(dim + 1)) * getElementBytes(blocks.getElementType());
  const char *from = blocks.getBytes().data();
  char *to = result.write<char>().data();
  for (int64_t i = 0, outer = product(shape.take_front(dim)); i < outer; ++i)
    for (int64_t place = 0; place < shape[dim]; ++place, to += row)
      std::copy_n(from + (i * blocks.getShape()[dim] + place / block) * row, row, to);
  return result;
}

/// A scale or zero point in a shape that broadcasts against what it is for.
template <typename Op> static Tensor lineUp(Op op, const Tensor &scale) {
  ArrayRef<int64_t> shape = op.getType().getShape();
  return op.getBlock() ? repeatBlocks(scale, op.getDim(), op.getBlock(), shape)
                       : alongDim(scale, op.getDim(), int64_t(shape.size()));
}

/// A tensor as doubles: exact for all but the largest 64-bit integers.
static Tensor toDoubles(const Tensor &x) {
  Type f64 = Float64Type::get(x.getElementType().getContext());
  return castTo(x, RankedTensorType::get(x.getShape(), f64), false);
}

template <typename C> static Tensor quantize(nn::QuantizeOp op, Operands in) {
  Type wide = Float64Type::get(op.getContext()), to = getResultType(op).getElementType();
  auto wideType = RankedTensorType::get(in[0].getShape(), wide);
  bool isFloat = isa<FloatType>(to);
  Tensor scaled = mapBinary<C, double>(in[0], lineUp(op, in[1]), wideType, [isFloat](C x, C scale) {
    return double(isFloat ? x / scale : std::nearbyint(x / scale));
  });
  SmallVector<int64_t> ones(in[0].getShape().size(), 1);
  Tensor zero = in.size() > 2 ? toDoubles(lineUp(op, in[2])) : Tensor::zeros(RankedTensorType::get(ones, wide));
  if (isFloat)
    return mapBinary<double>(scaled, zero, getResultType(op),
                             [to, overflows = op.getOverflow()](double x, double offset) {
                               return overflows ? x + offset : saturateElement(x + offset, to);
                             });
  Range range = getRange(getResultType(op).getElementType());
  return mapBinary<double>(scaled, zero, getResultType(op),
                           [range](double x, double offset) { return saturate(x + offset, range); });
}

template <typename C> static Tensor dequantize(nn::DequantizeOp op, Operands in) {
  Tensor x = toDoubles(in[0]);
  if (in.size() > 2)
    x = mapBinary<double>(x, toDoubles(lineUp(op, in[2])), x.getType(), [](double a, double b) { return a - b; });
  return mapBinary<C>(x, lineUp(op, in[1]), getResultType(op), [](C a, C scale) { return a * scale; });
}

void cleave::reference::registerConversion(KernelTable &table) {
  table.add<nn::CastOp>([](nn::CastOp op, Operands in) { return evaluateCast(op, in[0]); });
  table.add<nn::BitcastOp>([](nn::BitcastOp op, Operands in) { return evaluateBitcast(op, in[0]); });
  table.add<nn::QuantizeOp>([](nn::QuantizeOp op, Operands in) {
    // Integers are divided as doubles; floats in their own precision, as the model was calibrated.
    bool isFloat = isa<FloatType>(in[0].getElementType()) && !in[0].getElementType().isF64();
    return isFloat ? quantize<float>(op, in) : quantize<double>(op, in);
  });
  table.add<nn::DequantizeOp>([](nn::DequantizeOp op, Operands in) {
    return getResultType(op).getElementType().isF64() ? dequantize<double>(op, in) : dequantize<float>(op, in);
  });
}
