//===- Scatter.h - what the lowerings of scatters share ---------*- C++ -*-===//
#ifndef CLEAVE_LIB_CODEGEN_SCATTER_H
#define CLEAVE_LIB_CODEGEN_SCATTER_H

#include "Emitter.h"

namespace cleave::codegen {

/// The places that a tuple of indices names, behind the batch dims: `tuple` is its point without the last dim.
Point pullTuple(Emitter &e, mlir::Value indices, const Point &tuple, llvm::ArrayRef<int64_t> shape, int64_t batchDims);

/// What is there behind an update, in the compute type.
mlir::Value joinUpdate(ElementBuilder &e, nn::ScatterKind kind, mlir::Value old, mlir::Value with, bool isUnsigned);

/// All points of `shape` behind those of its first dims, `outer`, with lanes along the last dim.
void overVectors(Emitter &e, const Point &outer, llvm::ArrayRef<int64_t> shape, int64_t lanes,
                 llvm::function_ref<void(const Point &)> body);

/// Sums of rows, sorted by where they go (Host/SortedScatter.cpp); what is done with each goes on in the kernel.
void runSortedScatter(Emitter &e, mlir::Operation *op, TileSink sink);

/// Scatters of many updates, by blocks of places (Device/Scatter.cpp). Of few each element looks for its own.
bool canRunDeviceScatter(mlir::Operation *op);
void runDeviceScatter(Emitter &e, mlir::Operation *op, TileSink sink);
/// Writes what is updated, and nothing else, of a result that lies where the input does. Precondition: nobody else reads that.
void updateInPlace(Emitter &e, mlir::Operation *op, mlir::Value buffer);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_SCATTER_H
