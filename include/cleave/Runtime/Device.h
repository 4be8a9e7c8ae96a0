//===- Device.h - where the commands of a rank run --------------*- C++ -*-===//
//
// A device has memory, code and streams. The executor decides what is done in which order, a device does it: on the host at
// once, elsewhere it is put into a stream, and `synchronize` waits for it. Addresses of a device's memory are its own;
// `write` and `read` go between them and the host's.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_DEVICE_H
#define CLEAVE_RUNTIME_DEVICE_H

#include "cleave/Program/Error.h"
#include "cleave/Program/Program.h"
#include <memory>

namespace cleave::runtime {

/// A kernel, found in the code that was loaded.
using KernelEntry = void *;

/// A kernel with its arguments, which stay where they are: the address of each operand, then that of each integer.
struct BoundLaunch {
  KernelEntry entry = nullptr;
  const program::Kernel *kernel = nullptr;
  void **arguments = nullptr;
};

/// Elements that move: dims from the outside in, strides in bytes, and how many bytes lie together at the end.
struct BoxCopy {
  struct Dim {
    int64_t size, source, target;
  };
  std::vector<Dim> dims;
  uint64_t run = 0;

  /// Bytes that move.
  uint64_t getBytes() const;
};
/// Elements of `shape`, with strides in elements (none: row-major), from one layout to another. Dims that lie alike on both
/// sides are one.
BoxCopy planCopy(uint64_t elementBytes, const std::vector<int64_t> &shape, const std::vector<int64_t> &sourceStrides,
                 const std::vector<int64_t> &targetStrides);
/// In the host's memory.
void copyBox(const BoxCopy &box, const char *source, char *target);

class Device {
public:
  virtual ~Device();

  /// Why code for `target` cannot run here; nothing if it can.
  virtual std::optional<std::string> findMissing(const program::Target &target) const = 0;
  /// Memory full of zeros, for the life of the device. Pages that are never touched cost nothing.
  virtual program::Result<char *> allocate(uint64_t bytes, uint64_t alignment, program::Memory memory) = 0;
  /// Bytes that are free now.
  virtual uint64_t getFreeBytes() const = 0;
  /// Loads code, once for all ranks of the device; the number of what was loaded.
  virtual program::Result<uint32_t> load(const program::Object &object, const std::string &name) = 0;
  virtual program::Result<KernelEntry> find(uint32_t code, const std::string &entry) = 0;

  virtual void launch(const BoundLaunch &launch, uint32_t stream) = 0;
  virtual void copy(const BoxCopy &box, const char *source, char *target, uint32_t stream) = 0;
  /// What stands behind `wait` on its stream runs after what stood before `record` on its own.
  virtual void record(uint32_t event, uint32_t stream) = 0;
  virtual void wait(uint32_t event, uint32_t stream) = 0;
  /// Returns when all streams are done.
  virtual void synchronize() = 0;

  virtual void write(char *target, const void *source, uint64_t bytes) = 0;
  virtual void read(void *target, const char *source, uint64_t bytes) = 0;
};

/// This machine: commands are done when they are issued.
std::unique_ptr<Device> makeHost();

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_DEVICE_H
