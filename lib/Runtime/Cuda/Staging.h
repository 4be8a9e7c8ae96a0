//===- Staging.h - between the host's memory and the device's ---*- C++ -*-===//
#ifndef CLEAVE_LIB_RUNTIME_CUDA_STAGING_H
#define CLEAVE_LIB_RUNTIME_CUDA_STAGING_H

#include "cleave/Cuda/Libraries.h"

namespace cleave::runtime {

/// Two blocks of the host's memory that the device reads and writes by itself, in turn: while it has one, the other is filled.
///
///   caller's bytes ──memcpy──▶ block 0 ──device──▶ target        block 1 is being filled meanwhile
class Staging {
public:
  explicit Staging(const cuda::Driver &driver) : driver(driver) {}
  ~Staging();
  program::Status open();

  /// `source` is free again when it returns.
  program::Status upload(cuda::DevicePointer target, const char *source, uint64_t bytes, cuda::Stream stream);
  /// The bytes are there when it returns.
  program::Status download(char *target, cuda::DevicePointer source, uint64_t bytes, cuda::Stream stream);

private:
  struct Block {
    char *memory = nullptr;
    cuda::Event isFree = nullptr;
  };
  program::Status check(cuda::Result result) const;

  const cuda::Driver &driver;
  Block blocks[2];
  unsigned next = 0;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_CUDA_STAGING_H
