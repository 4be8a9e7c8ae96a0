//===- Order.cpp - lets collectives run beside kernels --------------------===//
//
// The plan has moved collectives up and keeps what they touch, and so it has copies to the host's memory and back. What is left to say is who
// waits for whom, and that follows from the bytes that commands touch, so that it is right whatever the plan meant:
//
//   stream 0    k0   k1  record 0 .........  k2   k3  wait 1   k4
//   stream 1            wait 0   collective  record 1
//                                                      k4 reads its result
//
// Streams 2 and 3 are those of copies to the host and back. All wait by way of stream 0: a copy of what a collective makes begins where
// stream 0 has waited for that.
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

/// What a rank does by itself, what it does with others, and what goes to its host's memory, and comes back: each is a stream.
enum Lane : unsigned { Own, Meetings, Out, Back };
constexpr unsigned kLanes = 4;
/// Numbers of commands of each lane that have begun and are not known to be done.
using OpenCommands = std::array<SmallVector<size_t>, kLanes>;

struct Command {
  CommandOpInterface op;
  SmallVector<Range, 4> reads, writes;
  Lane lane;
  /// Of another lane than `Own`, the first command of another one that has to come behind it; the number of commands if there is none.
  size_t reader = 0;

  bool isMeeting() const { return lane == Meetings; }
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
  Lane getLane(Operation &op, const Ranges &ranges) const;

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

/// A copy between the memories of a device and its host goes on by itself.
Lane Order::getLane(Operation &op, const Ranges &ranges) const {
  if (isMeeting(&op))
    return Meetings;
  auto copy = dyn_cast<CopyOp>(op);
  bool isFromHost = copy && ranges.getBuffer(copy.getSource()).getOnHost();
  bool isToHost = copy && ranges.getBuffer(copy.getTarget()).getOnHost();
  return isFromHost == isToHost ? Own : isToHost ? Out : Back;
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
      commands.push_back({command, getAll(command.getReads()), getAll(command.getWrites()), getLane(op, ranges), 0});
}

/// A command that has to come behind one of a lane comes behind all that were started there before it, too.
void Order::findReaders() {
  OpenCommands open;
  auto close = [&](SmallVector<size_t> &started, size_t count, size_t reader) {
    for (size_t one : ArrayRef(started).take_front(count))
      commands[one].reader = reader;
    started.erase(started.begin(), started.begin() + count);
  };
  for (auto [index, command] : llvm::enumerate(commands)) {
    for (unsigned lane = Meetings; lane < kLanes; ++lane) {
      if (lane == command.lane)
        continue;
      // Streams stand still at a mark.
      size_t known = isMark(command.op) ? open[lane].size() : open[lane].size() > kMostOpen ? 1 : 0;
      for (auto [position, one] : llvm::enumerate(open[lane]))
        if (conflict(commands[one], command))
          known = std::max(known, position + 1);
      close(open[lane], known, index);
    }
    if (command.lane != Own)
      open[command.lane].push_back(index);
  }
  for (SmallVector<size_t> &started : open)
    close(started, started.size(), commands.size());
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
    if (!commands[index].isMeeting())
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
  std::array<bool, kLanes> isAhead{}; // stream 0, of what the lane's knows
  OpenCommands open;
  auto close = [&](unsigned lane, size_t reader, Operation *before) {
    size_t count = llvm::count_if(open[lane], [&](size_t one) { return commands[one].reader == reader; });
    if (count == 0)
      return;
    synchronize(commands[open[lane][count - 1]].op->getNextNode(), before, lane, Own);
    open[lane].erase(open[lane].begin(), open[lane].begin() + count);
    isAhead.fill(true);
  };
  for (auto [index, command] : llvm::enumerate(commands)) {
    for (unsigned lane = Meetings; lane < kLanes; ++lane)
      if (lane != command.lane)
        close(lane, index, command.op);
    if (command.lane == Own) {
      isAhead.fill(true);
      continue;
    }
    if (isAhead[command.lane])
      synchronize(command.op, command.op, Own, command.lane);
    isAhead[command.lane] = false;
    command.op.setStream(command.lane);
    open[command.lane].push_back(index);
  }
  if (!commands.empty())
    for (unsigned lane = Meetings; lane < kLanes; ++lane)
      close(lane, commands.size(), commands.back().op->getNextNode());
}

void Order::order(Block &block) {
  collect(block);
  findReaders();
  size_t before = commands.size();
  merge();
  numMerged += before - commands.size();
  numCommands += commands.size();
  numMeetings += llvm::count_if(commands, [](const Command &command) { return command.isMeeting(); });
  // Merging has left fewer.
  findReaders();
  bool overlaps = canOverlap();
  LDBG() << commands.size() << " commands, collectives " << (overlaps ? "on a stream of their own" : "among kernels");
  if (!overlaps)
    for (Command &command : commands)
      command.lane = command.isMeeting() ? Own : command.lane;
  if (llvm::any_of(commands, [](const Command &command) { return command.lane != Own; }))
    addEvents(block);
}
