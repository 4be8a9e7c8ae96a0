//===- RingChoice.h - what rings are chosen by ------------------*- C++ -*-===//
//
// exec-form-rings knows formulas; the machine, and how the memory of a program is counted, come from who makes the pass.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_EXEC_TRANSFORMS_RINGCHOICE_H
#define CLEAVE_DIALECT_EXEC_TRANSFORMS_RINGCHOICE_H

#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Sharding/Cluster.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <functional>

namespace cleave::exec {

struct RingChoice {
  /// Nothing: any machine.
  std::optional<spmd::Cluster> cluster;
  /// What takes less time is taken, else only what memory asks for.
  bool isByTime = false;
  /// Bytes of a rank at their peak. Null: memory asks for nothing.
  std::function<int64_t(mlir::func::FuncOp)> countPeakBytes;
};

std::unique_ptr<mlir::Pass> createFormRings(FormRingsOptions options, RingChoice choice);

} // namespace cleave::exec

#endif // CLEAVE_DIALECT_EXEC_TRANSFORMS_RINGCHOICE_H
