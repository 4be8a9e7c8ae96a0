//===- SharedInvariants.h - whole values that several stages read -*- C++ -*-===//
//
// A value that does not depend on the batch is made before the first microbatch: by each stage that reads it, or, where that
// takes longer than a message, by the first one, which sends it to the others.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_STAGES_SHAREDINVARIANTS_H
#define CLEAVE_LIB_DIALECT_PIPE_STAGES_SHAREDINVARIANTS_H

#include "StageParts.h"

#include "cleave/Dialect/Pipe/Stages/StageGraph.h"

namespace cleave::pipe {

/// An op of whole values that several stages need.
struct SharedInvariant {
  mlir::Operation *op = nullptr;
  /// Ascending.
  llvm::SmallVector<int64_t> stages;
  /// What a stage takes to make it, with all that it is made of and does not get; and what a message of it takes.
  double ns = 0, sendNs = 0;
  int64_t bytes = 0;
  /// The first stage makes it for all.
  bool isSent = false;
};

/// Of all results of an op.
int64_t countResultBytes(mlir::Operation *op);

/// `ranks`: of stages; what stages of one rank alone read is never made twice. `wanted`: by stage, the whole values that it reads, or that what runs behind the loop does. In the order of the program.
/// `sendsCheap`: whatever several stages read is sent.
std::vector<SharedInvariant> findSharedInvariants(mlir::func::FuncOp func, llvm::ArrayRef<Values> wanted,
                                                  llvm::ArrayRef<int64_t> ranks, const DeviceRates &rates,
                                                  bool sendsCheap);

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_STAGES_SHAREDINVARIANTS_H
