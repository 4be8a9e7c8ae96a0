//===- Narrow.h - random programs with bf16 in memory -----------*- C++ -*-===//
#ifndef CLEAVE_TEST_DIFFERENTIAL_NARROW_H
#define CLEAVE_TEST_DIFFERENTIAL_NARROW_H

#include "cleave/Reference/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <functional>

namespace cleave::test {

/// What was held against results in double, over all programs.
struct NarrowCount {
  /// Results whose elements were all compared, those among them that one device gives as roughly as the ranks do, and those that were
  /// not compared as they jump where numbers are rounded.
  uint64_t compared = 0, rough = 0, skipped = 0;
  /// Of those that were compared: some kernel of the program reads or writes bf16.
  uint64_t narrowed = 0;
};

/// Runs a module that was partitioned, as a program of bf16; nothing after an error, which is printed.
using NarrowRun = std::function<std::optional<llvm::SmallVector<reference::Tensor>>(mlir::ModuleOp)>;

/// Holds the program of `partitioned` in bf16 against `original` in double: within `kNarrowTolerance`, or no farther from it than rounding
/// takes the program of one device. Prints what is not.
bool isRightNarrow(mlir::ModuleOp original, mlir::ModuleOp partitioned, llvm::ArrayRef<reference::Tensor> inputs,
                   const NarrowRun &run, NarrowCount &count);

/// The same function without annotations, on one device.
mlir::OwningOpRef<mlir::ModuleOp> putOnOneDevice(mlir::ModuleOp original);

} // namespace cleave::test

#endif // CLEAVE_TEST_DIFFERENTIAL_NARROW_H
