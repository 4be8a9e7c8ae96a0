//===- Phases.h - what windows hand back --------------------------*- C++ -*-===//
//
// A convolution reads its input in windows; what goes the other way, the gradient of its input and a transposed convolution, adds up what
// each window hands to each of its places. With stride s the places x, x + s, x + 2 s, .. are a *phase*: all of them get the same elements
// of the kernel, from windows side by side. So each phase is a convolution of stride 1 with a part of the kernel:
//
//   stride 2, kernel a b c:    place   0    1    2    3            phase 0   convolution with a and c
//                              window  0 a  0 b  0 c  1 b          phase 1   convolution with b
//                                                1 a
//
// Nothing is multiplied with zeros that would otherwise stand between the windows.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_PHASES_H
#define CLEAVE_DIALECT_NN_IR_PHASES_H

#include "cleave/Dialect/Nn/IR/Composer.h"

namespace cleave::nn {

/// Windows over the spatial dims: those from 2 on.
struct Windows {
  Shape kernel, strides, low, dilations;

  /// How far the last element of a window is from its first one.
  int64_t getReach(size_t i) const { return dilations[i] * (kernel[i] - 1); }
};

/// What windows hand back to a tensor of spatial extents `extents`: [n, groups * channels, extents], by convolutions of stride 1.
///
/// \param out a number for each window, [n, groups * made, windows].
/// \param weight of a convolution from channels to what is made, [groups * made, channels, kernel].
/// \param bias added to each channel; null: none.
/// \return null where `f` has failed.
mlir::Value handBack(Composer &f, mlir::Value out, mlir::Value weight, mlir::Value bias, const Windows &windows,
                     Shape extents, int64_t groups);

/// The phases of all dims, the last dim's fastest, side by side: each [n, channels, extents / strides, rounded up], in all [n, channels,
/// extents]. What is behind the extents is cut.
mlir::Value joinPhases(Composer &f, llvm::ArrayRef<mlir::Value> phases, Shape strides, Shape extents);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_PHASES_H
