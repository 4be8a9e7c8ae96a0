//===- AttentionRecognizer.cpp - attention from its parts -----------------===//
//
// From the softmax on, up to the product that makes the scores and down to the one with the values, each op is one that attention has, or
// there is none. What is found is put in order only when the op is made.
//
//===----------------------------------------------------------------------===//
#include "AttentionRecognizer.h"

#include "Movement.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/NnOps.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Splat.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// Added to a score, it leaves nothing of it: as good as -inf, to the last bit.
static constexpr double kExcluded = -1e30;
/// Elementwise ops between contraction and softmax.
static constexpr unsigned kMostSteps = 8;

bool AttentionRecognizer::fits() {
  return walkBack(match.softmax.getInput(), kMostSteps) && (match.mixed ? fitsBehind() : fitsWithout()) &&
         fitsInFront() && (!gradients || findGradientsOfScores(match, *gradients, reason)) &&
         (!gradients || findPlace());
}

//===----------------------------------------------------------------------===//
// What stands around a softmax
//===----------------------------------------------------------------------===//

/// True if a contraction made `value`, and elementwise ops in its space.
static bool comesFromEinsum(Value value, ArrayRef<int64_t> shape, unsigned steps) {
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0 || getTensorType(value).getShape() != shape)
    return false;
  auto formed = dyn_cast<nn::FormOpInterface>(op);
  return isa<nn::EinsumOp>(op) ||
         (formed && formed.getForm() == nn::Form::Map &&
          llvm::any_of(op->getOperands(), [&](Value operand) { return comesFromEinsum(operand, shape, steps - 1); }));
}

/// What reads the weights beside the gradients: nothing, or the contraction with values, behind casts and a guard.
bool AttentionRecognizer::isBetweenEinsums() {
  llvm::SmallPtrSet<Operation *, 8> none;
  const auto &others = gradients ? gradients->readers : none;
  Value value = match.softmax, scores = match.softmax.getInput();
  while (true) {
    if (Value guarded = skipGuard(value, others)) {
      value = guarded;
      continue;
    }
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : value.getUses())
      if (!others.contains(use.getOwner()))
        uses.push_back(&use);
    if (uses.size() > 1 || (uses.empty() && !gradients))
      return false;
    if (!uses.empty() && isFloatCast(uses.front()->getOwner())) {
      value = uses.front()->getOwner()->getResult(0);
      continue;
    }
    if (!uses.empty()) {
      match.mixed = dyn_cast<nn::EinsumOp>(uses.front()->getOwner());
      match.probabilities = uses.front()->getOperandNumber();
    }
    return (uses.empty() || match.mixed) && comesFromEinsum(scores, getTensorType(scores).getShape(), kMostSteps);
  }
}

/// True if nobody reads `value` but one op, and what slopes of a cap are made of: its square.
static bool hasOneReader(Value value) {
  auto isSquare = [&](Operation *user) {
    return isa<nn::MulOp>(user) && user->getOperand(0) == value && user->getOperand(1) == value;
  };
  return llvm::count_if(value.getUses(), [&](OpOperand &use) {
           return !isa_and_present<nn::TanhOp>(value.getDefiningOp()) || !isSquare(use.getOwner());
         }) == 1;
}

/// From the softmax to the contraction; a value that has other readers is stored anyway.
bool AttentionRecognizer::walkBack(Value value, unsigned steps) {
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0 || getTensorType(value).getShape() != getTensorType(match.softmax.getInput()).getShape())
    return false;
  if (!hasOneReader(value))
    return fail("scores have other readers");
  if (auto einsum = dyn_cast<nn::EinsumOp>(op)) {
    match.scores = einsum;
    return true;
  }
  if (isFloatCast(op))
    return walkBack(op->getOperand(0), steps - 1);
  if (auto add = dyn_cast<nn::AddOp>(op))
    return walkAdd(add, steps - 1);
  if (auto select = dyn_cast<nn::SelectOp>(op))
    return walkSelect(select, steps - 1);
  if (auto tanh = dyn_cast<nn::TanhOp>(op))
    return walkCap(tanh, steps - 1);
  if (!isa<nn::MulOp, nn::DivOp>(op))
    return false;
  unsigned other = nn::getSplatNumber(op->getOperand(1)) || isa<nn::DivOp>(op) ? 1 : 0;
  std::optional<double> number = nn::getSplatNumber(op->getOperand(other));
  if (!number || (isa<nn::DivOp>(op) && *number == 0))
    return fail("scores are scaled by more than a number");
  match.scale = isa<nn::DivOp>(op) ? match.scale / *number : match.scale * *number;
  return walkBack(op->getOperand(1 - other), steps - 1);
}

