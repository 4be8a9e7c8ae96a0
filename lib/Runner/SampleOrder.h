//===- SampleOrder.h - which sample comes when ------------------*- C++ -*-===//
//
// A shuffled order is a permutation that follows from the seed and the epoch, number by number: nothing is stored, all ranks know it
// without a word, and who goes on at step n goes on there.
//
// It is a Feistel network on numbers of an even number of bits, the fewest that count the samples: each round adds a digest of one
// half to the other one. Numbers behind the last sample are sent through it again until they are one.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNNER_SAMPLEORDER_H
#define CLEAVE_LIB_RUNNER_SAMPLEORDER_H

#include <cstdint>

namespace cleave::runner {

class SampleOrder {
public:
  /// Of `count` samples in one epoch; as they are given, or shuffled.
  SampleOrder(uint64_t count, bool isShuffled, uint64_t seed, uint64_t epoch);

  /// The sample at `place`, below the count.
  uint64_t at(uint64_t place) const;

private:
  uint64_t count, key;
  bool isShuffled;
  uint32_t halfBits = 1;
};

} // namespace cleave::runner

#endif // CLEAVE_LIB_RUNNER_SAMPLEORDER_H
