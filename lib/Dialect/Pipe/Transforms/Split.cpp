//===- Split.cpp - stages as functions, called in a loop ------------------===//
//
//   before   func @main(%x: 2x4 split)               after   func @main(%x: 16x4)
//              %h = nn.exp %x {pipe.stage = 0}                 %y = pipe.microbatches 8 (%i = %x split 0) -> (split 0) {
//              %y = nn.neg %h {pipe.stage = 1}                   %h = call @main.stage0(%i)   %o = call @main.stage1(%h)
//              return %y                                         pipe.yield %o }
//
// What each stage is made of stands in StageParts.h; here that becomes functions. Whole values are made before the loop, by
// a function of each stage that needs some, or makes some for others; what is combined over all microbatches is read behind it, by one function,
// or, in a step, by functions of its stages. A stage of a step is three functions: `stage0`, `stage0.I`, `stage0.W`.
//
// A batch dim that is sharded over n devices is split into microbatches shard by shard: parts are of n blocks, so that each
// device's part is a part of what it has:
//
//   rows      0 1 | 2 3 | 4 5 | 6 7 || 8 9 | 10 11 | ..        || between devices, | between microbatches
//   part 0    rows 0 1 8 9 of the whole, and on each device the first two of its own
//
// All inputs and outputs are split alike: into as many blocks as the one that is sharded most.
//
//===----------------------------------------------------------------------===//
#include "../Microbatches/RestOfLoop.h"
#include "../Stages/SplitRemarks.h"

#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Pipe/Stages/StageGraph.h"
#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"
#include <numeric>

namespace cleave::pipe {
#define GEN_PASS_DEF_SPLIT
#include "cleave/Dialect/Pipe/IR/PipePasses.h.inc"
} // namespace cleave::pipe

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

#define DEBUG_TYPE "pipe-split"

ALWAYS_ENABLED_STATISTIC(numSplitStages, "stages");

namespace {
/// Makes the functions of one entry.
class StageMaker {
public:
  StageMaker(func::FuncOp func, const ModelParts &parts, int64_t count)
      : func(func), parts(parts), deal{count, count}, builder(func.getContext()) {}

  LogicalResult run();

private:
  /// An operand of the loop: a value as one stage sees it; those of arguments are of all stages (-1).
  using Key = std::pair<int64_t, Value>;

  Key getKey(int64_t stage, Value value) const {
    return {value.getDefiningOp() ? parts.getMaker(stage, value) : -1, value};
  }

  func::FuncOp addFunction(const Twine &name, ArrayRef<Value> reads, const llvm::SetVector<Operation *> &ops,
                           ArrayRef<Value> gives);
  void addAhead();
  void addBefore(int64_t stage);
  LogicalResult countBlocks();
  int64_t getShards(Attribute global, int64_t dim) const;
  RankedTensorType widen(Type type, int64_t dim) const;
  void widenSignature();
  void addLoopInputs(int64_t stage);
  void addInput(Key key, Value operand, PieceAttr take);
  Value getInvariant(int64_t stage, Value value);
  PieceAttr getPiece(unsigned result);
  LogicalResult addLoop();
  void addStageCall(int64_t stage, llvm::DenseMap<Value, Value> &made, Block *body);
  void addAfter();
  void addReturn();

  func::FuncOp func;
  const ModelParts &parts;
  /// Samples of a block are dealt out; as many as there are microbatches where all are of one size.
  Deal deal;
  /// Samples of a block that `func` is written for.
  int64_t perBlock = 1;
  int64_t blocks = 1;
  OpBuilder builder;
  /// The new body, and what stands there for values of the old one.
  Block *body = nullptr;
  llvm::DenseMap<Key, Value> invariants;
  llvm::DenseMap<Value, Value> results;
  /// Results of the function, by number, that the loop makes.
  llvm::DenseMap<size_t, Value> returned;
  SmallVector<Value> inputs;
  SmallVector<Attribute> takes;
  llvm::DenseMap<Key, unsigned> inputOf;
};

struct Split : pipe::impl::SplitBase<Split> {
  using SplitBase::SplitBase;

  void runOnOperation() override;

private:
  LogicalResult split(func::FuncOp func, int64_t count);
};
} // namespace

