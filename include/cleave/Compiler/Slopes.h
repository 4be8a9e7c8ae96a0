//===- Slopes.h - are the gradients of a step right? ------------*- C++ -*-===//
//
// Gradients are composed by rules, the loss is computed by the model alone. So each parameter's gradient is held against the slope of the
// loss along a random direction of that parameter, everything in f64 on one device.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_SLOPES_H
#define CLEAVE_COMPILER_SLOPES_H

#include "cleave/Compiler/Check.h"
#include "cleave/Reference/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave {

/// One entry per parameter of a step whose gradients are results, in the order of the program: from the loss backward; none of
/// what is no step. Nothing after an error, which is emitted.
std::optional<std::vector<SlopeCheck>> checkSlopes(mlir::func::FuncOp step, llvm::ArrayRef<reference::Tensor> inputs,
                                                   uint64_t seed);

} // namespace cleave

#endif // CLEAVE_COMPILER_SLOPES_H
