//===- Emitter.h - kernels by pulling, by many threads ----------*- C++ -*-===//
//
// What differs from one thread of the host: vectors are loaded and stored in pieces whose alignment is proved, tables lie in the
// device's memory, and independent positions are threads. Beyond that it has what templates share: shared memory, barriers, shuffles.
//
// A barrier must be reached by all threads of a block. So templates clamp the place of a thread that has nothing to do instead
// of branching around what it computes, and branch around stores only.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_DEVICE_EMITTER_H
#define CLEAVE_LIB_CODEGEN_DEVICE_EMITTER_H

#include "../Emitter.h"
#include "cleave/Codegen/Device/Device.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace cleave::codegen {

/// Threads that exchange values without memory.
constexpr int64_t kWarp = 32;
/// Threads of a block where a kernel does not care.
constexpr int64_t kUsualThreads = 256;
/// Blocks that keep a large device busy.
constexpr int64_t kManyBlocks = 128;
/// Blocks that work is divided among where it can be divided at will.
constexpr int64_t kWantedBlocks = 256;

class DeviceEmitter : public Emitter {
public:
  DeviceEmitter(mlir::MLIRContext *context, mlir::Location location, const CudaTarget &target)
      : Emitter(context, location, target), target(target) {}
  const CudaTarget &getTarget() const { return target; }

  /// Builds in the only block of `kernel`.
  void start(mlir::gpu::GPUFuncOp kernel);

  // The launch. All dims but the first are 1.
  mlir::Value getThread() const { return thread; }
  mlir::Value getBlock() const { return block; }
  /// Fixes how many threads a block has, and asks for at least so many blocks.
  void launch(int64_t blocks, int64_t threads);
  /// Lets a thread have the registers that it wants: `ptxas` would rather spill some for one more block at a time.
  void preferRegisters();
  bool isLaunched() const { return threads != 0; }
  int64_t getBlocks() const { return blocks; }
  int64_t getThreads() const { return threads; }
  /// This thread's number in the grid.
  mlir::Value getGlobalThread();
  /// Calls `body` once for each number below `count`, each in one thread. A launch that is not fixed gets a thread for each.
  void overThreads(int64_t count, llvm::function_ref<void(mlir::Value)> body);
  void forAll(llvm::ArrayRef<int64_t> extents, llvm::function_ref<void(const Point &)> body) override;

  /// Memory that all threads of a block see.
  mlir::Value share(mlir::Type element, int64_t count);
  int64_t getSharedBytes() const { return sharedBytes; }
  /// A part of shared bytes as elements.
  mlir::Value viewShared(mlir::Value bytes, int64_t from, mlir::Type element, int64_t count);
  void barrier();
  /// Begins to copy 16 bytes of elements to shared memory; of `present` elements, where that is given, the rest is 0. Who
  /// reads them waits for their group first, then meets the other threads at a barrier.
  void copyAsync(mlir::Value to, mlir::Value toPlace, mlir::Value from, mlir::Value fromPlace, mlir::Value present);
  /// Copies that were begun since the last time are a group.
  void commitCopies();
  /// Until no more than so many groups are on their way.
  void waitForCopies(int64_t open);
  /// Which threads of the warp say yes, a bit each.
  mlir::Value ballot(mlir::Value condition);
  /// Calls `body` for each bit of an i32 that is set, the lowest first, with its number.
  void overBits(mlir::Value bits, llvm::function_ref<void(mlir::Value)> body);
  /// Puts `value`, an i32, where it is larger than what is in shared memory there: whoever comes first.
  void raise(mlir::Value shared, mlir::Value value, mlir::Value at);
  /// The value of another thread of the warp: of that whose number differs in the bits of `mask`.
  mlir::Value shuffle(mlir::Value value, int64_t mask);
  /// The value of thread `number` of the warp.
  mlir::Value shuffleFrom(mlir::Value value, mlir::Value number);
  /// Combines what `width` neighboring threads of a warp have, in a fixed order; all of them get it.
  Values acrossWarp(Values values, int64_t width, llvm::function_ref<Values(Values, Values)> combine);

  /// Says what a buffer's address is a multiple of; kDeviceAlignment without that.
  void setAlignment(mlir::Value buffer, int64_t bytes) { alignments[buffer] = bytes; }

  int64_t getAlignment(mlir::Value buffer) const;

  /// A kernel of a device has none. Precondition of a kernel: nobody asks.
  mlir::Value allocate(mlir::Type element, int64_t count) override;

protected:
  mlir::Value loadVector(mlir::Value buffer, mlir::Value at) override;
  void storeVector(mlir::Value buffer, mlir::Value value, mlir::Value at) override;
  mlir::Attribute getTableSpace() const override;
  mlir::Value toPlace(mlir::Value index) override;

private:
  mlir::Value shuffle(mlir::Value value, mlir::Value offset, mlir::gpu::ShuffleMode mode);
  int64_t countTogether(mlir::Value buffer, mlir::Value at) const;

  const CudaTarget &target;
  mlir::gpu::GPUFuncOp kernel;
  mlir::Value thread, block;
  int64_t blocks = 1, threads = 0, sharedBytes = 0;
  llvm::DenseMap<mlir::Value, int64_t> alignments;
};

/// Elements of a device's memory.
mlir::MemRefType flattenOnDevice(mlir::Type type);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_DEVICE_EMITTER_H
