//===- Elements.cpp - conversions of elements -----------------------------===//
//
// f16 is converted by adding a magic number to the exponent, in three ranges (normal, denormal, infinite or NaN); bf16
// is the upper half of a float. Both round to nearest even by adding half a unit, less one where the kept bit is even.
//
//===----------------------------------------------------------------------===//
#include "Elements.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/TypeSwitch.h"
#include <array>

using namespace mlir;
using namespace cleave::reference;

/// IEEE 754 half: a sign, 5 bits of exponent (bias 15), 10 of fraction; its denormals are multiples of 2^-24.
float cleave::reference::toFloat(Half value) {
  uint32_t sign = uint32_t(value.bits & 0x8000) << 16;
  uint32_t magnitude = value.bits & 0x7fff;
  if (magnitude >= 0x7c00) // infinity and NaN: the exponent is all ones in f32 too
    return llvm::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400)
    return llvm::bit_cast<float>(sign | ((magnitude << 13) + (uint32_t(127 - 15) << 23)));
  float denormal = float(magnitude) * 0x1p-24f;
  return llvm::bit_cast<float>(sign | llvm::bit_cast<uint32_t>(denormal));
}

/// To nearest, ties to even: adding half a unit less one, and the last bit that stays, carries where it must.
Half cleave::reference::toHalf(float value) {
  uint32_t bits = llvm::bit_cast<uint32_t>(value);
  uint16_t sign = (bits >> 16) & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) // NaN stays quiet, with the upper bits of its payload
    return {uint16_t(sign | 0x7e00 | ((magnitude >> 13) & 0x1ff))};
  if (magnitude >= 0x477ff000) // from 65520 on everything rounds to infinity
    return {uint16_t(sign | 0x7c00)};
  if (magnitude >= 0x38800000) { // normal: 2^-14 and above
    uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
    return {uint16_t(sign | ((rounded >> 13) - (uint32_t(127 - 15) << 10)))};
  }
  // Denormal: adding 0.5 lets the hardware round to the unit 2^-24, which is the last bit of floats near 0.5.
  float shifted = llvm::bit_cast<float>(magnitude) + 0.5f;
  return {uint16_t(sign | (llvm::bit_cast<uint32_t>(shifted) - 0x3f000000))};
}

/// The upper half of a float, rounded as above; a NaN must not become an infinity by that.
BFloat cleave::reference::toBFloat(float value) {
  uint32_t bits = llvm::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return {uint16_t((bits >> 16) | 0x40)};
  return {uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

// A narrower type that is rounded to next then rounds as if from the exact value: the last bit says that there was
// more.
float cleave::reference::roundToOdd(long double value) {
  if (std::isnan(value))
    return std::numeric_limits<float>::quiet_NaN();
  float nearest = static_cast<float>(value);
  if (static_cast<long double>(nearest) == value)
    return nearest;
  uint32_t bits = llvm::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<long double>(nearest)) > std::fabs(value))
    --bits; // toward zero; infinity becomes the largest float
  return llvm::bit_cast<float>(bits | 1);
}

static const llvm::fltSemantics &getSemantics(ElementKind kind) {
  switch (kind) {
  case ElementKind::F8E4M3FN:
    return llvm::APFloat::Float8E4M3FN();
  case ElementKind::F8E4M3FNUZ:
    return llvm::APFloat::Float8E4M3FNUZ();
  case ElementKind::F8E5M2:
    return llvm::APFloat::Float8E5M2();
  case ElementKind::F8E5M2FNUZ:
    return llvm::APFloat::Float8E5M2FNUZ();
  case ElementKind::F8E8M0FNU:
    return llvm::APFloat::Float8E8M0FNU();
  default:
    return llvm::APFloat::Float4E2M1FN();
  }
}

/// All there are, once for each kind.
float cleave::reference::widenSmallFloat(ElementKind kind, uint8_t bits) {
  static const auto tables = [] {
    std::array<std::array<float, 256>, 6> made{};
    for (size_t row = 0; row < made.size(); ++row) {
      const llvm::fltSemantics &semantics = getSemantics(ElementKind(size_t(ElementKind::F8E4M3FN) + row));
      unsigned width = llvm::APFloat::getSizeInBits(semantics);
      for (unsigned number = 0; number < 1u << width; ++number) {
        llvm::APFloat value(semantics, llvm::APInt(width, number));
        bool losesInfo;
        value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
        made[row][number] = value.isNaN() ? std::numeric_limits<float>::quiet_NaN() : value.convertToFloat();
      }
    }
    return made;
  }();
  return tables[size_t(kind) - size_t(ElementKind::F8E4M3FN)][bits];
}

