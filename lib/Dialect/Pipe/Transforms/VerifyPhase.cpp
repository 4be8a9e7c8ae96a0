//===- VerifyPhase.cpp - what holds after a phase of pipelines ------------===//
//
// The gates of the phases that only pipelines go through. That of programs per rank looks at the programs themselves, not
// at the table that they were made from: ranks are walked as far as messages let them, two ends of one at a time.
//
//===----------------------------------------------------------------------===//
#include "../Stages/Table.h"

#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Schedule/Check.h"

namespace cleave::pipe {
#define GEN_PASS_DEF_VERIFYPHASE
#include "cleave/Dialect/Pipe/IR/PipePasses.h.inc"
} // namespace cleave::pipe

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

namespace {
struct VerifyPhase : pipe::impl::VerifyPhaseBase<VerifyPhase> {
  using VerifyPhaseBase::VerifyPhaseBase;

  void runOnOperation() override;

private:
  LogicalResult checkStaged();
  LogicalResult checkScheduled();
  LogicalResult checkPerRank();
};
} // namespace

/// In a body of the loop.
static LogicalResult checkCalls(Region &body) {
  for (Operation &op : body.front().without_terminator())
    if (!isa<func::CallOp>(op))
      return op.emitOpError("is in the loop over microbatches, where only stages are called");
  return success();
}

/// One loop, and in it nothing but the calls of stages in order.
LogicalResult VerifyPhase::checkStaged() {
  bool hasLoop = false;
  for (auto func : getOperation().getOps<func::FuncOp>())
    for (auto loop : func.getOps<MicrobatchesOp>()) {
      hasLoop = true;
      if (failed(checkCalls(loop.getBody())))
        return failure();
      if (!loop.getRest().empty() && failed(checkCalls(loop.getRest())))
        return failure();
      if (failed(checkBodies(loop)))
        return failure();
    }
  return hasLoop ? success()
                 : mlir::emitError(getOperation().getLoc()) << "has no loop over microbatches: nothing is split";
}

/// P6 to P12, of the table.
LogicalResult VerifyPhase::checkScheduled() {
  auto tables = llvm::to_vector(getOperation().getOps<ScheduleOp>());
  if (tables.empty())
    return mlir::emitError(getOperation().getLoc()) << "has no pipe.schedule";
  for (ScheduleOp op : tables) {
    FailureOr<schedule::Schedule> table = readTable(op);
    if (failed(table))
      return failure();
    schedule::CheckResult checked = schedule::check(
        *table, schedule::Costs::uniform(table->numStages, std::max(1, table->numStages / table->numRanks)));
    if (!checked.violations.empty())
      return op.emitOpError() << checked.violations.front().message << " (" << checked.violations.front().constraint
                              << ")";
  }
  return success();
}

/// P8, P12: what is received is what is sent.
static LogicalResult checkEnds(SendOp send, RecvOp recv) {
  if (send.getChannel() == recv.getChannel() && send.getMicrobatch() == recv.getMicrobatch() &&
      send.getValues().getTypes() == recv.getValues().getTypes())
    return success();
  InFlightDiagnostic error = recv.emitOpError("is not what the other end sends (P8, P12)");
  error.attachNote(send.getLoc()) << "it is sent here";
  return error;
}

/// P9: ranks meet until all are done.
LogicalResult VerifyPhase::checkPerRank() {
  std::vector<SmallVector<Operation *>> messages;
  std::vector<size_t> at;
  for (func::FuncOp func : getRankFunctions(getOperation())) {
    int64_t rank = *getRank(func);
    messages.resize(std::max<size_t>(messages.size(), rank + 1));
    func.walk([&](Operation *op) {
      if (isa<SendOp, RecvOp>(op))
        messages[rank].push_back(op);
    });
  }
  if (messages.empty())
    return mlir::emitError(getOperation().getLoc()) << "has no function of a rank of the pipeline";
  at.resize(messages.size());
  auto getNext = [&](size_t rank) {
    return rank < messages.size() && at[rank] < messages[rank].size() ? messages[rank][at[rank]] : nullptr;
  };
  // Two ends pass together. Who meets whom first makes no difference: what a rank does next is fixed.
  for (bool hasMoved = true; hasMoved;) {
    hasMoved = false;
    for (size_t rank = 0; rank < messages.size(); ++rank)
      while (auto send = dyn_cast_or_null<SendOp>(getNext(rank))) {
        auto recv = dyn_cast_or_null<RecvOp>(getNext(send.getPeer()));
        if (!recv || recv.getPeer() != rank)
          break;
        if (failed(checkEnds(send, recv)))
          return failure();
        ++at[rank];
        ++at[send.getPeer()];
        hasMoved = true;
      }
  }
  for (size_t rank = 0; rank < messages.size(); ++rank)
    if (Operation *op = getNext(rank))
      return op->emitOpError() << "is where rank " << rank << " waits for ever (P9)";
  return success();
}

void VerifyPhase::runOnOperation() {
  OwnFaults faults(&getContext());
  LogicalResult result = phase == Phase::Staged      ? checkStaged()
                         : phase == Phase::Scheduled ? checkScheduled()
                                                     : checkPerRank();
  if (failed(result))
    return signalPassFailure();
  setPhase(getOperation(), phase);
  markAllAnalysesPreserved();
}
