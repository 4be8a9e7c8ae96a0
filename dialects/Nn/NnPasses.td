//===- NnPasses.td - recomposition and canonical form -----------*- tablegen -*-===//
#ifndef CLEAVE_NN_PASSES
#define CLEAVE_NN_PASSES

include "mlir/Pass/PassBase.td"

#endif // CLEAVE_NN_PASSES