/// A private function of clones of `ops`, in program order, before the entry.
func::FuncOp StageMaker::addFunction(const Twine &name, ArrayRef<Value> reads, const llvm::SetVector<Operation *> &ops,
                                     ArrayRef<Value> gives) {
  OpBuilder outer(func);
  auto getTypes = [](ArrayRef<Value> values) {
    return llvm::map_to_vector(values, [](Value value) { return value.getType(); });
  };
  auto type = FunctionType::get(func.getContext(), getTypes(reads), getTypes(gives));
  auto made = func::FuncOp::create(outer, func.getLoc(), (func.getName() + "." + name).str(), type);
  made.setPrivate();
  Block *block = made.addEntryBlock();
  IRMapping mapping;
  for (auto [value, argument] : llvm::zip_equal(reads, block->getArguments()))
    mapping.map(value, argument);
  OpBuilder inner = OpBuilder::atBlockEnd(block);
  auto sorted = llvm::to_vector(ops);
  llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : sorted)
    inner.clone(*op, mapping)->removeAttr(PipeDialect::kStageAttr);
  auto returned = llvm::map_to_vector(gives, [&](Value value) { return mapping.lookup(value); });
  func::ReturnOp::create(inner, func.getLoc(), returned);
  return made;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Into how many pieces the mesh splits the dim of an argument or result.
int64_t StageMaker::getShards(Attribute global, int64_t dim) const {
  auto type = dyn_cast_if_present<TypeAttr>(global);
  spmd::ShardingAttr sharding = type ? spmd::getSharding(type.getValue()) : spmd::ShardingAttr();
  return sharding ? sharding.getNumShards(dim) : 1;
}

/// The least number of blocks that no shard of an input or output splits through. Samples must divide into microbatches of
/// so many (P4): only then are microbatches of one value those of all others. Samples that are dealt out unevenly are so to
/// a number of shards that was settled before anything was sharded.
LogicalResult StageMaker::countBlocks() {
  StringRef global = spmd::SpmdDialect::kGlobalTypeAttr;
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (std::optional<int64_t> dim = getArgSplit(func, i))
      blocks = std::lcm(blocks, getShards(func.getArgAttr(i, global), *dim));
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (std::optional<int64_t> dim = getResultSplit(func, i))
      blocks = std::lcm(blocks, getShards(func.getResultAttr(i, global), *dim));
  auto samples = func->getAttrOfType<IntegerAttr>(PipeDialect::kSamplesAttr);
  auto shards = func->getAttrOfType<IntegerAttr>(PipeDialect::kShardsAttr);
  auto perShard = func->getAttrOfType<IntegerAttr>(PipeDialect::kPerShardAttr);
  if (samples && shards && perShard && shards.getInt() % blocks == 0 && samples.getInt() % shards.getInt() == 0 &&
      samples.getInt() / shards.getInt() >= deal.count) {
    blocks = shards.getInt();
    deal.samples = samples.getInt() / blocks;
    perBlock = perShard.getInt();
    return success();
  }
  if (!shards && (!samples || samples.getInt() % (blocks * deal.count) == 0))
    return success();
  int64_t least = blocks * deal.count, below = samples ? samples.getInt() / least * least : 0;
  InFlightDiagnostic error = func.emitError();
  error << (samples ? samples.getInt() : 0) << " samples do not divide into " << deal.count << " microbatches of "
        << blocks << " shards (P4): ";
  if (below > 0)
    error << below << " or ";
  return error << below + least << " samples would do, or one microbatch";
}

/// Of a whole batch what is of one microbatch.
RankedTensorType StageMaker::widen(Type type, int64_t dim) const {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = shape[dim] / perBlock * deal.samples;
  return tensor.clone(shape);
}

