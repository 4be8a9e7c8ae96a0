//===- AttentionParts.cpp - attention as simple ops -----------------------===//
//
// Gradients are found from the weights p: their product with `dp - sum(dp p)` is what the gradient of a softmax looks like
// (lib/Dialect/Nn/Gradients/Reduction.cpp), and from there one goes back to dp, whose operands tell dy and v, and on to dq and dk.
// Letters of einsums say which dim is which, as in the forward. Values that are made again are those that they were.
//
//===----------------------------------------------------------------------===//
#include "AttentionParts.h"
#include "Movement.h"

#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Splat.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

std::optional<MatmulDims> cleave::exec::getMatrixDims(nn::EinsumOp einsum, unsigned first) {
  if (einsum.getInputs().size() != 2)
    return std::nullopt;
  std::optional<MatmulDims> dims = MatmulDims::get(einsum.getEquation(), einsum.getInputs().getTypes());
  if (!dims || dims->batch.lhs.size() > 2 || dims->rows.lhs.size() != 1 || dims->columns.rhs.size() != 1 ||
      dims->depth.lhs.size() != 1)
    return std::nullopt;
  if (first == 0)
    return dims;
  for (MatmulDims::OperandDims *places : {&dims->batch, &dims->rows, &dims->columns, &dims->depth})
    std::swap(places->lhs, places->rhs);
  std::swap(dims->rows, dims->columns);
  return dims;
}

Dims cleave::exec::joinDims(ArrayRef<int64_t> batch, int64_t row, int64_t column) {
  Dims dims(batch);
  dims.append({row, column});
  return dims;
}

static bool isInOrder(ArrayRef<int64_t> dims) { return llvm::equal(dims, llvm::seq<int64_t>(0, dims.size())); }

bool cleave::exec::sortBatch(MatmulDims::OperandDims &batch, SmallVector<int64_t, 2> MatmulDims::OperandDims::*by) {
  if ((batch.*by).size() == 2 && (batch.*by)[0] > (batch.*by)[1])
    for (auto *places : {&batch.lhs, &batch.rhs, &batch.result})
      std::swap((*places)[0], (*places)[1]);
  return isInOrder(batch.*by);
}

Dims cleave::exec::invert(ArrayRef<int64_t> order) {
  Dims places(order.size());
  for (auto [place, dim] : llvm::enumerate(order))
    places[dim] = place;
  return places;
}

//===----------------------------------------------------------------------===//
// Readers of weights
//===----------------------------------------------------------------------===//

Value cleave::exec::skipAgain(Value value) {
  while (auto again = value.getDefiningOp<AgainOp>())
    value = again.getInput();
  return value;
}