/// What multiplies the tanh is the cap.
bool AttentionRecognizer::walkCap(nn::TanhOp tanh, unsigned steps) {
  if (match.cap > 0 || match.scale <= 0)
    return false;
  match.cap = std::exchange(match.scale, 1);
  match.capped = tanh.getResult();
  return walkBack(tanh->getOperand(0), steps);
}

bool AttentionRecognizer::walkAdd(nn::AddOp add, unsigned steps) {
  if (match.scale != 1 || match.cap > 0)
    return fail("a mask is scaled together with the scores");
  for (unsigned other : {1, 0}) {
    AttentionParts before = match;
    match.masks.push_back({add->getOperand(other), {}, {}});
    if (walkBack(add->getOperand(1 - other), steps))
      return true;
    match = before;
  }
  return false;
}

/// What is excluded must get a number that no score can raise.
bool AttentionRecognizer::walkSelect(nn::SelectOp select, unsigned steps) {
  std::optional<double> number = nn::getSplatNumber(select.getRhs());
  if (match.scale != 1 || match.cap > 0 || !number || *number > kExcluded)
    return fail("excluded scores get a number that does not exclude them");
  match.masks.push_back({{}, select.getCondition(), select.getRhs()});
  return walkBack(select.getLhs(), steps);
}

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

bool AttentionRecognizer::fitsBehind() {
  std::optional<MatmulDims> dims = getMatrixDims(match.mixed, match.probabilities);
  if (!dims || !sortBatch(dims->batch, &MatmulDims::OperandDims::lhs))
    return fail("probabilities are not multiplied with values head by head");
  int64_t rank = getTensorType(match.softmax).getRank(), last = rank - 1;
  if (dims->rows.lhs[0] != last - 1 || dims->depth.lhs[0] != last || int64_t(match.softmax.getDim()) != last)
    return fail("the softmax is not along the keys");
  match.batch = dims->batch.lhs.size();
  match.value = joinDims(dims->batch.rhs, dims->depth.rhs[0], dims->columns.rhs[0]);
  match.result = invert(joinDims(dims->batch.result, dims->rows.result[0], dims->columns.result[0]));
  return true;
}

/// Where weights are made again, or attention was one op from the beginning, gradients alone read them.
bool AttentionRecognizer::fitsWithout() {
  match.batch = getTensorType(match.softmax).getRank() - 2;
  return match.batch <= 2 || fail("there are more dims than batch and heads");
}

bool AttentionRecognizer::fitsInFront() {
  std::optional<MatmulDims> dims = getMatrixDims(match.scores, 0);
  if (!dims)
    return fail("scores are not products of queries and keys head by head");
  match.isSwapped = dims->rows.result[0] > dims->columns.result[0];
  dims = getMatrixDims(match.scores, match.isSwapped);
  if (!sortBatch(dims->batch, &MatmulDims::OperandDims::result) ||
      static_cast<int64_t>(dims->batch.lhs.size()) != match.batch)
    return fail("scores and probabilities have other heads");
  match.query = joinDims(dims->batch.lhs, dims->rows.lhs[0], dims->depth.lhs[0]);
  match.key = joinDims(dims->batch.rhs, dims->columns.rhs[0], dims->depth.rhs[0]);
  // The op has one type for all; where it is cast behind the scores alone, they were computed wider than attention would.
  Value result = match.mixed ? match.mixed.getResult() : gradients->gradient;
  if (getElementType(match.getQuery()) != getElementType(result))
    return fail("queries and values have different element types");
  return true;
}

