//===- Transfers.h - when values go to the host and back --------*- C++ -*-===//
//
// Kernels go on while a value is copied to the host's memory, or back, each way on a stream of its own:
//
//   kernels   k0   k1   k2   k3   ..     k7   k8   k9
//   out          [%x ────▶]                             %x is made by k0; its bytes are free before k3, in front of which that is done
//   back                            [◀──── %x]          begins in front of k7, so that it is there for k9
//
// What a copy takes is its bytes over the rate of the link (ClusterDevice::hostBytesPerNs), and what kernels take is as predicted.
//
//   out    begins where the value is there, and is done as predicted, but before the one after the next begins: kernels wait for it then
//   back   begins as late as is predicted to do, but not before the first reader of the one before the last: memory is what it is about
//
// A value that could not be gone and back before it is read stays.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_MEMORY_TRANSFERS_H
#define CLEAVE_LIB_DIALECT_EXEC_MEMORY_TRANSFERS_H

#include "BufferAssignment.h"
#include "cleave/Cost/OpCosts.h"

namespace cleave::exec {

/// What comes of the copies of a function.
struct TransferPlan {
  /// Of each copy to the host the op in front of which it is done.
  TransferEnds ends;
  /// Of values that go, and of those that stay as there is no time.
  int64_t values = 0, bytes = 0, stayed = 0;
  /// What kernels wait for copies, as predicted.
  double exposedNs = 0;
};

/// Moves each exec.offload and exec.fetch of a block to where it begins; of values that stay there is none afterwards.
TransferPlan placeTransfers(mlir::Block &block, cost::OpCosts &costs, double hostBytesPerNs);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_MEMORY_TRANSFERS_H
