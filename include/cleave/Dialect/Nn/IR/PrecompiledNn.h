//===- PrecompiledNn.h - what nn and all above it include ----------------===//
//
// Precompiled once and shared by what stands above spmd; nothing includes it by hand. No dialect above it is in it: what it holds compiles all of
// these again when it changes.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_PRECOMPILEDNN_H
#define CLEAVE_DIALECT_NN_IR_PRECOMPILEDNN_H

#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Support/PrecompiledMlir.h"

#endif // CLEAVE_DIALECT_NN_IR_PRECOMPILEDNN_H
