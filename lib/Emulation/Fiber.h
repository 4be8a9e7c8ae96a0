//===- Fiber.h - threads of a block, switched by hand -----------*- C++ -*-===//
#ifndef CLEAVE_LIB_EMULATION_FIBER_H
#define CLEAVE_LIB_EMULATION_FIBER_H

#include <cstddef>
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace cleave::emulation {

/// What is not running now: on x86-64 its registers lie on its stack.
struct Fiber {
#ifdef __x86_64__
  void *stack = nullptr;
#else
  ucontext_t context;
#endif
};

/// Leaves `from` and goes on with `to`.
void switchFiber(Fiber &from, Fiber &to);

/// Stacks of equal size, kept from launch to launch.
class Stacks {
public:
  Stacks() = default;
  ~Stacks();
  Stacks(const Stacks &) = delete;
  Stacks &operator=(const Stacks &) = delete;

  /// Room for `count` fibers; false if there is no memory.
  bool reserve(size_t count);
  /// Lets `fiber` begin with `body`, which never returns, on stack `number`.
  void start(Fiber &fiber, size_t number, void (*body)());
  /// False if a fiber used more than its stack.
  bool isIntact(size_t number) const;
  static constexpr size_t stackBytes = 64 << 10;

private:
  char *memory = nullptr;
  size_t count = 0;
};

} // namespace cleave::emulation

#endif // CLEAVE_LIB_EMULATION_FIBER_H
