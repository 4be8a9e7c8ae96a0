//===- RunCommands.cpp - runs planned commands on bytes -------------------===//
//
// An executor that knows nothing of tensors but the views of each command, as a device does, so that running shows whether
// a plan of memory is right. Commands of stream 0 run in order, each on all ranks. What is on another stream runs as late
// as events let it, when somebody waits for it: at the worst time for whoever reused its bytes too early. (In a program
// without streams everything runs as early as it can.)
//
//===----------------------------------------------------------------------===//
#include "Buffers.h"
#include "Interpreter.h"
#include "Kernels.h"
#include "Loops.h"
#include "cleave/Program/Command.h"
#include "cleave/Sharding/RankGroups.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

namespace {

class Executor {
public:
  Executor(func::FuncOp func, int64_t numRanks)
      : func(func), symbols(func->getParentOfType<ModuleOp>()), params(func->getParentOfType<ModuleOp>()),
        buffers(func->getParentOfType<ModuleOp>(), numRanks) {}

  LogicalResult run(ArrayRef<SmallVector<Tensor>> inputs, SmallVectorImpl<SmallVector<Tensor>> &outputs);

private:
  LogicalResult step(Operation *op);
  LogicalResult load(exec::LoadOp op);
  LogicalResult compute(exec::RunOp op);
  LogicalResult copy(exec::CopyOp op);
  LogicalResult communicate(exec::CollectiveOp op);
  LogicalResult exchange(exec::ExchangeOp op);
  FailureOr<bool> goesOn(Operation *op, Value condition, int64_t iterations);
  /// Runs what waits, up to number `count` of all that ever did. On a stream other than 0 commands keep their order, so this is
  /// what a wait for an event behind that one means.
  LogicalResult catchUp(size_t count);

  func::FuncOp func;
  SymbolTable symbols;
  ParamStore params;
  Buffers buffers;
  /// Commands of other streams, in order, and how many have been run.
  SmallVector<Operation *> later;
  size_t done = 0;
  /// Per event how many of them came before it.
  DenseMap<int64_t, size_t> events;
};

} // namespace

//===----------------------------------------------------------------------===//
// Of one rank
//===----------------------------------------------------------------------===//

/// Each rank cuts its own box out of the parameter. What states hold is given, as all inputs are, also where they begin so.
LogicalResult Executor::load(exec::LoadOp op) {
  auto buffer = symbols.lookup<exec::BufferOp>(op.getTarget().getDefiningOp<exec::ViewOp>().getBuffer());
  if (buffer.getKind() == exec::BufferKind::State)
    return success();
  FailureOr<Tensor> whole = params.get(op.getParam());
  if (failed(whole))
    return failure();
  MemRefType type = op.getTarget().getType();
  if (whole->getElementType() != type.getElementType())
    return op.emitOpError("cannot be evaluated: it casts");
  for (int64_t rank = 0; rank < buffers.getNumRanks(); ++rank) {
    SmallVector<int64_t> start, zeros(op.getSizes().size(), 0);
    for (exec::NumberAttr number : op.getStarts().getAsRange<exec::NumberAttr>())
      start.push_back(number.evaluate(op, rank));
    SmallVector<int64_t> present(op.getSizes());
    if (ArrayAttr numbers = op.getPresentAttr())
      present = llvm::map_to_vector(numbers.getAsRange<exec::NumberAttr>(),
                                    [&](exec::NumberAttr number) { return number.evaluate(op, rank); });
    Tensor box = Tensor::zeros(RankedTensorType::get(op.getSizes(), type.getElementType()));
    copyBox(present, *whole, start, box, zeros);
    buffers.write(op.getTarget(), rank, op.getOrder() ? pack(box, op.getLayout()) : box);
  }
  return success();
}

