//===- TimeSplitter.cpp - a function for other samples --------------------===//
//
// A partition over one axis, along which devices do not stand side by side: the axis is time. Nothing can be sent from a
// later microbatch to an earlier one, so there is nothing to decide: what an op's operands are says what its results are.
//
//   whole         the same in all microbatches; who needs it computes it once
//   split         a microbatch has its own positions of one dim
//   accumulated   made of all microbatches together; there behind the last one
//
//   one operand or more is split      the factor of the op's rule that they bring is split: its only choice. Where the result
//                                     has that factor it is split; else it is partial, and accumulated at once
//   none is split                     the op as it is, of the whole batch
//
// The per-device form of an op on its part (`PartitionOpInterface`) is what a microbatch computes, if it needs nothing of other
// microbatches and need not know which one it is. Whatever would is an op that mixes samples. A whole value with the batch
// in it, such as a table of positions, is split by `pipe.part`, or made small at once where all parts of it are equal.
//
// The same walk makes of a stage's function, which is one device's program already, that of a microbatch of another size: there the
// batch is what a shard has of it, collectives move shorter or longer pieces, and terms stay terms.
//
//===----------------------------------------------------------------------===//
#include "TimeSplitter.h"

#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Nn/IR/ElementBytes.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Splat.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Partition.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;
using spmd::FactorId;
using spmd::ShardingRule;

RankedTensorType TimeSplitter::getPartType(Type type, unsigned dim) const {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = shape[dim] / sizes.from * sizes.to;
  return tensor.clone(shape);
}

/// Of a stage no op mixes samples: it may be sharded so that it cannot have fewer of them.
LogicalResult TimeSplitter::mixes(Operation *op, const Twine &why, const InTime &source, Operation *maker) {
  if (sizes.isOfStage)
    return op->emitError() << "'" << op->getName() << "' cannot be made for microbatches of " << sizes.to
                           << " samples of a shard, from " << sizes.from << ": " << why << " (P4)";
  InFlightDiagnostic error = op->emitError()
                             << "'" << op->getName() << "' mixes samples of different microbatches: " << why;
  error.attachNote(batch.places[source.argument])
      << "dim " << *batch.dims[source.argument] << " is the batch of '" << spmd::getArgumentName(func, source.argument)
      << "', split into microbatches here";
  if (maker)
    error.attachNote(maker->getLoc()) << "it is made here";
  return error;
}

//===----------------------------------------------------------------------===//
// What a rule says of the batch
//===----------------------------------------------------------------------===//

/// The dim of a tensor that has `factor`; nothing if none has. `isMajor` is false where positions of a part would not
/// lie together: behind another factor, or in two dims.
static std::optional<unsigned> findDim(const spmd::TensorFactors &tensor, FactorId factor, bool &isMajor) {
  std::optional<unsigned> found;
  for (auto [dim, factors] : llvm::enumerate(tensor)) {
    if (!llvm::is_contained(factors, factor))
      continue;
    isMajor &= !found && factors.front() == factor;
    found = dim;
  }
  return found;
}

FactorId TimeSplitter::findFactor(Operation *op, const ShardingRule &rule) {
  FactorId found = -1;
  unsigned first = 0;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    InTime time = times.lookup(operand);
    if (!time.isSplit())
      continue;
    const spmd::DimFactors &factors = rule.operands[index][time.dim];
    std::string dim = llvm::formatv("dim {0} of operand {1}, the batch, ", time.dim, index);
    if (factors.empty() || rule.factorSizes[factors.front()] % sizes.from != 0) {
      (void)mixes(op, dim + "is taken apart otherwise than into microbatches", time);
      return -1;
    }
    // Where the first cannot be split, that is what is wrong.
    if (found >= 0 && factors.front() != found && rule.findSingleSplit(found) >= 0) {
      (void)mixes(op, dim + "does not go with the batch of operand " + Twine(first), time);
      return -1;
    }
    if (found < 0) {
      found = factors.front();
      first = index;
    }
  }
  return found;
}

/// What every microbatch may add to: zeros, repeated or not.
static bool isZeros(Value value) {
  Operation *op = value.getDefiningOp();
  if (op && (isa<nn::BroadcastOp>(op) || (op->hasTrait<nn::KeepsNumbers>() && op->getNumOperands() == 1)))
    return isZeros(op->getOperand(0));
  return nn::getSplatNumber(value) == 0.0;
}

