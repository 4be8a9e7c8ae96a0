//===- Reduce.cpp - terms combined in order -------------------------------===//
//
// Terms are combined block by block, so that the running result stays in the first-level cache while one source after
// the other is added to it. The loops are plain; the compiler vectorises them.
//
//===----------------------------------------------------------------------===//
#include "Reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

using namespace cleave::runtime;

//===----------------------------------------------------------------------===//
// Elements: storage, and the type to compute in
//===----------------------------------------------------------------------===//

namespace {
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
} // namespace

template <typename To, typename From> static To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

template <typename T> static T load(T value) { return value; }
static float load(BFloat value) { return bitCast<float>(uint32_t(value.bits) << 16); }
static float load(Half value) {
  // The exponent is rebiased by a product, which makes subnormals normal; infinity and NaN keep theirs.
  uint32_t magnitude = value.bits & 0x7fffu, sign = uint32_t(value.bits & 0x8000u) << 16;
  uint32_t finite = bitCast<uint32_t>(bitCast<float>(magnitude << 13) * 0x1p112f);
  return bitCast<float>(sign | (magnitude >= 0x7c00u ? 0x7f800000u | magnitude << 13 : finite));
}

template <typename T, typename C> static void store(T &to, C value) { to = T(value); }
/// To nearest, ties to even.
static void store(BFloat &to, float value) {
  uint32_t bits = bitCast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  to.bits = uint16_t((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
}
static void store(Half &to, float value) {
  uint32_t bits = bitCast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  // Below 2^-14 the sum with 0.5 rounds to the places that a subnormal has; above, rounding carries into the exponent.
  uint32_t subnormal = bitCast<uint32_t>(bitCast<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1) - 0x38000000u) >> 13;
  uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  to.bits = uint16_t(bits >> 16 & 0x8000u) | uint16_t(magnitude >= 0x47800000u ? special : result);
}

/// Integers wrap: unsigned, and wide enough that nothing is promoted to a signed type.
template <typename T, bool = std::is_integral_v<T>> struct ComputeOf {
  using type = std::conditional_t<std::is_same_v<T, double>, double, float>;
};
template <typename T> struct ComputeOf<T, true> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};

//===----------------------------------------------------------------------===//
// Combining
//===----------------------------------------------------------------------===//

template <Reduction kReduction, typename T> static T combine(T x, T y) {
  if constexpr (kReduction == Reduction::Sum || kReduction == Reduction::Prod) {
    using C = std::conditional_t<std::is_integral_v<T>, typename ComputeOf<T>::type, T>;
    return T(kReduction == Reduction::Sum ? C(x) + C(y) : C(x) * C(y));
  } else {
    bool first = kReduction == Reduction::Max ? x > y : x < y;
    if constexpr (!std::is_integral_v<T>)
      first |= std::isnan(x);
    return first ? x : y;
  }
}

static constexpr uint64_t kBlock = 1024;

/// The type of a running result: that of storage, but float for the two narrow floats.
template <typename T> using Running = std::conditional_t<std::is_class_v<T>, float, T>;

template <Reduction kReduction, typename T>
static void reduceAs(const std::vector<const char *> &sources, char *to, uint64_t count) {
  T *target = reinterpret_cast<T *>(to);
  alignas(64) Running<T> block[kBlock];
  for (uint64_t begin = 0; begin < count; begin += kBlock) {
    uint64_t size = std::min(kBlock, count - begin);
    const T *first = reinterpret_cast<const T *>(sources.front()) + begin;
    for (uint64_t i = 0; i < size; ++i)
      block[i] = load(first[i]);
    for (size_t source = 1; source < sources.size(); ++source) {
      const T *next = reinterpret_cast<const T *>(sources[source]) + begin;
      for (uint64_t i = 0; i < size; ++i)
        block[i] = combine<kReduction>(block[i], load(next[i]));
    }
    for (uint64_t i = 0; i < size; ++i)
      store(target[begin + i], block[i]);
  }
}

template <typename T>
static void reduceBy(Reduction reduction, const std::vector<const char *> &sources, char *target, uint64_t count) {
  switch (reduction) {
  case Reduction::None:
    return;
  case Reduction::Sum:
    return reduceAs<Reduction::Sum, T>(sources, target, count);
  case Reduction::Prod:
    return reduceAs<Reduction::Prod, T>(sources, target, count);
  case Reduction::Max:
    return reduceAs<Reduction::Max, T>(sources, target, count);
  case Reduction::Min:
    return reduceAs<Reduction::Min, T>(sources, target, count);
  }
}

void cleave::runtime::reduce(Reduction reduction, ElementType type, const std::vector<const char *> &sources,
                             char *target, uint64_t count) {
  switch (type) {
  case ElementType::F64:
    return reduceBy<double>(reduction, sources, target, count);
  case ElementType::F32:
    return reduceBy<float>(reduction, sources, target, count);
  case ElementType::F16:
    return reduceBy<Half>(reduction, sources, target, count);
  case ElementType::BF16:
    return reduceBy<BFloat>(reduction, sources, target, count);
  case ElementType::I64:
    return reduceBy<int64_t>(reduction, sources, target, count);
  case ElementType::I32:
    return reduceBy<int32_t>(reduction, sources, target, count);
  case ElementType::I16:
    return reduceBy<int16_t>(reduction, sources, target, count);
  case ElementType::I8:
    return reduceBy<int8_t>(reduction, sources, target, count);
  case ElementType::UI64:
    return reduceBy<uint64_t>(reduction, sources, target, count);
  case ElementType::UI32:
    return reduceBy<uint32_t>(reduction, sources, target, count);
  case ElementType::UI16:
    return reduceBy<uint16_t>(reduction, sources, target, count);
  case ElementType::UI8:
  case ElementType::I1:
    return reduceBy<uint8_t>(reduction, sources, target, count);
  }
}

//===----------------------------------------------------------------------===//
// Moving
//===----------------------------------------------------------------------===//

ByteRows cleave::runtime::getRows(const Tiling &tiling, ElementType type) {
  return {tiling.row * getElementBytes(type), tiling.rowStride * getElementBytes(type)};
}

void cleave::runtime::copyRows(const char *source, ByteRows from, char *target, ByteRows to, uint64_t total) {
  uint64_t inSource = 0, inTarget = 0; // bytes of the current rows that are done
  while (total > 0) {
    uint64_t size = std::min({from.row - inSource, to.row - inTarget, total});
    if (source + inSource != target + inTarget)
      std::memcpy(target + inTarget, source + inSource, size);
    total -= size;
    if ((inSource += size) == from.row) {
      source += from.stride;
      inSource = 0;
    }
    if ((inTarget += size) == to.row) {
      target += to.stride;
      inTarget = 0;
    }
  }
}
