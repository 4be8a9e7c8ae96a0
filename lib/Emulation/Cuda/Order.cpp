//===- Order.cpp - what is ordered by streams, events and the host --------===//
//
// The list of accesses stays short: one that a later write covers is forgotten, since who is ordered behind that write is
// ordered behind it too, and so is all that the host has waited for.
//
//===----------------------------------------------------------------------===//
#include "Order.h"

#include <algorithm>

using namespace cleave::cuda;

/// The later of both, for each stream.
void cleave::cuda::join(Clock &clock, const Clock &other) {
  clock.resize(std::max(clock.size(), other.size()));
  for (size_t i = 0; i < other.size(); ++i)
    clock[i] = std::max(clock[i], other[i]);
}

/// A stream that a clock does not know is one that it is not ordered behind.
uint64_t cleave::cuda::get(const Clock &clock, uint32_t stream) { return stream < clock.size() ? clock[stream] : 0; }

bool Accesses::isCovered(const Access &old, const Touch &touch, const Clock &clock) const {
  bool isInside = touch.from <= old.touch.from && old.touch.from + old.touch.bytes <= touch.from + touch.bytes;
  bool isBefore = old.tick <= get(clock, old.stream);
  // A read covers earlier reads: who is ordered behind it is ordered behind those. A write it does not cover, for that concerns
  // readers to come.
  return isInside && isBefore && (touch.writes || !old.touch.writes);
}

/// Against all that is remembered, then in its place.
std::vector<std::string> Accesses::add(const std::string &command, uint32_t stream, const Clock &clock,
                                       const std::vector<Touch> &touches) {
  std::vector<std::string> found;
  for (const Touch &touch : touches) {
    if (touch.bytes == 0)
      continue;
    for (const Access &old : list) {
      bool meet = old.touch.from < touch.from + touch.bytes && touch.from < old.touch.from + old.touch.bytes;
      if (meet && (touch.writes || old.touch.writes) && old.tick > get(clock, old.stream))
        found.push_back(command + (touch.writes ? " writes what " : " reads what ") + old.command +
                        (old.touch.writes ? " writes" : " reads") + " on another stream, and no event orders them");
    }
    list.erase(
        std::remove_if(list.begin(), list.end(), [&](const Access &old) { return isCovered(old, touch, clock); }),
        list.end());
    list.push_back({touch, stream, get(clock, stream), command});
  }
  return found;
}

/// Every command to come is ordered behind the host.
void Accesses::forget(const Clock &host) {
  list.erase(
      std::remove_if(list.begin(), list.end(), [&](const Access &old) { return old.tick <= get(host, old.stream); }),
      list.end());
}
