//===- CutInTime.cpp - from a batch to one microbatch ---------------------===//
//
// A partition over one axis, along which devices do not stand side by side: the axis is time. Nothing can be sent from a
// later microbatch to an earlier one, so there is nothing to decide: what an op's operands are says what its results are.
//
//   whole         the same in all microbatches; who needs it computes it once
//   split         a microbatch has its own positions of one dim
//   accumulated   made of all microbatches together; there behind the last one
//
//   one operand or more is split      the factor of the op's rule that they bring is cut: its only choice. Where the result
//                                     has that factor it is split; else it is partial, and accumulated at once
//   none is split                     the op as it is, of the whole batch
//
// The per-device form of an op on its part (`PartitionOpInterface`) is what a microbatch computes, if it needs nothing of other
// microbatches and need not know which one it is. Whatever would is an op that mixes samples. A whole value with the batch
// in it, such as a table of positions, is cut by `pipe.part`, or made small at once where all parts of it are equal.
//
// A new body grows next to the old one, which goes when all went well.
//
//===----------------------------------------------------------------------===//
#include "CutInTime.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Reference/Tensor.h"
#include "cleave/Transforms/MergeEqual.h"
#include "mlir/IR/IRMapping.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;
using spmd::FactorId;
using spmd::ShardingRule;

namespace {
/// How a value is there while microbatches go by.
struct InTime {
  enum class Kind { Whole, Split, Accumulated };
  Kind kind = Kind::Whole;
  /// Of a split value: the dim that is cut, and the input whose batch that is.
  unsigned dim = 0, argument = 0;
  /// Of an accumulated one: what accumulates.
  Operation *accumulated = nullptr;

  bool isSplit() const { return kind == Kind::Split; }
};

/// What an op does with the batch: the factor that is it, and how its rule takes that.
struct BatchCut {
  FactorId factor = -1;
  std::optional<spmd::ReductionKind> partial;
  /// Per result the dim that is cut; nothing if it has none.
  SmallVector<std::optional<unsigned>, 1> resultDims;
};

/// Builds the body of one microbatch.
class TimeCutter {
public:
  TimeCutter(func::FuncOp func, const Batch &batch)
      : func(func), batch(batch), builder(func.getContext()),
        axis(spmd::AxisAttr::get(func.getContext(), "microbatch")),
        mesh(spmd::MeshAttr::get(func.getContext(), {"microbatch"}, {batch.microbatches}, {})) {}

  LogicalResult run();

private:
  LogicalResult cutArguments(Block &from, Block &to);
  LogicalResult cut(Operation *op);
  LogicalResult cutSplit(Operation *op, const InTime &source);
  LogicalResult checkStates(Operation *terminator);
  LogicalResult checkResults(Operation *before, Operation *after);
  LogicalResult checkWish(spmd::WishAttr wish, StringRef name, Type type, const InTime &present);

  /// The factor that split operands bring, the same for all; -1 after an error.
  FactorId findFactor(Operation *op, const ShardingRule &rule);
  /// What `factor` cut means to an op; nothing, and the reason in `why`, if it cannot be cut by itself.
  std::optional<BatchCut> findCut(Operation *op, const ShardingRule &rule, FactorId factor, std::string &why);
  /// The operands of a microbatch; false, and the reason, if one has the batch where it cannot be cut.
  bool takeParts(Operation *op, const ShardingRule &rule, FactorId factor, SmallVectorImpl<Value> &operands,
                 std::string &why);
  bool build(Operation *op, const ShardingRule &rule, const BatchCut &cut, ArrayRef<Value> operands,
             SmallVectorImpl<Value> &results);

  Value getPart(Value whole, unsigned dim);
  Value makeSmall(Value whole, unsigned dim, unsigned depth);
  Value makeSmallAnew(Operation *op, unsigned result, unsigned dim, unsigned depth);

  RankedTensorType getPartType(Type type, unsigned dim) const;
  LogicalResult mixes(Operation *op, const Twine &why, const InTime &source);

  func::FuncOp func;
  const Batch &batch;
  /// Of which all that is cut has a multiple, in one order; 0: nothing is cut.
  int64_t samples = 0;
  OpBuilder builder;
  spmd::AxisAttr axis;
  spmd::MeshAttr mesh;
  /// Values of the batch -> those of a microbatch, and how these are there.
  IRMapping locals;
  DenseMap<Value, InTime> times;
  /// By whole value and dim: what a microbatch has of it, and what is equal in all microbatches (null: nothing).
  DenseMap<std::pair<Value, unsigned>, Value> parts, smalls;
};
} // namespace

