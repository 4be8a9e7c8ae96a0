//===- PixelTile.h - windows with channels side by side ---------*- C++ -*-===//
//
// For convolutions and pools whose result leaves with channels last: vectors run along channels, and windows next to each
// other are rows of a block. Nothing is laid out anew: taps that a window lacks at a border are left out.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_HOST_PIXELTILE_H
#define CLEAVE_LIB_CODEGEN_HOST_PIXELTILE_H

#include "../Lowerings.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"

namespace cleave::codegen {

/// True for a convolution or pool that leaves with channels last, and whose operands let vectors run along them.
bool isByPixels(Emitter &e, nn::ConvOp op);
bool isByPixels(Emitter &e, nn::PoolOp op);

/// Hands out vectors of channels, pixel by pixel.
void runByPixels(Emitter &e, nn::ConvOp op, TileSink sink);
void runByPixels(Emitter &e, nn::PoolOp op, TileSink sink);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_HOST_PIXELTILE_H
