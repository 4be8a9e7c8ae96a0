//===- Padding.h - what of shards lies behind their tensors -----*- C++ -*-===//
//
// Where the last shards of a dim end behind it, ranks hold elements that are nobody's: 5 rows on 4 ranks take 8.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_PADDING_H
#define CLEAVE_SHARDING_PADDING_H

#include <cstdint>

namespace cleave::spmd {

/// Bytes of padding, and bytes that shards take with it, on all ranks together.
struct Padding {
  int64_t bytes = 0, heldBytes = 0;

  /// Adds a tensor of `globalBytes` that is split into `shards`, of which each of `ranks`, a multiple of them, holds one, of `localBytes`.
  /// All shards together hold each element once.
  void add(int64_t ranks, int64_t shards, int64_t localBytes, int64_t globalBytes) {
    bytes += ranks * localBytes - ranks / shards * globalBytes;
    heldBytes += ranks * localBytes;
  }
  Padding &operator+=(const Padding &other) {
    bytes += other.bytes;
    heldBytes += other.heldBytes;
    return *this;
  }
  /// Of 1.
  double getShare() const { return heldBytes ? double(bytes) / double(heldBytes) : 0; }
};

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_PADDING_H
