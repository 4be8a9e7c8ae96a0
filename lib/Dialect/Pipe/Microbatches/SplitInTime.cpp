//===- SplitInTime.cpp - from a batch to one microbatch -------------------===//
//
// What is done with a function around its ops (TimeSplitter.cpp): arguments, states, what a plan wants. A new body grows next to
// the old one, which goes when all went well.
//
// Samples that microbatches do not divide are dealt out shard by shard, so that all devices have equally many:
//
//   7 samples, 3 microbatches                0 1 2 | 3 4 | 5 6
//   10 samples on 2 shards, 5 on each        0 1 | 2 3 | 4 || 5 6 | 7 8 | 9
//
// The program is written for one number of samples, and stages for the two sizes are made of its stages, once these are known. That number
// has no factor in common with the devices: so the batch is sharded as a plan says, which holds for each size, and no further.
//
// Where a plan lets axes split what they do not divide, the samples of microbatches of one size are padded like any dim, but only within a
// microbatch: its shards are of other samples than those of the batch would be. So callers see as many shards as divide a microbatch, each
// device takes its share of every microbatch, and what is returned is gathered:
//
//   8 samples, 2 microbatches, 3 devices     of 0 1 2 3 | 4 5 6 7, which all have, device 0 computes 0 1 | 4 5, 1 has 2 3 | 6 7, 2 none
//
//===----------------------------------------------------------------------===//
#include "SplitInTime.h"

#include "TimeSplitter.h"

#include "cleave/Dialect/Spmd/IR/Even.h"
#include "cleave/Dialect/Spmd/IR/FreeAxes.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Transforms/MergeEqual.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

/// Of a batch that devices do not divide: what would go. `shards` of it go to devices.
static std::string suggestBatch(const Batch &batch, int64_t extent, int64_t shards, bool isUneven) {
  int64_t all = batch.isUneven ? batch.samples : extent * batch.microbatches, least = batch.microbatches * shards;
  int64_t step = batch.isUneven ? shards : least, below = all / step * step;
  std::string text = isUneven ? "'uneven: true' does not pad the batch of microbatches of two sizes: " : "";
  if (below >= least)
    text += std::to_string(below) + " or ";
  text += std::to_string(std::max(least, below + step)) + " samples would do";
  if (!batch.isUneven && all % shards == 0 && all >= least)
    text += ", or 'uneven: true' in 'pipeline:'";
  return text + (isUneven ? ", or microbatches of one size" : "");
}

/// What a plan wants must fit what a microbatch has: the parts are split again, over devices.
LogicalResult TimeSplitter::checkAnnotation(spmd::AnnotationAttr annotation, StringRef name, Type type,
                                            const InTime &present) {
  if (!annotation || !present.isSplit())
    return success();
  shards = std::lcm(shards, annotation.getSharding().getNumShards(present.dim));
  if (onlyCounts)
    return success();
  spmd::MeshAttr devices = annotation.getSharding().getMesh();
  for (auto [dim, extent] : llvm::enumerate(cast<RankedTensorType>(type).getShape())) {
    SmallVector<spmd::SplitAxis> axes;
    for (spmd::AxisAttr splitting : annotation.getSharding().getDims()[dim].getAxes())
      axes.push_back({spmd::formatAxis(splitting), splitting.getExtent(devices)});
    std::string reason = spmd::describeUndivided(dim, extent, axes);
    bool isPadded = annotation.getSharding().getUneven() && (dim != present.dim || !sizes.deal);
    if (reason.empty() || isPadded)
      continue;
    // Samples that the program is written for are nobody's.
    if (sizes.deal && dim == present.dim)
      reason = spmd::describeUndivided(dim, extent / sizes.to * batch.samples, axes);
    InFlightDiagnostic error = mlir::emitError(annotation.getPlace()) << "'" << name << "'" << reason << " (S5)";
    error.attachNote(batch.places[present.argument]) << "the batch is that of " << (sizes.deal ? "all " : "one of ")
                                                     << batch.microbatches << " microbatches, which are split here";
    if (dim == present.dim)
      error.attachNote(annotation.getPlace()) << suggestBatch(batch, extent, annotation.getSharding().getNumShards(dim),
                                                              annotation.getSharding().getUneven());
    return error;
  }
  return success();
}

