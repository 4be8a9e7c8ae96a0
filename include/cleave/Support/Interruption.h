//===- Interruption.h - work that nobody waits for any more ------*- C++ -*-===//
//
// Whoever calls the library from a program that goes on, as Python after Ctrl-C, may want no answer any more. What takes long looks now and
// then whether it is so: phases of a model, cells of a search, ops of the reference evaluator. It then ends with an error, as all else does.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SUPPORT_INTERRUPTION_H
#define CLEAVE_SUPPORT_INTERRUPTION_H

#include <atomic>

namespace cleave {

/// While it lives, the work of this thread may be interrupted by setting `asked`, which any thread may do.
class Interruption {
public:
  explicit Interruption(const std::atomic<bool> &asked);
  Interruption(const Interruption &) = delete;
  ~Interruption();

  /// Of the work of this thread; false where nobody can ask.
  static bool isAsked();

private:
  const std::atomic<bool> *const before;
};

} // namespace cleave

#endif // CLEAVE_SUPPORT_INTERRUPTION_H
