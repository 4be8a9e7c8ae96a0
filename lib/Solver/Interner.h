//===- Interner.h - equal lists of words get one number ---------*- C++ -*-===//
//
// Signatures, strategies and profiles of ops recur all over a model. Each is written as a list of words once, and is a
// number from then on: comparing two is comparing numbers, and what is computed for one is found again by its number.
//
// Words lie one list after the other in one pool.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SOLVER_INTERNER_H
#define CLEAVE_LIB_SOLVER_INTERNER_H

#include "cleave/Support/HashIndex.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace cleave::spmd {

/// Numbers lists of words densely, in the order in which they first come.
class Interner {
public:
  /// The number of `words`, and whether it is new. Linear in their count.
  std::pair<uint32_t, bool> intern(llvm::ArrayRef<uint64_t> words) {
    uint32_t id = index.find(hashWords(words), [&](uint32_t other) { return (*this)[other] == words; });
    if (id < size())
      return {id, false};
    pool.insert(pool.end(), words.begin(), words.end());
    ends.push_back(pool.size());
    return {id, true};
  }

  /// The words of `id`, which must be less than `size()`. Valid until the next call of `intern`.
  llvm::ArrayRef<uint64_t> operator[](uint32_t id) const {
    size_t begin = id == 0 ? 0 : ends[id - 1];
    return llvm::ArrayRef<uint64_t>(pool).slice(begin, ends[id] - begin);
  }
  /// How many different lists have come so far.
  size_t size() const { return ends.size(); }

private:
  std::vector<uint64_t> pool;
  std::vector<size_t> ends;
  HashIndex index;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SOLVER_INTERNER_H