std::optional<BatchSplit> TimeSplitter::findSplit(Operation *op, const ShardingRule &rule, FactorId factor,
                                                  std::string &why) {
  int number = rule.findSingleSplit(factor);
  auto isNothing = [&](int32_t operand) { return isZeros(op->getOperand(operand)); };
  if (number < 0 || !llvm::all_of(rule.choices[number].partialOperands, isNothing) ||
      llvm::any_of(rule.inner, [&](const spmd::InnerCost &cost) { return llvm::is_contained(cost.factors, factor); })) {
    why = "it works along the batch";
    return std::nullopt;
  }
  BatchSplit split{factor, rule.choices[number].partial, {}};
  bool isMajor = true;
  for (const spmd::TensorFactors &result : rule.results)
    split.resultDims.push_back(findDim(result, factor, isMajor));
  // All results have the batch, or terms of what has none.
  size_t numKept = llvm::count_if(split.resultDims, [](std::optional<unsigned> dim) { return dim.has_value(); });
  if (isMajor && numKept == (split.partial ? 0 : split.resultDims.size()))
    return split;
  why = isMajor ? "it works along the batch" : "the batch would come after another part of a dim of its result";
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// False, with nothing left behind, if the form asks for other microbatches, or which one this is.
bool TimeSplitter::build(Operation *op, const ShardingRule &rule, const BatchSplit &split, ArrayRef<Value> operands,
                         SmallVectorImpl<Value> &results) {
  SmallVector<SmallVector<spmd::AxisAttr, 2>> splits(rule.factorSizes.size());
  splits[split.factor] = {axis};
  spmd::PartitionContext context{builder,
                                 op->getLoc(),
                                 mesh,
                                 llvm::to_vector(operands),
                                 {},
                                 rule,
                                 splits,
                                 /*padsShards=*/false};
  for (auto [type, dim] : llvm::zip_equal(op->getResultTypes(), split.resultDims))
    context.resultTypes.push_back(dim ? getPartType(type, *dim) : cast<RankedTensorType>(type));
  Block *block = builder.getInsertionBlock();
  Operation *before = block->empty() ? nullptr : &block->back();
  bool isMade = succeeded(cast<spmd::PartitionOpInterface>(op).partition(context, results));
  auto isOfOthers = [](Operation &made) {
    auto load = dyn_cast<nn::LoadOp>(made);
    return isa<spmd::CollectiveOpInterface>(made) || (load && load.getShardingAttr());
  };
  auto first = before ? std::next(before->getIterator()) : block->begin();
  if (isMade && llvm::none_of(llvm::make_range(first, block->end()), isOfOthers)) {
    for (auto [result, type] : llvm::zip_equal(results, context.resultTypes))
      isMade &= result.getType() == type;
    // Several ops may be made; the names are those of the last one.
    for (Operation &made : llvm::make_range(first, block->end()))
      made.removeDiscardableAttr(spmd::kNodeAttr);
    return isMade;
  }
  while (!block->empty() && &block->back() != before)
    block->back().erase();
  results.clear();
  return false;
}

bool TimeSplitter::takeParts(Operation *op, const ShardingRule &rule, FactorId factor, SmallVectorImpl<Value> &operands,
                             std::string &why) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    bool isMajor = true;
    std::optional<unsigned> dim = findDim(rule.operands[index], factor, isMajor);
    if (!isMajor) {
      why = llvm::formatv("operand {0} has the batch in two places", index);
      return false;
    }
    operands.push_back(dim && !times.lookup(operand).isSplit() ? getPart(operand, *dim) : locals.lookup(operand));
    if (!operands.back()) {
      why = llvm::formatv("operand {0} has a size that does not follow from the batch", index);
      return false;
    }
  }
  return true;
}

/// Of a local program: pieces of a dim travel whatever its size, and the batch is where it was. Shapes that it names follow
/// its result.
LogicalResult TimeSplitter::splitCollective(Operation *op, const InTime &source) {
  auto resize = [&](int64_t extent) { return extent / sizes.from * sizes.to; };
  auto isFit = [&](int64_t extent) { return extent % sizes.from == 0; };
  Operation *clone = builder.clone(*op, locals);
  unsigned dim = source.dim;
  bool fits = isFit(cast<RankedTensorType>(op->getResult(0).getType()).getDimSize(dim));
  if (auto permute = dyn_cast<spmd::PermuteOp>(clone)) {
    auto global = cast<RankedTensorType>(permute.getGlobal());
    fits &= isFit(global.getDimSize(dim));
    permute.setGlobal(getPartType(global, dim));
  } else if (auto window = dyn_cast<spmd::WindowOp>(clone)) {
    // Of an uneven dim that ranks share, pieces do not shrink alike.
    fits &= !window.getMissing() || cast<ArrayAttr>(window.getDims()[dim]).empty();
    SmallVector<int64_t> steps(window.getSteps()), lows(window.getLows()), highs(window.getHighs());
    for (int64_t *value : {&steps[dim], &lows[dim], &highs[dim]}) {
      fits &= isFit(*value);
      *value = resize(*value);
    }
    window.setSteps(steps);
    window.setLows(lows);
    window.setHighs(highs);
  } else if (auto join = dyn_cast<spmd::JoinOp>(clone)) {
    fits &= join.getDim() != dim;
  } else if (auto split = dyn_cast<spmd::SplitOp>(clone)) {
    fits &= split.getDim() != dim;
  }
  if (!fits) {
    clone->erase();
    return mixes(op, "devices have no whole samples", source);
  }
  clone->getResult(0).setType(getPartType(op->getResult(0).getType(), dim));
  times[op->getResult(0)] = source;
  return success();
}