static Value skipCasts(Value value) {
  while (isFloatCast(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// True if `select` gives 0 where `weights` are NaN.
static bool isGuard(nn::SelectOp select, Value weights) {
  auto test = select.getCondition().getDefiningOp<nn::IsNanOp>();
  return test && test->getOperand(0) == weights && nn::getSplatNumber(select.getLhs()) == 0.0;
}

Value cleave::exec::skipGuard(Value weights, const SmallPtrSetImpl<Operation *> &others) {
  nn::SelectOp guard;
  for (Operation *user : weights.getUsers()) {
    auto select = dyn_cast<nn::SelectOp>(user);
    if (select && !others.contains(select) && isGuard(select, weights) && select.getRhs() == weights &&
        select.getType() == weights.getType())
      guard = select;
  }
  if (!guard)
    return {};
  Operation *test = guard.getCondition().getDefiningOp();
  auto isTaken = [&](Operation *user) { return user == guard || others.contains(user); };
  // A value that something else reads as it is would be NaN there.
  bool isAlone = llvm::all_of(test->getUsers(), isTaken) &&
                 llvm::all_of(weights.getUsers(), [&](Operation *user) { return user == test || isTaken(user); });
  return isAlone ? guard.getResult() : Value();
}

//===----------------------------------------------------------------------===//
// Rows that are padding
//===----------------------------------------------------------------------===//

static std::optional<int64_t> getSplatPlace(Value value) {
  auto constant = skipAgain(value).getDefiningOp<nn::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!elements || !elements.isSplat() || !elements.getElementType().isInteger(64))
    return std::nullopt;
  return elements.getSplatValue<APInt>().getSExtValue();
}

/// What `condition` says of dim `dim` of a tensor of `rank` dims, as partitioning writes it: sums over a dim whose last shards are filled up
/// have zeros there in both operands (`maskPadding`), each with a condition of its own. Nothing where it is another condition.
static std::optional<RowsBelow> readRows(Value condition, int64_t rank, int64_t dim) {
  auto less = skipAgain(condition).getDefiningOp<nn::LtOp>();
  std::optional<int64_t> limit = less ? getSplatPlace(less->getOperand(1)) : std::nullopt;
  if (!limit)
    return std::nullopt;
  auto add = skipAgain(less->getOperand(0)).getDefiningOp<nn::AddOp>();
  auto iota = add ? skipAgain(add.getLhs()).getDefiningOp<nn::IotaOp>() : nn::IotaOp();
  auto first = add ? skipAgain(add.getRhs()).getDefiningOp<nn::MulOp>() : nn::MulOp();
  auto index = first ? skipAgain(first.getLhs()).getDefiningOp<spmd::AxisIndexOp>() : spmd::AxisIndexOp();
  std::optional<int64_t> step = index ? getSplatPlace(first.getRhs()) : std::nullopt;
  if (!iota || iota.getStart() != 0 || iota.getStep() != 1 || !step)
    return std::nullopt;
  RankedTensorType type = getTensorType(iota);
  if (int64_t(iota.getDim()) + rank - type.getRank() != dim || type.getNumElements() != type.getDimSize(iota.getDim()))
    return std::nullopt;
  return RowsBelow{index.getAxes(), *step, *limit};
}

/// The rows that a select leaves of `value`, zeros in the others; nothing if `op` is something else.
static std::optional<RowsBelow> getKeptRows(Operation *op, Value value, int64_t dim) {
  auto select = dyn_cast_if_present<nn::SelectOp>(op);
  if (!select || (value && select.getLhs() != value) || nn::getSplatNumber(select.getRhs()) != 0.0 ||
      select.getType() != select.getLhs().getType())
    return std::nullopt;
  return readRows(select.getCondition(), getTensorType(select).getRank(), dim);
}

/// Of scores.
static std::optional<RowsBelow> getKeptRows(Operation *op, Value scores) {
  return getKeptRows(op, scores, getTensorType(scores).getRank() - 2);
}

/// The other operand of a product that sums over rows, without zeros in those that do not count. Null where these are others than `rows`.
static Value skipKeptRows(Value value, int64_t dim, const std::optional<RowsBelow> &rows) {
  if (!rows)
    return value;
  Operation *op = skipAgain(value).getDefiningOp();
  return getKeptRows(op, Value(), dim) == rows ? op->getOperand(1) : Value();
}

Value RowsBelow::test(OpBuilder &builder, Location loc, int64_t count, int64_t rank, int64_t dim) const {
  nn::Composer f(builder, loc);
  SmallVector<int64_t> shape(rank, 1);
  shape[dim] = count;
  Value index = spmd::AxisIndexOp::create(builder, loc, RankedTensorType::get({}, f.i64()), axes);
  Value places = f.add(f.iota(shape, dim, f.i64()), f.mul(index, f.scalar(f.i64(), double(step))));
  return f.lt(places, f.scalar(f.i64(), double(limit)));
}

Value cleave::exec::keepRows(OpBuilder &builder, Value value, const std::optional<RowsBelow> &rows) {
  int64_t rank = getTensorType(value).getRank();
  if (!rows || rank < 2 || getShape(value)[rank - 2] == 1 || getElementType(value).isInteger(1))
    return value;
  Value test = rows->test(builder, value.getLoc(), getShape(value)[rank - 2], rank, rank - 2);
  return nn::Composer(builder, value.getLoc()).select(test, value, 0);
}

//===----------------------------------------------------------------------===//
// Behind the softmax
//===----------------------------------------------------------------------===//

/// `sum(x weights)` along the last dim, kept; null if `value` is something else.
static Value findSummed(Value value, Value weights, SmallPtrSetImpl<Operation *> &readers) {
  if (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getInput();
  auto reduce = value.getDefiningOp<nn::ReduceOp>();
  auto product = reduce ? reduce.getInput().getDefiningOp<nn::MulOp>() : nn::MulOp();
  int64_t last = getTensorType(weights).getRank() - 1;
  if (!product || reduce.getKind() != nn::ReduceKind::Sum || reduce.getDims() != ArrayRef<int64_t>{last})
    return {};
  for (unsigned other : {0, 1})
    if (product->getOperand(1 - other) == weights) {
      readers.insert(product);
      return product->getOperand(other);
    }
  return {};
}

/// `weights (x - sum(x weights))`: what reads it are the gradients of scores, x those of the weights. Null if `mul` is something else.
static Value findOfWeights(nn::MulOp mul, Value weights, SmallPtrSetImpl<Operation *> &readers) {
  for (unsigned other : {0, 1}) {
    auto sub = mul->getOperand(other).getDefiningOp<nn::SubOp>();
    if (!sub || mul->getOperand(1 - other) != weights)
      continue;
    Value summed = findSummed(sub.getRhs(), weights, readers);
    if (summed && summed == sub.getLhs()) {
      readers.insert(mul);
      return summed;
    }
  }
  return {};
}

/// The product of the result's gradient and the values that makes `ofWeights`, behind casts and a guard.
static nn::EinsumOp findFirstProduct(Value ofWeights, Value weights, SmallPtrSetImpl<Operation *> &readers) {
  Value value = skipCasts(ofWeights);
  if (auto select = value.getDefiningOp<nn::SelectOp>(); select && isGuard(select, weights)) {
    readers.insert(select);
    value = skipCasts(select.getRhs());
  }
  return value.getDefiningOp<nn::EinsumOp>();
}

/// Which operand of `einsum` is the gradient follows from the order of dims: its rows are the scores'.
static bool readFirstProduct(nn::EinsumOp einsum, AttentionGradientParts &parts) {
  std::optional<MatmulDims> dims = getMatrixDims(einsum, 0);
  if (!dims)
    return false;
  unsigned first = dims->rows.result[0] > dims->columns.result[0];
  dims = getMatrixDims(einsum, first);
  int64_t rank = getTensorType(einsum).getRank();
  if (!sortBatch(dims->batch, &MatmulDims::OperandDims::result) || dims->rows.result[0] != rank - 2 ||
      dims->columns.result[0] != rank - 1)
    return false;
  // Attention wants rows in front of what is summed over.
  parts.gradient = einsum.getInputs()[first];
  parts.value = einsum.getInputs()[1 - first];
  parts.gradientOrder = joinDims(dims->batch.lhs, dims->rows.lhs[0], dims->depth.lhs[0]);
  parts.valueOrder = joinDims(dims->batch.rhs, dims->columns.rhs[0], dims->depth.rhs[0]);
  return true;
}

/// Of a product of scores (operand `first`), summed along its rows or columns, with a tensor whose dims are in `order`: how its result
/// lies. Nothing if it is another product.
static std::optional<Dims> readProduct(nn::EinsumOp einsum, unsigned first, bool sumsRows, ArrayRef<int64_t> order) {
  std::optional<MatmulDims> dims = getMatrixDims(einsum, first);
  if (!dims || !sortBatch(dims->batch, &MatmulDims::OperandDims::lhs))
    return std::nullopt;
  int64_t last = getTensorType(einsum.getInputs()[first]).getRank() - 1, summed = dims->depth.lhs[0];
  if (summed != (sumsRows ? last - 1 : last) || dims->rows.lhs[0] != (sumsRows ? last : last - 1) ||
      ArrayRef<int64_t>(joinDims(dims->batch.rhs, dims->depth.rhs[0], dims->columns.rhs[0])) != order)
    return std::nullopt;
  return invert(joinDims(dims->batch.result, dims->rows.result[0], dims->columns.result[0]));
}

static bool areSame(Value x, Value y) { return skipAgain(x) == skipAgain(y); }

/// dv, which reads the weights, perhaps cast and guarded, in all rows or those that count.
static void findOfValue(Value weights, const std::optional<RowsBelow> &rows, AttentionGradientParts &parts) {
  for (Operation *user : weights.getUsers()) {
    auto select = dyn_cast<nn::SelectOp>(user);
    if (isFloatCast(user) || (select && isGuard(select, weights) && select.getRhs() == weights))
      findOfValue(user->getResult(0), rows, parts);
    if (std::optional<RowsBelow> kept = rows ? std::nullopt : getKeptRows(user, weights)) {
      findOfValue(user->getResult(0), kept, parts);
      if (parts.rows == kept)
        parts.readers.insert(user);
    }
    auto einsum = dyn_cast<nn::EinsumOp>(user);
    if (!einsum || einsum.getInputs().size() != 2)
      continue;
    unsigned first = einsum.getInputs()[0] == weights ? 0 : 1;
    // The forward's product reads the weights, too, with the values.
    Value other = skipKeptRows(einsum.getInputs()[1 - first], parts.getRowOfGradient(), rows);
    if (!other || !areSame(other, parts.gradient))
      continue;
    if (std::optional<Dims> order = readProduct(einsum, first, /*sumsRows=*/true, parts.gradientOrder)) {
      parts.ofValue = {einsum, *order};
      parts.rows = rows;
      parts.readers.insert(einsum);
    }
  }
}

std::optional<AttentionGradientParts> cleave::exec::findGradientsBehind(nn::SoftmaxOp softmax) {
  if (int64_t(softmax.getDim()) != getTensorType(softmax).getRank() - 1)
    return std::nullopt;
  // Gradients are those of the softmax, whose result is guarded behind it, or of an attention, which is guarded itself.
  SmallVector<Value> candidates = {softmax.getResult()};
  if (Value guarded = skipGuard(softmax.getResult(), llvm::SmallPtrSet<Operation *, 1>()))
    candidates.push_back(guarded);
  for (Value weights : candidates) {
    AttentionGradientParts parts;
    Value ofWeights;
    for (Operation *user : weights.getUsers())
      if (auto mul = dyn_cast<nn::MulOp>(user); mul && !ofWeights)
        ofWeights = findOfWeights(mul, weights, parts.readers);
    nn::EinsumOp first = ofWeights ? findFirstProduct(ofWeights, weights, parts.readers) : nn::EinsumOp();
    if (!first || !readFirstProduct(first, parts))
      continue;
    findOfValue(weights, std::nullopt, parts);
    return parts;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// In front of it
//===----------------------------------------------------------------------===//

namespace {
/// What is done with the gradients of scores.
struct Chain {
  Value end;
  double scale = 1;
  unsigned slopes = 0;
  SmallVector<Value> conditions;
};
} // namespace

/// True for `1 - capped^2`, the slope of a tanh.
static bool isSlope(Value value, Value capped) {
  auto sub = value.getDefiningOp<nn::SubOp>();
  auto square = sub ? sub.getRhs().getDefiningOp<nn::MulOp>() : nn::MulOp();
  return square && nn::getSplatNumber(sub.getLhs()) == 1.0 && square.getLhs() == square.getRhs() &&
         skipAgain(square.getLhs()) == capped;
}

/// One step on from `chain.end`, if one reader takes it.
static bool follow(Chain &chain, Value capped) {
  Operation *user = *chain.end.user_begin();
  if (!chain.end.hasOneUse() || isa<nn::EinsumOp>(user) || getKeptRows(user, chain.end))
    return false;
  if (auto select = dyn_cast<nn::SelectOp>(user)) {
    if (select.getLhs() != chain.end || nn::getSplatNumber(select.getRhs()) != 0.0)
      return false;
    chain.conditions.push_back(skipAgain(select.getCondition()));
  } else if (isa<nn::MulOp, nn::DivOp>(user)) {
    unsigned other = user->getOperand(0) == chain.end ? 1 : 0;
    std::optional<double> number = nn::getSplatNumber(user->getOperand(other));
    bool divides = isa<nn::DivOp>(user), isOfCap = !divides && capped && isSlope(user->getOperand(other), capped);
    if (!isOfCap && (!number || (divides && (other == 0 || *number == 0))))
      return false;
    chain.slopes += isOfCap;
    if (!isOfCap)
      chain.scale = divides ? chain.scale / *number : chain.scale * *number;
  } else if (!isFloatCast(user)) {
    return false;
  }
  chain.end = user->getResult(0);
  return true;
}

/// A select between scores and a number passes gradients on where the scores stay. Where the number is infinite there are none elsewhere,
/// whether they pass or not.
static bool haveSameConditions(const AttentionParts &parts, const Chain &chain) {
  llvm::SmallDenseSet<Value, 4> wanted, allowed, there(chain.conditions.begin(), chain.conditions.end());
  for (const AttentionMask &mask : parts.masks)
    if (mask.condition) {
      allowed.insert(skipAgain(mask.condition));
      if (std::isfinite(*nn::getSplatNumber(mask.otherwise)))
        wanted.insert(skipAgain(mask.condition));
    }
  return llvm::all_of(wanted, [&](Value condition) { return there.contains(condition); }) &&
         llvm::all_of(there, [&](Value condition) { return allowed.contains(condition); });
}

bool cleave::exec::findGradientsOfScores(AttentionParts &parts, AttentionGradientParts &gradients, StringRef &reason) {
  auto fail = [&](StringRef why) {
    reason = why;
    return false;
  };
  auto ofScores = llvm::find_if(gradients.readers, [&](Operation *reader) {
    auto mul = dyn_cast<nn::MulOp>(reader);
    return mul && llvm::any_of(mul->getOperands(), [](Value value) { return value.getDefiningOp<nn::SubOp>(); });
  });
  // From the gradients behind the softmax to those of the products, one reader at a time: factors, choices and casts commute, so that their
  // order need not be the forward's.
  Chain chain;
  chain.end = (*ofScores)->getResult(0);
  while (!chain.end.use_empty() && follow(chain, parts.capped))
    ;
  SmallVector<std::pair<OpOperand *, std::optional<RowsBelow>>> uses;
  for (OpOperand &use : chain.end.getUses()) {
    std::optional<RowsBelow> kept = getKeptRows(use.getOwner(), chain.end);
    for (OpOperand &behind : kept ? use.getOwner()->getResult(0).getUses() : chain.end.getUses())
      if (kept || &behind == &use)
        uses.push_back({&behind, kept});
  }
  int64_t rowOfQuery = parts.query[parts.query.size() - 2];
  for (auto [use, rows] : uses) {
    auto einsum = dyn_cast<nn::EinsumOp>(use->getOwner());
    if (!einsum || einsum.getInputs().size() != 2)
      return fail("something else is done to the gradients of scores");
    // One sums over keys, the other over queries; of values that are both, dims tell which is which.
    unsigned first = use->getOperandNumber();
    Value other = einsum.getInputs()[1 - first], row = skipKeptRows(other, rowOfQuery, rows);
    std::optional<Dims> ofQuery = readProduct(einsum, first, /*sumsRows=*/false, parts.key),
                        ofKey = readProduct(einsum, first, /*sumsRows=*/true, parts.query);
    if (ofQuery && !rows && areSame(other, parts.getKey()) && !gradients.ofQuery.einsum)
      gradients.ofQuery = {einsum, *ofQuery};
    else if (ofKey && row && areSame(row, parts.getQuery()) && !gradients.ofKey.einsum &&
             (!gradients.ofValue.einsum || gradients.rows == rows))
      std::tie(gradients.ofKey, gradients.rows) = std::pair(AttentionGradientParts::Result{einsum, *ofKey}, rows);
    else
      return fail("gradients of scores are multiplied with something else than queries and keys");
  }
  if (chain.slopes != (parts.cap > 0) || std::abs(chain.scale - parts.getScale()) > 1e-6 * std::abs(parts.getScale()))
    return fail("gradients of scores are scaled by something else than scores");
  if (!haveSameConditions(parts, chain))
    return fail("gradients of scores are chosen by something else than scores");
  return true;
}
