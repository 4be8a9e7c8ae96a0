//===- Order.h - what is ordered by streams, events and the host -*- C++ -*-===//
//
// Vector clocks: each stream counts its commands, and knows how far it is ordered behind each other stream (by waiting for an
// event, or through the host, which waited for that stream). Two commands that touch the same bytes, one writing, must be
// ordered; that holds or not whatever order they happen to run in, so a missing event is found in every run.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_EMULATION_CUDA_ORDER_H
#define CLEAVE_LIB_EMULATION_CUDA_ORDER_H

#include <cstdint>
#include <string>
#include <vector>

namespace cleave::cuda {

/// Of each stream, by its number, the last command that is known to be done before.
using Clock = std::vector<uint64_t>;

void join(Clock &clock, const Clock &other);
uint64_t get(const Clock &clock, uint32_t stream);

/// Bytes that a command reads or writes.
struct Touch {
  const char *from = nullptr;
  uint64_t bytes = 0;
  bool writes = false;
};

/// What commands touched that others may still have to be ordered behind.
class Accesses {
public:
  /// Notes what a command does, number `clock[stream]` of its stream; a line naming both commands for each that it is not
  /// ordered behind.
  std::vector<std::string> add(const std::string &command, uint32_t stream, const Clock &clock,
                               const std::vector<Touch> &touches);
  /// What lies before `host` is ordered before all that comes.
  void forget(const Clock &host);
  size_t size() const { return list.size(); }

private:
  struct Access {
    Touch touch;
    uint32_t stream;
    uint64_t tick;
    std::string command;
  };
  bool isCovered(const Access &old, const Touch &touch, const Clock &clock) const;
  std::vector<Access> list;
};

} // namespace cleave::cuda

#endif // CLEAVE_LIB_EMULATION_CUDA_ORDER_H
