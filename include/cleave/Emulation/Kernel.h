//===- Kernel.h - runs an emulated kernel -----------------------*- C++ -*-===//
//
// The threads of a block are fibers that are switched at barriers and where warps meet; blocks run one after the other. What
// is wrong with a kernel ends the launch and is reported: bytes outside of an object, misaligned vectors, races between
// threads of a block that no barrier orders and between blocks, threads that wait where others never come.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EMULATION_KERNEL_H
#define CLEAVE_EMULATION_KERNEL_H

#include "cleave/Emulation/Module.h"
#include <cstddef>
#include <functional>
#include <string>

namespace cleave::emulation {

struct Range {
  const char *base = nullptr;
  uint64_t bytes = 0;
};

struct Launch {
  const Kernel *kernel = nullptr;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t dynamicBytes = 0; // of shared memory
  void **parameters = nullptr;
  /// The memory of the device around an address, empty if there is none: for what parameters do not tell.
  std::function<Range(const void *)> findMemory;
};

/// What kernels call. To be put into `Module::hooks` before a launch.
const Hooks &getHooks();

/// Runs all blocks; what was found, or an empty string. Threads of the host may each run a launch.
std::string run(const Launch &launch);

} // namespace cleave::emulation

#endif // CLEAVE_EMULATION_KERNEL_H
