//===- PassOptions.h - what the passes of spmd can be asked -----*- C++ -*-===//
//
// The structs that TableGen makes of their options (dialects/Spmd/SpmdOptions.td), for those who need no MLIR otherwise.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_TRANSFORMS_PASSOPTIONS_H
#define CLEAVE_DIALECT_SPMD_TRANSFORMS_PASSOPTIONS_H

#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Sharding/AttentionMethod.h"
#include "cleave/Sharding/CostModel.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <string>

namespace mlir {
class Pass;
} // namespace mlir

namespace cleave::spmd {

#define GEN_PASS_DECL
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_TRANSFORMS_PASSOPTIONS_H
