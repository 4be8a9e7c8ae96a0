//===- Times.cpp - what each command took ---------------------------------===//
//
// Who asks for a profile or a trace gets a time for each command, on the host as ticks, on a device with a queue as marks, which say
// when they were passed once it is empty. Of a long loop
//
//   entries   l a b e a b e a b e ..                 l a b e
//             one by one, kMostTimes      and then   one for each command: how often it ran later, and for how long
//
// so that memory, and marks, do not grow with the iterations. Entries are added up at the end of a body, where a queue is empty anyway.
//
//===----------------------------------------------------------------------===//
#include "ExecutorState.h"

#include <algorithm>

using namespace cleave::runtime;
namespace program = cleave::program;

/// Marks of steps become ticks, as if the first one had been made when the host began. Without a queue they are ticks already.
Status Executor::State::readMarks(LocalRank &rank) {
  if (!rank.queue)
    return {};
  if (Status status = settle(rank); !status.isOk())
    return status;
  for (; rank.readTimes < rank.times.size(); ++rank.readTimes)
    for (uint64_t *mark : {&rank.times[rank.readTimes].begin, &rank.times[rank.readTimes].end}) {
      program::Result<double> seconds = rank.queue->measure(0, uint32_t(*mark));
      if (!seconds)
        return failDevice(rank, seconds.getError().message);
      *mark = rank.marksBegan + uint64_t(std::max(*seconds, 0.0) * 1e9 / clock.getRate());
    }
  rank.queue->clearMarks();
  rank.marksBegan = getTicks();
  return {};
}

/// What came behind the first kMostTimes goes to the first entry of its command. Marks are read before, and begin anew.
Status Executor::State::addUpTimes(LocalRank &rank) {
  if (Status status = readMarks(rank); !status.isOk())
    return status;
  std::vector<TimedStep> &times = rank.times;
  std::vector<size_t> firsts; // by command and part of it, 0 where there is none yet, else one more
  size_t kept = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    size_t key = 3 * size_t(times[i].command) + size_t(times[i].part);
    firsts.resize(std::max(firsts.size(), key + 1));
    size_t &first = firsts[key];
    if (first && i >= LocalRank::kMostTimes) {
      times[first - 1].laterRuns += 1 + times[i].laterRuns;
      times[first - 1].laterTicks += times[i].end - times[i].begin + times[i].laterTicks;
      continue;
    }
    times[kept++] = times[i];
    first = first ? first : kept;
  }
  times.resize(kept);
  rank.readTimes = kept;
  rank.mostTimes = kept + LocalRank::kMostTimes;
  return {};
}
