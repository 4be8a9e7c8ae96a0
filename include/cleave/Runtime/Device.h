//===- Device.h - where the commands of a rank run --------------*- C++ -*-===//
//
// A device has memory, code and streams. The executor decides what is done in which order, a device does it: on the host at
// once, elsewhere it is put into a stream (`Queue`) and done later. Addresses of a device's memory are its own; `upload`,
// `download` and `write` go between them and the host's.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_DEVICE_H
#define CLEAVE_RUNTIME_DEVICE_H

#include "cleave/Program/Error.h"
#include "cleave/Program/Program.h"
#include "cleave/Runtime/Operation.h"
#include <functional>
#include <memory>

namespace cleave::runtime {

class Communicator;

/// A kernel, found in the code that was loaded.
using KernelEntry = void *;

/// A kernel with its arguments, which stay where they are: the address of each operand, then that of each integer.
struct BoundLaunch {
  KernelEntry entry = nullptr;
  const program::Kernel *kernel = nullptr;
  void **arguments = nullptr;
  /// Where the kernel reports an index that is out of range (Program.h); null if it does not.
  char *report = nullptr;
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

/// What a library of a device does for a program.
struct LibraryUse {
  std::string name;
  uint64_t calls = 0;     ///< commands that it computes
  uint64_t fallbacks = 0; ///< those that kernels compute in its stead
  std::string reason;     ///< why the first of them
  uint64_t workspace = 0; ///< bytes that its calls need beside the program's buffers
};

/// Where collectives of devices have their operands.
struct WindowUse {
  uint64_t collectives = 0; ///< those in a window, memory that all members know
  uint64_t without = 0;     ///< those in memory that each member knows alone
  std::string reason;       ///< why the first of the latter
};

/// A load that is to be done: its bytes in memory, and those of an element there.
struct Filling {
  const program::Load *load;
  char *target;
  uint64_t bytes, elementBytes;
};
/// Reads a box of a load into the host's memory. Any thread.
using ReadBox = std::function<program::Status(const program::Load &part, char *to)>;

/// What only a device does whose commands are done later. Of one rank: others meet it by what its library has.
class Queue {
public:
  virtual ~Queue();

  /// Weights, with no more of the host's memory than for a few pieces of them.
  virtual program::Status fill(const std::vector<Filling> &fillings, const ReadBox &readBox) = 0;

  /// Meets all ranks of the program, for the first time; every rank calls it at the same time. They find each other by
  /// `peers`, which names those that do not come.
  virtual program::Status connect(Communicator &peers) = 0;
  /// Makes the next group, as Communicator::split does; members are ranks, none where this one is in no group.
  virtual program::Status split(Communicator &peers, const std::vector<int> &members) = 0;
  /// Why the ranks of a group cannot do this; nothing if they can. Parts are contiguous. Told of all that will be done.
  virtual program::Status check(const Operation &operation) = 0;
  /// All has been checked, on all ranks, which call this at the same time.
  virtual program::Status share(Communicator &peers) = 0;
  /// Operations that a group does at once.
  virtual void meet(const std::vector<Operation> &operations, uint32_t stream) = 0;

  /// What is issued from here on is not done but kept, to be done at once by `replay`, as often as one likes.
  virtual void beginGraph() = 0;
  virtual program::Result<uint32_t> endGraph() = 0;
  virtual void replay(uint32_t graph) = 0;

  /// Notes when what a stream has been given so far is done; the number of the note, from 0 since `clearMarks`.
  virtual uint32_t mark(uint32_t stream) = 0;
  virtual void clearMarks() = 0;
  /// Seconds from one mark to another. Precondition: all that was issued is done.
  virtual program::Result<double> measure(uint32_t from, uint32_t to) = 0;

  /// What went wrong while something was issued, if anything did.
  virtual const program::Status &getFailure() const = 0;
  /// Whether all that was issued is done, or the first error of any of it.
  virtual program::Result<bool> poll() = 0;
  /// Gives up what others are waited for in: a rank has failed.
  virtual void abort() = 0;
};

class Device {
public:
  virtual ~Device();

  /// Null: each command is done when it is issued, streams and events mean nothing, and ranks meet by communicators.
  virtual Queue *getQueue() { return nullptr; }

  /// Why code for `target` cannot run here; nothing if it can.
  virtual std::optional<std::string> findMissing(const program::Target &target) const = 0;
  /// Memory full of zeros, for the life of the device. Pages that are never touched cost nothing. `isMet`: what ranks do together
  /// reads and writes it.
  virtual program::Result<char *> allocate(uint64_t bytes, uint64_t alignment, program::Memory memory, bool isMet) = 0;
  /// Bytes that are free now.
  virtual uint64_t getFreeBytes() const = 0;
  /// Loads code, once for all ranks of the device; the number of what was loaded.
  virtual program::Result<uint32_t> load(const program::Object &object, const std::string &name) = 0;
  virtual program::Result<KernelEntry> find(uint32_t code, const std::string &entry) = 0;

  virtual void launch(const BoundLaunch &launch, uint32_t stream) = 0;
  /// Lets a library of the device plan a contraction, whose operands lie at `addresses` (program::getOperands): what `call` does
  /// then. Nothing if there is none, or if it refuses: the fallback is launched instead.
  virtual std::optional<uint32_t> prepare(const program::Program &, const program::Action &,
                                          const std::vector<char *> &) {
    return std::nullopt;
  }
  virtual void call(uint32_t, uint32_t) {}
  /// The libraries that have been asked.
  virtual std::vector<LibraryUse> getLibraries() const { return {}; }
  virtual WindowUse getWindows() const { return {}; }
  virtual void copy(const BoxCopy &box, const char *source, char *target, uint32_t stream) = 0;
  /// What stands behind `wait` on its stream runs after what stood before `record` on its own.
  virtual void record(uint32_t, uint32_t) {}
  virtual void wait(uint32_t, uint32_t) {}

  /// From the host's memory, which is free again at once; before all that is issued later.
  virtual void upload(const BoxCopy &box, const char *source, char *target) { copy(box, source, target, 0); }
  /// Into the host's memory, where it is at once. Precondition: all that was issued is done.
  virtual void download(const BoxCopy &box, const char *source, char *target) { copy(box, source, target, 0); }
  void write(char *target, const char *source, uint64_t bytes) { upload({{}, bytes}, source, target); }
};

/// This machine: commands are done when they are issued.
std::unique_ptr<Device> makeHost();

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_DEVICE_H