/// The entry takes and returns whole batches from now on.
void StageMaker::widenSignature() {
  StringRef global = spmd::SpmdDialect::kGlobalTypeAttr;
  auto widened = [&](Attribute attribute, int64_t dim) {
    return TypeAttr::get(widen(cast<TypeAttr>(attribute).getValue(), dim));
  };
  SmallVector<Type> types(func.getResultTypes());
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    std::optional<int64_t> dim = getArgSplit(func, i);
    Type type = func.getArgumentTypes()[i];
    body->addArgument(dim ? Type(widen(type, *dim)) : type, func.getArgument(i).getLoc());
    if (Attribute attribute = func.getArgAttr(i, global); attribute && dim)
      func.setArgAttr(i, global, widened(attribute, *dim));
  }
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    std::optional<int64_t> dim = getResultSplit(func, i);
    if (!dim)
      continue;
    types[i] = widen(types[i], *dim);
    if (Attribute attribute = func.getResultAttr(i, global))
      func.setResultAttr(i, global, widened(attribute, *dim));
  }
  func.setFunctionType(FunctionType::get(func.getContext(), body->getArgumentTypes(), types));
}

//===----------------------------------------------------------------------===//
// Before the loop
//===----------------------------------------------------------------------===//

/// What a whole value is in the new body: an argument, or what the stage made of it.
Value StageMaker::getInvariant(int64_t stage, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return body->getArgument(argument.getArgNumber());
  return invariants.lookup(getKey(stage, value));
}

/// Sums over arguments, microbatch by microbatch in their order as in the loop, and what is made of these: one function of whole arguments.
void StageMaker::addAhead() {
  const AheadParts &ahead = parts.ahead;
  if (ahead.gives.empty())
    return;
  OpBuilder outer(func);
  auto operands = llvm::map_to_vector(
      ahead.reads, [&](Value value) -> Value { return body->getArgument(cast<BlockArgument>(value).getArgNumber()); });
  auto given = llvm::map_to_vector(ahead.gives, [](Value value) { return value.getType(); });
  auto type = FunctionType::get(func.getContext(), ValueRange(operands).getTypes(), given);
  auto made = func::FuncOp::create(outer, func.getLoc(), (func.getName() + ".ahead").str(), type);
  made.setPrivate();
  OpBuilder inner = OpBuilder::atBlockEnd(made.addEntryBlock());
  IRMapping sums;
  auto sorted = llvm::to_vector(ahead.each);
  llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (int64_t microbatch = 0; microbatch < deal.count; ++microbatch) {
    IRMapping own;
    for (auto [value, whole] : llvm::zip_equal(ahead.reads, made.getArguments())) {
      unsigned number = cast<BlockArgument>(value).getArgNumber();
      int64_t dim = *getArgSplit(func, number);
      int64_t shards = getShards(func.getArgAttr(number, spmd::SpmdDialect::kGlobalTypeAttr), dim);
      own.map(value, PartOp::create(inner, value.getLoc(), value.getType(), whole, inner.getI64IntegerAttr(microbatch),
                                    inner.getI64IntegerAttr(dim), inner.getI64IntegerAttr(deal.count), IntegerAttr(),
                                    inner.getI64IntegerAttr(blocks / shards)));
    }
    for (Operation *op : sorted)
      inner.clone(*op, own)->removeAttr(PipeDialect::kStageAttr);
    for (AccumulateOp sum : ahead.sums) {
      Value addend = own.lookup(sum.getInput()), before = sums.lookupOrNull(sum.getResult());
      Value now = before ? nn::Composer(inner, sum.getLoc()).combine(sum.getKind(), before, addend) : addend;
      sums.map(sum.getResult(), now);
    }
  }
  for (Operation *op : ahead.known) {
    for (Value operand : op->getOperands())
      if (Operation *constant = operand.getDefiningOp(); constant && !sums.contains(operand))
        inner.clone(*constant, sums);
    inner.clone(*op, sums)->removeAttr(PipeDialect::kStageAttr);
  }
  auto returned = llvm::map_to_vector(ahead.gives, [&](Value value) { return sums.lookup(value); });
  func::ReturnOp::create(inner, func.getLoc(), returned);
  auto call = func::CallOp::create(builder, func.getLoc(), made, operands);
  for (auto [value, result] : llvm::zip_equal(ahead.gives, call.getResults()))
    results[value] = result;
}