/// Behind all that gradients are made of, and before all that reads them.
bool AttentionRecognizer::findPlace() {
  SmallVector<Value> read = {match.getQuery(), match.getKey(), gradients->value, gradients->gradient};
  for (const AttentionMask &mask : match.masks)
    llvm::append_range(read, ArrayRef<Value>{mask.added, mask.condition, mask.otherwise});
  // Values from outside of the block are there all along.
  Block *block = match.softmax->getBlock();
  for (Value value : read)
    if (Operation *maker = value ? skipAgain(value).getDefiningOp() : nullptr; maker && maker->getBlock() == block)
      place = !place || place->isBeforeInBlock(maker) ? maker : place;
  for (const auto &result : {gradients->ofQuery, gradients->ofKey, gradients->ofValue})
    if (result.einsum && place)
      for (Operation *user : result.einsum->getUsers())
        if (user->getBlock() == block && !place->isBeforeInBlock(user))
          return fail("a gradient is read before all that it is made of is there");
  return true;
}

//===----------------------------------------------------------------------===//
// In its place
//===----------------------------------------------------------------------===//

/// In the order of dims, behind as many dims of size 1 as a batch of two dims lacks.
Value AttentionRecognizer::addBatch(OpBuilder &builder, Value value, ArrayRef<int64_t> order) {
  Value ordered = permute(builder, value, order);
  Dims shape(2 - match.batch, 1);
  llvm::append_range(shape, getTensorType(ordered).getShape());
  return match.batch == 2 ? ordered : reshapeTo(builder, ordered, shape);
}

bool AttentionRecognizer::isWorth(int64_t few, nn::DenseOf getDense) {
  RankedTensorType scores = getTensorType(match.softmax);
  if (!gradients || !match.mixed || spmd::getBytes(scores) >= few)
    return true;
  OpBuilder builder(match.mixed);
  Value mask = getMask(builder);
  int64_t rank = scores.getRank();
  if (!mask)
    return false;
  nn::MaskParts parts =
      nn::splitMask(builder, mask, scores.getDimSize(rank - 2), scores.getDimSize(rank - 1), getDense);
  return parts.band.low || (parts.band.high && !parts.rest); // as `useBand` takes it
}

/// The other way.
Value AttentionRecognizer::dropBatch(OpBuilder &builder, Value value, ArrayRef<int64_t> order) {
  ArrayRef<int64_t> shape = getTensorType(value).getShape();
  return permute(builder, match.batch == 2 ? value : reshapeTo(builder, value, shape.drop_front(2 - match.batch)),
                 order);
}

/// What is added to a score, the select between a number and nothing as well.
static Value getAdded(OpBuilder &builder, const AttentionMask &mask) {
  if (!mask.condition)
    return mask.added;
  nn::Composer f(builder, mask.condition.getLoc());
  return f.select(mask.condition, f.scalarLike(mask.otherwise, 0), mask.otherwise);
}

static Value getSum(OpBuilder &builder, Value all, Value added) {
  nn::Composer f(builder, added.getLoc());
  return f.add(all, f.cast(added, getElementType(all)));
}

/// All masks as one that is added, in the order in which they were. Null if there is none.
Value AttentionRecognizer::getMask(OpBuilder &builder) {
  Value all;
  for (const AttentionMask &mask : llvm::reverse(match.masks)) {
    Value added = mask.added;
    if (mask.condition) {
      Value &made = known[{mask.condition, mask.otherwise}];
      added = made = made ? made : getAdded(builder, mask);
    }
    if (nn::getSplatNumber(added) == 0.0)
      continue;
    if (all) {
      Value &sum = known[{all, added}];
      added = sum = sum ? sum : getSum(builder, all, added);
    }
    all = added;
  }
  return all;
}