/// The one type without infinity and NaN gets the largest number and -0 for them.
static float replaceSpecial(float value) {
  if (std::isnan(value))
    return -0.0f;
  return std::isinf(value) ? std::copysign(6.0f, value) : value;
}

/// Powers of two: the exponent of a float, rounded by its fraction, without sign; 2^-127, the least, for 0.
static uint8_t toPowerOfTwo(float value) {
  uint32_t bits = llvm::bit_cast<uint32_t>(value) & 0x7fffffff;
  if (bits >= 0x7f800000)
    return 0xff;
  uint32_t exponent = bits >> 23, fraction = bits & 0x7fffff;
  // A half goes up but for that of the least, as ONNX has it.
  return exponent + (fraction > 0x400000 || (fraction == 0x400000 && exponent > 0));
}

uint8_t cleave::reference::toSmallFloat(ElementKind kind, float value) {
  if (kind == ElementKind::F8E8M0FNU)
    return toPowerOfTwo(value);
  llvm::APFloat number(kind == ElementKind::F4E2M1FN ? replaceSpecial(value) : value);
  bool losesInfo;
  number.convert(getSemantics(kind), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return uint8_t(number.bitcastToAPInt().getZExtValue());
}

/// Floats of 8 and 4 bits.
static std::optional<ElementKind> getSmallKind(Type type) {
  return llvm::TypeSwitch<Type, std::optional<ElementKind>>(type)
      .Case<Float8E4M3FNType>([](Type) { return ElementKind::F8E4M3FN; })
      .Case<Float8E4M3FNUZType>([](Type) { return ElementKind::F8E4M3FNUZ; })
      .Case<Float8E5M2Type>([](Type) { return ElementKind::F8E5M2; })
      .Case<Float8E5M2FNUZType>([](Type) { return ElementKind::F8E5M2FNUZ; })
      .Case<Float8E8M0FNUType>([](Type) { return ElementKind::F8E8M0FNU; })
      .Case<Float4E2M1FNType>([](Type) { return ElementKind::F4E2M1FN; })
      .Default([](Type) { return std::nullopt; });
}

std::optional<ElementKind> cleave::reference::getElementKind(Type type) {
  if (type.isF32())
    return ElementKind::F32;
  if (type.isF16())
    return ElementKind::F16;
  if (type.isBF16())
    return ElementKind::BF16;
  if (type.isF64())
    return ElementKind::F64;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return getSmallKind(type);
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return ElementKind::Bool;
  case 2:
    return isUnsigned ? ElementKind::U2 : ElementKind::I2;
  case 4:
    return isUnsigned ? ElementKind::U4 : ElementKind::I4;
  case 8:
    return isUnsigned ? ElementKind::U8 : ElementKind::I8;
  case 16:
    return isUnsigned ? ElementKind::U16 : ElementKind::I16;
  case 32:
    return isUnsigned ? ElementKind::U32 : ElementKind::I32;
  case 64:
    return isUnsigned ? ElementKind::U64 : ElementKind::I64;
  }
  return std::nullopt;
}

template <typename C> void cleave::reference::loadElements(const Tensor &tensor, int64_t start, int64_t count, C *to) {
  dispatchStorage(*getElementKind(tensor.getElementType()), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *from = tensor.as<T>().data() + start;
    for (int64_t i = 0; i < count; ++i)
      to[i] = storeElement<C>(loadElement<Compute<T>>(from[i]));
  });
}

template <typename C>
void cleave::reference::storeElements(Tensor &tensor, int64_t start, int64_t count, const C *from) {
  dispatchStorage(*getElementKind(tensor.getElementType()), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T *to = tensor.write<T>().data() + start;
    for (int64_t i = 0; i < count; ++i)
      to[i] = storeElement<T>(from[i]);
  });
}

#define INSTANTIATE(C)                                                                                                 \
  template void cleave::reference::loadElements<C>(const Tensor &, int64_t, int64_t, C *);                             \
  template void cleave::reference::storeElements<C>(Tensor &, int64_t, int64_t, const C *);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(int64_t)
INSTANTIATE(uint64_t)
#undef INSTANTIATE