/// The annotation for callers: along `dim` only those leading axes that divide it. Null if that is all of them.
static spmd::AnnotationAttr keepDividing(spmd::AnnotationAttr annotation, unsigned dim, int64_t extent) {
  spmd::ShardingAttr sharding = annotation.getSharding();
  SmallVector<spmd::DimShardingAttr> dims(sharding.getDims());
  SmallVector<spmd::AxisAttr> axes;
  int64_t shards = 1;
  for (spmd::AxisAttr splitting : dims[dim].getAxes()) {
    shards *= splitting.getExtent(sharding.getMesh());
    if (extent % shards != 0)
      break;
    axes.push_back(splitting);
  }
  if (axes.size() == dims[dim].getAxes().size())
    return {};
  MLIRContext *context = annotation.getContext();
  dims[dim] = spmd::DimShardingAttr::get(context, axes, /*isOpen=*/false, dims[dim].getPriority());
  auto kept = spmd::ShardingAttr::get(context, sharding.getMesh(), dims, sharding.getPartial(),
                                      sharding.getPartialKind(), sharding.getReplicated(), sharding.getUneven());
  return spmd::AnnotationAttr::get(context, kept, annotation.getPlace(), annotation.getPatternPlace());
}

Value TimeSplitter::pinPadded(Value value, StringRef name, spmd::AnnotationAttr annotation, const InTime &time,
                              OpBuilder &at, spmd::AnnotationAttr &ofCallers) {
  if (!annotation || !time.isSplit() || onlyCounts || sizes.deal)
    return value;
  ofCallers = keepDividing(annotation, time.dim, cast<RankedTensorType>(value.getType()).getDimSize(time.dim));
  if (!ofCallers)
    return value;
  return spmd::PinOp::create(at, value.getLoc(), value, at.getStringAttr(name), annotation);
}

LogicalResult TimeSplitter::splitArguments(Block &from, Block &to) {
  for (BlockArgument argument : from.getArguments()) {
    unsigned index = argument.getArgNumber();
    std::optional<unsigned> dim = batch.dims[index];
    InTime time;
    if (dim)
      time = {InTime::Kind::Split, *dim, index, nullptr};
    Type type = dim ? getPartType(argument.getType(), *dim) : argument.getType();
    Value local = to.addArgument(type, argument.getLoc());
    times[argument] = time;
    auto annotation = func.getArgAttrOfType<spmd::AnnotationAttr>(index, spmd::SpmdDialect::kAnnotationAttr);
    StringRef name = spmd::getArgumentName(func, index);
    if (failed(checkAnnotation(annotation, name, type, time)))
      return failure();
    Value inside = pinPadded(local, name, annotation, time, builder, ofArguments.emplace_back());
    // Of an input that nothing uses that would be a rule that nothing follows.
    if (argument.use_empty() && inside != local) {
      inside.getDefiningOp()->erase();
      inside = local;
    }
    locals.map(argument, inside);
  }
  return success();
}

static std::string describe(const InTime &time) {
  if (time.isSplit())
    return llvm::formatv("split along dim {0}", time.dim);
  return time.kind == InTime::Kind::Invariant ? "whole" : "accumulated";
}

/// A state is split like its argument, each microbatch has its own part of it; or no microbatch changes it; or it is of a step, and changes
/// once, after the last one.
LogicalResult TimeSplitter::checkStates(Operation *terminator) {
  FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
  if (failed(states))
    return failure();
  for (const spmd::StatePlace &state : *states) {
    InTime before = times.lookup(func.getArgument(state.argument));
    InTime after = times.lookup(terminator->getOperand(state.result));
    bool isKept = before.kind == after.kind && after.kind != InTime::Kind::Accumulated;
    bool isUpdated = before.kind == InTime::Kind::Invariant && after.kind == InTime::Kind::Accumulated &&
                     func.getArgAttr(state.argument, spmd::kRoleAttr);
    if (isUpdated || (isKept && (!before.isSplit() || (before.dim == after.dim && state.dim != before.dim))))
      continue;
    Operation *maker = terminator->getOperand(state.result).getDefiningOp();
    InFlightDiagnostic error = mlir::emitError(maker ? maker->getLoc() : func.getLoc())
                               << "every microbatch would change state '" << spmd::getArgumentName(func, state.argument)
                               << "' of all: it is " << describe(before) << ", and leaves " << describe(after);
    error.attachNote(batch.places[before.isSplit() ? before.argument : after.argument])
        << "the batch is split into microbatches here";
    return error;
  }
  return success();
}