/// Ranks whose operands are equal have equal results: these are computed once.
LogicalResult Executor::compute(exec::RunOp op) {
  auto kernel = symbols.lookup<exec::KernelOp>(op.getKernel());
  SmallVector<SmallVector<Tensor>> operands, results(buffers.getNumRanks());
  for (int64_t rank = 0; rank < buffers.getNumRanks(); ++rank) {
    operands.push_back(llvm::map_to_vector(op.getSources(), [&](Value view) { return buffers.read(view, rank); }));
    int64_t twin = 0;
    while (!llvm::equal(operands[twin], operands[rank],
                        [](const Tensor &a, const Tensor &b) { return a.getBytes() == b.getBytes(); }))
      ++twin;
    if (twin == rank && failed(runBody(kernel.getBody().front(), operands[rank], results[rank])))
      return failure();
    for (auto [view, result] : llvm::zip_equal(op.getTargets(), results[twin]))
      buffers.write(view, rank, result);
  }
  return success();
}

LogicalResult Executor::copy(exec::CopyOp op) {
  for (int64_t rank = 0; rank < buffers.getNumRanks(); ++rank)
    buffers.write(op.getTarget(), rank, buffers.read(op.getSource(), rank));
  return success();
}

//===----------------------------------------------------------------------===//
// Of ranks together
//===----------------------------------------------------------------------===//

/// Where piece `number`, of extents `piece`, begins in what is split into `counts` pieces.
static SmallVector<int64_t> getStart(int64_t number, ArrayRef<int64_t> counts, ArrayRef<int64_t> piece) {
  SmallVector<int64_t> start(piece.size(), 0);
  for (int64_t dim = counts.size() - 1; dim >= 0; --dim) {
    start[dim] = number % counts[dim] * piece[dim];
    number /= counts[dim];
  }
  return start;
}

static SmallVector<int64_t> getPieceShape(ArrayRef<int64_t> whole, ArrayRef<int64_t> counts) {
  SmallVector<int64_t> shape(whole);
  for (auto [dim, count] : llvm::enumerate(counts))
    shape[dim] /= count;
  return shape;
}

/// All members' pieces put together, and a piece of that for each.
LogicalResult Executor::communicate(exec::CollectiveOp op) {
  spmd::RankGroups groups = spmd::getRankGroups(cast<spmd::CollectiveOpInterface>(op.getOperation()));
  ArrayRef<int64_t> gather = op.getGather().value_or(ArrayRef<int64_t>()),
                    slice = op.getSlice().value_or(ArrayRef<int64_t>());
  for (auto [source, target] : llvm::zip_equal(op.getSources(), op.getTargets())) {
    PerRank tensors = buffers.read(source);
    if (op.getReduction())
      tensors = combineGroups(tensors, groups, *op.getReduction());
    SmallVector<int64_t> local(tensors.front().getShape()), whole(local), zeros(local.size(), 0);
    for (auto [dim, count] : llvm::enumerate(gather))
      whole[dim] *= count;
    SmallVector<int64_t> kept = getPieceShape(whole, slice);
    for (int64_t rank = 0; rank < buffers.getNumRanks(); ++rank) {
      Tensor gathered = gather.empty() ? tensors[rank]
                                       : Tensor::zeros(RankedTensorType::get(whole, tensors.front().getElementType()));
      if (!gather.empty())
        for (auto [number, member] : llvm::enumerate(groups.membersOf(rank)))
          copyBox(local, tensors[member], zeros, gathered, getStart(number, gather, local));
      Tensor result = Tensor::zeros(RankedTensorType::get(kept, gathered.getElementType()));
      copyBox(kept, gathered, getStart(groups.indexOf(rank), slice, kept), result, zeros);
      buffers.write(target, rank, result);
    }
  }
  return success();
}

