//===- PoolTile.h - pools by vectors of windows -----------------*- C++ -*-===//
//
// For maxima and averages of floats over one or two dims; others are in ../Convolution.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_HOST_POOLTILE_H
#define CLEAVE_LIB_CODEGEN_HOST_POOLTILE_H

#include "Window.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"

namespace cleave::codegen {

/// How windows of a pool move along spatial dim `dim`; the last one may hang over the padded end.
WindowDim getPoolWindow(nn::PoolOp op, int64_t dim);

/// How many elements an average is over: a product of two numbers, in tables.
struct PoolCounts {
  mlir::Value rows, columns;

  /// Nothing for maxima.
  static std::optional<PoolCounts> get(Emitter &e, nn::PoolOp op);
  mlir::Value load(Emitter &e, mlir::Value row, Index column) const;
};

bool canTilePool(nn::PoolOp op);
/// Hands out rows of windows, channel by channel.
void runPool(Emitter &e, nn::PoolOp op, TileSink sink);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_HOST_POOLTILE_H