LogicalResult TimeSplitter::checkResults(Operation *before, Operation *after) {
  for (auto [index, value] : llvm::enumerate(before->getOperands())) {
    auto annotation = func.getResultAttrOfType<spmd::AnnotationAttr>(index, spmd::SpmdDialect::kAnnotationAttr);
    StringRef name = spmd::getResultName(func, index);
    InTime time = times.lookup(value);
    if (failed(checkAnnotation(annotation, name, after->getOperand(index).getType(), time)))
      return failure();
    OpBuilder at(after);
    after->setOperand(index, pinPadded(after->getOperand(index), name, annotation, time, at, ofResults.emplace_back()));
  }
  return success();
}

/// The body `to` of a microbatch, or of a stage for other samples.
LogicalResult TimeSplitter::buildBody(Block &from, Block &to) {
  builder.setInsertionPointToEnd(&to);
  if (failed(splitArguments(from, to)))
    return failure();
  for (Operation &op : from)
    if (failed(split(&op)))
      return failure();
  return success(succeeded(checkStates(from.getTerminator())) &&
                 succeeded(checkResults(from.getTerminator(), to.getTerminator())));
}

FailureOr<int64_t> TimeSplitter::countShards(llvm::DenseSet<int64_t> &others) {
  onlyCounts = true;
  func.getBody().emplaceBlock();
  LogicalResult isBuilt = buildBody(func.getBody().front(), func.getBody().back());
  func.getBody().back().erase();
  if (failed(isBuilt))
    return failure();
  for (auto [value, time] : times)
    for (auto [dim, extent] : llvm::enumerate(cast<RankedTensorType>(value.getType()).getShape()))
      if (!time.isSplit() || time.dim != dim)
        others.insert(extent);
  return shards;
}

/// Whether a plan allows an axis to split what it does not divide.
static bool allowsUneven(func::FuncOp func) {
  auto module = func->getParentOfType<ModuleOp>();
  bool isUneven = module && module->hasAttr(spmd::kFreeUnevenAttr);
  auto look = [&](Attribute attribute) {
    auto annotation = dyn_cast_if_present<spmd::AnnotationAttr>(attribute);
    isUneven |= annotation && annotation.getSharding().getUneven();
  };
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    look(func.getArgAttr(i, spmd::SpmdDialect::kAnnotationAttr));
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    look(func.getResultAttr(i, spmd::SpmdDialect::kAnnotationAttr));
  func.walk([&](spmd::PinOp pin) { look(pin.getAnnotationAttr()); });
  return isUneven;
}

LogicalResult TimeSplitter::run() {
  Block &oldBody = func.getBody().front(), *body = &func.getBody().emplaceBlock();
  if (failed(buildBody(oldBody, *body))) {
    body->erase();
    return failure();
  }
  // Of stages all is decided.
  bool isKeptEven = !sizes.isOfStage && allowsUneven(func);
  SmallVector<StringRef> marks{PipeDialect::kSplitAttr};
  if (isKeptEven)
    marks.push_back(spmd::kEvenAttr);
  for (StringRef mark : marks) {
    for (auto [index, dim] : llvm::enumerate(batch.dims))
      if (dim)
        func.setArgAttr(index, mark, builder.getI64IntegerAttr(*dim));
    for (auto [index, value] : llvm::enumerate(oldBody.getTerminator()->getOperands()))
      if (InTime time = times.lookup(value); time.isSplit())
        func.setResultAttr(index, mark, builder.getI64IntegerAttr(time.dim));
  }
  for (auto [index, annotation] : llvm::enumerate(ofArguments))
    if (annotation)
      func.setArgAttr(index, spmd::SpmdDialect::kAnnotationAttr, annotation);
  for (auto [index, annotation] : llvm::enumerate(ofResults))
    if (annotation)
      func.setResultAttr(index, spmd::SpmdDialect::kAnnotationAttr, annotation);
  oldBody.erase();
  if (sizes.deal) {
    func->setAttr(PipeDialect::kSamplesAttr, builder.getI64IntegerAttr(batch.samples));
    func->setAttr(PipeDialect::kShardsAttr, builder.getI64IntegerAttr(sizes.shards));
    func->setAttr(PipeDialect::kPerShardAttr, builder.getI64IntegerAttr(sizes.to / sizes.shards));
    if (isKeptEven)
      func->setAttr(spmd::kEvenAttr, builder.getI64IntegerAttr(sizes.to));
  } else if (samples && !sizes.isOfStage) {
    func->setAttr(PipeDialect::kSamplesAttr, builder.getI64IntegerAttr(samples));
  }
  func.setFunctionType(
      FunctionType::get(func.getContext(), body->getArgumentTypes(), body->getTerminator()->getOperandTypes()));
  mergeEqual(func);
  return success();
}

