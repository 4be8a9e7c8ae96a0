//===- ConvolutionTile.h - convolutions in blocks ---------------*- C++ -*-===//
//
// For convolutions of floats over one or two dims. Where the result's channels lie side by side in memory, see
// ../Convolution.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_HOST_CONVOLUTIONTILE_H
#define CLEAVE_LIB_CODEGEN_HOST_CONVOLUTIONTILE_H

#include "../Lowerings.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"

namespace cleave::codegen {

bool canTileConvolution(nn::ConvOp op);
/// Hands out rows of windows, channel by channel.
void runConvolution(Emitter &e, nn::ConvOp op, TileSink sink);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_HOST_CONVOLUTIONTILE_H
