//===- Compare.cpp - are two tensors the same? ----------------------------===//
//
// Element by element, as long doubles, which hold every element type exactly, 64-bit integers included. Two floats
// agree if
//
//   |got - want| <= rtol * |want| + atol * scale          scale = the largest magnitude of the tensor
//
// The second term is for what is small beside its neighbors: it is as wrong as they are. A tensor of small numbers has a small
// scale, so that nothing is right only because it is small; where all of it is small because large terms cancel, rounding is
// told from errors by a run in double (CheckOutputs.cpp). Integers agree only if
// they are equal, an infinity with itself, a NaN with any NaN.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Values.h"

#include "llvm/ADT/APFloat.h"

#include <cassert>
#include <cmath>
#include <cstdio>

using namespace mlir;
using namespace cleave;
using cleave::reference::Tensor;

Tolerance cleave::getDefaultTolerance(Type elementType) {
  double rtol = 0;
  if (elementType.isF64())
    rtol = 1e-9;
  else if (elementType.isF32())
    rtol = 1e-4;
  else if (elementType.isF16())
    rtol = 3e-2;
  else if (elementType.isBF16())
    rtol = 1e-1;
  return {rtol, rtol / 10};
}

long double cleave::getElement(const Tensor &tensor, int64_t index) {
  Type type = tensor.getElementType();
  if (type.isF32())
    return tensor.as<float>()[index];
  if (type.isF64())
    return tensor.as<double>()[index];
  if (auto floatType = dyn_cast<FloatType>(type)) {
    unsigned width = floatType.getWidth();
    uint64_t bits = width == 16 ? tensor.as<uint16_t>()[index] : tensor.as<uint8_t>()[index];
    llvm::APFloat number(floatType.getFloatSemantics(), llvm::APInt(width, bits));
    bool losesInfo;
    number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return number.convertToDouble();
  }
  bool isUnsigned = type.isUnsignedInteger() || type.isInteger(1);
  if (unsigned width = type.getIntOrFloatBitWidth(); width > 1 && width < 8 && !isUnsigned)
    return int8_t(tensor.as<uint8_t>()[index] << (8 - width)) >> (8 - width);
  switch (cleave::reference::getElementBytes(type)) {
  case 1:
    return isUnsigned ? tensor.as<uint8_t>()[index] : tensor.as<int8_t>()[index];
  case 2:
    return isUnsigned ? tensor.as<uint16_t>()[index] : tensor.as<int16_t>()[index];
  case 4:
    return isUnsigned ? tensor.as<uint32_t>()[index] : tensor.as<int32_t>()[index];
  default:
    return isUnsigned ? static_cast<long double>(tensor.as<uint64_t>()[index]) : tensor.as<int64_t>()[index];
  }
}

/// Largest finite magnitude of some elements.
static double getLargest(const Tensor &tensor, int64_t first, int64_t count) {
  double largest = 0;
  for (int64_t i = first; i < first + count; ++i)
    if (double magnitude = std::fabs(static_cast<double>(getElement(tensor, i))); std::isfinite(magnitude))
      largest = std::max(largest, magnitude);
  return largest;
}

/// What `atol` is relative to.
static double getScale(const Tensor &tensor) { return getLargest(tensor, 0, tensor.getNumElements()); }

/// Elements of a row: what is compared with its largest element. A score for each class, an embedding, a line of pixels; where
/// rows have one element, a neighbor in the tensor is the only scale there is.
static int64_t getRow(const Tensor &tensor) {
  ArrayRef<int64_t> shape = tensor.getShape();
  return shape.empty() || shape.back() <= 1 ? std::max<int64_t>(tensor.getNumElements(), 1) : shape.back();
}

