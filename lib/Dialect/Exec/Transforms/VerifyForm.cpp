//===- VerifyForm.cpp - the gates of the lowering -------------------------===//
//
// What must hold after each phase, by number (ExecPasses.td). It looks at bodies alone, not at how they were made: what
// comes next may take any program that passes. One walk, linear in ops.
//
//===----------------------------------------------------------------------===//
#include "Clusters.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"

namespace cleave::exec {
#define GEN_PASS_DEF_VERIFYFORM
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// An error on the kernel, with a note at the op.
static LogicalResult fail(Operation *kernel, Operation *op, const Twine &what) {
  InFlightDiagnostic error = kernel->emitOpError(what);
  error.attachNote(op->getLoc()) << "here is " << op->getName();
  return error;
}

/// K2
static LogicalResult checkAlone(Operation *kernel, Block &body) {
  Operation *alone = nullptr, *other = nullptr;
  for (Operation &op : body.without_terminator())
    if (!isNumber(&op) && !isa<UnpackOp>(op))
      (isFusable(&op) || alone ? other : alone) = &op;
  return alone && other ? fail(kernel, alone, "holds an op that no kernel shares, and others (K2)") : success();
}

/// K3; gives the rows, if there are any.
static FailureOr<std::optional<Rows>> checkRows(Operation *kernel, Block &body) {
  std::optional<Rows> rows;
  bool hasScan = false;
  for (Operation &op : body.without_terminator()) {
    std::optional<Rows> own = isFusable(&op) ? Rows::get(&op) : std::nullopt;
    if (!own)
      continue;
    if (rows && !(*rows == *own))
      return fail(kernel, &op, "walks two kinds of rows (K3)");
    if (rows && (own->isScan || hasScan))
      return fail(kernel, &op, "holds a scan, and other ops that walk rows (K3)");
    hasScan |= own->isScan;
    rows = own;
  }
  return rows;
}

/// K4
static LogicalResult checkResults(Operation *kernel, Operation *yield, const std::optional<Rows> &rows) {
  int64_t most = rows ? ShapedType::getNumElements(rows->shape) : 0;
  for (Value value : yield->getOperands())
    most = std::max(most, countElements(value));
  for (auto [index, value] : llvm::enumerate(yield->getOperands())) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
    bool isOneARow = rows && (rows->hasOneARow(shape) || yield->getNumOperands() == 1);
    if (countElements(value) != most && !isOneARow)
      return kernel->emitOpError() << "has results of two iteration spaces: result " << index << " is "
                                   << value.getType() << " (K4)";
  }
  return success();
}

static LogicalResult checkKernel(Operation *kernel) {
  Block &body = kernel->getRegion(0).front();
  if (failed(checkAlone(kernel, body)))
    return failure();
  FailureOr<std::optional<Rows>> rows = checkRows(kernel, body);
  // An op that stands alone gives what it gives.
  bool isAlone =
      llvm::any_of(body.without_terminator(), [](Operation &op) { return !isFusable(&op) && !isNumber(&op); });
  return failed(rows) || isAlone ? LogicalResult(rows) : checkResults(kernel, body.getTerminator(), *rows);
}

namespace {
struct VerifyForm : cleave::exec::impl::VerifyFormBase<VerifyForm> {
  using Base::Base;

  void runOnOperation() override {
    OwnFaults faults(&getContext());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() && failed(checkFunction(func)))
        return signalPassFailure();
    if (failed(checkKernels()))
      return signalPassFailure();
    setPhase(getOperation(), form);
    markAllAnalysesPreserved();
  }

private:
  LogicalResult checkFunction(func::FuncOp func) {
    if (!func.getBody().hasOneBlock())
      return func.emitOpError("has control flow");
    for (Operation &op : func.getBody().front()) {
      if (!mayStand(op))
        return op.emitOpError() << "is left to no kernel and no command (" << (isOutlined() ? "O1" : "K1") << ")";
      if (isa<FusedOp>(op) && failed(checkKernel(&op)))
        return failure();
      if (auto launch = dyn_cast<LaunchOp>(op))
        launched.insert(launch.getKernel());
    }
    return success();
  }

  static bool isData(Operation *op) {
    auto formed = dyn_cast_if_present<nn::FormOpInterface>(op);
    return formed && formed.getForm() == nn::Form::Data;
  }

  /// K1, O1
  bool mayStand(Operation &op) const {
    if (isa<func::ReturnOp, LibraryOpInterface, spmd::CollectiveOpInterface>(op))
      return true;
    if (isOutlined() ? isa<LaunchOp>(op) : isa<FusedOp>(op))
      return true;
    if (auto pack = dyn_cast<PackOp>(op))
      return isData(pack.getInput().getDefiningOp());
    return isData(&op) || (isa<nn::FormOpInterface>(op) && getAliasOffset(&op));
  }

  LogicalResult checkKernels() {
    llvm::DenseMap<size_t, SmallVector<KernelOp, 1>> seen;
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      if (!launched.contains(kernel.getSymName()))
        return kernel.emitOpError("is not launched (O3)");
      SmallVector<KernelOp, 1> &alike = seen[hashBody(kernel.getBody())];
      for (KernelOp other : alike)
        if (haveEqualBodies(kernel.getBody(), other.getBody()))
          return kernel.emitOpError() << "computes what @" << other.getSymName() << " computes (O2)";
      alike.push_back(kernel);
      if (failed(checkKernel(kernel)))
        return failure();
    }
    return success();
  }

  bool isOutlined() const { return form == Phase::Outlined; }

  llvm::DenseSet<StringRef> launched;
};
} // namespace
