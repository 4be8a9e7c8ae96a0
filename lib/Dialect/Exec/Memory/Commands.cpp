//===- Commands.cpp - from ops on tensors to commands on memory -----------===//
//
// One walk in the order of the steps. Values become views, made where they are first needed:
//
//   exec.launch                      exec.run
//   a concat along rows              an exec.copy of each part that was not made in its place
//   exec.append                      an exec.copy of each operand
//   collectives of spmd              exec.collective; exec.exchange where pieces go from rank to rank
//   exec.offload, exec.fetch         an exec.copy to, or from, a buffer of the host
//   messages of pipe                 an exec.send, an exec.receive, of each tensor
//   spmd.window, join, split         an exec.exchange of what is missing (Windows.cpp)
//   a rank's own piece of a tensor   rows: a view at an offset that depends on the rank; else an exec.copy of a view with
//                                    strides
//   what is returned                 an exec.copy where it could not be made in the output
//   parameters, constants, aliases   nothing
//
//===----------------------------------------------------------------------===//
#include "Commands.h"

#include "cleave/Dialect/Exec/Fusion/FusionCosts.h"
#include "cleave/Dialect/Exec/IR/Bucket.h"
#include "cleave/Dialect/Nn/IR/Begins.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Sharding/RankGroups.h"
#include "cleave/Sharding/ShardMoves.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

CommandBuilder::CommandBuilder(func::FuncOp func, const BufferAssignment &assignment, RankTable &table)
    : func(func), assignment(assignment), table(table), weights(func, table), builder(func.getContext()), outside(func),
      symbols(func->getParentOfType<ModuleOp>()), body(new Block()) {
  builder.setInsertionPointToEnd(body);
  if (std::optional<int64_t> rank = pipe::getRank(func))
    prefix = "rank" + std::to_string(*rank) + "_";
}

//===----------------------------------------------------------------------===//
// Buffers and views
//===----------------------------------------------------------------------===//

FlatSymbolRefAttr CommandBuilder::getBuffer(BufferKind kind, unsigned number) {
  FlatSymbolRefAttr &buffer = buffers[{unsigned(kind), number}];
  if (!buffer) {
    bool onHost = kind == BufferKind::Activations && number == kHostArena;
    std::string name = (prefix + (onHost ? "offloaded" : stringifyBufferKind(kind))).str();
    // A state is one for all entries, of which ranks of a pipeline may have different inputs before it.
    int64_t known = kind == BufferKind::State ? pipe::getArgIndex(func, number).value_or(number) : number;
    if (kind == BufferKind::Input || kind == BufferKind::Output || kind == BufferKind::State)
      name += "_" + std::to_string(known);
    auto op = BufferOp::create(outside, func.getLoc(), name, kind, /*bytes=*/0, kAlignment,
                               /*bound=*/IntegerAttr(), /*sym_visibility=*/StringAttr(), onHost);
    symbols.insert(op); // which makes the name unique
    buffer = FlatSymbolRefAttr::get(op.getSymNameAttr());
  }
  return buffer;
}

Value CommandBuilder::createView(FlatSymbolRefAttr buffer, NumberAttr offset, Type tensorType, Value whole,
                                 ArrayRef<int64_t> strides) {
  auto tensor = cast<RankedTensorType>(tensorType);
  MemRefLayoutAttrInterface layout;
  if (!strides.empty())
    layout = StridedLayoutAttr::get(func.getContext(), /*offset=*/0, strides);
  auto type = MemRefType::get(tensor.getShape(), tensor.getElementType(), layout);
  return ViewOp::create(builder, func.getLoc(), type, buffer, offset, whole);
}

/// One view per value, so that views stand for tensors. A value that is part of another one has a view of that.
Value CommandBuilder::getView(Value value) {
  if (Value known = views.lookup(value))
    return known;
  BufferAssignment::Root root = assignment.getRoot(value);
  FlatSymbolRefAttr buffer;
  NumberAttr offset = root.offset;
  Value tensor = root.value;
  if (isLoaded(root.value)) {
    FailureOr<int64_t> place = weights.place(root.value);
    if (failed(place))
      return {};
    buffer = getBuffer(BufferKind::Weights, 0);
    offset = table.add(offset, *place);
  } else {
    const BufferPlace &place = assignment.getPlace(root.value);
    const Storage &storage = assignment.getStorage(place);
    buffer = getBuffer(storage.kind, storage.number);
    offset = table.add(table.add(place.offset, offset), storage.offset);
    tensor = place.tensor;
  }
  Value whole = tensor == value ? Value() : getView(tensor);
  return views[value] = createView(buffer, offset, value.getType(), whole, assignment.getStrides(value));
}

