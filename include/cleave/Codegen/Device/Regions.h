//===- Regions.h - regions that are kernels of a device ---------*- C++ -*-===//
//
// What code generation can say of a region before there is a target: whether a device has one kernel for it, and where it would have to be
// split. Those who fuse ops ask here, as the answers follow from the lowerings of ops, which are known nowhere else.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_CODEGEN_DEVICE_REGIONS_H
#define CLEAVE_CODEGEN_DEVICE_REGIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>

namespace cleave::codegen {

/// True if `region` can be one kernel of a device; else `reason` says why not. More is refused than `canEmit` does: a kernel of a
/// device has no memory of its own that all of its threads see, so what would lie there has to be a kernel before.
bool canEmitDevice(mlir::Block &region, std::string &reason);

/// A region in simple ops, for whoever splits it.
struct DeviceSplits {
  mlir::OwningOpRef<mlir::func::FuncOp> region;
  /// Ops of it, in the order of the program, whose results have to lie in memory before the rest is computed.
  llvm::SmallVector<mlir::Operation *> ops;
};
DeviceSplits findDeviceSplits(mlir::Block &region);
/// Attention of halves to which there are 16 queries or more is whole for libraries, and so is that of f32 where it will be of bf16.
struct StageOptions {
  bool forLibraries = false, narrowsFloats = false;
};
/// Of a region that has a kernel of few blocks, a reduction of much into little: the same with the reduction in two stages, and the
/// first of them as the only op. No region where there is nothing to gain.
DeviceSplits findDeviceStages(mlir::Block &region, const StageOptions &options = {});

/// As `canBeInPlace`, of a device's kernel. Precondition: `canEmitDevice(region)`.
bool canBeInPlaceOnDevice(mlir::Block &region, unsigned argument, unsigned result);

} // namespace cleave::codegen

#endif // CLEAVE_CODEGEN_DEVICE_REGIONS_H
