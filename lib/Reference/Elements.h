//===- Elements.h - element types of the evaluator --------------*- C++ -*-===//
//
// Tensors store many kinds of elements; kernels compute in four: float (f32, f16, bf16), double (f64), int64_t
// (signed integers and bool) and uint64_t (unsigned integers). Loading widens exactly. Storing rounds once, to nearest
// even, or keeps the low bits of an integer: sums, products and the like then wrap as in the narrow type.
//
// Numbers of 8 bits and fewer take a byte each, those of 4 and 2 bits its low ones; the others are 0.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_REFERENCE_ELEMENTS_H
#define CLEAVE_LIB_REFERENCE_ELEMENTS_H

#include "SmallElements.h"
#include "cleave/Reference/Tensor.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace cleave::reference {

/// IEEE binary16 and bfloat16, as bits.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

/// Exact.
float toFloat(Half value);
inline float toFloat(BFloat value) { return llvm::bit_cast<float>(uint32_t(value.bits) << 16); }
/// Rounded to nearest even; overflow gives infinity, NaN stays NaN.
Half toHalf(float value);
BFloat toBFloat(float value);
/// `value` as a float whose last bit is set where something was cut off: rounding that to f16 or bf16 gives what
/// rounding `value` itself would.
float roundToOdd(long double value);

/// Nothing for types that tensors of the evaluator cannot have.
std::optional<ElementKind> getElementKind(mlir::Type elementType);

/// The type that kernels compute an element stored as `T` in.
template <typename T>
using Compute = std::conditional_t<
    std::is_same_v<T, double>, double,
    std::conditional_t<
        !std::is_integral_v<T> && !isSmallInteger<T>, float,
        std::conditional_t<std::is_signed_v<T> || std::is_same_v<T, bool> || isSmallSigned<T>, int64_t, uint64_t>>>;

template <typename T> struct Tag {
  using type = T;
};

/// Calls `fn(Tag<storage type>())`.
template <typename Fn> decltype(auto) dispatchStorage(ElementKind kind, Fn &&fn) {
  switch (kind) {
  case ElementKind::F32:
    return fn(Tag<float>());
  case ElementKind::F16:
    return fn(Tag<Half>());
  case ElementKind::BF16:
    return fn(Tag<BFloat>());
  case ElementKind::F64:
    return fn(Tag<double>());
  case ElementKind::Bool:
    return fn(Tag<bool>());
  case ElementKind::I8:
    return fn(Tag<int8_t>());
  case ElementKind::I16:
    return fn(Tag<int16_t>());
  case ElementKind::I32:
    return fn(Tag<int32_t>());
  case ElementKind::I64:
    return fn(Tag<int64_t>());
  case ElementKind::U8:
    return fn(Tag<uint8_t>());
  case ElementKind::U16:
    return fn(Tag<uint16_t>());
  case ElementKind::U32:
    return fn(Tag<uint32_t>());
  case ElementKind::I4:
    return fn(Tag<SmallInteger<4, true>>());
  case ElementKind::U4:
    return fn(Tag<SmallInteger<4, false>>());
  case ElementKind::I2:
    return fn(Tag<SmallInteger<2, true>>());
  case ElementKind::U2:
    return fn(Tag<SmallInteger<2, false>>());
  case ElementKind::F8E4M3FN:
    return fn(Tag<SmallFloat<ElementKind::F8E4M3FN>>());
  case ElementKind::F8E4M3FNUZ:
    return fn(Tag<SmallFloat<ElementKind::F8E4M3FNUZ>>());
  case ElementKind::F8E5M2:
    return fn(Tag<SmallFloat<ElementKind::F8E5M2>>());
  case ElementKind::F8E5M2FNUZ:
    return fn(Tag<SmallFloat<ElementKind::F8E5M2FNUZ>>());
  case ElementKind::F8E8M0FNU:
    return fn(Tag<SmallFloat<ElementKind::F8E8M0FNU>>());
  case ElementKind::F4E2M1FN:
    return fn(Tag<SmallFloat<ElementKind::F4E2M1FN>>());
  case ElementKind::U64:
    break;
  }
  return fn(Tag<uint64_t>());
}

/// Calls `fn(Tag<compute type>())`.
template <typename Fn> decltype(auto) dispatchCompute(mlir::Type elementType, Fn &&fn) {
  if (elementType.isF64())
    return fn(Tag<double>());
  if (!elementType.isInteger())
    return fn(Tag<float>());
  if (elementType.isUnsignedInteger() && !elementType.isInteger(1))
    return fn(Tag<uint64_t>());
  return fn(Tag<int64_t>());
}

