//===- UnrollRecurrences.cpp - recurrent nets become steps ----------------===//
//
//   %y:2 = nn.recurrence %p, %w initial (%h)   ─▶   step 0 ─▶ step 1 ─▶ step 2 ─▶ ..      %y#0 = concat of all
//
// What a step is stands in UnrollRecurrence.cpp of the nn dialect, which partitioning shares.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Ops/Recurrence.h"
#include "cleave/Dialect/Nn/IR/Recurrence.h"
#include "llvm/ADT/Statistic.h"

namespace cleave::exec {
#define GEN_PASS_DEF_UNROLLRECURRENCES
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;

#define DEBUG_TYPE "exec-unroll-recurrences"

ALWAYS_ENABLED_STATISTIC(numRecurrences, "recurrences unrolled");

namespace {
struct UnrollRecurrences : exec::impl::UnrollRecurrencesBase<UnrollRecurrences> {
  void runOnOperation() override {
    SmallVector<nn::RecurrenceOp> ops;
    getOperation().walk([&](nn::RecurrenceOp op) { ops.push_back(op); });
    numRecurrences += ops.size();
    for (nn::RecurrenceOp op : ops) {
      OpBuilder builder(op);
      op->replaceAllUsesWith(nn::unrollRecurrence(builder, op.getLoc(), op, op->getOperands()));
      op.erase();
    }
  }
};
} // namespace
