//===- VerifyForm.cpp - the gates after import and canonicalization -------===//
//
// What must hold after each of the two phases is stated in docs/architecture.md. A failure is a bug of the phase
// before, or a file that claims to be further than it is. One walk, linear in ops.
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "cleave/Dialect/Nn/IR/Begins.h"
#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Transforms/MergeEqual.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNVERIFYFORM
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {
struct VerifyForm : public cleave::nn::impl::NnVerifyFormBase<VerifyForm> {
  using Base::Base;

  void runOnOperation() override {
    OwnFaults faults(&getContext());
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() && (failed(check(func)) || (form == Phase::Differentiated && failed(checkStep(func)))))
        return signalPassFailure();
    setPhase(getOperation(), form);
    markAllAnalysesPreserved();
  }

private:
  LogicalResult check(func::FuncOp func) {
    if (!func.getBody().hasOneBlock())
      return func.emitOpError() << "has control flow";
    return failure(failed(verifyBeginnings(func)) || failed(check(func.getBody().front())));
  }

  /// Each argument has a role, and each parameter and state of the optimizer one next value, which `getStates` looks at, or is left as it is.
  static LogicalResult checkStep(func::FuncOp func) {
    FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
    if (failed(states))
      return failure();
    for (unsigned index = 0; index < func.getNumArguments(); ++index) {
      auto role = func.getArgAttrOfType<StringAttr>(index, spmd::kRoleAttr);
      if (!role)
        return func.emitOpError() << "has argument '" << spmd::getArgumentName(func, index) << "' without a role";
      bool changes = func.getArgAttr(index, spmd::kKeptAttr) ||
                     llvm::any_of(*states, [&](const spmd::StatePlace &state) { return state.argument == index; });
      if (changes == (role.getValue() == spmd::kBatchRole))
        return func.emitOpError() << "has argument '" << spmd::getArgumentName(func, index) << "' of role " << role
                                  << (changes ? " with a next value" : " without a next value");
    }
    return success();
  }

  /// Two loops that compute the same stay two: nobody merges bodies.
  LogicalResult check(Block &block) {
    SeenOps seen;
    if (form == Phase::Canonical)
      seen.reserve(block.getOperations().size());
    for (Operation &op : block.without_terminator()) {
      if (!isa<NnDialect>(op.getDialect()) && !isa<spmd::ConstrainOp, spmd::PinOp>(op))
        return op.emitOpError() << "is not an nn op";
      if (failed(checkNotSharded(&op)))
        return failure();
      if (auto loop = dyn_cast<LoopOp>(op)) {
        if (failed(check(loop.getBody().front())))
          return failure();
        continue;
      }
      if (form == Phase::Canonical && (failed(checkMovement(&op)) || failed(checkUnique(&op, seen))))
        return failure();
    }
    return success();
  }

  /// Rewrites make results of plain types: a sharding in one would be lost.
  static LogicalResult checkNotSharded(Operation *op) {
    for (Type type : op->getResultTypes())
      if (spmd::getSharding(type) && !isa<spmd::ConstrainOp>(op))
        return op->emitOpError() << "has a result of type " << type << ": the canonical form comes before shardings";
    return success();
  }

  /// A reshape of a reshape, or a transpose of a transpose, that nothing else uses would be one op.
  static LogicalResult checkMovement(Operation *op) {
    if (!isa<ReshapeOp, TransposeOp>(op))
      return success();
    Operation *before = op->getOperand(0).getDefiningOp();
    if (!before || before->getName() != op->getName() || !before->hasOneUse())
      return success();
    InFlightDiagnostic error = op->emitOpError()
                               << "follows another " << op->getName() << ", which could be fused with it";
    error.attachNote(before->getLoc()) << "the other one is here";
    return error;
  }

  /// Two ops that compute the same.
  static LogicalResult checkUnique(Operation *op, SeenOps &seen) {
    Operation *first = seen.getFirst(op);
    if (first == op)
      return success();
    InFlightDiagnostic error = op->emitOpError() << "computes what another op computes";
    error.attachNote(first->getLoc()) << "the other one is here";
    return error;
  }
};
} // namespace
