//===- Expand.h - regions in simple ops -------------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_CODEGEN_EXPAND_H
#define CLEAVE_LIB_CODEGEN_EXPAND_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace cleave::codegen {

/// A copy of `region` as a function, with ops in place of those that have an `expand` lowering.
mlir::OwningOpRef<mlir::func::FuncOp> expandRegion(mlir::Block &region);

/// Merges neighboring dims that every value has whole or not at all, where all ops are elementwise.
void mergeDims(mlir::func::FuncOp region);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_EXPAND_H
