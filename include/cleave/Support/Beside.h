//===- Beside.h - work that another thread does, if there is one -*- C++ -*-===//
#ifndef CLEAVE_SUPPORT_BESIDE_H
#define CLEAVE_SUPPORT_BESIDE_H

#include "cleave/Program/Thread.h"

namespace cleave {

/// Runs `job` beside its maker, who waits for it; where the system has no thread left, at once. Results go where the job puts them,
/// which must stay until then.
class Beside {
public:
  explicit Beside(std::function<void()> job) {
    if (thread.start(job))
      job();
  }
  Beside(Beside &&) = default;
  ~Beside() { wait(); }

  void wait() { thread.join(); }

private:
  program::Thread thread;
};

} // namespace cleave

#endif // CLEAVE_SUPPORT_BESIDE_H
