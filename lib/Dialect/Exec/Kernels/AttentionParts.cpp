//===- AttentionParts.cpp - attention as simple ops -----------------------===//
//
// Gradients are found from the weights p: their product with `dp - sum(dp p)` is what the gradient of a softmax looks like
// (lib/Dialect/Nn/Gradients/Reduction.cpp), and from there one goes back to dp, whose operands tell dy and v, and on to dq and dk.
// Letters of einsums say which dim is which, as in the forward. Values that are made again are those that they were.
//
//===----------------------------------------------------------------------===//
#include "AttentionParts.h"
#include "Movement.h"

#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Splat.h"
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

/// dv, which reads the weights, perhaps cast and guarded.
static void findOfValue(Value weights, AttentionGradientParts &parts) {
  for (Operation *user : weights.getUsers()) {
    auto select = dyn_cast<nn::SelectOp>(user);
    if (isFloatCast(user) || (select && isGuard(select, weights) && select.getRhs() == weights))
      findOfValue(user->getResult(0), parts);
    auto einsum = dyn_cast<nn::EinsumOp>(user);
    if (!einsum || einsum.getInputs().size() != 2)
      continue;
    unsigned first = einsum.getInputs()[0] == weights ? 0 : 1;
    // The forward's product reads the weights, too, with the values.
    if (!areSame(einsum.getInputs()[1 - first], parts.gradient))
      continue;
    if (std::optional<Dims> order = readProduct(einsum, first, /*sumsRows=*/true, parts.gradientOrder)) {
      parts.ofValue = {einsum, *order};
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
    findOfValue(weights, parts);
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
  if (!chain.end.hasOneUse() || isa<nn::EinsumOp>(user))
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
  for (OpOperand &use : chain.end.getUses()) {
    auto einsum = dyn_cast<nn::EinsumOp>(use.getOwner());
    if (!einsum || einsum.getInputs().size() != 2)
      return fail("something else is done to the gradients of scores");
    // One sums over keys, the other over queries; of values that are both, dims tell which is which.
    unsigned first = use.getOperandNumber();
    Value other = einsum.getInputs()[1 - first];
    std::optional<Dims> ofQuery = readProduct(einsum, first, /*sumsRows=*/false, parts.key),
                        ofKey = readProduct(einsum, first, /*sumsRows=*/true, parts.query);
    if (ofQuery && areSame(other, parts.getKey()) && !gradients.ofQuery.einsum)
      gradients.ofQuery = {einsum, *ofQuery};
    else if (ofKey && areSame(other, parts.getQuery()) && !gradients.ofKey.einsum)
      gradients.ofKey = {einsum, *ofKey};
    else
      return fail("gradients of scores are multiplied with something else than queries and keys");
  }
  if (chain.slopes != (parts.cap > 0) || std::abs(chain.scale - parts.getScale()) > 1e-6 * std::abs(parts.getScale()))
    return fail("gradients of scores are scaled by something else than scores");
  if (!haveSameConditions(parts, chain))
    return fail("gradients of scores are chosen by something else than scores");
  return true;
}