/// All that the whole values of a stage are made of, from whole arguments and what earlier stages make for it.
void StageMaker::addBefore(int64_t stage) {
  const Values &wanted = parts.stages[stage].before;
  if (wanted.empty())
    return;
  llvm::SetVector<Operation *> ops;
  Values reads;
  SmallVector<Value> todo(wanted.begin(), wanted.end());
  while (!todo.empty()) {
    Value value = todo.pop_back_val();
    Operation *producer = value.getDefiningOp();
    if (!producer || parts.getMaker(stage, value) != stage)
      reads.insert(value);
    else if (ops.insert(producer))
      llvm::append_range(todo, producer->getOperands());
  }
  func::FuncOp made =
      addFunction("before" + parts.units.getName(stage), reads.getArrayRef(), ops, wanted.getArrayRef());
  auto operands = llvm::map_to_vector(reads, [&](Value value) { return getInvariant(stage, value); });
  auto call = func::CallOp::create(builder, func.getLoc(), made, operands);
  for (auto [value, result] : llvm::zip_equal(wanted, call.getResults()))
    invariants[{stage, value}] = result;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

/// An operand of the loop, unless it is one already.
void StageMaker::addInput(Key key, Value operand, PieceAttr take) {
  if (!inputOf.try_emplace(key, inputs.size()).second)
    return;
  inputs.push_back(operand);
  takes.push_back(take);
}

/// Arguments are the same for all stages; whole values, and parts of them, are each stage's own.
void StageMaker::addLoopInputs(int64_t stage) {
  MLIRContext *context = func.getContext();
  for (Value value : parts.stages[stage].parts) {
    if (auto part = value.getDefiningOp<PartOp>()) {
      addInput({stage, value}, getInvariant(stage, part.getInput()),
               PieceAttr::getSplit(context, part.getDim(), std::lcm(blocks, static_cast<int64_t>(part.getBlocks()))));
      continue;
    }
    unsigned number = cast<BlockArgument>(value).getArgNumber();
    int64_t dim = *getArgSplit(func, number);
    int64_t shards = getShards(func.getArgAttr(number, spmd::SpmdDialect::kGlobalTypeAttr), dim);
    addInput({-1, value}, body->getArgument(number), PieceAttr::getSplit(context, dim, blocks / shards));
  }
  for (Value value : parts.stages[stage].invariants)
    addInput(getKey(stage, value), getInvariant(stage, value), PieceAttr::getReplicated(context));
}

/// `made`: what earlier stages handed on, in the loop.
void StageMaker::addStageCall(int64_t stage, llvm::DenseMap<Value, Value> &made, Block *loop) {
  const StageParts &own = parts.stages[stage];
  SmallVector<Value> reads, operands;
  for (const Values *list : {&own.parts, &own.invariants})
    for (Value value : *list) {
      reads.push_back(value);
      operands.push_back(loop->getArgument(inputOf.lookup(getKey(stage, value))));
    }
  for (Value value : own.received) {
    reads.push_back(value);
    operands.push_back(made.lookup(value));
  }
  func::FuncOp callee = addFunction("stage" + parts.units.getName(stage), reads, own.ops, own.given.getArrayRef());
  auto call = func::CallOp::create(builder, func.getLoc(), callee, operands);
  for (auto [value, result] : llvm::zip_equal(own.given, call.getResults()))
    made[value] = result;
}

/// How a result of the function is made of what microbatches give.
PieceAttr StageMaker::getPiece(unsigned result) {
  std::optional<int64_t> dim = getResultSplit(func, result);
  if (!dim)
    return PieceAttr::getReplicated(func.getContext());
  Attribute global = func.getResultAttr(result, spmd::SpmdDialect::kGlobalTypeAttr);
  return PieceAttr::getSplit(func.getContext(), *dim, blocks / getShards(global, *dim));
}

/// Inputs of all stages, then the calls, then what callers get: parts joined, sums.
LogicalResult StageMaker::addLoop() {
  MLIRContext *context = func.getContext();
  int64_t numUnits = parts.units.count();
  for (int64_t stage = 0; stage < numUnits; ++stage)
    addLoopInputs(stage);
  SmallVector<Value> yielded;
  SmallVector<Attribute> gives;
  SmallVector<Type> types;
  Operation *ret = func.getBody().front().getTerminator();
  // One value may be returned twice, along different dims: those of 1x4 parts are 4x4 or 1x16.
  llvm::MapVector<std::pair<Value, Attribute>, Value> outputs;
  for (auto [number, value] : llvm::enumerate(ret->getOperands())) {
    PieceAttr piece = getPiece(number);
    if (!parts.outputs.contains(value) || !outputs.try_emplace({value, piece}).second)
      continue;
    gives.push_back(piece);
    types.push_back(piece.isSplit() ? Type(widen(value.getType(), piece.getDim())) : value.getType());
    yielded.push_back(value);
  }
  for (AccumulateOp sum : parts.sums) {
    gives.push_back(PieceAttr::get(context, spmd::stringifyReductionKind(sum.getKind()), 0, 1));
    types.push_back(sum.getType());
    yielded.push_back(sum.getInput());
  }
  auto loop = MicrobatchesOp::create(builder, func.getLoc(), types, inputs, builder.getI64IntegerAttr(deal.count),
                                     deal.isEven() ? IntegerAttr() : builder.getI64IntegerAttr(deal.samples),
                                     builder.getArrayAttr(takes), builder.getArrayAttr(gives));
  Block *inner = &loop.getBody().emplaceBlock();
  for (auto [input, take] : llvm::zip_equal(inputs, takes)) {
    auto type = cast<RankedTensorType>(input.getType());
    SmallVector<int64_t> shape(type.getShape());
    if (auto piece = cast<PieceAttr>(take); piece.isSplit())
      shape[piece.getDim()] = shape[piece.getDim()] / deal.samples * perBlock;
    inner->addArgument(type.clone(shape), input.getLoc());
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(inner);
  llvm::DenseMap<Value, Value> made;
  for (int64_t stage = 0; stage < numUnits; ++stage)
    addStageCall(stage, made, inner);
  auto values = llvm::map_to_vector(yielded, [&](Value value) { return made.lookup(value); });
  YieldOp::create(builder, func.getLoc(), values);
  for (auto [output, result] : llvm::zip(outputs, loop.getResults()))
    output.second = result;
  for (auto [number, value] : llvm::enumerate(ret->getOperands()))
    if (parts.outputs.contains(value))
      returned[number] = outputs[{value, getPiece(number)}];
  for (auto [sum, result] : llvm::zip_equal(parts.sums, loop.getResults().drop_front(outputs.size())))
    results[AccumulateOp(sum).getResult()] = result;
  return deal.isEven() ? success() : makeBodies(loop, perBlock);
}

//===----------------------------------------------------------------------===//
// Behind the loop
//===----------------------------------------------------------------------===//

/// A function for all that depends on sums, and for whole values that the caller wants; of a step, for each part of that.
void StageMaker::addAfter() {
  for (const AfterParts &own : parts.afters) {
    std::string name = "after";
    if (parts.units.hasGradients())
      name += std::to_string(own.stage) + (own.level ? "." + std::to_string(own.level) : "");
    func::FuncOp made = addFunction(name, own.reads.getArrayRef(), own.ops, own.gives.getArrayRef());
    auto operands = llvm::map_to_vector(own.reads, [&](Value value) {
      Value known = results.lookup(value);
      return known ? known : getInvariant(-1, value);
    });
    auto call = func::CallOp::create(builder, func.getLoc(), made, operands);
    if (parts.units.hasGradients())
      call->setAttr(PipeDialect::kHomeAttr, builder.getI64IntegerAttr(own.stage));
    for (auto [value, result] : llvm::zip_equal(own.gives, call.getResults()))
      results[value] = result;
  }
}

/// An argument that is returned is so as a whole.
void StageMaker::addReturn() {
  Operation *ret = func.getBody().front().getTerminator();
  SmallVector<Value> values;
  for (auto [number, value] : llvm::enumerate(ret->getOperands())) {
    auto argument = dyn_cast<BlockArgument>(value);
    auto found = returned.find(number);
    values.push_back(argument                  ? Value(body->getArgument(argument.getArgNumber()))
                     : found != returned.end() ? found->second
                                               : results.lookup(value));
  }
  func::ReturnOp::create(builder, ret->getLoc(), values);
}

/// The new body grows behind the old one, which says until the end what is to be made.
LogicalResult StageMaker::run() {
  if (failed(countBlocks()))
    return failure();
  body = new Block();
  func.getBody().push_back(body);
  builder.setInsertionPointToEnd(body);
  widenSignature();
  addAhead();
  for (size_t stage = 0; stage < parts.stages.size(); ++stage)
    addBefore(static_cast<int64_t>(stage));
  if (failed(addLoop()))
    return failure();
  addAfter();
  addReturn();
  func.getBody().front().erase();
  if (auto flops = func->getAttrOfType<FloatAttr>(spmd::SpmdDialect::kFlopsAttr))
    func->setAttr(spmd::SpmdDialect::kFlopsAttr,
                  builder.getF64FloatAttr(flops.getValueAsDouble() * static_cast<double>(deal.samples) /
                                          static_cast<double>(perBlock)));
  return success();
}

/// Where stages of units were placed; each stage on a rank of its own where nobody said it.
static SmallVector<int64_t> getRanks(ModuleOp module, size_t count) {
  StageUnits units = StageUnits::get(module, static_cast<int64_t>(count));
  auto ranks = llvm::to_vector(llvm::seq<int64_t>(0, units.countStages()));
  auto boundaries = module->getAttrOfType<DictionaryAttr>(PipeDialect::kBoundariesAttr);
  auto stages = boundaries ? boundaries.getAs<ArrayAttr>("stages") : ArrayAttr();
  if (stages && stages.size() == ranks.size())
    for (auto [stage, entry] : llvm::enumerate(stages.getAsRange<DictionaryAttr>()))
      if (auto rank = entry.getAs<IntegerAttr>("rank"))
        ranks[stage] = rank.getInt();
  return llvm::map_to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(count)),
                             [&](int64_t unit) { return ranks[units.getStage(unit)]; });
}

