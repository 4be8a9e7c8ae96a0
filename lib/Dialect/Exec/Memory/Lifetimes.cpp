//===- Lifetimes.cpp - whose bytes are where, when ------------------------===//
//
// A write makes one segment of what it covers, so that there are at most three more a command.
//
// Bytes between the elements of a view with strides count as its own: such views are pieces of a tensor that is written as a
// whole, and are only read.
//
//===----------------------------------------------------------------------===//
#include "Lifetimes.h"

#include "cleave/Dialect/Exec/IR/Control.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Sharding/RankGroups.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

Lifetimes::Lifetimes(const Ranges &ranges, int64_t rank, unsigned streams)
    : ranges(ranges), rank(rank), buffers(ranges.getBuffers().size()), clocks(streams, Clock(streams, 0)) {
  for (auto [segments, op] : llvm::zip_equal(buffers, ranges.getBuffers())) {
    BufferOp buffer = op;
    bool isThere = buffer.getKind() == BufferKind::Input || buffer.getKind() == BufferKind::State ||
                   buffer.getKind() == BufferKind::Weights;
    if (isThere && buffer.getBytes() > 0)
      segments[0] = {int64_t(buffer.getBytes()), Value(), nullptr, 0, 0, Clock(streams, 0)};
  }
}

/// Makes a segment begin at `at`, if one lies around it.
void Lifetimes::split(Segments &segments, int64_t at) {
  auto next = segments.upper_bound(at);
  if (next == segments.begin())
    return;
  auto around = std::prev(next);
  if (around->first == at || around->second.end <= at)
    return;
  segments.emplace_hint(next, at, around->second);
  around->second.end = at;
}

static Value getTensor(Value view) { return view.getDefiningOp<ViewOp>().getTensor(); }

/// E2: a read has to know of the write before it, a write of the reads since then, too.
LogicalResult Lifetimes::checkKnown(Operation *op, const Segment &segment, unsigned stream, bool isWrite) {
  const Clock &clock = clocks[stream];
  bool isKnown = segment.stream == stream || segment.time <= clock[segment.stream];
  for (unsigned other = 0; isWrite && other < clock.size(); ++other)
    isKnown &= other == stream || segment.readers[other] <= clock[other];
  if (isKnown)
    return success();
  InFlightDiagnostic error = op->emitOpError()
                             << (isWrite ? "writes" : "reads") << " bytes that another stream touches, "
                             << "and no event orders them, on rank " << rank << " (E2)";
  if (segment.writer)
    error.attachNote(segment.writer->getLoc()) << "they were written here";
  return error;
}

/// M3: without a gap, and of this tensor all along. What was there before the first command is of no tensor.
LogicalResult Lifetimes::read(Operation *op, Value view, unsigned stream) {
  Range range = ranges.get(view, rank);
  Segments &segments = buffers[range.buffer];
  split(segments, range.begin);
  split(segments, range.end);
  int64_t at = range.begin;
  for (auto it = segments.lower_bound(at); at < range.end; ++it) {
    if (it == segments.end() || it->first != at)
      return op->emitOpError() << "reads byte " << at << " of @" << ranges.getBuffer(view).getSymName()
                               << ", which nothing has written, on rank " << rank << " (M3)";
    if (it->second.tensor && it->second.tensor != getTensor(view)) {
      InFlightDiagnostic error = op->emitOpError()
                                 << "reads byte " << at << " of @" << ranges.getBuffer(view).getSymName()
                                 << ", where another tensor is by now, on rank " << rank << " (M3)";
      error.attachNote(it->second.writer->getLoc()) << "it was written here";
      return error;
    }
    if (failed(checkKnown(op, it->second, stream, /*isWrite=*/false)))
      return failure();
    it->second.readers[stream] = clocks[stream][stream];
    at = it->second.end;
  }
  return success();
}

LogicalResult Lifetimes::write(Operation *op, Value view, unsigned stream) {
  Range range = ranges.get(view, rank);
  if (range.begin == range.end)
    return success();
  Segments &segments = buffers[range.buffer];
  split(segments, range.begin);
  split(segments, range.end);
  auto it = segments.lower_bound(range.begin);
  for (; it != segments.end() && it->first < range.end; it = segments.erase(it))
    if (failed(checkKnown(op, it->second, stream, /*isWrite=*/true)))
      return failure();
  segments.emplace_hint(
      it, range.begin,
      Segment{range.end, getTensor(view), op, stream, clocks[stream][stream], Clock(clocks.size(), 0)});
  return success();
}

/// True if elements lie alike on both sides, each row behind the one before it: from the first to the last, none is
/// overwritten before it is read, where they move towards the beginning.
static bool movesDown(CopyOp op) {
  SmallVector<int64_t> strides = *getStrides(op.getSource().getType());
  int64_t span = 1;
  for (auto [extent, stride] : llvm::reverse(llvm::zip_equal(op.getSource().getType().getShape(), strides))) {
    if (extent > 1 && stride < span)
      return false;
    span += (extent - 1) * stride;
  }
  return strides == *getStrides(op.getTarget().getType());
}

