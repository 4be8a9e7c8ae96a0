//===- TraceWriter.h - bars and arrows in Chrome's format -------*- C++ -*-===//
//
// The one place that knows how a run is written for Perfetto and chrome://tracing. Perfetto gives bars of one name one color, whatever
// numbers are in it; chrome://tracing takes the color that is said. For Perfetto threads of a machine have numbers of their own, whatever
// process they are of, and that of a process is its first thread's: streams are numbered beyond all ranks, each once.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_TRACEWRITER_H
#define CLEAVE_LIB_RUNTIME_TRACEWRITER_H

#include "cleave/Runtime/Executor.h"

namespace cleave::runtime {

/// A command of a rank, and where it comes from; "" where that is not told.
const program::Command &getCommand(const Executor &executor, const Event &event);
std::string getNode(const Executor &executor, const program::Command &command);

/// A color of Chrome's list for each kind of command, whatever the file.
const char *getColor(const program::Action &action);

/// Something that takes time on a stream of a rank; seconds.
struct TraceBar {
  uint32_t rank, stream;
  std::string name, category, color;
  double begin, end;
};

class TraceWriter {
public:
  /// Of a program on so many ranks.
  explicit TraceWriter(uint32_t ranks) : ranks(ranks) {}

  /// `rank 3`, and its role where there are several.
  void nameRank(const program::Program &program, uint32_t rank);
  void nameStream(uint32_t rank, uint32_t stream, const std::string &name);
  /// `args` is what stands between the braces.
  void addBar(const TraceBar &bar, const std::string &args);
  /// From the beginning of one bar to the end of another.
  void addArrow(const TraceBar &from, const TraceBar &to, uint64_t bytes);
  /// `"displayTimeUnit": .., "traceEvents": [..]`
  std::string format() const;

private:
  void add(const std::string &event);
  /// `"pid": 1, "tid": 9`
  std::string formatPlace(uint32_t rank, uint32_t stream) const;

  const uint32_t ranks;
  std::string events;
  uint64_t arrows = 0;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_TRACEWRITER_H
