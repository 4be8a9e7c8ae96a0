//===- RepeatStep.cpp - several steps of training in one call -------------===//
//
//   func @main(%x: 8x4, %w) { BODY return %loss, %n }       becomes       func @main(%x: 2x8x4, %w) {
//                                                                           %x0 = %x[0]   BODY of %x0 and %w    %x1 = %x[1]   BODY of %x1 and %n0
//                                                                           return [%loss0, %loss1], %n1 }
//
// Bodies are cloned where everything is decided: all steps are sharded alike. Of a pipeline each rank does so by itself. A rank that is done
// with a step goes on with the next one as soon as it has its weights; messages keep their order, step by step.
//
//===----------------------------------------------------------------------===//
#include "../Stages/CallSteps.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Transforms/MergeEqual.h"

namespace cleave::pipe {
#define GEN_PASS_DEF_REPEATSTEP
#include "cleave/Dialect/Pipe/IR/PipePasses.h.inc"
} // namespace cleave::pipe

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

namespace {
struct RepeatStep : pipe::impl::RepeatStepBase<RepeatStep> {
  using RepeatStepBase::RepeatStepBase;

  void runOnOperation() override;

private:
  /// Frozen weights, and what is made of them alone, are those of all steps.
  LogicalResult repeat(func::FuncOp func, const StepSignature &signature, int64_t stride) {
    if (failed(repeatStep(func, signature, steps, stride)))
      return failure();
    mergeEqual(func);
    return success();
  }
};
} // namespace

/// What a rank has of the entry it has as the entry says.
static StepSignature getSignature(func::FuncOp rank, const StepSignature &entry) {
  StepSignature own{llvm::BitVector(rank.getNumArguments()), llvm::BitVector(rank.getNumResults())};
  auto take = [](std::optional<int64_t> index, const llvm::BitVector &of) {
    return index && *index >= 0 && *index < static_cast<int64_t>(of.size()) && of.test(static_cast<unsigned>(*index));
  };
  for (unsigned index = 0; index < rank.getNumArguments(); ++index)
    own.arguments[index] = take(getArgIndex(rank, index), entry.arguments);
  for (unsigned index = 0; index < rank.getNumResults(); ++index)
    own.results[index] = take(getResultIndex(rank, index), entry.results);
  return own;
}

void RepeatStep::runOnOperation() {
  OwnFaults faults(&getContext());
  if (steps < 1) {
    getOperation().emitError() << "a call makes 1 step at least, got " << steps;
    return signalPassFailure();
  }
  SmallVector<func::FuncOp, 4> ranks = getRankFunctions(getOperation());
  for (auto func : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
    if (getRank(func) || func.isExternal() || !func.getBody().hasOneBlock())
      continue;
    FailureOr<StepSignature> signature = StepSignature::get(func);
    if (failed(signature))
      return signalPassFailure();
    // Functions of stages have no states; of steps there is one.
    if (signature->results.all())
      continue;
    int64_t stride = 0;
    for (auto loop : func.getOps<MicrobatchesOp>())
      stride = static_cast<int64_t>(loop.getCount());
    for (func::FuncOp rank : ranks)
      if (failed(repeat(rank, getSignature(rank, *signature), stride)))
        return signalPassFailure();
    if (failed(repeat(func, *signature, stride)))
      return signalPassFailure();
  }
}
