//===- PrecompiledNn.h - the dialects that all after them include --------===//
//
// Precompiled once and shared by what stands above the dialects; nothing includes it by hand.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_PRECOMPILEDNN_H
#define CLEAVE_DIALECT_NN_IR_PRECOMPILEDNN_H

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Support/PrecompiledMlir.h"

#endif // CLEAVE_DIALECT_NN_IR_PRECOMPILEDNN_H
