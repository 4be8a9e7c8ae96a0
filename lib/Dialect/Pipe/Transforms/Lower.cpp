//===- Lower.cpp - a function per rank of the pipeline --------------------===//
//
//   table      pipe.rank 0 "0F0,0SEND_F0,0F1,0SEND_F1"     becomes     func @main.rank0, by Stages/RankMaker.h
//              pipe.rank 1 "1RECV_F0,1F0,1RECV_F1,1F1"                 func @main.rank1
//
// Table and program may come from files: here they are held against each other first, and what all ranks have together in the end.
//
//===----------------------------------------------------------------------===//
#include "../Stages/RankMaker.h"

#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "llvm/Support/InterleavedRange.h"

namespace cleave::pipe {
#define GEN_PASS_DEF_LOWER
#include "cleave/Dialect/Pipe/IR/PipePasses.h.inc"
} // namespace cleave::pipe

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

namespace {
struct Lower : pipe::impl::LowerBase<Lower> {
  using LowerBase::LowerBase;

  void runOnOperation() override;

private:
  LogicalResult lower(func::FuncOp func, MicrobatchesOp loop);
};
} // namespace

/// An input that no rank reads is one of the first: callers give all that the model has.
static LogicalResult keepUnread(func::FuncOp func, ArrayRef<func::FuncOp> ranks) {
  llvm::SmallDenseSet<int64_t> read;
  for (func::FuncOp rank : ranks)
    for (unsigned i = 0; i < rank.getNumArguments(); ++i)
      read.insert(*getArgIndex(rank, i));
  // Arguments of a rank stand in the order of the whole's.
  func::FuncOp first = ranks.front();
  unsigned at = 0;
  for (BlockArgument argument : func.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (!read.contains(index) &&
        failed(first.insertArgument(at, argument.getType(),
                                    withIndex(func.getArgAttrDict(index), index, Builder(func.getContext())),
                                    argument.getLoc())))
      return failure();
    if (at < first.getNumArguments() && getArgIndex(first, at) == int64_t(index))
      ++at;
  }
  return success();
}

/// A state stays in one rank: the one that makes its next value is the only one that reads it.
static LogicalResult checkStates(func::FuncOp func, ArrayRef<func::FuncOp> ranks) {
  for (unsigned result = 0; result < func.getNumResults(); ++result) {
    std::optional<unsigned> argument = spmd::findStateArgument(func, result);
    int64_t maker = -1;
    SmallVector<int64_t> readers;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      func::FuncOp own = ranks[rank];
      for (unsigned i = 0; i < own.getNumArguments(); ++i)
        if (argument && getArgIndex(own, i) == *argument && !own.getArgument(i).use_empty())
          readers.push_back(static_cast<int64_t>(rank));
      for (unsigned i = 0; i < own.getNumResults(); ++i)
        if (getResultIndex(own, i) == result)
          maker = static_cast<int64_t>(rank);
    }
    // The maker keeps the argument even where nobody reads it: it is the place of the state.
    if (llvm::any_of(readers, [&](int64_t reader) { return reader != maker; }))
      return func.emitError() << "state '" << spmd::getArgumentName(func, *argument) << "' is read on pipeline ranks "
                              << llvm::interleaved(readers) << ", and its next value is made on rank " << maker
                              << ": a state stays in one rank, so that stages on one rank have to do both";
  }
  return success();
}

/// Table and loop must be about the same stages and microbatches: both may come from a file.
LogicalResult Lower::lower(func::FuncOp func, MicrobatchesOp loop) {
  std::string name = (func.getName() + ".schedule").str();
  auto op = getOperation().lookupSymbol<ScheduleOp>(name);
  if (!op)
    return func.emitError() << "has no schedule: there is no pipe.schedule @" << name;
  FailureOr<schedule::Schedule> table = readTable(op);
  if (failed(table) || failed(checkBodies(loop)))
    return failure();
  int64_t calls = static_cast<int64_t>(getStageCalls(loop.getBody()).size());
  StageUnits units = StageUnits::get(getOperation(), calls);
  int32_t count = static_cast<int32_t>(loop.getCount());
  bool isOfSteps = units.hasGradients() && table->numMicrobatches > count && table->numMicrobatches % count == 0;
  if (units.count() != calls || units.countStages() != table->numStages ||
      (table->numMicrobatches != count && !isOfSteps))
    return op.emitOpError() << "is of " << table->numStages << " stages and " << table->numMicrobatches
                            << " microbatches, the program of " << calls << (units.hasGradients() ? " units" : "")
                            << " and " << loop.getCount();
  if (table->isForwardOnly == units.hasGradients())
    return op.emitOpError() << (units.hasGradients() ? "has no gradients, which the program computes"
                                                     : "has gradients, which the program does not compute");
  FailureOr<StepSignature> signature = StepSignature::get(func);
  if (failed(signature))
    return failure();
  Staged staged(func, loop, *table);
  SmallVector<func::FuncOp> ranks;
  for (int32_t rank = 0; rank < table->numRanks; ++rank) {
    RankMaker maker(staged, rank, *signature, isBehind);
    if (failed(maker.run()))
      return failure();
    ranks.push_back(maker.getMade());
  }
  // The entry has the inputs and outputs of its ranks. Its steps flush: which weights a rank reads meanwhile is said by the rank alone.
  if (isOfSteps && failed(repeatStep(func, *signature, table->numMicrobatches / count, count)))
    return failure();
  return failed(keepUnread(func, ranks)) ? failure() : checkStates(func, ranks);
}

void Lower::runOnOperation() {
  ModuleOp module = getOperation();
  if (failed(enterPhase(module, Phase::PerRank)))
    return signalPassFailure();
  for (auto func : llvm::to_vector(module.getOps<func::FuncOp>()))
    if (MicrobatchesOp loop = findLoop(func); loop && failed(lower(func, loop)))
      return signalPassFailure();
}
