//===- VerifyForm.cpp - the gates after import and canonicalisation -------===//
//
// What must hold after each of the two phases is stated in docs/architecture.md. A failure is a bug of the phase
// before, or a file that claims to be further than it is. One walk, linear in ops.
//
//===----------------------------------------------------------------------===//
#include "Matching.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNVERIFYFORM
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {

/// Ops by what they compute, wherever they come from.
struct ByMeaning : public llvm::DenseMapInfo<Operation *> {
  static unsigned getHashValue(Operation *op) {
    return OperationEquivalence::computeHash(op, OperationEquivalence::directHashValue,
                                             OperationEquivalence::ignoreHashValue,
                                             OperationEquivalence::IgnoreLocations);
  }
  static bool isEqual(Operation *lhs, Operation *rhs) {
    if (lhs == rhs)
      return true;
    if (lhs == getEmptyKey() || lhs == getTombstoneKey() || rhs == getEmptyKey() || rhs == getTombstoneKey())
      return false;
    return OperationEquivalence::isEquivalentTo(lhs, rhs, OperationEquivalence::IgnoreLocations);
  }
};

struct VerifyForm : public cleave::nn::impl::NnVerifyFormBase<VerifyForm> {
  using Base::Base;

  void runOnOperation() override {
    if (form != "imported" && form != "canonical") {
      getOperation().emitError() << "unknown form '" << form << "'";
      return signalPassFailure();
    }
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() && failed(check(func)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  LogicalResult check(func::FuncOp func) {
    if (!func.getBody().hasOneBlock())
      return func.emitOpError() << "has control flow";
    llvm::DenseSet<Operation *, ByMeaning> seen;
    for (Operation &op : func.getBody().front().without_terminator()) {
      if (!isa<NnDialect>(op.getDialect()) && !isa<spmd::ConstrainOp, spmd::PinOp>(op))
        return op.emitOpError() << "is no nn op";
      if (form == "canonical" && (failed(checkMovement(&op)) || failed(checkUnique(&op, seen))))
        return failure();
    }
    return success();
  }

  /// A reshape of a reshape, or a transpose of a transpose, that nothing else uses would be one op.
  static LogicalResult checkMovement(Operation *op) {
    if (!isa<ReshapeOp, TransposeOp>(op))
      return success();
    Operation *before = op->getOperand(0).getDefiningOp();
    if (!before || before->getName() != op->getName() || !before->hasOneUse())
      return success();
    return op->emitOpError() << "follows another " << op->getName() << ", which could be fused with it";
  }

  /// Two ops that compute the same.
  static LogicalResult checkUnique(Operation *op, llvm::DenseSet<Operation *, ByMeaning> &seen) {
    auto [it, isNew] = seen.insert(op);
    if (isNew)
      return success();
    InFlightDiagnostic error = op->emitOpError() << "computes what another op computes";
    error.attachNote((*it)->getLoc()) << "the other one is here";
    return error;
  }
};
} // namespace
