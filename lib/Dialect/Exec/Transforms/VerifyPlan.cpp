//===- VerifyPlan.cpp - the gates behind the planning of memory -----------===//
//
// What must hold, by number (ExecPasses.td), whatever made it so: each view by itself, what callers see, streams and
// events, and then lifetimes (Lifetimes.h), on ranks that stand for all those whose views lie alike. Functions of a pipeline's
// ranks are looked at one by one, and then at what they tell each other: the n-th message that one sends to another one has to be
// the n-th that this one receives from there. Whether that comes to an end is asked of the program file (P32).
//
//===----------------------------------------------------------------------===//
#include "../Memory/Lifetimes.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Sharding/RankGroups.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <set>

namespace cleave::exec {
#define GEN_PASS_DEF_VERIFYPLAN
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// As many streams as a program file has.
static constexpr unsigned kMostStreams = 16;
/// Ranks that are walked, and commands of all of them together: the time that a gate may take.
static constexpr int64_t kMostRanks = 64, kMostCommands = 1 << 20;

namespace {
struct VerifyPlan : cleave::exec::impl::VerifyPlanBase<VerifyPlan> {
  using Base::Base;

  void runOnOperation() override {
    OwnFaults faults(&getContext());
    if (failed(check()))
      return signalPassFailure();
    setPhase(getOperation(), phase);
    markAllAnalysesPreserved();
  }

private:
  LogicalResult check();
  LogicalResult checkFunction(func::FuncOp func, Ranges &ranges);
  LogicalResult checkMessages(ArrayRef<func::FuncOp> functions);
  LogicalResult checkOps(Block &block);
  LogicalResult checkView(ViewOp view, Ranges &ranges);
  LogicalResult checkMemory(CommandOpInterface op, const Ranges &ranges);
  LogicalResult checkMeeting(CommandOpInterface op, const Ranges &ranges);
  LogicalResult checkBoundaries(Block &block, const Ranges &ranges);
  LogicalResult checkEvents(Block &block);
  SmallVector<int64_t> chooseRanks(Block &block);