LogicalResult TimeSplitter::splitOfSplit(Operation *op, const InTime &source) {
  if (isa<spmd::CollectiveOpInterface>(op))
    return splitCollective(op, source);
  if (auto loop = dyn_cast<nn::LoopOp>(op))
    return splitLoop(loop, source);
  auto ruled = dyn_cast<spmd::ShardingRuleOpInterface>(op);
  if (!ruled || !isa<spmd::PartitionOpInterface>(op))
    return op->emitOpError() << "has no sharding rule, and cannot be split into microbatches";
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (InTime time = times.lookup(operand); time.kind == InTime::Kind::Accumulated)
      return mixes(op,
                   llvm::formatv("operand {0} is made of all of them, by '{1}'", index, time.accumulated->getName()),
                   source);
  ShardingRule rule = ruled.getShardingRule();
  FactorId factor = findFactor(op, rule);
  if (factor < 0)
    return failure();
  std::string why;
  std::optional<BatchSplit> split = findSplit(op, rule, factor, why);
  SmallVector<Value> operands, results;
  if (!split || !takeParts(op, rule, factor, operands, why))
    return mixes(op, why, source);
  samples = std::gcd(samples, rule.factorSizes[factor]);
  if (!build(op, rule, *split, operands, results))
    return mixes(op, "it looks for positions along the batch", source);
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    Value local = results[index];
    // Of a stage, and in the body of a loop, it leads nowhere: whoever would read it beside samples, or yield it, is refused.
    if (split->partial && !sizes.isOfStage && !loopSplit)
      local = AccumulateOp::create(builder, op->getLoc(), local.getType(), *split->partial, local);
    times[result] = split->partial ? InTime{InTime::Kind::Accumulated, 0, source.argument, op}
                                   : InTime{InTime::Kind::Split, *split->resultDims[index], source.argument, nullptr};
    locals.map(result, local);
    Operation *maker = local.getDefiningOp();
    if (Attribute node = op->getDiscardableAttr(spmd::kNodeAttr); node && maker && !maker->hasAttr(spmd::kNodeAttr))
      maker->setDiscardableAttr(spmd::kNodeAttr, node);
  }
  return success();
}

/// What a pin wants of a sum over microbatches is wanted of each addend.
void TimeSplitter::pinAddends(spmd::PinOp pin) {
  // What moves numbers of the sum moves those of each addend.
  SmallVector<Operation *> movement;
  Operation *op = pin.getInput().getDefiningOp();
  for (; op && op->hasTrait<nn::KeepsNumbers>() && op->getNumOperands() == 1; op = op->getOperand(0).getDefiningOp())
    movement.push_back(op);
  auto sum = dyn_cast_if_present<AccumulateOp>(op);
  if (!sum) {
    pin.emitWarning() << "'" << pin.getName() << "' is made of a sum over microbatches, which each rank keeps all of";
    return;
  }
  IRMapping moved;
  moved.map(sum.getResult(), sum.getInput());
  for (Operation *each : llvm::reverse(movement))
    builder.clone(*each, moved);
  Value addend = spmd::PinOp::create(builder, pin.getLoc(), moved.lookup(pin.getInput()), pin.getNameAttr(),
                                     pin.getAnnotationAttr());
  pin->setOperand(0, AccumulateOp::create(builder, sum.getLoc(), addend.getType(), sum.getKind(), addend));
  pin->moveAfter(pin.getInput().getDefiningOp());
}

LogicalResult TimeSplitter::split(Operation *op) {
  InTime time;
  for (Value operand : op->getOperands())
    if (InTime other = times.lookup(operand); time.kind == InTime::Kind::Invariant || other.isSplit())
      time = time.isSplit() ? time : other;
  auto pin = dyn_cast<spmd::PinOp>(op);
  if (time.isSplit() && !pin && !isa<func::ReturnOp>(op))
    return splitOfSplit(op, time);
  // What a loop holds is mapped anew wherever it is cloned to: a body that is made again clones it again.
  IRMapping taken;
  for (Value operand : op->getOperands())
    taken.map(operand, locals.lookup(operand));
  Operation *clone = builder.clone(*op, taken);
  locals.map(op->getResults(), clone->getResults());
  for (Value result : op->getResults())
    times[result] = time;
  if (!pin)
    return success();
  clone->getResult(0).setType(clone->getOperand(0).getType());
  if (clone->removeAttr(spmd::kOfPartsAttr))
    pinAddends(cast<spmd::PinOp>(clone));
  return checkAnnotation(pin.getAnnotationAttr(), pin.getName(), clone->getResult(0).getType(), time);
}

