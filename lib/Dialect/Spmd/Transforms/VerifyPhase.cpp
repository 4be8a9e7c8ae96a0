//===- VerifyPhase.cpp - the gates between the phases ---------------------===//
//
// What must hold after each phase is stated in docs/architecture.md; here each statement is checked, in one walk over
// the module. A failure is a bug of the phase before, or a file that claims to be further than it is.
//
//===----------------------------------------------------------------------===//
#include "../Deciding/RuleMatches.h"

#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_VERIFYPHASE
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

namespace {
struct VerifyPhase : cleave::spmd::impl::VerifyPhaseBase<VerifyPhase> {
  using Base::Base;

  void runOnOperation() override;

private:
  LogicalResult check(Phase done);
  LogicalResult checkAnnotated();
  LogicalResult checkPropagated(func::FuncOp func);
  LogicalResult checkResharded(func::FuncOp func, MeshAtoms &atoms);
  LogicalResult checkPartitioned(func::FuncOp func);
};
} // namespace

LogicalResult VerifyPhase::checkAnnotated() { return success(resolveMesh(getOperation()) != nullptr); }

/// S7: every value has a sharding, and it says everything.
LogicalResult VerifyPhase::checkPropagated(func::FuncOp func) {
  LogicalResult result = success();
  forEachValue(func, [&](Value value) {
    if (failed(result))
      return;
    ShardingAttr sharding = getSharding(value.getType());
    if (!sharding)
      result = emitError(value.getLoc()) << "value of type " << value.getType() << " has no sharding after propagation";
    else if (sharding.hasOpenDim())
      result = emitError(value.getLoc()) << "value of type " << value.getType() << " has an open dim after propagation"
                                         << " (S7)";
  });
  return result;
}

/// What operands and results were to be is in types and reshards by then.
static LogicalResult checkNoAnnotations(Operation *op) {
  for (StringRef name : {SpmdDialect::kOperandShardingsAttr, SpmdDialect::kResultShardingsAttr})
    if (op->getDiscardableAttr(name))
      return op->emitOpError() << "still has '" << name << "' after reshards were inserted";
  return success();
}

/// What is carried lies in one sharding all the way, what is captured as it came; conditions are replicated.
static LogicalResult checkLoop(LoopOpInterface loop) {
  auto check = [&](TypeRange first, TypeRange second, StringRef does, StringRef what) -> LogicalResult {
    for (auto [index, types] : llvm::enumerate(llvm::zip_equal(first, second)))
      if (auto [from, to] = types; from != to)
        return loop.emitOpError() << does << " value " << index << " in two shardings: it goes in as " << from << ", "
                                  << what << " " << to;
    return success();
  };
  TypeRange carried = loop.getInitial().getTypes();
  if (failed(check(carried, ValueRange(loop.getCarried()).getTypes(), "carries", "and the body takes")) ||
      failed(check(carried, loop.getNext().getTypes(), "carries", "and the body yields")) ||
      failed(check(carried, loop->getResultTypes(), "carries", "and the result is")) ||
      failed(check(loop.getCaptured().getTypes(), ValueRange(loop.getTaken()).getTypes(), "captures",
                   "and the body takes")))
    return failure();
  for (Value condition : {loop.getCondition(), loop.getNextCondition()})
    if (condition && getSharding(condition.getType()).isPartial())
      return loop.emitOpError("has a condition that is not replicated on every rank");
  return success();
}

/// Operands and results of every op agree under its rule.
LogicalResult VerifyPhase::checkResharded(func::FuncOp func, MeshAtoms &atoms) {
  if (failed(checkPropagated(func)))
    return failure();
  RuleMatches rules(atoms);
  auto check = [&](Operation *op) -> LogicalResult {
    if (failed(checkNoAnnotations(op)))
      return failure();
    if (isa<ConstrainOp>(op))
      return op->emitOpError() << "is left after reshards were inserted";
    if (auto loop = dyn_cast<LoopOpInterface>(op))
      return checkLoop(loop);
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled)
      return success();
    if (const RuleMatches::Entry &entry = rules.get(ruled); !entry.match)
      return op->emitOpError() << "does not agree with its sharding rule: " << entry.error;
    return success();
  };
  WalkResult result = func.getBody().walk<WalkOrder::PreOrder>(
      [&](Operation *op) { return failed(check(op)) ? WalkResult::interrupt() : WalkResult::advance(); });
  return failure(result.wasInterrupted());
}

/// Local types only; the signature remembers the global ones; nothing of spmd but collectives.
LogicalResult VerifyPhase::checkPartitioned(func::FuncOp func) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (!func.getArgAttrOfType<TypeAttr>(i, SpmdDialect::kGlobalTypeAttr))
      return func.emitOpError() << "argument " << i << " does not say its global type";
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (!func.getResultAttrOfType<TypeAttr>(i, SpmdDialect::kGlobalTypeAttr))
      return func.emitOpError() << "result " << i << " does not say its global type";
  LogicalResult result = success();
  forEachValue(func, [&](Value value) {
    if (succeeded(result) && getSharding(value.getType()))
      result = emitError(value.getLoc()) << "value still has the sharded type " << value.getType();
  });
  func.walk([&](Operation *op) {
    if (succeeded(result) && isa<ReshardOp, ConstrainOp>(op))
      result = op->emitOpError() << "is left after partitioning";
  });
  return result;
}

LogicalResult VerifyPhase::check(Phase done) {
  if (done == Phase::Annotated)
    return checkAnnotated();
  // Behind annotation all is made by passes of ours: what is wrong there is no fault of the user's.
  OwnFaults faults(&getContext());
  std::unique_ptr<MeshAtoms> atoms = done == Phase::Resharded ? MeshAtoms::create(getOperation()) : nullptr;
  if (done == Phase::Resharded && !atoms)
    return failure();
  for (func::FuncOp func : getFunctions(getOperation())) {
    if (!func.getBody().hasOneBlock())
      return func.emitOpError() << "has control flow";
    LogicalResult result = done == Phase::Propagated  ? checkPropagated(func)
                           : done == Phase::Resharded ? checkResharded(func, *atoms)
                                                      : checkPartitioned(func);
    if (failed(result))
      return failure();
  }
  return success();
}

void VerifyPhase::runOnOperation() {
  if (failed(check(phase)))
    return signalPassFailure();
  // Last: the word says that the gate was passed.
  setPhase(getOperation(), phase);
  markAllAnalysesPreserved();
}
