//===- Order.cpp - lets collectives run beside kernels --------------------===//
//
// The plan has moved collectives up and keeps what they touch. What is left to say is who waits for whom, and that follows
// from the bytes that commands touch, so that it is right whatever the plan meant:
//
//   stream 0    k0   k1  record 0 .........  k2   k3  wait 1   k4
//   stream 1            wait 0   collective  record 1
//                                                      k4 reads its result
//
// Waits are as late as they can be: before the first command that touches what a collective writes, or writes what it
// reads. Streams keep their order, so whoever has waited for a collective knows of all before it.
//
//===----------------------------------------------------------------------===//
#include "../Memory/Ranges.h"
#include "cleave/Dialect/Exec/IR/Bucket.h"
#include "cleave/Dialect/Exec/IR/Control.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"

namespace cleave::exec {
#define GEN_PASS_DEF_ORDER
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define DEBUG_TYPE "exec-order"

ALWAYS_ENABLED_STATISTIC(numCommands, "commands");
ALWAYS_ENABLED_STATISTIC(numMeetings, "collectives and exchanges");
ALWAYS_ENABLED_STATISTIC(numMerged, "collectives merged with their neighbor");
ALWAYS_ENABLED_STATISTIC(numEvents, "events that order two streams");

/// Collectives that are waited for at some time; beyond, the first one is waited for at once. So one pass is linear.
static constexpr size_t kMostOpen = 64;

namespace {

struct Command {
  CommandOpInterface op;
  SmallVector<Range, 4> reads, writes;
  bool isMeeting;
  /// Of a meeting, the first command of its rank alone that has to come behind it; the number of commands if there is none.
  size_t reader = 0;
};

struct Order : cleave::exec::impl::OrderBase<Order> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(enterPhase(getOperation(), Phase::Ordered)))
      return signalPassFailure();
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal())
        order(func.getBody().front());
  }

private:
  void order(Block &block);
  void collect(Block &block);
  void findReaders();
  void merge();
  bool canOverlap() const;
  void addEvents(Block &block);

  std::vector<Command> commands;
};

} // namespace

static bool overlap(ArrayRef<Range> a, ArrayRef<Range> b) {
  return llvm::any_of(a,
                      [&](const Range &x) { return llvm::any_of(b, [&](const Range &y) { return x.overlaps(y); }); });
}

/// True if one writes what the other touches.
static bool conflict(const Command &a, const Command &b) {
  return overlap(a.writes, b.reads) || overlap(a.writes, b.writes) || overlap(a.reads, b.writes);
}

void Order::collect(Block &block) {
  Ranges ranges(getOperation());
  auto getAll = [&](OperandRange views) {
    SmallVector<Range, 4> all;
    for (Value view : views)
      all.push_back(ranges.getOnAll(view));
    return all;
  };
  commands.clear();
  for (Operation &op : block)
    if (auto command = dyn_cast<CommandOpInterface>(op))
      commands.push_back({command, getAll(command.getReads()), getAll(command.getWrites()), isMeeting(&op), 0});
}

/// A command that has to come behind one meeting comes behind all that were started before it, too.
void Order::findReaders() {
  SmallVector<size_t> open;
  auto close = [&](size_t count, size_t reader) {
    for (size_t meeting : ArrayRef(open).take_front(count))
      commands[meeting].reader = reader;
    open.erase(open.begin(), open.begin() + count);
  };
  for (auto [index, command] : llvm::enumerate(commands)) {
    if (command.isMeeting) {
      open.push_back(index);
      continue;
    }
    // Streams stand still there.
    if (isMark(command.op)) {
      close(open.size(), index);
      continue;
    }
    size_t known = open.size() > kMostOpen ? 1 : 0;
    for (auto [position, meeting] : llvm::enumerate(open))
      if (conflict(commands[meeting], command))
        known = position + 1;
    close(known, index);
  }
  close(open.size(), commands.size());
}

/// The same but for what they are done with.
static bool areAlike(CollectiveOp a, CollectiveOp b) {
  return a.getKind() == b.getKind() && a.getReductionAttr() == b.getReductionAttr() &&
         a.getAxesAttr() == b.getAxesAttr() && a.getGatherAttr() == b.getGatherAttr() &&
         a.getSliceAttr() == b.getSliceAttr();
}

