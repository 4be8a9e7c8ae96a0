//===- Guards.h - kernels between pages that fault --------------*- C++ -*-===//
//
// For tests: a kernel runs on copies of its operands, first where each ends at a page that nobody may touch, then where each begins
// behind one. A load or store outside of an operand faults in one run or the other, and is told rather than the end of the test:
//
//   | no access | ......... operand | no access |        | no access | operand ......... | no access |
//
// What a kernel writes must be the same both times, and nothing else may be written: not around operands, which is filled with a
// pattern, and no operand that is only read.
//
// So do temporaries of kernels that are made for it (codegen::HostTarget::guardScratch): each lies between such pages, at the end of its
// own in the first run and at the begin in the second. They are full of NaN in the first run and of another pattern in the second, so
// that results show what a kernel takes from a temporary that it has not written.
//
// The contract that this holds kernels of the host to: of each operand they touch the bytes of its tensor and no others, wherever
// these lie, as long as they are aligned as the program says. Panels of packed weights are whole in the tensor itself.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_CODEGEN_GUARDS_H
#define CLEAVE_TEST_CODEGEN_GUARDS_H

#include "cleave/Program/Program.h"
#include "cleave/Runtime/Device.h"

#include <mutex>
#include <string>
#include <vector>

namespace cleave::test {

/// Bytes that a kernel is given. Operands that share bytes stay where they are to each other.
struct GuardedOperand {
  char *data;
  uint64_t bytes;
  bool isWritten;
  uint64_t alignment;
};

/// What ran between guards so far, in all threads of this process.
struct GuardCounts {
  uint64_t kernels = 0, operands = 0, temporaries = 0;
};
GuardCounts getGuardCounts();
/// `12 kernels with 40 operands and 7 temporaries ran between guards`: of temporaries those of one run each.
std::string describeGuarded();

using KernelFunction = void (*)(void **);

/// What kernels with guarded temporaries call, while they run between guards: `bytes` of no alignment, and those back again.
extern "C" __attribute__((visibility("default"))) char *cleave_take_scratch(uint64_t bytes);
extern "C" __attribute__((visibility("default"))) void cleave_give_scratch(char *data);

/// Runs a kernel on copies of its operands, at both ends, and brings back what it has written. `scalars` are handed on behind the
/// operands. What is wrong, or an empty string.
std::string runBetweenGuards(KernelFunction kernel, const std::vector<GuardedOperand> &operands,
                             const std::vector<void *> &scalars = {});

/// The first thing that is wrong, with the kernel's name. Any thread.
class GuardLog {
public:
  void add(const std::string &kernel, const std::string &fault);
  std::string get();

private:
  std::mutex mutex;
  std::string first;
};

/// This machine as a device, whose kernels run between guards; both arguments outlive it.
/// \param program as what is opened has it: kernels know their operands by the numbers of its types.
std::unique_ptr<runtime::Device> makeGuardedHost(const program::Program &program, GuardLog &log);

} // namespace cleave::test

#endif // CLEAVE_TEST_CODEGEN_GUARDS_H
