//===- SpmdPasses.td - annotate, decide, insert, partition, clean up -*- tablegen -*-===//
#ifndef CLEAVE_SPMD_PASSES
#define CLEAVE_SPMD_PASSES

include "mlir/Pass/PassBase.td"

#endif // CLEAVE_SPMD_PASSES
