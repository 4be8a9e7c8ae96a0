//===- HashIndex.h - numbers of things by their hashes ----------*- C++ -*-===//
//
// Whoever numbers equal things alike keeps the things in the order of their numbers, and asks here which of them may be equal:
//
//   uint32_t id = index.find(hash, [&](uint32_t other) { return things[other] == thing; });
//   if (id == things.size())
//     things.push_back(thing);
//
// Those of one hash are a chain through an array: nothing is allocated for each.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SUPPORT_HASHINDEX_H
#define CLEAVE_SUPPORT_HASHINDEX_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/xxhash.h"
#include <cstdint>
#include <type_traits>
#include <vector>

namespace cleave {

/// The hash of a list of numbers, byte by byte.
template <typename Number> uint64_t hashWords(llvm::ArrayRef<Number> words) {
  static_assert(std::is_integral_v<Number>, "a hash looks at all bytes, and padding has any");
  return llvm::xxh3_64bits({reinterpret_cast<const uint8_t *>(words.data()), words.size() * sizeof(Number)});
}

/// Dense numbers, from 0 on.
class HashIndex {
public:
  /// The number with this hash that `isSame` is true of, or else the next number, which has the hash from now on.
  template <typename IsSame> uint32_t find(uint64_t hash, IsSame isSame) {
    uint32_t next = earlier.size();
    // Halved: the two largest keys are the table's own.
    auto [latest, isNew] = latestOf.try_emplace(hash >> 1, next);
    if (!isNew)
      for (uint32_t number = latest->second; number != kNone; number = earlier[number])
        if (isSame(number))
          return number;
    earlier.push_back(isNew ? kNone : latest->second);
    latest->second = next;
    return next;
  }

private:
  static constexpr uint32_t kNone = ~uint32_t(0);
  llvm::DenseMap<uint64_t, uint32_t> latestOf;
  /// Of each number the one before it of the same hash.
  std::vector<uint32_t> earlier;
};

} // namespace cleave

#endif // CLEAVE_SUPPORT_HASHINDEX_H