/// As dispatchCompute, for element types that are floats.
template <typename Fn> decltype(auto) dispatchFloat(mlir::Type elementType, Fn &&fn) {
  if (elementType.isF64())
    return fn(Tag<double>());
  return fn(Tag<float>());
}

/// One element between storage and compute type.
template <typename C, typename T> C loadElement(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>)
    return C(toFloat(value));
  else if constexpr (isSmallFloat<T>)
    return C(widenSmallFloat(smallKind<T>, value.bits));
  else if constexpr (isSmallInteger<T>) // the sign is brought to the top bit and back
    return isSmallSigned<T> ? C(int8_t(value.bits << (8 - smallWidth<T>)) >> (8 - smallWidth<T>)) : C(value.bits);
  else
    return C(value);
}

/// A float or double as an integer of type `T`: truncated; out of range and NaN as x86 converts (the smallest i32 or
/// i64; narrower types keep the low bits of that).
template <typename T> T truncateToInteger(double value) {
  using Wide = std::conditional_t<(sizeof(T) < 4 || std::is_same_v<T, int32_t>), int32_t, int64_t>;
  if constexpr (std::is_same_v<T, uint64_t>)
    if (value >= 0x1p63 && value < 0x1p64)
      return T(value);
  constexpr double limit = sizeof(Wide) == 4 ? 0x1p31 : 0x1p63;
  if (!(value > -limit - 1 && value < limit))
    return T(std::numeric_limits<Wide>::min());
  return T(Wide(value));
}

template <typename T, typename C> T storeElement(C value) {
  if constexpr (isSmallInteger<T>) {
    return {uint8_t(storeElement<uint8_t>(value) & ((1u << smallWidth<T>)-1))};
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat> || isSmallFloat<T>) {
    float narrow;
    if constexpr (std::is_same_v<C, float>)
      narrow = value;
    else
      narrow = roundToOdd(static_cast<long double>(value));
    if constexpr (std::is_same_v<T, Half>)
      return toHalf(narrow);
    else if constexpr (isSmallFloat<T>)
      return {toSmallFloat(smallKind<T>, narrow)};
    else
      return toBFloat(narrow);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<C>) {
    return truncateToInteger<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

/// Elements [start, start + count) of `tensor`, converted.
template <typename C> void loadElements(const Tensor &tensor, int64_t start, int64_t count, C *to);
/// Writes elements [start, start + count) of `tensor`.
template <typename C> void storeElements(Tensor &tensor, int64_t start, int64_t count, const C *from);

/// True if elements are stored as `C` itself.
template <typename C> bool isStoredAs(mlir::Type elementType) {
  return getElementKind(elementType) == (std::is_same_v<C, float>     ? ElementKind::F32
                                         : std::is_same_v<C, double>  ? ElementKind::F64
                                         : std::is_same_v<C, int64_t> ? ElementKind::I64
                                                                      : ElementKind::U64);
}

/// All elements of a tensor in compute type: in place where they are stored so, else converted.
template <typename C> class Elements {
public:
  explicit Elements(const Tensor &tensor) : tensor(tensor) {
    if (isStoredAs<C>(tensor.getElementType()))
      return;
    converted.resize(tensor.getNumElements());
    loadElements<C>(tensor, 0, tensor.getNumElements(), converted.data());
  }
  const C *data() const { return converted.empty() ? tensor.as<C>().data() : converted.data(); }
  const C &operator[](int64_t index) const { return data()[index]; }
  int64_t size() const { return tensor.getNumElements(); }

private:
  Tensor tensor;
  std::vector<C> converted;
};

/// A result that a kernel writes in compute type: in place where stored so, else converted by `finish`.
template <typename C> class ResultBuffer {
public:
  explicit ResultBuffer(mlir::RankedTensorType type) : tensor(Tensor::zeros(type)) {
    if (!isStoredAs<C>(type.getElementType()))
      converted.resize(tensor.getNumElements());
  }
  C *data() { return converted.empty() ? tensor.write<C>().data() : converted.data(); }
  C &operator[](int64_t index) { return data()[index]; }
  Tensor finish() {
    if (!converted.empty())
      storeElements<C>(tensor, 0, tensor.getNumElements(), converted.data());
    return tensor;
  }

private:
  Tensor tensor;
  std::vector<C> converted;
};

/// Product of extents. Wraps where a tensor without elements has other extents that are huge.
inline int64_t product(llvm::ArrayRef<int64_t> extents) {
  uint64_t result = 1;
  for (int64_t extent : extents)
    result *= uint64_t(extent);
  return int64_t(result);
}

} // namespace cleave::reference

#endif // CLEAVE_LIB_REFERENCE_ELEMENTS_H
