//===- Reduce.cpp - terms combined in order -------------------------------===//
//
// Terms are combined block by block, so that the running result stays in the first-level cache while one source after
// the other is added to it. The loops are plain; the compiler vectorizes them.
//
//===----------------------------------------------------------------------===//
#include "Reduce.h"
#include "Numbers.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <type_traits>

using namespace cleave::runtime;

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

/// The same, small before fast: products are rare.
template <Reduction kReduction, typename T>
__attribute__((minsize, noinline)) static void reduceRarely(const std::vector<const char *> &sources, char *to,
                                                            uint64_t count) {
  T *target = reinterpret_cast<T *>(to);
  for (uint64_t i = 0; i < count; ++i) {
    Running<T> result = load(reinterpret_cast<const T *>(sources.front())[i]);
    for (size_t source = 1; source < sources.size(); ++source)
      result = combine<kReduction>(result, load(reinterpret_cast<const T *>(sources[source])[i]));
    store(target[i], result);
  }
}

template <typename T, bool = std::is_integral_v<T>> struct WrappingOf {
  using type = T;
};
template <typename T> struct WrappingOf<T, true> {
  using type = std::make_unsigned_t<T>;
};

template <typename T>
static void reduceBy(Reduction reduction, const std::vector<const char *> &sources, char *target, uint64_t count) {
  // Sums and products of integers are those of unsigned ones, bit by bit.
  using Wrapping = typename WrappingOf<T>::type;
  switch (reduction) {
  case Reduction::None:
    return;
  case Reduction::Sum:
    return reduceAs<Reduction::Sum, Wrapping>(sources, target, count);
  case Reduction::Prod:
    return reduceRarely<Reduction::Prod, Wrapping>(sources, target, count);
  case Reduction::Max:
    return reduceAs<Reduction::Max, T>(sources, target, count);
  case Reduction::Min:
    return reduceAs<Reduction::Min, T>(sources, target, count);
  }
}

void cleave::runtime::reduce(Reduction reduction, ElementType type, const std::vector<const char *> &sources,
                             char *target, uint64_t count) {
  assert(!sources.empty() && isLegal(reduction, type) && "nothing to reduce, or in no such way");
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
