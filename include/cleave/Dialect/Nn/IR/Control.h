//===- Control.h - loops of the nn dialect ----------------------*- C++ -*-===//
//
// nn.loop and nn.yield (dialects/Nn/NnControl.td). A loop's body is a block of its own that sees nothing of the one around it: what
// goes in are operands, what comes out are results. So a pass that knows nothing of loops may leave bodies alone, and one
// that does treats them as it treats the body of a function.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_CONTROL_H
#define CLEAVE_DIALECT_NN_IR_CONTROL_H

#include "cleave/Dialect/Nn/IR/Nn.h"

namespace cleave::nn {
class LoopOp;
class YieldOp;
} // namespace cleave::nn

#define GET_OP_CLASSES
#include "cleave/Dialect/Nn/IR/NnControl.h.inc"

#endif // CLEAVE_DIALECT_NN_IR_CONTROL_H
