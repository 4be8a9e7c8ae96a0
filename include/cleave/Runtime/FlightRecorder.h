//===- FlightRecorder.h - the last operations of every rank -----*- C++ -*-===//
//
// A ring of 64 entries per rank, written as operations start and end, and printed only when something has failed:
//
//   rank 2, last sign of life 3.100 s ago
//     #41  group 1 {0, 2}  all_reduce sum f32[256]      started -3.214 s  waited -3.200 s  done -3.199 s
//     #42  group 1 {0, 2}  all_gather f32[64]           started -3.100 s  waiting
//
// A rank writes its own log without locks; others may read it at any time. An entry that is being written is left out.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_FLIGHTRECORDER_H
#define CLEAVE_RUNTIME_FLIGHTRECORDER_H

#include "cleave/Runtime/Failure.h"
#include "cleave/Runtime/Operation.h"
#include <array>

namespace cleave::runtime {

/// Nanoseconds of a clock that never goes back.
int64_t getNow();

/// What a rank does between operations, as its log and failures tell it. Any thread may ask, at any time.
class Work {
public:
  virtual ~Work();
  /// `command 12, launch gelu, of node '/act/Gelu'`; empty where there is nothing to say.
  virtual std::string getPlace() const = 0;
  /// Lines of the flight recorder, times relative to `now`.
  virtual std::string getText(int64_t now) const = 0;
  /// When it last gave a sign of life.
  virtual int64_t getLastBeat() const = 0;
};

/// What one rank has done lately.
class FlightLog {
public:
  static constexpr uint64_t kEntries = 64;
  enum class State : uint8_t { Started, Waiting, Done, Failed };

  /// Notes a start, and returns the entry for `mark`. Owner only.
  uint64_t begin(const Operation &operation, uint64_t number);
  void mark(uint64_t entry, State state);
  void beat() { lastBeat.store(getNow(), std::memory_order_relaxed); }
  /// What the rank does besides, from now on. Owner only.
  void setWork(std::shared_ptr<const Work> work);
  /// How groups are called in the text. Owner only.
  void nameGroup(GroupId group, std::string name);

  /// When the rank last gave a sign of life.
  int64_t getLastBeat() const;
  /// Where the rank is in its work, in front of it a comma; empty if it has none.
  std::string getPlace() const;
  /// The operation that the rank has come to last: `all_reduce sum f32[256], number 12 in group 0 {0, 1}`; empty if none.
  std::string getLast() const;
  /// The log of `rank`, times relative to `now`.
  std::string getText(int rank, int64_t now) const;

private:
  /// Each word is written whole; `sequence` is the entry's place in the order of all, 0 while it is being written.
  struct alignas(64) Entry {
    std::atomic<uint64_t> sequence{0}, number{0}, what{0}, count{0};
    std::atomic<int64_t> started{0}, waited{0}, ended{0};
  };
  struct Seen;
  bool read(uint64_t sequence, Seen &seen) const;
  std::string nameOf(const Seen &seen) const;

  std::array<Entry, kEntries> ring;
  std::atomic<uint64_t> last{0};
  std::atomic<int64_t> lastBeat{getNow()};
  mutable std::mutex mutex;
  std::vector<std::string> groupNames;
  std::shared_ptr<const Work> work;
};

/// Writes the file `name` into `folder` (which is made), whole or not at all. Returns why it could not.
Status writeRecord(const std::string &folder, const std::string &text, const std::string &name = "flight-recorder.txt");

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_FLIGHTRECORDER_H