/// Which scores were not given a number, of those that a number was given: null if all were. Of infinite ones the weights are 0.
Value AttentionRecognizer::getShown(OpBuilder &builder) {
  Value all;
  for (const AttentionMask &mask : match.masks)
    if (mask.condition && std::isfinite(*nn::getSplatNumber(mask.otherwise))) {
      nn::Composer f(builder, mask.condition.getLoc());
      Value condition = skipAgain(mask.condition);
      all = all ? f.both(all, condition) : condition;
    }
  return all;
}

nn::AttentionOp AttentionRecognizer::replace() {
  if (!match.mixed)
    return {};
  OpBuilder builder(match.mixed);
  Value query = addBatch(builder, match.getQuery(), match.query);
  Value key = addBatch(builder, match.getKey(), match.key);
  Value value = addBatch(builder, match.mixed.getInputs()[1 - match.probabilities], match.value);
  SmallVector<Location> locations{match.mixed.getLoc(), nn::getInnerLoc(match.softmax.getLoc()),
                                  nn::getInnerLoc(match.scores.getLoc())};
  auto attention =
      nn::AttentionOp::create(builder, builder.getFusedLoc(locations), query, key, value, getMask(builder),
                              APFloat(match.getScale()), /*causal=*/false, /*causalOffset=*/0, APFloat(match.cap),
                              /*left=*/IntegerAttr(), /*right=*/IntegerAttr());
  match.mixed.replaceAllUsesWith(dropBatch(builder, attention, match.result));
  return attention;
}

AttentionGradOp AttentionRecognizer::replaceGradients() {
  OpBuilder builder(match.softmax->getContext());
  if (place)
    builder.setInsertionPointAfter(place);
  else
    builder.setInsertionPointToStart(match.softmax->getBlock());
  // What is made again is what it was: read so, it need not be made. And masks of the forward are found in `known`.
  for (AttentionMask &mask : match.masks)
    for (Value *value : {&mask.added, &mask.condition, &mask.otherwise})
      *value = *value ? skipAgain(*value) : Value();
  // Whatever is in rows that do not count: a weight of 0 times NaN is NaN.
  auto keep = [&](Value value) { return keepRows(builder, value, gradients->rows); };
  Value query = keep(addBatch(builder, skipAgain(match.getQuery()), match.query));
  Value key = addBatch(builder, skipAgain(match.getKey()), match.key);
  Value value = addBatch(builder, skipAgain(gradients->value), gradients->valueOrder);
  Value gradient = keep(addBatch(builder, skipAgain(gradients->gradient), gradients->gradientOrder));
  Value mask = getMask(builder);
  Location at = builder.getFusedLoc({nn::getInnerLoc(match.softmax.getLoc()), nn::getInnerLoc(match.scores.getLoc())});
  auto made = AttentionGradOp::create(
      builder, at, query.getType(), key.getType(), value.getType(), query, key, value, mask ? keep(mask) : mask,
      builder.getF64FloatAttr(match.getScale()), /*causal=*/UnitAttr(), builder.getI64IntegerAttr(0),
      builder.getF64FloatAttr(match.cap), /*left=*/IntegerAttr(), /*right=*/IntegerAttr(), gradient, getShown(builder),
      /*logs=*/Value(), /*means=*/Value(), /*seen=*/Value());
  std::pair<AttentionGradientParts::Result, Value> results[] = {{gradients->ofQuery, made.getDQuery()},
                                                                {gradients->ofKey, made.getDKey()},
                                                                {gradients->ofValue, made.getDValue()}};
  for (auto &[found, result] : results)
    if (found.einsum)
      found.einsum.replaceAllUsesWith(dropBatch(builder, result, found.order));
  return made;
}

std::optional<AttentionGradient> cleave::exec::recognizeGradient(nn::SoftmaxOp softmax, StringRef &reason) {
  JoinedMasks masks;
  AttentionRecognizer recognizer(softmax, masks);
  if (recognizer.hasGradients() && recognizer.isBetweenEinsums() && recognizer.fits())
    return AttentionGradient{recognizer.getForward(), recognizer.getGradients(), recognizer.getPlace()};
  reason = recognizer.getReason();
  return std::nullopt;
}
