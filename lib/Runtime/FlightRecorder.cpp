//===- FlightRecorder.cpp - the last operations of every rank -------------===//
//
// An entry is published by its sequence number, which is zero while the others are written: a reader that finds the same
// number before and after has read one entry. (The words are atomic, so that reading too early is a wrong guess and
// never a data race.)
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/FlightRecorder.h"
#include "cleave/Runtime/Files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <sys/stat.h>

using namespace cleave::runtime;

int64_t cleave::runtime::getNow() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static constexpr auto kRelaxed = std::memory_order_relaxed;

/// Kind, type, reduction, state and group in one word.
static uint64_t pack(const Operation &operation, FlightLog::State state) {
  return uint64_t(operation.group) << 32 | uint64_t(state) << 24 | uint64_t(operation.kind) << 16 |
         uint64_t(operation.type) << 8 | uint64_t(operation.reduction);
}

uint64_t FlightLog::begin(const Operation &operation, uint64_t number) {
  uint64_t sequence = last.load(kRelaxed) + 1;
  Entry &entry = ring[sequence % kEntries];
  int64_t now = getNow();
  entry.sequence.store(0, kRelaxed);
  entry.number.store(number, std::memory_order_release);
  entry.what.store(pack(operation, State::Started), std::memory_order_release);
  entry.count.store(operation.count, std::memory_order_release);
  entry.started.store(now, std::memory_order_release);
  entry.sequence.store(sequence, std::memory_order_release);
  last.store(sequence, std::memory_order_release);
  lastBeat.store(now, kRelaxed);
  return sequence;
}

void FlightLog::mark(uint64_t sequence, State state) {
  Entry &entry = ring[sequence % kEntries];
  int64_t now = getNow();
  (state == State::Waiting ? entry.waited : entry.ended).store(now, kRelaxed);
  entry.what.store((entry.what.load(kRelaxed) & ~(uint64_t(0xff) << 24)) | uint64_t(state) << 24, kRelaxed);
  lastBeat.store(now, kRelaxed);
}

Work::~Work() = default;

void FlightLog::setWork(std::shared_ptr<const Work> itsWork) {
  std::lock_guard<std::mutex> lock(mutex);
  work = std::move(itsWork);
}

void FlightLog::nameGroup(GroupId group, std::string name) {
  std::lock_guard<std::mutex> lock(mutex);
  if (groupNames.size() <= group)
    groupNames.resize(group + 1);
  groupNames[group] = std::move(name);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

struct FlightLog::Seen {
  Operation operation;
  State state;
  uint64_t number;
  int64_t started, waited, ended;
};

bool FlightLog::read(uint64_t sequence, Seen &seen) const {
  const Entry &entry = ring[sequence % kEntries];
  if (entry.sequence.load(std::memory_order_acquire) != sequence)
    return false;
  uint64_t what = entry.what.load(std::memory_order_acquire);
  seen.operation.group = GroupId(what >> 32);
  seen.state = State(what >> 24 & 0xff);
  seen.operation.kind = OperationKind(what >> 16 & 0xff);
  seen.operation.type = ElementType(what >> 8 & 0xff);
  seen.operation.reduction = Reduction(what & 0xff);
  seen.operation.count = entry.count.load(std::memory_order_acquire);
  seen.number = entry.number.load(std::memory_order_acquire);
  seen.started = entry.started.load(std::memory_order_acquire);
  seen.waited = entry.waited.load(std::memory_order_acquire);
  seen.ended = entry.ended.load(std::memory_order_acquire);
  return entry.sequence.load(std::memory_order_acquire) == sequence;
}

int64_t FlightLog::getLastBeat() const {
  std::lock_guard<std::mutex> lock(mutex);
  int64_t beat = lastBeat.load(kRelaxed);
  return work ? std::max(beat, work->getLastBeat()) : beat;
}

std::string FlightLog::getPlace() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::string place = work ? work->getPlace() : "";
  return place.empty() ? "" : ", at " + place;
}

std::string FlightLog::nameOf(const Seen &seen) const {
  GroupId group = seen.operation.group;
  std::lock_guard<std::mutex> lock(mutex);
  return "group " + std::to_string(group) + (group < groupNames.size() ? " " + groupNames[group] : "");
}

std::string FlightLog::getLast() const {
  Seen seen;
  uint64_t sequence = last.load(std::memory_order_acquire);
  if (sequence == 0 || !read(sequence, seen))
    return "";
  return describe(seen.operation) + ", number " + std::to_string(seen.number) + " in " + nameOf(seen) + getPlace();
}

static std::string formatTime(int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6f s", double(nanoseconds) * 1e-9);
  return text;
}

std::string FlightLog::getText(int rank, int64_t now) const {
  std::string text =
      "rank " + std::to_string(rank) + ", last sign of life " + formatTime(now - getLastBeat()) + " ago\n";
  uint64_t end = last.load(std::memory_order_acquire);
  for (uint64_t sequence = end < kEntries ? 1 : end - kEntries + 1; sequence <= end; ++sequence) {
    Seen seen;
    if (!read(sequence, seen))
      continue;
    text += "  " + nameOf(seen) + ", number " + std::to_string(seen.number) + ": " + describe(seen.operation) +
            ", started " + formatTime(seen.started - now);
    if (seen.state != State::Started)
      text += ", waited " + formatTime(seen.waited - now);
    if (seen.state == State::Done || seen.state == State::Failed)
      text += (seen.state == State::Done ? ", done " : ", failed ") + formatTime(seen.ended - now);
    text += "\n";
  }
  std::lock_guard<std::mutex> lock(mutex);
  return work ? text + work->getText(now) : text;
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

Status cleave::runtime::writeRecord(const std::string &folder, const std::string &text, const std::string &name) {
  Failure failure;
  failure.cause = Cause::System;
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    failure.detail = "cannot write " + folder + ": " + std::strerror(errno);
  else if (program::Status error = writeFile(folder + "/" + name, text))
    failure.detail = error->message;
  else
    return {};
  return failure;
}
