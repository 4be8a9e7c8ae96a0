//===- Program.h - what a rank's program takes ------------------*- C++ -*-===//
//
// One walk over a function and those that it calls: a stage of a pipeline as often as it is called, the body of a loop as often as decisions
// counted it. Where kernels have not been formed yet, those that would be are started too (Exec/Fusion).
//
// What is sent overlaps with what is computed where a ring says so: blocks travel while others are attended to.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COST_PROGRAM_H
#define CLEAVE_COST_PROGRAM_H

#include "cleave/Cost/OpCosts.h"
#include "cleave/Cost/Time.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::cost {

/// Of one rank.
struct ProgramCost {
  double flops = 0;
  Time time;
};

/// One op of the walk.
struct OpVisit {
  /// Of one run, and of all of them what overlaps with something else.
  OpCost cost;
  double overlappedNs = 0;
  int64_t runs = 1;
  /// True in a loop, however often that runs.
  bool isRepeated = false;
};

/// The function that a call runs; null for other ops.
mlir::func::FuncOp getCallee(mlir::Operation *op, const mlir::SymbolTable &symbols);

/// Sums up all that `func` runs, and shows each op to `visit`, if there is one. Null `times`: flops alone are counted.
/// Precondition: shapes are those of a rank; `func` has one block.
ProgramCost countProgram(mlir::func::FuncOp func, const mlir::SymbolTable &symbols, const OpTimes *times,
                         llvm::function_ref<void(mlir::Operation &, const OpVisit &)> visit = nullptr);

} // namespace cleave::cost

#endif // CLEAVE_COST_PROGRAM_H