/// Samples of a shard that the program is written for: as the larger microbatches have, or the smaller ones, or some more; not
/// one, which is no dim to be followed. Where padding is allowed, as many as let the batch be told from all else: it is not padded.
static int64_t choosePerShard(Deal deal, int64_t devices, int64_t shards, const llvm::DenseSet<int64_t> *others) {
  auto isFit = [&](int64_t samples) {
    return samples > 1 && std::gcd(samples, devices) == 1 && (!others || llvm::none_of(*others, [&](int64_t extent) {
             return extent > 0 && extent % (samples * shards) == 0;
           }));
  };
  int64_t larger = deal.getSize(0), smaller = deal.getSize(deal.count - 1);
  if (!isFit(larger) && isFit(smaller))
    return smaller;
  while (!isFit(larger))
    ++larger;
  return larger;
}

LogicalResult cleave::pipe::splitInTime(func::FuncOp func, const Batch &batch) {
  assert(func.getBody().hasOneBlock() && batch.microbatches > 1 && "nothing to cut");
  if (!batch.isUneven)
    return TimeSplitter(func, batch, {batch.microbatches, 1}).run();
  // Each device is to have as many samples of a microbatch as any other: what is dealt out are those of a shard.
  llvm::DenseSet<int64_t> others;
  bool isKeptEven = allowsUneven(func);
  auto getSizes = [&](int64_t shards) {
    Deal deal{batch.microbatches, batch.samples / shards};
    int64_t perShard = choosePerShard(deal, batch.devices, shards, isKeptEven ? &others : nullptr);
    return SplitSizes{batch.samples, perShard * shards, deal, shards};
  };
  FailureOr<int64_t> wanted = TimeSplitter(func, batch, getSizes(1)).countShards(others);
  if (failed(wanted))
    return failure();
  SplitSizes sizes = getSizes(std::gcd(batch.samples, *wanted));
  if (sizes.deal->samples < batch.microbatches) {
    const auto *first = llvm::find_if(batch.dims, [](std::optional<unsigned> dim) { return dim.has_value(); });
    return mlir::emitError(batch.places[first - batch.dims.begin()])
           << batch.samples << " samples are " << sizes.deal->samples << " on each of " << sizes.shards
           << " shards, too few for " << batch.microbatches << " microbatches (P4)";
  }
  if (sizes.deal->isEven())
    sizes = {batch.microbatches, 1};
  return TimeSplitter(func, batch, sizes).run();
}

FailureOr<SmallVector<std::optional<int64_t>>>
cleave::pipe::splitStage(func::FuncOp func, ArrayRef<std::optional<int64_t>> dims, int64_t from, int64_t to) {
  Batch batch;
  for (auto [dim, argument] : llvm::zip_equal(dims, func.getArguments())) {
    batch.dims.push_back(dim);
    batch.places.push_back(argument.getLoc());
  }
  SplitSizes sizes{from, to};
  sizes.isOfStage = true;
  if (failed(TimeSplitter(func, batch, sizes).run()))
    return failure();
  // What only the other size was made of.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(func.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  SmallVector<std::optional<int64_t>> results;
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    func.removeArgAttr(i, PipeDialect::kSplitAttr);
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    results.push_back(getResultSplit(func, i));
    func.removeResultAttr(i, StringAttr::get(func.getContext(), PipeDialect::kSplitAttr));
  }
  return results;
}
