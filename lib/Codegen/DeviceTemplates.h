//===- DeviceTemplates.h - templates of kernels for devices -----*- C++ -*-===//
#ifndef CLEAVE_LIB_CODEGEN_DEVICETEMPLATES_H
#define CLEAVE_LIB_CODEGEN_DEVICETEMPLATES_H

#include "DeviceEmitter.h"
#include "Results.h"

namespace cleave::codegen {

/// How many neighbours a thread takes where rows have `extent` elements: as many of the smallest elements as 16 bytes hold.
int64_t getDeviceLanes(mlir::func::FuncOp region, int64_t extent);

/// Sweeps the rows of `rows` by teams of threads (DeviceRow.cpp).
void runRows(DeviceEmitter &e, ResultStore &store, mlir::func::FuncOp region, const Rows &rows,
             llvm::ArrayRef<Result> results);

/// A transpose that moves the last dim, behind which all of `group` is elementwise; nothing if there is none.
std::optional<Anchor> findTurned(mlir::func::FuncOp region, llvm::ArrayRef<Result> group);
/// Hands out the elements of a transpose, turned in shared memory (DeviceTurn.cpp).
void runTurned(DeviceEmitter &e, nn::TransposeOp op, TileSink sink);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_DEVICETEMPLATES_H