/// True if what is written may be what is read, in place (M4).
bool Lifetimes::mayShare(CommandOpInterface op, unsigned read, unsigned write) {
  Range from = ranges.get(op.getReads()[read], rank), to = ranges.get(op.getWrites()[write], rank);
  bool isSame = from.begin == to.begin && from.end == to.end;
  if (auto run = dyn_cast<RunOp>(op.getOperation())) {
    std::optional<ArrayRef<int64_t>> inPlace = ranges.getKernel(run).getInPlace();
    return inPlace && (*inPlace)[write] == int64_t(read) && isSame;
  }
  if (auto copy = dyn_cast<CopyOp>(op.getOperation()))
    return movesDown(copy) && to.begin < from.begin;
  if (auto exchange = dyn_cast<ExchangeOp>(op.getOperation()))
    return getTensor(exchange.getSource()) == getTensor(exchange.getTarget()) &&
           getsBeside(exchange, ranges.getPieces(exchange), from, to);
  auto collective = dyn_cast<CollectiveOp>(op.getOperation());
  if (!collective || read != write)
    return false;
  if (keepsShape(collective.getKind()))
    return isSame;
  spmd::RankGroups groups = spmd::getRankGroups(cast<spmd::CollectiveOpInterface>(op.getOperation()));
  return isOwnRow(collective, from, to, groups.indexOf(rank), groups.size());
}

/// M4: by operands and results of one command, before it changes whose bytes are where.
LogicalResult Lifetimes::checkShared(CommandOpInterface op) {
  for (auto [write, target] : llvm::enumerate(op.getWrites())) {
    BufferKind kind = ranges.getBuffer(target).getKind();
    if (kind == BufferKind::Weights || kind == BufferKind::Input)
      return op.emitOpError() << "writes to a buffer of kind " << stringifyBufferKind(kind) << " (M4)";
    Range range = ranges.get(target, rank);
    for (Value other : op.getWrites().take_front(write))
      if (ranges.get(other, rank).overlaps(range))
        return op.emitOpError() << "writes the same bytes twice, on rank " << rank << " (M4)";
    for (auto [read, source] : llvm::enumerate(op.getReads()))
      if (ranges.get(source, rank).overlaps(range) && !mayShare(op, read, write))
        return op.emitOpError() << "writes result " << write << " where it reads operand " << read
                                << ", and not in place, on rank " << rank << " (M4)";
  }
  return success();
}

LogicalResult Lifetimes::checkCommand(CommandOpInterface op) {
  unsigned stream = op.getStream();
  ++clocks[stream][stream];
  if (failed(checkShared(op)))
    return failure();
  for (Value view : op.getReads())
    if (failed(read(op, view, stream)))
      return failure();
  for (Value view : op.getWrites())
    if (failed(write(op, view, stream)))
      return failure();
  return success();
}

/// All streams stand still where a loop begins and where its body ends.
void Lifetimes::standStill() {
  Clock all(clocks.size(), 0);
  for (const Clock &clock : clocks)
    for (auto [known, own] : llvm::zip_equal(all, clock))
      known = std::max(known, own);
  llvm::fill(clocks, all);
}

/// A body is walked twice: what an iteration finds is what the first one finds, or what the one before it has left.
LogicalResult Lifetimes::check(Block &block) {
  SmallVector<std::pair<Operation *, bool>> loops; // and whether the body has been walked once
  for (Operation *next = &block.front(); next;) {
    Operation &op = *next;
    next = op.getNextNode();
    if (isMark(&op))
      standStill();
    if (isa<LoopOp>(op) && (loops.empty() || loops.back().first != &op))
      loops.push_back({&op, false});
    if (isa<EndLoopOp>(op)) {
      if (std::exchange(loops.back().second, true))
        loops.pop_back();
      else
        next = loops.back().first->getNextNode();
    }
    LogicalResult result = llvm::TypeSwitch<Operation *, LogicalResult>(&op)
                               .Case([&](CommandOpInterface op) { return checkCommand(op); })
                               .Case([&](RecordOp op) {
                                 events[op.getEvent()] = clocks[op.getStream()];
                                 return success();
                               })
                               .Case([&](WaitOp op) {
                                 Clock &clock = clocks[op.getStream()];
                                 for (auto [own, passed] : llvm::zip_equal(clock, events[op.getEvent()]))
                                   own = std::max(own, passed);
                                 return success();
                               })
                               // M5: the caller reads it once everything is done.
                               .Case([&](OutputOp op) { return read(op, op.getView(), 0); })
                               .Default(success());
    if (failed(result))
      return failure();
  }
  return success();
}
