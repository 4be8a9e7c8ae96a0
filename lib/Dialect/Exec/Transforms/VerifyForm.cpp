//===- VerifyForm.cpp - the gates of the lowering -------------------------===//
//
// What must hold after each phase, by number (ExecPasses.td). It looks at bodies alone, not at how they were made: what
// comes next may take any program that passes. One walk, linear in ops.
//
//===----------------------------------------------------------------------===//
#include "../Kernels/Movement.h"
#include "../Memory/BufferAssignment.h"
#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Exec/IR/Control.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
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

/// True for what stands between anchors and the arguments: only places change, and how wide floats are. A template reads bf16 as f32, and
/// may round what it multiplies: neither computes anything that another kernel should.
static bool onlyMovesOrCasts(Operation *op) {
  return isa<UnpackOp, nn::BroadcastOp>(op) || nn::isData(op) || isFloatCast(op) ||
         cast<nn::FormOpInterface>(op).getForm() == nn::Form::Movement;
}

/// True for what may follow an anchor with a result of so many elements.
static bool isEpilogue(Operation *op, int64_t elements) {
  bool isMap = cast<nn::FormOpInterface>(op).getForm() == nn::Form::Map;
  return (isMap || isa<nn::TransposeOp>(op) || getAliasOffset(op)) && countElements(op->getResult(0)) == elements;
}

/// K2, of what is around an anchor.
static LogicalResult checkAround(Operation *kernel, Block &body, Operation *anchor) {
  llvm::SmallPtrSet<Operation *, 8> before, behind{anchor};
  SmallVector<Operation *> open{anchor};
  while (!open.empty())
    for (Value operand : open.pop_back_val()->getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && before.insert(maker).second)
        open.push_back(maker);
  for (Operation &op : body.without_terminator()) {
    if (before.contains(&op) && !onlyMovesOrCasts(&op))
      return fail(kernel, &op, "computes what its anchor reads (K2)");
    bool isBehind = llvm::any_of(op.getOperands(), [&](Value value) { return behind.contains(value.getDefiningOp()); });
    // What has several results has a space for each: gradients of keys have the heads of keys.
    auto read = llvm::find_if(op.getOperands(), [&](Value value) { return value.getDefiningOp() == anchor; });
    Value space = read == op.getOperands().end() ? anchor->getResult(0) : *read;
    if (isBehind && !isEpilogue(&op, countElements(space)))
      return fail(kernel, &op, "leaves the space of its anchor (K2)");
    if (isBehind)
      behind.insert(&op);
  }
  return success();
}

/// K2; gives the anchor or the op that stands alone, if there is one.
static FailureOr<Operation *> checkCenter(Operation *kernel, Block &body) {
  Operation *center = nullptr, *other = nullptr;
  for (Operation &op : body.without_terminator()) {
    if (isNumber(&op) || isa<UnpackOp>(op))
      continue;
    bool isCenter = !isFusable(&op);
    if (isCenter && center)
      return fail(kernel, &op, "holds two ops that are anchors or that no kernel shares (K2)");
    (isCenter ? center : other) = &op;
  }
  if (!center)
    return nullptr;
  if (other && !isAnchor(center))
    return fail(kernel, center, "holds an op that no kernel shares, and others (K2)");
  if (isAnchor(center) && failed(checkAround(kernel, body, center)))
    return failure();
  return center;
}

/// K3; gives the rows, if there are any.
static FailureOr<std::optional<Rows>> checkRows(Operation *kernel, Block &body, bool hasAnchor) {
  std::optional<Rows> rows;
  bool hasScan = false;
  for (Operation &op : body.without_terminator()) {
    std::optional<Rows> own = isFusable(&op) ? Rows::get(&op) : std::nullopt;
    if (!own)
      continue;
    if (hasAnchor)
      return fail(kernel, &op, "walks rows next to an anchor (K3)");
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
  int64_t whole = rows ? ShapedType::getNumElements(rows->shape) : 0;
  // Rows that are empty are walked all the same, for one element each.
  for (Value value : yield->getOperands())
    if (whole != 0 || !rows)
      whole = std::max(whole, countElements(value));
  for (auto [index, value] : llvm::enumerate(yield->getOperands())) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
    bool isOneARow = rows && (rows->hasOneARow(shape) || yield->getNumOperands() == 1);
    if (countElements(value) != whole && !isOneARow)
      return kernel->emitOpError() << "has results of two iteration spaces: result " << index << " is "
                                   << value.getType() << " (K4)";
  }
  return success();
}

static LogicalResult checkKernel(Operation *kernel) {
  Block &body = kernel->getRegion(0).front();
  FailureOr<Operation *> center = checkCenter(kernel, body);
  if (failed(center))
    return failure();
  bool hasAnchor = *center && isAnchor(*center);
  FailureOr<std::optional<Rows>> rows = checkRows(kernel, body, hasAnchor);
  // An op that stands alone gives what it gives, and so does one of several results.
  bool isAlone = *center && (!hasAnchor || (*center)->getNumResults() > 1);
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
      if (isa<OffloadOp>(op) && !llvm::all_of(op.getUsers(), llvm::IsaPred<FetchOp>))
        return op.emitOpError("is read by more than exec.fetch (T1)");
      if (auto launch = dyn_cast<LaunchOp>(op))
        launched.insert(launch.getKernel());
    }
    return success();
  }

  /// K1, O1
  bool mayStand(Operation &op) const {
    if (isMark(&op) || isa<func::ReturnOp, AgainOp, AppendOp, OffloadOp, FetchOp, spmd::CollectiveOpInterface,
                           pipe::SendOp, pipe::RecvOp>(op))
      return true;
    if (isOutlined() ? isa<LaunchOp>(op) : isa<FusedOp>(op))
      return true;
    if (isa<PackOp>(op))
      return isLoaded(op.getResult(0));
    return nn::isData(&op) || (isa<nn::FormOpInterface>(op) && getAliasOffset(&op));
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