FailureOr<SmallVector<Value>> CommandBuilder::getViews(ValueRange values) {
  SmallVector<Value> list;
  for (Value value : values) {
    list.push_back(getView(value));
    if (!list.back())
      return failure();
  }
  return list;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Parts of arguments that were made in their place need nothing.
LogicalResult CommandBuilder::emitConcat(LaunchOp op, ArrayRef<unsigned> parts) {
  Value whole = getView(op.getResult(0));
  auto view = whole.getDefiningOp<ViewOp>();
  int64_t offset = 0;
  for (auto [number, part] : llvm::enumerate(parts)) {
    Value operand = op.getOperand(part), source = getView(operand);
    if (!source)
      return failure();
    if (!assignment.isInPart(op, number) && countElements(operand) != 0) {
      Value target =
          createView(view.getBufferAttr(), table.add(view.getOffset(), offset), operand.getType(), view.getTensor());
      note(CopyOp::create(builder, op.getLoc(), source, target), op);
    }
    offset += spmd::getBytes(operand.getType());
  }
  return success();
}

/// In the order of the operands, so that a state that lies behind its part of the result has been moved when what is new
/// comes to where it was.
LogicalResult CommandBuilder::emitAppend(AppendOp op) {
  auto whole = getView(op.getResult()).getDefiningOp<ViewOp>();
  SmallVector<int64_t> strides = computeSuffixProduct(op.getResult().getType().getShape());
  int64_t offset = 0, step = strides[op.getDim()] * spmd::getElementBytes(op.getResult().getType().getElementType());
  for (Value operand : op.getInputs()) {
    Value source = getView(operand);
    if (!source)
      return failure();
    auto type = cast<RankedTensorType>(operand.getType());
    Value target =
        createView(whole.getBufferAttr(), table.add(whole.getOffset(), offset), type, whole.getTensor(), strides);
    note(CopyOp::create(builder, op.getLoc(), source, target), op);
    offset += type.getDimSize(op.getDim()) * step;
  }
  return success();
}

LogicalResult CommandBuilder::emit(LaunchOp op) {
  if (auto parts = getConcatenated(assignment.getKernel(op)))
    return emitConcat(op, *parts);
  FailureOr<SmallVector<Value>> sources = getViews(op.getInputs()), targets = getViews(op.getResults());
  if (failed(sources) || failed(targets))
    return failure();
  note(RunOp::create(builder, op.getLoc(), op.getKernelAttr(), *sources, *targets), op);
  return success();
}

//===----------------------------------------------------------------------===//
// Ranks together
//===----------------------------------------------------------------------===//

static SmallVector<spmd::AxisAttr> flatten(ArrayAttr dims) {
  SmallVector<spmd::AxisAttr> axes;
  for (ArrayAttr dim : dims.getAsRange<ArrayAttr>())
    llvm::append_range(axes, dim.getAsRange<spmd::AxisAttr>());
  return axes;
}

static ArrayAttr toArray(Builder &builder, ArrayRef<spmd::AxisAttr> axes) {
  return builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
}

/// How many pieces each dim has.
static DenseI64ArrayAttr countPieces(Builder &builder, ArrayAttr dims, spmd::MeshAttr mesh) {
  SmallVector<int64_t> pieces;
  for (ArrayAttr axes : dims.getAsRange<ArrayAttr>())
    pieces.push_back(mesh.getRankGroups(llvm::to_vector(axes.getAsRange<spmd::AxisAttr>())).size());
  return builder.getDenseI64ArrayAttr(pieces);
}

/// Members are numbered along the axes of all dims, in the order in which the op lists them.
LogicalResult CommandBuilder::emitCollective(Operation *op, CollectiveKind kind, ArrayAttr gather, ArrayAttr slice) {
  auto collective = cast<spmd::CollectiveOpInterface>(op);
  spmd::MeshAttr mesh = spmd::getMesh(op);
  Value source = getView(op->getOperand(0)), target = getView(op->getResult(0));
  if (!source)
    return failure();
  auto command =
      CollectiveOp::create(builder, op->getLoc(), kind, toArray(builder, collective.getGroupAxes()), source, target);
  if (std::optional<spmd::ReductionKind> reduction = collective.getReductionKind())
    command.setReduction(*reduction);
  if (gather)
    command.setGatherAttr(countPieces(builder, gather, mesh));
  if (slice)
    command.setSliceAttr(countPieces(builder, slice, mesh));
  if (StringAttr cause = collective.getCauseAttr())
    command.setCauseAttr(cause);
  if (IntegerAttr bucket = getBucket(op))
    command->setAttr(kBucketAttr, bucket);
  note(command, op);
  return success();
}

/// Equal lists of pieces are one, so that equal layers add nothing. The views were made before, and cannot fail here.
void CommandBuilder::emitExchange(Operation *op, ArrayRef<int64_t> ends, ArrayRef<int64_t> boxes, int64_t dims,
                                  ArrayAttr axes) {
  Attribute key = builder.getArrayAttr(
      {builder.getI64IntegerAttr(dims), builder.getDenseI64ArrayAttr(ends), builder.getDenseI64ArrayAttr(boxes)});
  FlatSymbolRefAttr &list = pieces[key];
  if (!list) {
    auto made =
        PiecesOp::create(outside, op->getLoc(), "pieces_" + std::to_string(pieces.size() - 1), dims, ends, boxes,
                         /*sym_visibility=*/StringAttr());
    symbols.insert(made);
    list = FlatSymbolRefAttr::get(made.getSymNameAttr());
  }
  auto command =
      ExchangeOp::create(builder, op->getLoc(), list, axes, getView(op->getOperand(0)), getView(op->getResult(0)));
  if (StringAttr cause = cast<spmd::CollectiveOpInterface>(op).getCauseAttr())
    command.setCauseAttr(cause);
  note(command, op);
}

/// Where `box`, of the whole tensor, begins in a shard that begins at `shard`.
static void appendStart(ArrayRef<int64_t> box, ArrayRef<int64_t> shard, SmallVectorImpl<int64_t> &starts) {
  for (auto [at, first] : llvm::zip_equal(box, shard))
    starts.push_back(at - first);
}

/// By the enumerator that the evaluator goes by, too, rank by rank.
LogicalResult CommandBuilder::emitPermute(spmd::PermuteOp op) {
  spmd::ShardingAttr from = op.getFrom(), to = op.getTo();
  ArrayRef<int64_t> global = cast<RankedTensorType>(op.getGlobal()).getShape();
  std::unique_ptr<spmd::MeshAtoms> atoms = spmd::MeshAtoms::create(from.getMesh(), op, {from, to});
  spmd::ShardMoves moves(atoms->getAtoms(), global, atoms->toState(from), atoms->toState(to));
  SmallVector<int64_t> ends, boxes;
  for (int64_t rank = 0, count = from.getMesh().getNumRanks(); rank < count; ++rank) {
    SmallVector<int64_t> start = to.getOffset(global, rank);
    moves.forEachInto(rank, [&](const spmd::Piece &piece) {
      ends.append({piece.source, piece.target});
      boxes.append(piece.box.extents.begin(), piece.box.extents.end());
      appendStart(piece.box.start, from.getOffset(global, piece.source), boxes);
      appendStart(piece.box.start, start, boxes);
    });
  }
  if (!getView(op.getInput()))
    return failure();
  emitExchange(op, ends, boxes, global.size(), toArray(builder, op.getGroupAxes()));
  return success();
}

/// Row-major digits of a rank's number along the axes of each dim.
static SmallVector<int64_t> getPieceStart(ArrayRef<spmd::RankGroups> dims, ArrayRef<int64_t> local, int64_t rank) {
  SmallVector<int64_t> start;
  for (auto [groups, extent] : llvm::zip_equal(dims, local))
    start.push_back(groups.indexOf(rank) * extent);
  return start;
}

static SmallVector<spmd::RankGroups> getGroupsPerDim(ArrayAttr dims, spmd::MeshAttr mesh) {
  return llvm::map_to_vector(dims.getAsRange<ArrayAttr>(), [&](ArrayAttr axes) {
    return mesh.getRankGroups(llvm::to_vector(axes.getAsRange<spmd::AxisAttr>()));
  });
}

/// A collective counts its members once. Where they have another order on the side that is sliced, each piece goes from
/// rank to rank: what a member keeps of the whole and another one had of it.
LogicalResult CommandBuilder::emitAllToAll(spmd::AllToAllOp op) {
  spmd::MeshAttr mesh = spmd::getMesh(op);
  spmd::RankGroups gatherers = mesh.getRankGroups(flatten(op.getGather())),
                   slicers = mesh.getRankGroups(flatten(op.getSlice()));
  int64_t ranks = mesh.getNumRanks();
  if (llvm::all_of(llvm::seq<int64_t>(0, ranks),
                   [&](int64_t rank) { return gatherers.indexOf(rank) == slicers.indexOf(rank); }))
    return emitCollective(op, CollectiveKind::AllToAll, op.getGather(), op.getSlice());
  if (!getView(op.getInput()))
    return failure();
  ArrayRef<int64_t> from = op.getInput().getType().getShape(), to = op.getResult().getType().getShape();
  SmallVector<spmd::RankGroups> gather = getGroupsPerDim(op.getGather(), mesh),
                                slice = getGroupsPerDim(op.getSlice(), mesh);
  SmallVector<int64_t> ends, boxes;
  for (int64_t target = 0; target < ranks; ++target)
    for (int64_t source : gatherers.membersOf(target)) {
      SmallVector<int64_t> has = getPieceStart(gather, from, source), wants = getPieceStart(slice, to, target), start,
                           extents;
      for (size_t dim = 0; dim < has.size(); ++dim) {
        start.push_back(std::max(has[dim], wants[dim]));
        extents.push_back(std::min(has[dim] + from[dim], wants[dim] + to[dim]) - start.back());
      }
      if (llvm::any_of(extents, [](int64_t extent) { return extent <= 0; }))
        continue;
      ends.append({source, target});
      boxes.append(extents);
      appendStart(start, has, boxes);
      appendStart(start, wants, boxes);
    }
  emitExchange(op, ends, boxes, from.size(), toArray(builder, op.getGroupAxes()));
  return success();
}

/// The piece of what is no row: a view with the strides of the whole, at the rank's place in each dim. It is copied, as kernels
/// and collectives want dense operands.
LogicalResult CommandBuilder::emitSlice(spmd::LocalSliceOp op) {
  Value whole = getView(op.getInput());
  if (!whole)
    return failure();
  ArrayRef<int64_t> extents = op.getInput().getType().getShape();
  SmallVector<int64_t> strides(extents.size(), 1);
  for (int64_t dim = int64_t(extents.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * extents[dim + 1];
  auto view = whole.getDefiningOp<ViewOp>();
  NumberAttr offset = view.getOffset();
  int64_t bytes = spmd::getElementBytes(op.getResult().getType().getElementType());
  for (auto [dim, axes] : llvm::enumerate(op.getDims().getAsRange<ArrayAttr>()))
    offset = table.add(offset, table.get(llvm::to_vector(axes.getAsRange<spmd::AxisAttr>()),
                                         op.getResult().getType().getShape()[dim] * strides[dim] * bytes));
  Value piece = createView(view.getBufferAttr(), offset, op.getResult().getType(), view.getTensor(), strides);
  note(CopyOp::create(builder, op.getLoc(), piece, getView(op.getResult())), op);
  return success();
}

LogicalResult CommandBuilder::emitCollective(spmd::CollectiveOpInterface op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](spmd::AllReduceOp op) { return emitCollective(op, CollectiveKind::AllReduce, {}, {}); })
      .Case([&](spmd::AllGatherOp op) { return emitCollective(op, CollectiveKind::AllGather, op.getDims(), {}); })
      .Case(
          [&](spmd::ReduceScatterOp op) { return emitCollective(op, CollectiveKind::ReduceScatter, {}, op.getDims()); })
      .Case([&](spmd::AllToAllOp op) { return emitAllToAll(op); })
      .Case([&](spmd::PermuteOp op) { return emitPermute(op); })
      .Case([&](spmd::WindowOp op) { return emitWindow(op); })
      .Case([&](spmd::JoinOp op) { return emitJoin(op); })
      .Case([&](spmd::SplitOp op) { return emitSplit(op); })
      .Case([&](spmd::LocalSliceOp op) {
        bool isSeenThrough = assignment.getRoot(op.getResult()).value != op.getResult();
        return isSeenThrough || isLoaded(op.getResult()) ? success() : emitSlice(op);
      })
      .Case([](spmd::AxisIndexOp) { return success(); })
      .Default([](Operation *op) { return op->emitOpError("cannot be made a command"); });
}

template <typename CommandOp, typename MessageOp>
LogicalResult CommandBuilder::emitMessages(MessageOp op, ValueRange values) {
  FailureOr<SmallVector<Value>> views = getViews(values);
  if (failed(views))
    return failure();
  for (Value view : *views)
    note(CommandOp::create(builder, op.getLoc(), view, op.getPeer(), op.getChannel(), op.getMicrobatch()), op);
  return success();
}

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

/// Where a rank's box begins follows from the sharding: its number along the axes of each dim, times the shard's extent; of
/// uneven shards, at most where the tensor ends, and what there is of the box stands beside. So does its term, its number along the partial axes. A function that was written by hand without global types is that of one
/// rank, or of ranks that all have the whole.
template <typename OpT>
LogicalResult CommandBuilder::emitBoundary(Value view, StringRef name, DictionaryAttr attributes, Location loc) {
  auto attr = attributes ? attributes.getAs<TypeAttr>(spmd::SpmdDialect::kGlobalTypeAttr) : TypeAttr();
  auto local = cast<MemRefType>(view.getType());
  auto global =
      attr ? cast<RankedTensorType>(attr.getValue()) : RankedTensorType::get(local.getShape(), local.getElementType());
  SmallVector<Attribute> starts(local.getRank(), table.get(0)), present;
  for (int64_t extent : local.getShape())
    present.push_back(table.get(extent));
  // Where one dim ends in padding, what there is is said of all.
  bool isPadded = false;
  NumberAttr term;
  if (spmd::ShardingAttr sharding = spmd::getSharding(global)) {
    for (auto [dim, split] : llvm::enumerate(sharding.getDims())) {
      int64_t size = local.getShape()[dim], whole = global.getShape()[dim];
      NumberAttr start = table.get(split.getAxes(), size);
      if (size * sharding.getNumShards(dim) != whole) {
        isPadded = true;
        present[dim] = table.countBelow(table.get(whole), start, size);
        start = table.atMost(start, table.get(whole));
      }
      starts[dim] = start;
    }
    if (sharding.isPartial())
      term = table.get(sharding.getPartial(), 1);
  }
  auto op =
      OpT::create(builder, loc, builder.getStringAttr(name), view, TypeAttr::get(global), builder.getArrayAttr(starts),
                  term, attributes ? attributes.getAs<IntegerAttr>(pipe::PipeDialect::kIndexAttr) : IntegerAttr(),
                  isPadded ? builder.getArrayAttr(present) : ArrayAttr());
  // What the model says of the tensor besides; the name and the type have been told.
  for (NamedAttribute attribute : attributes ? attributes.getValue() : ArrayRef<NamedAttribute>())
    if (attribute.getName() != spmd::kNameAttr && attribute.getName() != spmd::SpmdDialect::kGlobalTypeAttr &&
        !isa_and_nonnull<pipe::PipeDialect>(attribute.getNameDialect()))
      op->setDiscardableAttr(attribute.getName(), attribute.getValue());
  return success();
}

LogicalResult CommandBuilder::emitInputs() {
  for (BlockArgument argument : func.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (failed(emitBoundary<InputOp>(getView(argument), spmd::getArgumentName(func, number),
                                     func.getArgAttrDict(number), argument.getLoc())) ||
        failed(emitBeginning(argument)))
      return failure();
  }
  return success();
}

/// Of a state that begins as a parameter: into where it lies between calls.
LogicalResult CommandBuilder::emitBeginning(BlockArgument argument) {
  Attribute begins = func.getArgAttr(argument.getArgNumber(), nn::kBeginsAttr);
  if (!begins)
    return success();
  StringRef name = spmd::getArgumentName(func, argument.getArgNumber());
  if (assignment.getStorage(assignment.getPlace(argument)).kind != BufferKind::State)
    return func.emitOpError() << "has an argument '" << name << "' that begins as a parameter, and is not a state";
  if (!assignment.getStrides(argument).empty())
    return func.emitOpError() << "has a state '" << name << "' that grows: it begins as zeros, not as a parameter";
  auto attr = func.getArgAttrOfType<TypeAttr>(argument.getArgNumber(), spmd::SpmdDialect::kGlobalTypeAttr);
  auto global = cast<RankedTensorType>(attr ? attr.getValue() : argument.getType());
  return weights.emitBeginning(builder, func, begins, global, getView(argument));
}

/// Outputs behind all commands.
LogicalResult CommandBuilder::emitReturn(func::ReturnOp op) {
  SmallVector<Value> outputs;
  for (auto [number, value] : llvm::enumerate(op.getOperands())) {
    outputs.push_back(getView(value));
    if (!outputs.back())
      return failure();
    if (assignment.isInOutput(value, number))
      continue;
    const Storage &storage = assignment.getOutput(number);
    if (storage.kind == BufferKind::State)
      emitRemark(value.getLoc()) << "state '" << spmd::getResultName(func, number)
                                 << "' is copied at the end of a call, as "
                                 << "what makes it cannot put it in the place of the old value";
    Value output =
        createView(getBuffer(storage.kind, storage.number), table.get(0), value.getType(), /*whole=*/Value());
    CopyOp::create(builder, op.getLoc(), outputs.back(), output);
    outputs.back() = output;
  }
  for (auto [number, value] : llvm::enumerate(op.getOperands()))
    if (failed(emitBoundary<OutputOp>(outputs[number], spmd::getResultName(func, number),
                                      func.getResultAttrDict(number), value.getLoc())))
      return failure();
  func::ReturnOp::create(builder, op.getLoc());
  return success();
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// Ranks do not meet for what has no elements, nor does one take its part of it: all see the same shapes.
static bool movesNothing(Operation *op) {
  return isa<spmd::CollectiveOpInterface>(op) &&
         llvm::all_of(op->getResults(), [](Value result) { return countElements(result) == 0; });
}

LogicalResult CommandBuilder::emit(Operation *op) {
  if (auto pack = dyn_cast<PackOp>(op); pack && !isLoaded(pack.getInput()))
    return op->emitOpError("packs what is computed, which programs cannot do yet");
  if (getAliasOffset(op) || nn::isData(op) || isa<PackOp>(op) || movesNothing(op))
    return success();
  if (auto launch = dyn_cast<LaunchOp>(op))
    return emit(launch);
  if (auto append = dyn_cast<AppendOp>(op))
    return emitAppend(append);
  if (auto enter = dyn_cast<EnterOp>(op))
    return emitEnter(enter);
  if (auto leave = dyn_cast<LeaveOp>(op))
    return emitLeave(leave);
  if (auto collective = dyn_cast<spmd::CollectiveOpInterface>(op))
    return emitCollective(collective);
  if (auto send = dyn_cast<pipe::SendOp>(op))
    return emitMessages<SendOp>(send, send.getValues());
  if (auto receive = dyn_cast<pipe::RecvOp>(op))
    return emitMessages<ReceiveOp>(receive, receive.getValues());
  if (isa<OffloadOp, FetchOp>(op))
    return copyAll(op, op->getOperands(), op->getResults());
  if (auto ret = dyn_cast<func::ReturnOp>(op))
    return emitReturn(ret);
  return op->emitOpError("cannot be made a command");
}

/// Views are made while commands are, so how many bytes a buffer has is known in the end; buffers nobody asked for are not
/// there.
void CommandBuilder::createBuffers() {
  auto setBytes = [&](BufferKind kind, unsigned number, int64_t bytes) {
    auto buffer = buffers.find({unsigned(kind), number});
    if (buffer != buffers.end())
      symbols.lookup<BufferOp>(buffer->second.getAttr()).setBytes(bytes);
  };
  auto setArena = [&](unsigned number, const MemoryPlan &plan) {
    setBytes(BufferKind::Activations, number, plan.bytes);
    if (auto arena = buffers.find({unsigned(BufferKind::Activations), number}); arena != buffers.end())
      symbols.lookup<BufferOp>(arena->second.getAttr()).setBound(plan.bound);
  };
  setArena(kDeviceArena, assignment.getArena());
  setArena(kHostArena, assignment.getHostArena());
  setBytes(BufferKind::Weights, 0, weights.getBytes());
  for (auto [number, type] : llvm::enumerate(func.getArgumentTypes())) {
    bool isKept = bool(func.getArgAttr(number, spmd::kKeptAttr));
    setBytes(isKept ? BufferKind::State : BufferKind::Input, number, spmd::getBytes(type));
  }
  for (unsigned number = 0; number < func.getNumResults(); ++number) {
    const Storage &storage = assignment.getOutput(number);
    setBytes(storage.kind, storage.number, storage.bytes);
  }
}

LogicalResult CommandBuilder::run() {
  Block &block = func.getBody().front();
  func.getBody().push_back(body); // from here on somebody owns it
  if (failed(emitInputs()))
    return failure();
  for (Operation &op : block)
    if (failed(emit(&op)))
      return failure();
  builder.setInsertionPointToStart(body);
  if (!weights.isEmpty())
    weights.emit(builder, getBuffer(BufferKind::Weights, 0));
  createBuffers();
  block.dropAllReferences();
  block.erase();
  func.removeArgAttrsAttr();
  func.removeResAttrsAttr();
  func.setFunctionType(builder.getFunctionType({}, {}));
  table.store();
  return success();
}