  unsigned streams = 1;
};
} // namespace

/// M1
LogicalResult VerifyPlan::checkOps(Block &block) {
  for (Operation &op : block) {
    bool mayStand = isa<ViewOp, LoadOp, InputOp, OutputOp, CommandOpInterface, func::ReturnOp>(op) ||
                    (phase == Phase::Ordered && isa<RecordOp, WaitOp>(op));
    if (!mayStand || op.getNumOperands() != llvm::count_if(op.getOperandTypes(), llvm::IsaPred<MemRefType>))
      return op.emitOpError("is not a command on memory (M1)");
    for (Value operand : op.getOperands())
      if (!operand.getDefiningOp<ViewOp>())
        return op.emitOpError("is given memory that is not an exec.view (M1)");
  }
  return success();
}

/// M2. That a part lies in its whole is asked of both on all ranks together: offsets depend on the rank alike.
LogicalResult VerifyPlan::checkView(ViewOp view, Ranges &ranges) {
  if (!ranges.fits(view))
    return view.emitOpError("does not lie in its buffer, aligned to its elements, on every rank (M2)");
  if (!view.getWhole())
    return success();
  Range part = ranges.getOnAll(view), whole = ranges.getOnAll(view.getWhole());
  if (whole.begin <= part.begin && part.end <= whole.end)
    return success();
  return view.emitOpError("does not lie in the tensor that it is of (M2)");
}

/// M8
LogicalResult VerifyPlan::checkMemory(CommandOpInterface op, const Ranges &ranges) {
  auto isOnHost = [&](Value view) { return ranges.getBuffer(view).getOnHost(); };
  if (isa<CopyOp>(op) || llvm::none_of(op->getOperands(), isOnHost))
    return success();
  return op.emitOpError("reads or writes what is in the host's memory (M8)");
}

/// M6
LogicalResult VerifyPlan::checkMeeting(CommandOpInterface op, const Ranges &ranges) {
  auto hasColumn = [](Value view) { return view.getDefiningOp<ViewOp>().getOffset().hasColumn(); };
  auto collective = dyn_cast<CollectiveOp>(op.getOperation());
  for (auto [source, target] : llvm::zip(op.getReads(), op.getWrites())) {
    bool isOneTensor = source.getDefiningOp<ViewOp>().getTensor() == target.getDefiningOp<ViewOp>().getTensor();
    if ((hasColumn(source) || hasColumn(target)) && !isOneTensor)
      return op.emitOpError("does not find its operands at one offset on all ranks (M6)");
    if (!collective || !isOneTensor || keepsShape(collective.getKind()))
      continue;
    spmd::RankGroups groups = spmd::getRankGroups(cast<spmd::CollectiveOpInterface>(op.getOperation()));
    for (int64_t rank = 0, count = spmd::getMesh(op).getNumRanks(); rank < count; ++rank)
      if (!isOwnRow(collective, ranges.get(source, rank), ranges.get(target, rank), groups.indexOf(rank),
                    groups.size()))
        return op.emitOpError() << "does not have its own row in place on rank " << rank << " (M6)";
  }
  return success();
}

/// M5
LogicalResult VerifyPlan::checkBoundaries(Block &block, const Ranges &ranges) {
  DenseSet<std::pair<StringAttr, unsigned>> taken; // by inputs, by outputs
  auto take = [&](Operation *op, Value view, BufferKind own) -> LogicalResult {
    BufferOp buffer = ranges.getBuffer(view);
    StringAttr name = buffer.getSymNameAttr();
    BufferKind kind = buffer.getKind();
    bool isAlone = taken.insert({name, isa<InputOp>(op)}).second;
    if ((kind == own || kind == BufferKind::State) && isAlone)
      return success();
    return op->emitOpError() << "has no buffer of its own of kind " << stringifyBufferKind(own) << " (M5)";
  };
  for (Operation &op : block) {
    if (auto input = dyn_cast<InputOp>(op); input && failed(take(&op, input.getView(), BufferKind::Input)))
      return failure();
    if (auto output = dyn_cast<OutputOp>(op); output && failed(take(&op, output.getView(), BufferKind::Output)))
      return failure();
  }
  return success();
}

/// E1, E3
LogicalResult VerifyPlan::checkEvents(Block &block) {
  DenseSet<int64_t> recorded;
  std::optional<uint64_t> meetings;
  for (Operation &op : block) {
    auto command = dyn_cast<CommandOpInterface>(op);
    auto record = dyn_cast<RecordOp>(op);
    auto wait = dyn_cast<WaitOp>(op);
    if (!command && !record && !wait)
      continue;
    uint64_t stream = command ? command.getStream() : record ? record.getStream() : wait.getStream();
    if (stream >= (phase == Phase::Ordered ? kMostStreams : 1))
      return op.emitOpError() << "is on stream " << stream << " (E1)";
    streams = std::max(streams, unsigned(stream) + 1);
    if (record && !recorded.insert(record.getEvent()).second)
      return op.emitOpError() << "records event " << record.getEvent() << " a second time (E1)";
    if (wait && !recorded.contains(wait.getEvent()))
      return op.emitOpError() << "waits for event " << wait.getEvent() << ", which has not been recorded (E1)";
    if (isMeeting(&op) && meetings.value_or(stream) != stream)
      return op.emitOpError() << "meets other ranks on stream " << stream << ", and others do on " << *meetings
                              << " (E3)";
    if (isMeeting(&op))
      meetings = stream;
  }
  return success();
}

/// One of each kind of ranks whose views lie alike.
SmallVector<int64_t> VerifyPlan::chooseRanks(Block &block) {
  DenseMap<StringRef, ArrayRef<int64_t>> columns;
  int64_t commands = 1;
  for (Operation &op : block) {
    commands += isa<CommandOpInterface>(op);
    if (auto view = dyn_cast<ViewOp>(op); view && view.getOffset().hasColumn())
      columns.try_emplace(view.getOffset().getColumn(), view.getOffset().getPerRank(view));
  }
  spmd::MeshAttr mesh = spmd::getMesh(getOperation());
  int64_t most = std::clamp<int64_t>(kMostCommands / commands, 2, kMostRanks);
  SmallVector<int64_t> ranks;
  std::set<SmallVector<int64_t>> seen;
  for (int64_t rank = 0, count = mesh ? mesh.getNumRanks() : 1; rank < count && int64_t(ranks.size()) < most; ++rank) {
    SmallVector<int64_t> numbers;
    for (const auto &[name, column] : columns)
      numbers.push_back(column[rank]);
    if (seen.insert(numbers).second)
      ranks.push_back(rank);
  }
  return ranks;
}

/// What tells messages of two ranks of a pipeline apart, as both ends say it.
static auto describe(Operation *op) {
  auto tell = [](auto message) {
    ShapedType type = message.getView().getType();
    return std::tuple(message.getChannel(), message.getMicrobatch(), type.getElementType(), type.getShape());
  };
  auto send = dyn_cast<SendOp>(op);
  return send ? tell(send) : tell(cast<ReceiveOp>(op));
}

/// M7: per pair of ranks what one sends is what the other receives, in order.
LogicalResult VerifyPlan::checkMessages(ArrayRef<func::FuncOp> functions) {
  using Messages = std::map<std::pair<int64_t, int64_t>, std::vector<Operation *>>;
  Messages sent, received; // by sender and receiver
  for (func::FuncOp func : functions) {
    std::optional<int64_t> rank = pipe::getRank(func);
    for (Operation &op : func.getBody().front()) {
      if (!isa<SendOp, ReceiveOp>(op))
        continue;
      if (!rank)
        return op.emitOpError("is in no function of a rank of a pipeline (M7)");
      if (auto send = dyn_cast<SendOp>(op))
        sent[{*rank, send.getPeer()}].push_back(&op);
      else
        received[{cast<ReceiveOp>(op).getPeer(), *rank}].push_back(&op);
    }
  }
  auto fit = [](const Messages &ours, Messages &theirs) -> LogicalResult {
    for (const auto &[ends, messages] : ours)
      for (auto [index, op] : llvm::enumerate(messages)) {
        const std::vector<Operation *> &others = theirs[ends];
        if (index >= others.size())
          return op->emitOpError() << "is the other end of no message from rank " << ends.first << " to rank "
                                   << ends.second << " (M7)";
        if (describe(op) == describe(others[index]))
          continue;
        InFlightDiagnostic error = op->emitOpError()
                                   << "is another message, or of another type, than what rank " << ends.second
                                   << " receives as number " << index << " from rank " << ends.first << " (M7)";
        error.attachNote(others[index]->getLoc()) << "this is the other end";
        return error;
      }
    return success();
  };
  return failed(fit(sent, received)) ? failure() : fit(received, sent);
}

/// Each step relies on those before it: views that are no views, or lie outside, would be walked past the end.
LogicalResult VerifyPlan::checkFunction(func::FuncOp func, Ranges &ranges) {
  Block &block = func.getBody().front();
  streams = 1;
  if (failed(checkOps(block)))
    return failure();
  for (Operation &op : block) {
    if (auto view = dyn_cast<ViewOp>(op); view && failed(checkView(view, ranges)))
      return failure();
    if (auto command = dyn_cast<CommandOpInterface>(op); command && failed(checkMemory(command, ranges)))
      return failure();
    if (isa<spmd::CollectiveOpInterface>(op) && failed(checkMeeting(cast<CommandOpInterface>(op), ranges)))
      return failure();
  }
  if (failed(checkBoundaries(block, ranges)) || failed(checkEvents(block)))
    return failure();
  for (int64_t rank : chooseRanks(block))
    if (failed(Lifetimes(ranges, rank, streams).check(block)))
      return failure();
  return success();
}

LogicalResult VerifyPlan::check() {
  auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
  bool isPipeline = llvm::all_of(functions, [](func::FuncOp func) { return pipe::getRank(func).has_value(); });
  auto isCommands = [&](func::FuncOp func) {
    return !func.isExternal() && func.getBody().hasOneBlock() &&
           func.getFunctionType() == FunctionType::get(&getContext(), {}, {});
  };
  if (functions.empty() || (functions.size() > 1 && !isPipeline) || !llvm::all_of(functions, isCommands))
    return getOperation().emitError("is not one function of one block, without arguments and results (M1)");
  Ranges ranges(getOperation());
  for (func::FuncOp func : functions)
    if (failed(checkFunction(func, ranges)))
      return failure();
  return checkMessages(functions);
}
