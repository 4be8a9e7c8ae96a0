//===- KeepOnFirst.h - a whole value as terms, by a kernel ------*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_MEMORY_KEEPONFIRST_H
#define CLEAVE_LIB_DIALECT_EXEC_MEMORY_KEEPONFIRST_H

#include "cleave/Dialect/Exec/IR/Exec.h"

namespace cleave::exec {

/// Puts a launch in the place of every spmd.keep_on_first; equal ones share a kernel.
void keepOnFirstByKernels(mlir::Block &block);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_MEMORY_KEEPONFIRST_H
