//===- RestOfLoop.h - a loop over microbatches of two sizes -----*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_MICROBATCHES_RESTOFLOOP_H
#define CLEAVE_LIB_DIALECT_PIPE_MICROBATCHES_RESTOFLOOP_H

#include "cleave/Dialect/Pipe/IR/Pipe.h"

namespace cleave::pipe {

/// Gives `loop`, whose body is written for `perShard` samples of a shard, the two bodies that its microbatches run, and the
/// module the functions that they call, instead of those of the body.
/// Fails after an error where a stage cannot be made for another number of samples.
llvm::LogicalResult makeBodies(MicrobatchesOp loop, int64_t perShard);

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_MICROBATCHES_RESTOFLOOP_H
