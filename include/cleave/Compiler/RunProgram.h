//===- RunProgram.h - a program on tensors ----------------------*- C++ -*-===//
#ifndef CLEAVE_COMPILER_RUNPROGRAM_H
#define CLEAVE_COMPILER_RUNPROGRAM_H

#include "cleave/Reference/Tensor.h"
#include "cleave/Runtime/Executor.h"

namespace cleave {

/// Calls a program. `inputs` in its order; `outputs` are the types of all of its outputs, in order.
llvm::Expected<llvm::SmallVector<reference::Tensor>> runProgram(runtime::Executor &executor,
                                                                llvm::ArrayRef<reference::Tensor> inputs,
                                                                llvm::ArrayRef<mlir::RankedTensorType> outputs);

} // namespace cleave

#endif // CLEAVE_COMPILER_RUNPROGRAM_H
