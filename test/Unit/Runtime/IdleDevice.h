//===- IdleDevice.h - a device that runs no code ----------------*- C++ -*-===//
//
// For programs that nobody would execute: code of any target is taken and never looked at, kernels do nothing. Each buffer
// is a block of its own, so that a sanitizer sees one byte too far; copies and what ranks send each other are real.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_RUNTIME_IDLEDEVICE_H
#define CLEAVE_TEST_UNIT_RUNTIME_IDLEDEVICE_H

#include "cleave/Runtime/Device.h"

#include <cstdlib>
#include <cstring>

namespace cleave::runtime::test {

class IdleDevice final : public Device {
public:
  ~IdleDevice() override {
    for (char *block : blocks)
      std::free(block);
  }

  std::optional<std::string> findMissing(const program::Target &) const override { return std::nullopt; }
  program::Result<char *> allocate(uint64_t bytes, uint64_t alignment, program::Memory, bool) override {
    uint64_t unit = alignment < sizeof(void *) ? sizeof(void *) : alignment;
    void *block = nullptr;
    if (posix_memalign(&block, unit, bytes ? bytes : 1) != 0)
      return program::makeError("cannot get ", bytes, " bytes");
    std::memset(block, 0, bytes);
    blocks.push_back(static_cast<char *>(block));
    return blocks.back();
  }
  uint64_t getFreeBytes() const override { return uint64_t(1) << 24; }
  program::Result<uint32_t> load(const program::Object &, const std::string &) override { return 0u; }
  program::Result<KernelEntry> find(uint32_t, const std::string &) override { return KernelEntry(this); }

  void launch(const BoundLaunch &, uint32_t) override {}
  void copy(const BoxCopy &box, const char *source, char *target, uint32_t) override { copyBox(box, source, target); }

private:
  std::vector<char *> blocks;
};

} // namespace cleave::runtime::test

#endif // CLEAVE_TEST_UNIT_RUNTIME_IDLEDEVICE_H
