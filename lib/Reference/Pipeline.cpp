//===- Pipeline.cpp - microbatches, and ranks of a pipeline ---------------===//
//
// The loop over microbatches runs as a loop, which is the oracle of every schedule. Ranks run one after the other, each as
// far as it comes; where two stand at the ends of one message, it passes:
//
//   rank 0   .. pipe.send %h to 1  ▶ waits         ▶ both go on
//   rank 1   .. pipe.recv from 0   ▶ waits
//
//===----------------------------------------------------------------------===//
#include "Interpreter.h"

#include "Kernels.h"
#include "Loops.h"
#include "cleave/Sharding/RankGroups.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

//===----------------------------------------------------------------------===//
// Calls and loops
//===----------------------------------------------------------------------===//

/// Callees know the mesh, and no messages: those are between functions of ranks.
LogicalResult Interpreter::runCall(func::CallOp call) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  if (!callee || callee.isExternal() || !callee.getBody().hasOneBlock())
    return call.emitOpError("cannot be evaluated: its callee's body is not one block");
  SmallVector<PerRank> results;
  if (failed(Interpreter(callee.getBody().front(), mesh, params).run(getOperands(*call.getOperation()), results)))
    return failure();
  for (auto [value, ofRanks] : llvm::zip_equal(call.getResults(), results))
    set(value, std::move(ofRanks));
  return success();
}

/// The part of a tensor that microbatch `index` has: of each block the positions of its samples.
static Tensor takePart(const Tensor &whole, int64_t dim, int64_t blocks, pipe::Deal deal, int64_t index) {
  SmallVector<int64_t> shape(whole.getShape()), from(shape.size(), 0), to(shape.size(), 0);
  int64_t block = shape[dim] / blocks, size = deal.getExtent(block, index);
  shape[dim] = size * blocks;
  Tensor part = Tensor::zeros(RankedTensorType::get(shape, whole.getElementType()));
  SmallVector<int64_t> box(shape);
  box[dim] = size;
  for (int64_t number = 0; number < blocks; ++number) {
    from[dim] = number * block + block / deal.samples * deal.getStart(index);
    to[dim] = number * size;
    copyBox(box, whole, from, part, to);
  }
  return part;
}

/// The inverse: the tensor of which these are the parts. Block by block, a piece of each.
static Tensor joinParts(ArrayRef<Tensor> parts, int64_t dim, int64_t blocks) {
  SmallVector<int64_t> shape(parts.front().getShape()), from(shape.size(), 0), to(shape.size(), 0);
  shape[dim] = 0;
  for (const Tensor &part : parts)
    shape[dim] += part.getShape()[dim];
  Tensor whole = Tensor::zeros(RankedTensorType::get(shape, parts.front().getElementType()));
  for (int64_t number = 0; number < blocks; ++number)
    for (const Tensor &part : parts) {
      SmallVector<int64_t> box(part.getShape());
      box[dim] /= blocks;
      from[dim] = number * box[dim];
      copyBox(box, part, from, whole, to);
      to[dim] += box[dim];
    }
  return whole;
}

/// `fn` of each rank's tensor, once for ranks that share theirs.
template <typename Fn> static PerRank mapRanks(const PerRank &inputs, Fn fn) {
  llvm::DenseMap<const char *, size_t> firsts;
  PerRank results;
  for (auto [rank, input] : llvm::enumerate(inputs)) {
    auto [first, isNew] = firsts.try_emplace(input.getBytes().data(), rank);
    results.push_back(isNew ? fn(rank) : Tensor(results[first->second]));
  }
  return results;
}

/// Without an index a part is about the microbatch of a loop that is not there yet.
LogicalResult Interpreter::runParts(Operation &op) {
  SmallVector<PerRank> operands = getOperands(op);
  if (auto part = dyn_cast<pipe::PartOp>(op)) {
    if (!part.getIndex())
      return op.emitOpError("cannot be evaluated: there is no loop around it that says which microbatch it is");
    set(part.getResult(), mapRanks(operands.front(), [&](size_t rank) {
          return takePart(operands.front()[rank], static_cast<int64_t>(part.getDim()),
                          static_cast<int64_t>(part.getBlocks()), part.getDeal(),
                          static_cast<int64_t>(*part.getIndex()));
        }));
    return success();
  }
  auto join = cast<pipe::JoinOp>(op);
  PerRank results;
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    auto parts = llvm::map_to_vector(operands, [&](const PerRank &ofRanks) { return ofRanks[rank]; });
    results.push_back(joinParts(parts, static_cast<int64_t>(join.getDim()), static_cast<int64_t>(join.getBlocks())));
  }
  set(join.getResult(), std::move(results));
  return success();
}

