//===- PoolTile.h - pools by vectors of windows -----------------*- C++ -*-===//
//
// For maxima and averages of floats over one or two dims; others are in Convolution.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_POOLTILE_H
#define CLEAVE_LIB_CODEGEN_POOLTILE_H

#include "Forms.h"

namespace cleave::codegen {

bool canTilePool(nn::PoolOp op);
/// Hands out rows of windows, channel by channel.
void runPool(Emitter &e, nn::PoolOp op, TileSink sink);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_POOLTILE_H