/// `b` takes in what `a` does.
static void mergeInto(Command &a, Command &b) {
  auto from = cast<CollectiveOp>(a.op.getOperation()), into = cast<CollectiveOp>(b.op.getOperation());
  SmallVector<Value> sources(from.getSources()), targets(from.getTargets());
  llvm::append_range(sources, into.getSources());
  llvm::append_range(targets, into.getTargets());
  into.getSourcesMutable().assign(sources);
  into.getTargetsMutable().assign(targets);
  into->setLoc(FusedLoc::get(into.getContext(), {from.getLoc(), into.getLoc()}));
  b.reads.append(a.reads);
  b.writes.append(a.writes);
  from.erase();
}

/// Both of one bucket: whoever reads one of them waits for the other, too.
static bool areOfOneBucket(Operation *a, Operation *b) {
  IntegerAttr bucket = getBucket(a);
  return bucket && bucket == getBucket(b);
}

/// Neighbors only, with nothing of the rank alone between them: so no operand is waited for that the first one did not
/// need, and, but for buckets, no result comes later than it did.
void Order::merge() {
  std::vector<Command> kept;
  for (Command &command : commands) {
    bool isCollective = isa<CollectiveOp>(command.op);
    if (isCollective && !kept.empty() && isa<CollectiveOp>(kept.back().op) &&
        (kept.back().reader == command.reader || areOfOneBucket(kept.back().op, command.op)) &&
        areAlike(cast<CollectiveOp>(kept.back().op.getOperation()), cast<CollectiveOp>(command.op.getOperation())) &&
        !conflict(kept.back(), command)) {
      mergeInto(kept.back(), command);
      kept.pop_back();
    }
    kept.push_back(command);
  }
  commands = std::move(kept);
}

/// Streams and events cost commands, and where each result is read at once they gain nothing. All meetings or none: members of
/// a group have to come to theirs in one order, which one stream gives.
/// True if something runs while a meeting is on its way: between the two, or between its reader and itself.
bool Order::canOverlap() const {
  size_t next = commands.size(); // the first command of the rank alone behind the one at hand
  for (size_t index = commands.size(); index-- > 0;)
    if (!commands[index].isMeeting)
      next = index;
    else if (commands[index].reader != next)
      return true;
  return false;
}

/// What stands behind a record in the list is not in its event, so a record stands right behind what it is for.
void Order::addEvents(Block &block) {
  OpBuilder builder(block.getParentOp()->getContext());
  int64_t events = 0;
  auto synchronize = [&](Operation *record, Operation *wait, int64_t from, int64_t to) {
    builder.setInsertionPoint(record);
    ++numEvents;
    RecordOp::create(builder, record->getLoc(), events, from);
    builder.setInsertionPoint(wait);
    WaitOp::create(builder, wait->getLoc(), events++, to);
  };
  bool isAhead = false; // stream 0, of what stream 1 knows
  SmallVector<size_t> open;
  auto close = [&](size_t reader, Operation *before) {
    size_t count = llvm::count_if(open, [&](size_t meeting) { return commands[meeting].reader == reader; });
    if (count == 0)
      return;
    synchronize(commands[open[count - 1]].op->getNextNode(), before, 1, 0);
    open.erase(open.begin(), open.begin() + count);
  };
  for (auto [index, command] : llvm::enumerate(commands)) {
    if (command.isMeeting) {
      if (isAhead)
        synchronize(command.op, command.op, 0, 1);
      isAhead = false;
      command.op.setStream(1);
      open.push_back(index);
    } else {
      close(index, command.op);
      isAhead = true;
    }
  }
  if (!commands.empty())
    close(commands.size(), commands.back().op->getNextNode());
}

void Order::order(Block &block) {
  collect(block);
  findReaders();
  size_t before = commands.size();
  merge();
  numMerged += before - commands.size();
  numCommands += commands.size();
  numMeetings += llvm::count_if(commands, [](const Command &command) { return command.isMeeting; });
  // Merging has left fewer.
  findReaders();
  bool overlaps = canOverlap();
  LDBG() << commands.size() << " commands on " << (overlaps ? "two streams" : "one stream");
  if (overlaps)
    addEvents(block);
}
