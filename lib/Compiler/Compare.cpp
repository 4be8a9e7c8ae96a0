//===- Compare.cpp - are two tensors the same? ----------------------------===//
#include "cleave/Compiler/Values.h"

#include "llvm/ADT/APFloat.h"

#include <cassert>
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace cleave::driver;
using cleave::reference::Tensor;

Tolerance cleave::driver::getDefaultTolerance(Type elementType) {
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

/// Every element as a double. Large 64-bit integers are rounded: `compare` decides on their bytes.
static double getElement(const Tensor &tensor, int64_t index) {
  Type type = tensor.getElementType();
  if (type.isF32())
    return tensor.as<float>()[index];
  if (type.isF64())
    return tensor.as<double>()[index];
  if (auto floatType = dyn_cast<FloatType>(type)) {
    llvm::APFloat number(floatType.getFloatSemantics(), llvm::APInt(16, tensor.as<uint16_t>()[index]));
    bool losesInfo;
    number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return number.convertToDouble();
  }
  bool isUnsigned = type.isUnsignedInteger() || type.isInteger(1);
  switch (cleave::reference::getElementBytes(type)) {
  case 1:
    return isUnsigned ? tensor.as<uint8_t>()[index] : tensor.as<int8_t>()[index];
  case 2:
    return isUnsigned ? tensor.as<uint16_t>()[index] : tensor.as<int16_t>()[index];
  case 4:
    return isUnsigned ? tensor.as<uint32_t>()[index] : tensor.as<int32_t>()[index];
  default:
    return static_cast<double>(tensor.as<int64_t>()[index]);
  }
}

/// Largest finite magnitude, at least 1: what `atol` is relative to.
static double getScale(const Tensor &tensor) {
  double scale = 1;
  for (int64_t i = 0, e = tensor.getNumElements(); i < e; ++i)
    if (double magnitude = std::fabs(getElement(tensor, i)); std::isfinite(magnitude))
      scale = std::max(scale, magnitude);
  return scale;
}

Difference cleave::driver::compare(const Tensor &got, const Tensor &want, Tolerance tolerance) {
  assert(got.getType() == want.getType() && "compared tensors differ in type");
  Difference difference;
  if (got.getBytes() == want.getBytes())
    return difference;
  bool isFloat = isa<FloatType>(want.getElementType());
  size_t bytes = cleave::reference::getElementBytes(want.getElementType());
  double scale = getScale(want);
  for (int64_t i = 0, e = want.getNumElements(); i < e; ++i) {
    if (std::memcmp(got.getBytes().data() + i * bytes, want.getBytes().data() + i * bytes, bytes) == 0)
      continue;
    double a = getElement(got, i), b = getElement(want, i);
    if (isFloat && (a == b || (std::isnan(a) && std::isnan(b))))
      continue;
    double distance = std::isnan(a - b) ? INFINITY : std::fabs(a - b);
    difference.largest = std::max(difference.largest, distance);
    bool isClose = isFloat && distance <= tolerance.rtol * std::fabs(b) + tolerance.atol * scale;
    if (difference.position < 0 && !isClose) {
      difference.position = i;
      difference.got = a;
      difference.want = b;
    }
  }
  return difference;
}
