//===- Gate.h - a barrier that may be left for a while ----------*- C++ -*-===//
//
// Members arrive for a number, 1, 2, 3, .. (some may be left out by all), and go on with something else; the gate is open
// for a number when all have arrived:
//
//   counts   one per number modulo kDepth: who makes it full empties it again, and opens the gate
//   epoch    the largest number that the gate is open for, alone on its cache lines: all wait by reading it
//   sleepers how many gave up spinning; only if there are any does opening cost a system call
//
// A member must not arrive for a number before the gate was open for the one `kDepth` before it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_GATE_H
#define CLEAVE_LIB_RUNTIME_GATE_H

#include <atomic>
#include <cstdint>

namespace cleave::runtime {

class Gate {
public:
  static constexpr uint64_t kDepth = 64;

  explicit Gate(uint32_t members) : members(members) {}

  void arrive(uint64_t number);
  bool isOpen(uint64_t number) const { return int32_t(epoch.load(std::memory_order_acquire) - uint32_t(number)) >= 0; }
  /// Looks `times` times. Returns whether the gate is open.
  bool spin(uint64_t number, unsigned times) const;
  /// Sleeps until the gate is open, for `milliseconds` at most; may return early.
  void sleep(uint64_t number, unsigned milliseconds);

private:
  const uint32_t members;
  alignas(128) std::atomic<uint32_t> counts[kDepth] = {};
  alignas(128) std::atomic<uint32_t> epoch{0};
  alignas(128) std::atomic<uint32_t> sleepers{0};
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_GATE_H