/// What the ranks have of two values of one kind, combined rank by rank.
static PerRank combine(const PerRank &a, const PerRank &b, spmd::ReductionKind kind) {
  const spmd::RankGroups both({2}, {spmd::SubAxis{0, 1, 2}});
  PerRank results;
  for (auto [x, y] : llvm::zip_equal(a, b))
    results.push_back(combineGroups({x, y}, both, kind).front());
  return results;
}

/// One microbatch after the other; sums in that order.
LogicalResult Interpreter::runMicrobatches(pipe::MicrobatchesOp loop) {
  SmallVector<PerRank> inputs = getOperands(*loop.getOperation());
  int64_t count = static_cast<int64_t>(loop.getCount());
  SmallVector<SmallVector<PerRank>> given(loop.getNumResults());
  for (int64_t index = 0; index < count; ++index) {
    SmallVector<PerRank> arguments, results;
    for (size_t number = 0; number < inputs.size(); ++number) {
      const PerRank &whole = inputs[number];
      auto piece = cast<pipe::PieceAttr>(loop.getTakes()[number]);
      arguments.push_back(!piece.isSplit() ? whole : mapRanks(whole, [&](size_t rank) {
        return takePart(whole[rank], piece.getDim(), piece.getBlocks(), loop.getDeal(), index);
      }));
    }
    if (failed(Interpreter(loop.getBodyOf(index), mesh, params).run(std::move(arguments), results)))
      return failure();
    for (auto [number, piece] : llvm::enumerate(loop.getGives().getAsRange<pipe::PieceAttr>())) {
      SmallVector<PerRank> &own = given[number];
      if (piece.isSplit() || own.empty())
        own.push_back(results[number]);
      else if (std::optional<spmd::ReductionKind> kind = piece.getKind())
        own.front() = combine(own.front(), results[number], *kind);
    }
  }
  for (auto [number, piece] : llvm::enumerate(loop.getGives().getAsRange<pipe::PieceAttr>())) {
    const SmallVector<PerRank> &own = given[number];
    PerRank result = own.front();
    for (int64_t rank = 0; piece.isSplit() && rank < numRanks; ++rank) {
      auto parts = llvm::map_to_vector(own, [&](const PerRank &ofRanks) { return ofRanks[rank]; });
      result[rank] = joinParts(parts, piece.getDim(), piece.getBlocks());
    }
    set(loop.getResult(number), std::move(result));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

namespace {
/// All ranks of a pipeline, each with its own interpreter and the op at which it stands.
class Meeting {
public:
  Meeting(func::FuncOp func, spmd::MeshAttr mesh, ParamStore &params) : func(func), mesh(mesh), params(params) {}

  LogicalResult run(ArrayRef<PerRank> arguments, SmallVectorImpl<PerRank> &results);

private:
  LogicalResult begin(ArrayRef<PerRank> arguments);
  LogicalResult pass(pipe::SendOp send, pipe::RecvOp recv);
  LogicalResult reportWaiting();
  LogicalResult collect(SmallVectorImpl<PerRank> &results);

  func::FuncOp func;
  spmd::MeshAttr mesh;
  ParamStore &params;
  SmallVector<func::FuncOp> functions;
  std::vector<std::unique_ptr<Interpreter>> ranks;
  SmallVector<Operation *> at;
};
} // namespace

/// Each rank has some of the arguments, by their numbers.
LogicalResult Meeting::begin(ArrayRef<PerRank> arguments) {
  functions = pipe::getRankFunctions(func->getParentOfType<ModuleOp>());
  for (auto [rank, own] : llvm::enumerate(functions)) {
    if (pipe::getRank(own) != static_cast<int64_t>(rank))
      return func.emitError() << "has no function for rank " << rank << " of the pipeline";
    SmallVector<PerRank> ofRank;
    for (unsigned i = 0; i < own.getNumArguments(); ++i) {
      int64_t index = pipe::getArgIndex(own, i).value_or(-1);
      if (index < 0 || index >= static_cast<int64_t>(arguments.size()) ||
          func.getArgumentTypes()[index] != own.getArgumentTypes()[i])
        return own.emitError() << "argument " << i << " is none of " << func.getName() << "'s";
      ofRank.push_back(arguments[index]);
    }
    ranks.push_back(std::make_unique<Interpreter>(own.getBody().front(), mesh, params));
    ranks.back()->begin(std::move(ofRank));
    FailureOr<Operation *> stop = ranks.back()->advance();
    if (failed(stop))
      return failure();
    at.push_back(*stop);
  }
  return success();
}

/// P8, P12: a message is received as it was sent.
LogicalResult Meeting::pass(pipe::SendOp send, pipe::RecvOp recv) {
  if (send.getChannel() != recv.getChannel() || send.getMicrobatch() != recv.getMicrobatch() ||
      send.getValues().getTypes() != recv.getValues().getTypes()) {
    InFlightDiagnostic error = recv.emitOpError("does not receive what is sent (P8, P12)");
    error.attachNote(send.getLoc()) << "it is sent here: channel " << send.getChannel() << ", microbatch "
                                    << static_cast<int64_t>(send.getMicrobatch());
    return error;
  }
  size_t to = send.getPeer(), from = recv.getPeer();
  for (auto [value, ofRanks] : llvm::zip_equal(recv.getValues(), ranks[from]->getOperands(*send.getOperation())))
    ranks[to]->set(value, std::move(ofRanks));
  for (size_t rank : {from, to}) {
    ranks[rank]->finish(*at[rank]);
    FailureOr<Operation *> stop = ranks[rank]->advance();
    if (failed(stop))
      return failure();
    at[rank] = *stop;
  }
  return success();
}

/// P9: what each rank waits for.
LogicalResult Meeting::reportWaiting() {
  InFlightDiagnostic error = func.emitError() << "cannot be run: ranks of the pipeline wait for each other (P9)";
  for (auto [rank, op] : llvm::enumerate(at))
    if (!op->hasTrait<OpTrait::IsTerminator>())
      error.attachNote(op->getLoc()) << "rank " << rank << " waits in " << *op;
  return error;
}

/// Each result is made by one rank, which says by its index which it is.
LogicalResult Meeting::collect(SmallVectorImpl<PerRank> &results) {
  results.resize(func.getNumResults());
  for (auto [own, interpreter, last] : llvm::zip_equal(functions, ranks, at))
    for (auto [i, ofRanks] : llvm::enumerate(interpreter->getOperands(*last)))
      if (int64_t index = pipe::getResultIndex(own, i).value_or(-1);
          index >= 0 && index < static_cast<int64_t>(results.size()))
        results[index] = std::move(ofRanks);
  for (auto [index, result] : llvm::enumerate(results))
    if (result.empty())
      return func.emitError() << "result " << index << " is made by no rank of the pipeline";
  return success();
}

/// Ends when all ranks have returned, or none can go on.
LogicalResult Meeting::run(ArrayRef<PerRank> arguments, SmallVectorImpl<PerRank> &results) {
  if (failed(begin(arguments)))
    return failure();
  // A send with its receive at the other end is one step of both. Which pair goes first changes nothing that either sees.
  for (bool hasMoved = true; hasMoved;) {
    hasMoved = false;
    for (size_t rank = 0; rank < at.size(); ++rank)
      while (auto send = dyn_cast<pipe::SendOp>(at[rank])) {
        size_t peer = send.getPeer();
        auto recv = peer < at.size() ? dyn_cast<pipe::RecvOp>(at[peer]) : pipe::RecvOp();
        if (!recv || recv.getPeer() != rank)
          break;
        if (failed(pass(send, recv)))
          return failure();
        hasMoved = true;
      }
  }
  bool isDone = llvm::all_of(at, [](Operation *op) { return op->hasTrait<OpTrait::IsTerminator>(); });
  return isDone ? collect(results) : reportWaiting();
}

LogicalResult cleave::reference::runRanks(func::FuncOp func, spmd::MeshAttr mesh, ParamStore &params,
                                          ArrayRef<PerRank> arguments, SmallVectorImpl<PerRank> &results) {
  return Meeting(func, mesh, params).run(arguments, results);
}
