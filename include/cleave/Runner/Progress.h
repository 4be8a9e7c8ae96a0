//===- Progress.h - what takes so long --------------------------*- C++ -*-===//
//
//   compiling 90 kernels, 3 s
//
// One line on standard error, written anew while something goes on and gone when it is done; only on a terminal, and only
// after a second. A thread of its own writes it, so that who works need only say at what.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNNER_PROGRESS_H
#define CLEAVE_RUNNER_PROGRESS_H

#include "cleave/Program/Thread.h"
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

namespace cleave::runner {

class Progress {
public:
  /// On `file`, if that is a terminal; nothing is shown in the first `quiet` seconds.
  explicit Progress(int file = 2, double quiet = 1);
  /// Takes the line away.
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// What is being done from now on, in a few words; empty: nothing, and the line is gone. Any thread.
  void say(std::string text);
  /// Takes the line away for now, because something else is printed. Any thread.
  void hide();

private:
  void work(double quiet);
  void show();
  void erase();

  const int file;
  std::mutex mutex;
  std::condition_variable changed;
  std::string text;
  double began = 0;
  bool isShown = false, isOver = false;
  program::Thread thread;
};

/// Bytes of what is loaded, for `say`: `loading weights, 120.0 of 340.5 MB`.
std::string formatLoading(uint64_t loaded, uint64_t total);

} // namespace cleave::runner

#endif // CLEAVE_RUNNER_PROGRESS_H