RankedTensorType TimeCutter::getPartType(Type type, unsigned dim) const {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] /= batch.microbatches;
  return tensor.clone(shape);
}

LogicalResult TimeCutter::mixes(Operation *op, const Twine &why, const InTime &source) {
  InFlightDiagnostic error = op->emitError()
                             << "'" << op->getName() << "' mixes samples of different microbatches: " << why;
  error.attachNote(batch.places[source.argument])
      << "dim " << *batch.dims[source.argument] << " is the batch of '" << spmd::getArgumentName(func, source.argument)
      << "', split into microbatches here";
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

FactorId TimeCutter::findFactor(Operation *op, const ShardingRule &rule) {
  FactorId found = -1;
  unsigned first = 0;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    InTime time = times.lookup(operand);
    if (!time.isSplit())
      continue;
    const spmd::DimFactors &factors = rule.operands[index][time.dim];
    std::string dim = llvm::formatv("dim {0} of operand {1}, the batch, ", time.dim, index);
    if (factors.empty() || rule.factorSizes[factors.front()] % batch.microbatches != 0) {
      (void)mixes(op, dim + "is taken apart otherwise than into microbatches", time);
      return -1;
    }
    // Where the first cannot be cut, that is what is wrong.
    if (found >= 0 && factors.front() != found && rule.findSingleCut(found) >= 0) {
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

std::optional<BatchCut> TimeCutter::findCut(Operation *op, const ShardingRule &rule, FactorId factor,
                                            std::string &why) {
  int number = rule.findSingleCut(factor);
  if (number < 0 || !rule.choices[number].partialOperands.empty() ||
      llvm::any_of(rule.inner, [&](const spmd::InnerCost &cost) { return llvm::is_contained(cost.factors, factor); })) {
    why = "it works along the batch";
    return std::nullopt;
  }
  BatchCut cut{factor, rule.choices[number].partial, {}};
  bool isMajor = true;
  for (const spmd::TensorFactors &result : rule.results)
    cut.resultDims.push_back(findDim(result, factor, isMajor));
  // All results have the batch, or terms of what has none.
  size_t numKept = llvm::count_if(cut.resultDims, [](std::optional<unsigned> dim) { return dim.has_value(); });
  if (isMajor && numKept == (cut.partial ? 0 : cut.resultDims.size()))
    return cut;
  why = isMajor ? "it works along the batch" : "the batch would come behind another part of a dim of its result";
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// False, with nothing left behind, if the form asks for other microbatches, or which one this is.
bool TimeCutter::build(Operation *op, const ShardingRule &rule, const BatchCut &cut, ArrayRef<Value> operands,
                       SmallVectorImpl<Value> &results) {
  SmallVector<SmallVector<spmd::AxisAttr, 2>> cuts(rule.factorSizes.size());
  cuts[cut.factor] = {axis};
  spmd::PartitionContext context{builder, op->getLoc(), mesh, llvm::to_vector(operands), {}, rule, cuts};
  for (auto [type, dim] : llvm::zip_equal(op->getResultTypes(), cut.resultDims))
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

bool TimeCutter::takeParts(Operation *op, const ShardingRule &rule, FactorId factor, SmallVectorImpl<Value> &operands,
                           std::string &why) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    bool isMajor = true;
    std::optional<unsigned> dim = findDim(rule.operands[index], factor, isMajor);
    if (!isMajor) {
      why = llvm::formatv("operand {0} has the batch in two places", index);
      return false;
    }
    operands.push_back(dim && !times.lookup(operand).isSplit() ? getPart(operand, *dim) : locals.lookup(operand));
  }
  return true;
}

LogicalResult TimeCutter::cutSplit(Operation *op, const InTime &source) {
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
  std::optional<BatchCut> cut = findCut(op, rule, factor, why);
  SmallVector<Value> operands, results;
  if (!cut || !takeParts(op, rule, factor, operands, why))
    return mixes(op, why, source);
  samples = std::gcd(samples, rule.factorSizes[factor]);
  if (!build(op, rule, *cut, operands, results))
    return mixes(op, "it looks for positions along the batch", source);
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    Value local = results[index];
    if (cut->partial) {
      local = AccumulateOp::create(builder, op->getLoc(), local.getType(), *cut->partial, local);
      times[result] = {InTime::Kind::Accumulated, 0, source.argument, op};
    } else {
      times[result] = {InTime::Kind::Split, *cut->resultDims[index], source.argument, nullptr};
    }
    locals.map(result, local);
    Operation *maker = local.getDefiningOp();
    if (Attribute node = op->getDiscardableAttr(spmd::kNodeAttr); node && maker && !maker->hasAttr(spmd::kNodeAttr))
      maker->setDiscardableAttr(spmd::kNodeAttr, node);
  }
  return success();
}

LogicalResult TimeCutter::cut(Operation *op) {
  InTime time;
  for (Value operand : op->getOperands())
    if (InTime other = times.lookup(operand); time.kind == InTime::Kind::Whole || other.isSplit())
      time = time.isSplit() ? time : other;
  auto pin = dyn_cast<spmd::PinOp>(op);
  if (time.isSplit() && !pin && !isa<func::ReturnOp>(op))
    return cutSplit(op, time);
  Operation *clone = builder.clone(*op, locals);
  for (Value result : op->getResults())
    times[result] = time;
  if (!pin)
    return success();
  clone->getResult(0).setType(clone->getOperand(0).getType());
  return checkWish(pin.getWishAttr(), pin.getName(), clone->getResult(0).getType(), time);
}

//===----------------------------------------------------------------------===//
// Whole values that have the batch in them
//===----------------------------------------------------------------------===//

Value TimeCutter::getPart(Value whole, unsigned dim) {
  auto it = parts.find({whole, dim});
  if (it != parts.end())
    return it->second;
  Value part = makeSmall(whole, dim, 0);
  if (!part)
    part = PartOp::create(builder, whole.getLoc(), getPartType(whole.getType(), dim), locals.lookup(whole),
                          /*index=*/IntegerAttr(), dim, batch.microbatches);
  parts[{whole, dim}] = part;
  return part;
}

/// The chain that makes a whole value, made for a microbatch: what is repeated along `dim` needs no table. Null if parts
/// differ.
Value TimeCutter::makeSmall(Value whole, unsigned dim, unsigned depth) {
  constexpr unsigned kDeepest = 64;
  auto result = dyn_cast<OpResult>(whole);
  if (!result || depth > kDeepest)
    return {};
  auto it = smalls.find({whole, dim});
  if (it != smalls.end())
    return it->second;
  Value small = makeSmallAnew(result.getOwner(), result.getResultNumber(), dim, depth);
  smalls[{whole, dim}] = small;
  return small;
}

/// What all of `pieces` pieces of a constant along `dim` are; null if they differ.
static ElementsAttr findRepeated(ElementsAttr elements, unsigned dim, RankedTensorType part) {
  FailureOr<reference::Tensor> whole = reference::Tensor::fromAttr(elements);
  if (failed(whole) || part.getNumElements() == 0)
    return {};
  // Rows of bytes: those of one piece, piece by piece, for each position of the dims in front.
  size_t row = reference::getElementBytes(part.getElementType());
  for (int64_t extent : part.getShape().drop_front(dim))
    row *= extent;
  size_t all = row * (whole->getShape()[dim] / part.getDimSize(dim));
  auto made = std::make_shared<SmallVector<char>>();
  for (ArrayRef<char> from = whole->getBytes(); !from.empty(); from = from.drop_front(all)) {
    for (size_t at = row; at < all; at += row)
      if (from.slice(at, row) != from.take_front(row))
        return {};
    llvm::append_range(*made, from.take_front(row));
  }
  return reference::Tensor::fromBytes(part, *made, made).toAttr();
}

Value TimeCutter::makeSmallAnew(Operation *op, unsigned result, unsigned dim, unsigned depth) {
  if (auto constant = dyn_cast<nn::ConstantOp>(op); constant && !isa<SplatElementsAttr>(constant.getValue())) {
    ElementsAttr part = findRepeated(constant.getValue(), dim, getPartType(constant.getType(), dim));
    return part ? Value(nn::ConstantOp::create(builder, op->getLoc(), part)) : Value();
  }
  auto ruled = dyn_cast<spmd::ShardingRuleOpInterface>(op);
  if (!ruled || !isa<spmd::PartitionOpInterface>(op))
    return {};
  ShardingRule rule = ruled.getShardingRule();
  const spmd::DimFactors &factors = rule.results[result][dim];
  std::string ignored;
  if (factors.empty() || rule.factorSizes[factors.front()] % batch.microbatches != 0)
    return {};
  std::optional<BatchCut> cut = findCut(op, rule, factors.front(), ignored);
  if (!cut)
    return {};
  SmallVector<Value> operands, results;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    bool isMajor = true;
    std::optional<unsigned> at = findDim(rule.operands[index], cut->factor, isMajor);
    operands.push_back(!at ? locals.lookup(operand) : isMajor ? makeSmall(operand, *at, depth + 1) : Value());
    if (!operands.back())
      return {};
  }
  return build(op, rule, *cut, operands, results) ? results[result] : Value();
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// What a plan wants must fit what a microbatch has: the parts are cut again, over devices.
LogicalResult TimeCutter::checkWish(spmd::WishAttr wish, StringRef name, Type type, const InTime &present) {
  if (!wish || !present.isSplit())
    return success();
  spmd::MeshAttr devices = wish.getSharding().getMesh();
  for (auto [dim, extent] : llvm::enumerate(cast<RankedTensorType>(type).getShape())) {
    SmallVector<spmd::CutAxis> axes;
    for (spmd::AxisAttr cutting : wish.getSharding().getDims()[dim].getAxes())
      axes.push_back({spmd::formatAxis(cutting), cutting.getExtent(devices)});
    std::string reason = spmd::describeUndivided(dim, extent, axes);
    if (reason.empty())
      continue;
    InFlightDiagnostic error = mlir::emitError(wish.getPlace()) << "'" << name << "'" << reason << " (S5)";
    error.attachNote(batch.places[present.argument])
        << "the batch is that of one of " << batch.microbatches << " microbatches, which are split here";
    return error;
  }
  return success();
}

LogicalResult TimeCutter::cutArguments(Block &from, Block &to) {
  for (BlockArgument argument : from.getArguments()) {
    unsigned index = argument.getArgNumber();
    std::optional<unsigned> dim = batch.dims[index];
    InTime time;
    if (dim)
      time = {InTime::Kind::Split, *dim, index, nullptr};
    Type type = dim ? getPartType(argument.getType(), *dim) : argument.getType();
    locals.map(argument, to.addArgument(type, argument.getLoc()));
    times[argument] = time;
    auto wish = func.getArgAttrOfType<spmd::WishAttr>(index, spmd::SpmdDialect::kWishAttr);
    if (failed(checkWish(wish, spmd::getArgumentName(func, index), type, time)))
      return failure();
  }
  return success();
}

static std::string describe(const InTime &time) {
  if (time.isSplit())
    return llvm::formatv("split along dim {0}", time.dim);
  return time.kind == InTime::Kind::Whole ? "whole" : "accumulated";
}

/// A state is cut like its argument, each microbatch has its own part of it; or no microbatch changes it.
LogicalResult TimeCutter::checkStates(Operation *terminator) {
  FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
  if (failed(states))
    return failure();
  for (const spmd::StatePlace &state : *states) {
    InTime before = times.lookup(func.getArgument(state.argument));
    InTime after = times.lookup(terminator->getOperand(state.result));
    bool isKept = before.kind == after.kind && after.kind != InTime::Kind::Accumulated;
    if (isKept && (!before.isSplit() || (before.dim == after.dim && state.dim != before.dim)))
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

LogicalResult TimeCutter::checkResults(Operation *before, Operation *after) {
  for (auto [index, value] : llvm::enumerate(before->getOperands())) {
    auto wish = func.getResultAttrOfType<spmd::WishAttr>(index, spmd::SpmdDialect::kWishAttr);
    if (failed(
            checkWish(wish, spmd::getResultName(func, index), after->getOperand(index).getType(), times.lookup(value))))
      return failure();
  }
  return success();
}

LogicalResult TimeCutter::run() {
  Block &oldBody = func.getBody().front();
  Block *body = new Block();
  func.getBody().push_back(body);
  builder.setInsertionPointToEnd(body);
  auto cutAll = [&]() -> LogicalResult {
    if (failed(cutArguments(oldBody, *body)))
      return failure();
    for (Operation &op : oldBody)
      if (failed(cut(&op)))
        return failure();
    return success(succeeded(checkStates(oldBody.getTerminator())) &&
                   succeeded(checkResults(oldBody.getTerminator(), body->getTerminator())));
  };
  if (failed(cutAll())) {
    body->erase();
    return failure();
  }
  for (auto [index, dim] : llvm::enumerate(batch.dims))
    if (dim)
      func.setArgAttr(index, PipeDialect::kSplitAttr, builder.getI64IntegerAttr(*dim));
  for (auto [index, value] : llvm::enumerate(oldBody.getTerminator()->getOperands()))
    if (InTime time = times.lookup(value); time.isSplit())
      func.setResultAttr(index, PipeDialect::kSplitAttr, builder.getI64IntegerAttr(time.dim));
  oldBody.erase();
  if (samples)
    func->setAttr(PipeDialect::kSamplesAttr, builder.getI64IntegerAttr(samples));
  func.setFunctionType(
      FunctionType::get(func.getContext(), body->getArgumentTypes(), body->getTerminator()->getOperandTypes()));
  mergeEqual(func);
  return success();
}

LogicalResult cleave::pipe::cutInTime(func::FuncOp func, const Batch &batch) { return TimeCutter(func, batch).run(); }