/// What no piece comes to stays as it was.
LogicalResult Executor::exchange(exec::ExchangeOp op) {
  auto pieces = symbols.lookup<exec::PiecesOp>(op.getPieces());
  PerRank sources = buffers.read(op.getSource()), targets = buffers.read(op.getTarget());
  for (int64_t i = 0; i < pieces.size(); ++i) {
    exec::PiecesOp::Piece piece = pieces.getPiece(i);
    copyBox(piece.extents, sources[piece.source], piece.from, targets[piece.target], piece.to);
  }
  for (auto [rank, target] : llvm::enumerate(targets))
    buffers.write(op.getTarget(), rank, target);
  return success();
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

LogicalResult Executor::step(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](exec::LoadOp op) { return load(op); })
      .Case([&](exec::RunOp op) { return compute(op); })
      .Case([&](exec::CopyOp op) { return copy(op); })
      .Case([&](exec::CollectiveOp op) { return communicate(op); })
      .Case([&](exec::ExchangeOp op) { return exchange(op); })
      .Case([&](exec::RecordOp op) {
        events[op.getEvent()] = op.getStream() == 0 ? 0 : later.size();
        return success();
      })
      .Case([&](exec::WaitOp op) { return op.getStream() == 0 ? catchUp(events.lookup(op.getEvent())) : success(); })
      .Default([](Operation *op) {
        bool isKnown = isa<exec::ViewOp, exec::InputOp, exec::OutputOp, func::ReturnOp>(op);
        return isKnown ? success() : op->emitOpError("cannot be evaluated: it is not a command");
      });
}

FailureOr<bool> Executor::goesOn(Operation *op, Value condition, int64_t iterations) {
  return condition ? readCondition(op, buffers.read(condition), iterations) : true;
}

LogicalResult Executor::catchUp(size_t count) {
  for (; done < count; ++done)
    if (failed(step(later[done])))
      return failure();
  return success();
}

LogicalResult Executor::run(ArrayRef<SmallVector<Tensor>> inputs, SmallVectorImpl<SmallVector<Tensor>> &outputs) {
  for (auto [number, input] : llvm::enumerate(func.getOps<exec::InputOp>()))
    for (int64_t rank = 0; rank < buffers.getNumRanks(); ++rank)
      buffers.write(input.getView(), rank, inputs[rank][number]);
  SmallVector<std::pair<exec::LoopOp, int64_t>> loops; // with iterations done
  for (Operation *next = &func.getBody().front().front(); next;) {
    Operation &op = *next;
    next = op.getNextNode();
    auto begin = dyn_cast<exec::LoopOp>(op);
    auto end = dyn_cast<exec::EndLoopOp>(op);
    if (begin || end) {
      if (begin)
        loops.push_back({begin, 0});
      else
        ++loops.back().second;
      auto [loop, iterations] = loops.back();
      FailureOr<bool> holds = failed(catchUp(later.size()))
                                  ? FailureOr<bool>()
                                  : goesOn(&op, begin ? begin.getCondition() : end.getCondition(), iterations);
      if (failed(holds))
        return failure();
      if (*holds && !loop.getCount() && iterations == program::kMostIterations)
        return op.emitOpError() << "has not ended after " << iterations << " iterations";
      if (*holds && (!loop.getCount() || iterations < int64_t(*loop.getCount()))) {
        next = loop->getNextNode();
        continue;
      }
      loops.pop_back();
      if (begin)
        next = exec::findEnd(begin)->getNextNode();
      continue;
    }
    auto command = dyn_cast<exec::CommandOpInterface>(op);
    if (command && command.getStream() != 0)
      later.push_back(&op);
    else if (failed(step(&op)))
      return failure();
  }
  if (failed(catchUp(later.size())))
    return failure();
  outputs.resize(buffers.getNumRanks());
  for (auto output : func.getOps<exec::OutputOp>())
    for (auto [rank, ofRank] : llvm::enumerate(outputs))
      ofRank.push_back(buffers.read(output.getView(), rank));
  return success();
}

LogicalResult cleave::reference::runCommands(func::FuncOp func, int64_t numRanks, ArrayRef<SmallVector<Tensor>> inputs,
                                             SmallVectorImpl<SmallVector<Tensor>> &outputs) {
  double bytes = 0;
  for (auto buffer : func->getParentOfType<ModuleOp>().getOps<exec::BufferOp>())
    bytes += double(buffer.getBytes()) * double(numRanks);
  if (bytes > getMemory())
    return func.emitError() << "cannot be run on " << numRanks << " ranks here: their buffers do not fit into memory";
  return Executor(func, numRanks).run(inputs, outputs);
}