//===----------------------------------------------------------------------===//
// Whole values that have the batch in them
//===----------------------------------------------------------------------===//

Value TimeSplitter::getPart(Value whole, unsigned dim) {
  auto it = parts.find({whole, dim});
  if (it != parts.end())
    return it->second;
  // What is made small is invariant, and of one size: where there are two, each takes its part. In the body of a loop all is a microbatch's.
  Value part = sizes.deal && !loopSplit ? Value() : makeSmall(whole, dim, 0);
  if (!part && !sizes.isOfStage && !loopSplit)
    part = PartOp::create(builder, whole.getLoc(), getPartType(whole.getType(), dim), locals.lookup(whole),
                          /*index=*/IntegerAttr(), builder.getI64IntegerAttr(dim),
                          builder.getI64IntegerAttr(batch.microbatches),
                          sizes.deal ? builder.getI64IntegerAttr(sizes.deal->samples) : IntegerAttr(),
                          builder.getI64IntegerAttr(sizes.shards));
  parts[{whole, dim}] = part;
  return part;
}

/// The chain that makes a whole value, made for a microbatch: what is repeated along `dim` needs no table. Null if parts
/// differ.
Value TimeSplitter::makeSmall(Value whole, unsigned dim, unsigned depth) {
  constexpr unsigned kDeepest = 64;
  if (depth > kDeepest)
    return {};
  auto it = smalls.find({whole, dim});
  if (it != smalls.end())
    return it->second;
  auto result = dyn_cast<OpResult>(whole);
  if (!result && !loopSplit)
    return {};
  Value small = !result ? getPartOfArgument(cast<BlockArgument>(whole), dim)
                        : makeSmallAnew(result.getOwner(), result.getResultNumber(), dim, depth);
  smalls[{whole, dim}] = small;
  return small;
}

/// The part of a constant, no splat, whose pieces along `dim`, as many as are split, are all equal; null if they differ.
ElementsAttr TimeSplitter::findRepeated(ElementsAttr elements, unsigned dim) const {
  auto type = cast<RankedTensorType>(elements.getType());
  std::optional<nn::ElementBytes> whole = nn::readElements(elements);
  if (!whole || whole->isSplat || whole->bytes.empty())
    return {};
  // Rows of bytes: those of one piece, piece by piece, for each position of the dims in front.
  size_t row = spmd::getElementBytes(type.getElementType());
  for (int64_t extent : type.getShape().drop_front(dim))
    row *= extent;
  size_t all = row;
  row /= sizes.from;
  SmallVector<char> made;
  for (ArrayRef<char> from = whole->bytes; !from.empty(); from = from.drop_front(all)) {
    for (size_t at = row; at < all; at += row)
      if (from.slice(at, row) != from.take_front(row))
        return {};
    for (int64_t i = 0; i < sizes.to; ++i)
      llvm::append_range(made, from.take_front(row));
  }
  return nn::makeElements(getPartType(type, dim), made);
}

Value TimeSplitter::makeSmallAnew(Operation *op, unsigned result, unsigned dim, unsigned depth) {
  if (auto constant = dyn_cast<nn::ConstantOp>(op); constant && !isa<SplatElementsAttr>(constant.getValue())) {
    ElementsAttr part =
        constant.getType().getDimSize(dim) % sizes.from == 0 ? findRepeated(constant.getValue(), dim) : ElementsAttr();
    return part ? Value(nn::ConstantOp::create(builder, op->getLoc(), part)) : Value();
  }
  auto ruled = dyn_cast<spmd::ShardingRuleOpInterface>(op);
  if (!ruled || !isa<spmd::PartitionOpInterface>(op))
    return {};
  ShardingRule rule = ruled.getShardingRule();
  const spmd::DimFactors &factors = rule.results[result][dim];
  std::string ignored;
  if (factors.empty() || rule.factorSizes[factors.front()] % sizes.from != 0)
    return {};
  std::optional<BatchSplit> split = findSplit(op, rule, factors.front(), ignored);
  if (!split)
    return {};
  SmallVector<Value> operands, results;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    bool isMajor = true;
    std::optional<unsigned> at = findDim(rule.operands[index], split->factor, isMajor);
    operands.push_back(!at ? locals.lookup(operand) : isMajor ? makeSmall(operand, *at, depth + 1) : Value());
    if (!operands.back())
      return {};
  }
  return build(op, rule, *split, operands, results) ? results[result] : Value();
}
