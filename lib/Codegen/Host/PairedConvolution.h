//===- PairedConvolution.h - convolutions of bf16 ---------------*- C++ -*-===//
#ifndef CLEAVE_LIB_CODEGEN_HOST_PAIREDCONVOLUTION_H
#define CLEAVE_LIB_CODEGEN_HOST_PAIREDCONVOLUTION_H

#include "../Lowerings.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"

namespace cleave::codegen {

/// True for a convolution whose input lies in memory as bf16 with channels last, as its result does, and whose weights lie in
/// panels of pairs.
bool isByPairs(Emitter &e, nn::ConvOp op);

/// Hands out vectors of channels, pixel by pixel.
void runByPairs(Emitter &e, nn::ConvOp op, TileSink sink);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_HOST_PAIREDCONVOLUTION_H
