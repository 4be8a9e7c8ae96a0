//===- Conversion.cpp - cast, quantize, dequantize ------------------------===//
//
// Every conversion goes through the compute type of the operand, which holds its elements exactly, so it rounds once.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"
#include "Loops.h"

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
      return std::isinf(value) || std::abs(double(value)) <= largest ? value : C(std::copysign(largest, double(value)));
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

/// A tensor as doubles: exact for all but the largest 64-bit integers.
static Tensor toDoubles(const Tensor &x) {
  Type f64 = Float64Type::get(x.getElementType().getContext());
  return castTo(x, RankedTensorType::get(x.getShape(), f64), false);
}

template <typename C> static Tensor quantize(nn::QuantizeOp op, Operands in) {
  int64_t rank = getRank(in[0]);
  auto shape = in[0].getShape();
  Type wide = Float64Type::get(op.getContext());
  auto wideType = RankedTensorType::get(shape, wide);
  Tensor scaled = mapBinary<C, double>(in[0], alongDim(in[1], op.getDim(), rank), wideType,
                                       [](C x, C scale) { return double(std::nearbyint(x / scale)); });
  Tensor zero = in.size() > 2 ? toDoubles(alongDim(in[2], op.getDim(), rank))
                              : Tensor::zeros(RankedTensorType::get(SmallVector<int64_t>(rank, 1), wide));
  Range range = getRange(getResultType(op).getElementType());
  return mapBinary<double>(scaled, zero, getResultType(op),
                           [range](double x, double offset) { return saturate(x + offset, range); });
}

template <typename C> static Tensor dequantize(nn::DequantizeOp op, Operands in) {
  int64_t rank = getRank(in[0]);
  Tensor x = toDoubles(in[0]);
  if (in.size() > 2)
    x = mapBinary<double>(x, toDoubles(alongDim(in[2], op.getDim(), rank)), x.getType(),
                          [](double a, double b) { return a - b; });
  return mapBinary<C>(x, alongDim(in[1], op.getDim(), rank), getResultType(op), [](C a, C scale) { return a * scale; });
}

void cleave::reference::registerConversion(KernelTable &table) {
  table.add<nn::CastOp>([](nn::CastOp op, Operands in) { return castTo(in[0], getResultType(op), op.getSaturate()); });
  table.add<nn::QuantizeOp>([](nn::QuantizeOp op, Operands in) {
    // Integers are divided as doubles; floats in their own precision, as the model was calibrated.
    bool isFloat = isa<FloatType>(in[0].getElementType()) && !in[0].getElementType().isF64();
    return isFloat ? quantize<float>(op, in) : quantize<double>(op, in);
  });
  table.add<nn::DequantizeOp>([](nn::DequantizeOp op, Operands in) {
    return getResultType(op).getElementType().isF64() ? dequantize<double>(op, in) : dequantize<float>(op, in);
  });
}
