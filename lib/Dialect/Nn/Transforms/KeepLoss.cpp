//===- KeepLoss.cpp - from a step to what it would lose -------------------===//
//
//   main(x, w, m(w)) -> loss, next(w), next(m(w))    =>    main(x, w {spmd.kept}, m(w) {spmd.kept}) -> loss
//
// The arguments stay, in their order and also where nothing reads them any more: both functions are entries of one program, and have one
// set of states.
//
//===----------------------------------------------------------------------===//
#include "../Training/Step.h"

#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNKEEPLOSS
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// What is read by nothing is erased from the end on, so that one walk does.
static LogicalResult keepLoss(func::FuncOp func) {
  FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
  if (failed(states))
    return failure();
  // The pairs are gone with the results.
  for (const spmd::StatePlace &state : *states)
    func.setArgAttr(state.argument, spmd::kKeptAttr, UnitAttr::get(func.getContext()));
  llvm::BitVector others(func.getNumResults());
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    others[index] = spmd::getResultName(func, index) != "loss";
  if (others.all())
    return func.emitError() << "has no result 'loss': nn-outline-step makes it";
  Block &body = func.getBody().front();
  body.getTerminator()->eraseOperands(others);
  if (failed(func.eraseResults(others)))
    return failure();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    // What a plan asks of gradients is asked of the step.
    if (isOpTriviallyDead(&op) || (isa<spmd::PinOp>(op) && op.use_empty()))
      op.erase();
  return success();
}

namespace {
struct KeepLoss : cleave::nn::impl::NnKeepLossBase<KeepLoss> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = findStep(getOperation());
    if (!func || failed(keepLoss(func)))
      signalPassFailure();
  }
};
} // namespace
