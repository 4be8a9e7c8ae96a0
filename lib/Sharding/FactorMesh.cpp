//===- FactorMesh.cpp - a mesh for lists of shards ------------------------===//
//
// Any mesh that serves can be split into prime axes, and serves still. So: meshes of primes, in each order of the primes,
// until one serves; then neighboring axes become one where every list has both side by side, or neither.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/FactorMesh.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace llvm;
using namespace cleave::spmd;

/// A step along an axis adds its weight to the shard's number; the weights of the splits are those of a mixed radix, and
/// all devices must be as the few that were asked for them say.
std::optional<SmallVector<unsigned>> cleave::spmd::findSplits(ArrayRef<int64_t> sizes, const HeldShards &held) {
  assert(int64_t(held.shards.size()) == product_of(sizes) && "one entry per device");
  SmallVector<int64_t> strides(sizes.size(), 1), weights(sizes.size(), 0);
  for (size_t axis = sizes.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * sizes[axis];
  SmallVector<unsigned> splits;
  for (auto [axis, size] : enumerate(sizes))
    if (size > 1 && (weights[axis] = held.shards[strides[axis]]) > 0)
      splits.push_back(axis);
  llvm::sort(splits, [&](unsigned a, unsigned b) { return weights[a] > weights[b]; });
  int64_t radix = 1;
  for (unsigned axis : llvm::reverse(splits)) {
    if (weights[axis] != radix)
      return std::nullopt;
    radix *= sizes[axis];
  }
  if (radix != held.count)
    return std::nullopt;
  for (auto [device, shard] : enumerate(held.shards)) {
    int64_t told = 0;
    for (unsigned axis : splits)
      told += int64_t(device) / strides[axis] % sizes[axis] * weights[axis];
    if (told != shard)
      return std::nullopt;
  }
  return splits;
}

/// In ascending order, from which all other orders follow.
static SmallVector<int64_t> getPrimeFactors(int64_t number) {
  SmallVector<int64_t> primes;
  for (int64_t prime = 2; number > 1; ++prime) {
    if (prime * prime > number)
      prime = number;
    for (; number % prime == 0; number /= prime)
      primes.push_back(prime);
  }
  return primes;
}

using Splits = SmallVector<SmallVector<unsigned>>;

static std::optional<Splits> findAllSplits(ArrayRef<int64_t> sizes, ArrayRef<HeldShards> lists) {
  Splits all;
  for (const HeldShards &held : lists) {
    auto splits = findSplits(sizes, held);
    if (!splits)
      return std::nullopt;
    all.push_back(std::move(*splits));
  }
  return all;
}

/// True if every list has `axis` with the next one right behind it, or neither.
static bool areAsOne(const Splits &all, unsigned axis) {
  return llvm::all_of(all, [&](ArrayRef<unsigned> splits) {
    const unsigned *at = llvm::find(splits, axis);
    bool hasNext = llvm::is_contained(splits, axis + 1);
    return at == splits.end() ? !hasNext : at + 1 != splits.end() && at[1] == axis + 1;
  });
}

std::optional<SmallVector<int64_t>> cleave::spmd::factorMesh(int64_t devices, ArrayRef<HeldShards> lists) {
  constexpr int mostOrders = 5040;
  SmallVector<int64_t> primes = getPrimeFactors(devices);
  std::optional<Splits> all;
  for (int order = 0; !(all = findAllSplits(primes, lists)); ++order)
    if (order == mostOrders || !std::next_permutation(primes.begin(), primes.end()))
      return std::nullopt;
  SmallVector<int64_t> sizes;
  for (auto [axis, prime] : enumerate(primes))
    if (axis > 0 && areAsOne(*all, axis - 1))
      sizes.back() *= prime;
    else
      sizes.push_back(prime);
  return sizes;
}
