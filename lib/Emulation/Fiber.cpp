//===- Fiber.cpp - threads of a block, switched by hand -------------------===//
//
// A switch saves the registers that a call preserves and exchanges the stack pointer: some nanoseconds, where the C library's
// swapcontext asks the kernel for the signal mask each time. A word at the low end of each stack shows one that was too small.
//
//===----------------------------------------------------------------------===//
#include "Fiber.h"

#include <cstdint>
#include <cstring>
#include <sys/mman.h>

using namespace cleave::emulation;

static constexpr uint64_t sentinel = 0x5ec0def1be25f10cULL;

#ifdef __x86_64__
asm(R"(
.text
.type cleave_switch_fiber,@function
.hidden cleave_switch_fiber
cleave_switch_fiber:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
.size cleave_switch_fiber, .-cleave_switch_fiber
)");
extern "C" void cleave_switch_fiber(void **save, void *load) __attribute__((visibility("hidden")));

void cleave::emulation::switchFiber(Fiber &from, Fiber &to) { cleave_switch_fiber(&from.stack, to.stack); }

void Stacks::start(Fiber &fiber, size_t number, void (*body)()) {
  char *low = memory + number * stackBytes;
  memcpy(low, &sentinel, sizeof sentinel);
  // `ret` takes the body's address, and leaves the stack 8 off a multiple of 16, as after a call.
  void **top = reinterpret_cast<void **>(low + stackBytes) - 2;
  *top = reinterpret_cast<void *>(body);
  fiber.stack = top - 6;
}
#else
void cleave::emulation::switchFiber(Fiber &from, Fiber &to) { swapcontext(&from.context, &to.context); }

void Stacks::start(Fiber &fiber, size_t number, void (*body)()) {
  char *low = memory + number * stackBytes;
  memcpy(low, &sentinel, sizeof sentinel);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = low;
  fiber.context.uc_stack.ss_size = stackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, body, 0);
}
#endif

Stacks::~Stacks() {
  if (memory)
    munmap(memory, count * stackBytes);
}

bool Stacks::reserve(size_t wanted) {
  if (wanted <= count)
    return true;
  void *mapped =
      mmap(nullptr, wanted * stackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    return false;
  if (memory)
    munmap(memory, count * stackBytes);
  memory = static_cast<char *>(mapped);
  count = wanted;
  return true;
}

bool Stacks::isIntact(size_t number) const {
  return memcmp(memory + number * stackBytes, &sentinel, sizeof sentinel) == 0;
}