Difference cleave::compare(const Tensor &got, const Tensor &want, Tolerance tolerance) {
  Difference difference;
  bool isFloat = isa<FloatType>(want.getElementType()) && isa<FloatType>(got.getElementType());
  assert(got.getType().getShape() == want.getType().getShape() && (isFloat || got.getType() == want.getType()) &&
         "compared tensors differ in shape, or one alone is of floats");
  if (!isFloat && got.getBytes() == want.getBytes())
    return difference;
  double scale = isFloat ? getScale(want) : 1, largest = 0;
  int64_t row = getRow(want);
  for (int64_t i = 0, e = want.getNumElements(); i < e; ++i) {
    if (tolerance.ofRow > 0 && i % row == 0)
      largest = getLargest(want, i, row);
    long double a = getElement(got, i), b = getElement(want, i);
    bool areNan = std::isnan(a) && std::isnan(b);
    difference.nans += areNan;
    if (a == b || areNan)
      continue;
    double distance = std::isnan(a - b) ? INFINITY : static_cast<double>(std::fabs(a - b));
    double allowed = isFloat ? tolerance.rtol * static_cast<double>(std::fabs(b)) + tolerance.atol * scale +
                                   tolerance.ofRow * largest
                             : 0;
    bool isClose = std::isfinite(distance) && distance <= allowed;
    difference.largest = std::max(difference.largest, distance);
    difference.inTolerances =
        std::max(difference.inTolerances, std::isfinite(distance) ? distance / allowed : INFINITY);
    if (difference.position < 0 && !isClose)
      difference.position = i;
  }
  return difference;
}

Spread cleave::getSpread(const Tensor &got, const Tensor &want, const Tensor &other) {
  Spread spread;
  double squares = 0, wanted = 0;
  int64_t count = 0;
  for (int64_t i = 0, e = want.getNumElements(); i < e; ++i) {
    long double a = getElement(got, i), b = getElement(want, i), c = getElement(other, i);
    auto isLike = [&](long double x) { return a == x || (std::isnan(a) && std::isnan(x)); };
    if (!std::isfinite(a) || !std::isfinite(b)) {
      spread.isFinite &= isLike(b) || isLike(c);
      continue;
    }
    double distance = static_cast<double>(std::fabs(a - b));
    ++count;
    squares += distance * distance;
    wanted += static_cast<double>(b * b);
    spread.largest = std::max(spread.largest, distance);
    spread.scale = std::max(spread.scale, static_cast<double>(std::fabs(b)));
  }
  spread.rms = count ? std::sqrt(squares / double(count)) : 0;
  spread.rmsOfWanted = count ? std::sqrt(wanted / double(count)) : 0;
  return spread;
}

std::string cleave::formatNumber(long double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*Lg", digits, number);
  return text;
}

/// All that a 64-bit integer may have.
static constexpr int kMostDigits = 20;
static int getDigits(Type type) { return isa<FloatType>(type) ? 6 : kMostDigits; }

std::pair<std::string, std::string> cleave::formatApart(const Tensor &got, const Tensor &want, int64_t position) {
  long double a = getElement(got, position), b = getElement(want, position);
  int digits = getDigits(want.getElementType());
  while (digits < kMostDigits && a != b && formatNumber(a, digits) == formatNumber(b, digits))
    ++digits;
  return {formatNumber(a, digits), formatNumber(b, digits)};
}

std::string cleave::summarize(const Tensor &tensor) {
  int64_t nans = 0, infinities = 0, finites = 0;
  long double least = INFINITY, largest = -INFINITY, sum = 0;
  for (int64_t i = 0, e = tensor.getNumElements(); i < e; ++i) {
    long double number = getElement(tensor, i);
    nans += std::isnan(number);
    infinities += std::isinf(number);
    if (!std::isfinite(number))
      continue;
    ++finites;
    least = std::min(least, number);
    largest = std::max(largest, number);
    sum += number;
  }
  int digits = getDigits(tensor.getElementType());
  std::string text = finites ? llvm::formatv("least {0}, mean {1}, largest {2}", formatNumber(least, digits),
                                             formatNumber(sum / finites), formatNumber(largest, digits))
                             : std::string(tensor.getNumElements() ? "no finite element" : "no elements");
  if (nans)
    text += llvm::formatv(", {0} NaN", nans);
  if (infinities)
    text += llvm::formatv(", {0} infinite", infinities);
  return text;
}