/// Those of units, each once, in order.
static SmallVector<int64_t> getStages(const StageUnits &units, ArrayRef<int64_t> numbers) {
  auto stages = llvm::map_to_vector(numbers, [&](int64_t unit) { return units.getStage(unit); });
  llvm::sort(stages);
  stages.erase(llvm::unique(stages), stages.end());
  return stages;
}

LogicalResult Split::split(func::FuncOp func, int64_t count) {
  if (!func.getBody().hasOneBlock())
    return func.emitOpError("has control flow");
  spmd::Spans spans(func);
  const DeviceRates rates;
  // What costs less to compute than to send is no value of the graph that is split.
  DenseSet<Operation *> again;
  StageGraph graph = makeStageGraph(func, rates);
  for (const schedule::SplitValue &value : graph.problem.values)
    if (value.bytes == 0 && !sendCheap)
      again.insert(graph.ops[value.producer]);
  SmallVector<int64_t> ranks;
  FailureOr<ModelParts> parts = findParts(func, spans, std::move(again), relay, [&](ArrayRef<Values> wanted) {
    ranks = getRanks(getOperation(), wanted.size());
    std::vector<SharedInvariant> shared = findSharedInvariants(func, wanted, ranks, rates, sendCheap);
    StageUnits units = StageUnits::get(getOperation(), static_cast<int64_t>(wanted.size()));
    for (SharedInvariant whole : shared)
      if (whole.stages = getStages(units, whole.stages); whole.stages.size() > 1)
        tell("whole value", whole);
    return shared;
  });
  if (failed(parts))
    return failure();
  numSplitStages += parts->units.countStages();
  LDBG() << "@" << func.getName() << ": " << parts->units.countStages() << " stages, " << count << " microbatches";
  tellOfCheap(func, *parts, rates);
  tellOfShared(func, *parts, ranks);
  return StageMaker(func, *parts, count).run();
}

void Split::runOnOperation() {
  ModuleOp module = getOperation();
  if (failed(enterPhase(module, Phase::Staged)))
    return signalPassFailure();
  std::optional<int64_t> count = getMicrobatches(module);
  auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
  if (!count || functions.size() != 1) {
    mlir::emitError(module.getLoc()) << (count ? "has several functions: stages are those of one"
                                               : "is not the program of one microbatch: pipe-microbatch comes first");
    return signalPassFailure();
  }
  if (failed(split(functions.front(), *count)))
    signalPassFailure();
}
