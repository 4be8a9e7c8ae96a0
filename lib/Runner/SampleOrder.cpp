//===- SampleOrder.cpp - which sample comes when --------------------------===//
//
// The digest of a half is the mixer of SplitMix64 (Steele, Lea, Flood 2014), which any machine computes alike.
//
// A network of any rounds is a permutation of its numbers, since each round can be undone. A number that is a sample's place, sent
// through it until it is a sample again, gives a permutation of the samples: of each cycle what is left when others are taken out.
// Four rounds suffice for an order that nobody wants to guess (Luby, Rackoff 1988).
//
//===----------------------------------------------------------------------===//
#include "SampleOrder.h"

using namespace cleave::runner;

/// Each bit of the result depends on all of `x`.
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

SampleOrder::SampleOrder(uint64_t count, bool isShuffled, uint64_t seed, uint64_t epoch)
    : count(count), key(mix(seed ^ mix(epoch))), isShuffled(isShuffled) {
  while (halfBits < 32 && (count - 1) >> (2 * halfBits))
    ++halfBits;
}

uint64_t SampleOrder::at(uint64_t place) const {
  constexpr uint64_t rounds = 4;
  if (!isShuffled)
    return place;
  uint64_t mask = (uint64_t(1) << halfBits) - 1;
  // At most four times as many numbers as samples, of which each is on a cycle with at least one sample: its own place.
  do {
    uint64_t left = place >> halfBits, right = place & mask;
    for (uint64_t round = 0; round < rounds; ++round) {
      uint64_t next = left ^ (mix(key ^ mix(right ^ (round << 48))) & mask);
      left = right;
      right = next;
    }
    place = left << halfBits | right;
  } while (place >= count);
  return place;
}
