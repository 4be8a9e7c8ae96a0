//===- Adapter.h - what is trained beside a weight --------------*- C++ -*-===//
//
// The first factor of an adapter says what it is beside, and how the two make up for a change of the weight:
//
//   nn.param @w.lora_A : tensor<3x2xf32> = .. {nn.adapter = {of = @w, letters = "ih", down = "ia", up = "ah", factor = 2.0 : f64}}
//
//   w + factor * einsum(A, B, "ia,ah->ih")
//
// Where the weight is read in parts, `starts` and `sizes` say which one. `read_by` names what else reads it: then the sum is not what
// everybody reads.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_ADAPTER_H
#define CLEAVE_DIALECT_NN_IR_ADAPTER_H

#include "llvm/ADT/StringRef.h"

namespace cleave::nn {

/// Of the parameter that is the first factor.
inline constexpr llvm::StringLiteral kAdapterAttr = "nn.adapter";

/// The ends of the names of the two factors.
inline constexpr llvm::StringLiteral kLoraA = ".lora_A", kLoraB = ".lora_B";

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_ADAPTER_H
