//===- Harness.h - emulated kernels in tests --------------------*- C++ -*-===//
#ifndef CLEAVE_TEST_UNIT_EMULATION_HARNESS_H
#define CLEAVE_TEST_UNIT_EMULATION_HARNESS_H

#include "cleave/Emulation/Kernel.h"
#include "gtest/gtest.h"
#include <string>
#include <vector>

namespace cleave::emulation {

/// The library that kernels in LLVM's assembly become; empty, with `error` set, where there is none. Declarations of the
/// intrinsics that tests use are put in front. `isa` is the processor that it is for.
std::string compileKernels(const std::string &text, std::string &error, const char *isa = "native");

/// Kernels that are loaded without a driver.
class KernelTest : public ::testing::Test {
protected:
  ~KernelTest() override;
  void load(const std::string &text, const char *isa = "native");
  /// What was found when the kernel runs with the addresses of `buffers` as its parameters.
  std::string run(const std::string &name, uint32_t grid, uint32_t block, std::vector<void *> buffers,
                  uint32_t dynamicBytes = 0, std::function<Range(const void *)> findMemory = {});
  const Kernel *find(const std::string &name) const;

  void *library = nullptr;
  const Module *module = nullptr;
};

} // namespace cleave::emulation

#endif // CLEAVE_TEST_UNIT_EMULATION_HARNESS_H
