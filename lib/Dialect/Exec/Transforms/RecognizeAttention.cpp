//===- RecognizeAttention.cpp - attention from its parts ------------------===//
//
// Each softmax is asked what stands around it:
//
//   q ─ factor, movement ─┐
//   k ─ factor, movement ─┴▶ einsum ─▶ factor, masks, casts ─▶ softmax ─▶ NaN to 0, casts ─┐
//   v ─ movement ──────────────────────────────────────────────────────────────────────────┴▶ einsum ─▶
//
// and if that is attention, one op takes its place. Letters of the einsums say which dim is which, so operands may lie in
// any order; what brings them into that of nn.attention are transposes, which kernels read through. Then of every
// attention, whoever made it: factors of queries and keys become its scale, and repeated heads of keys and values go.
//
//===----------------------------------------------------------------------===//
#include "../Kernels/AttentionOperands.h"
#include "../Kernels/Movement.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Bands.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/NnOps.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Splat.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"
#include <cmath>

namespace cleave::exec {
#define GEN_PASS_DEF_RECOGNIZEATTENTION
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define DEBUG_TYPE "exec-recognize-attention"

ALWAYS_ENABLED_STATISTIC(numRecognized, "attentions recognized");
ALWAYS_ENABLED_STATISTIC(numInParts, "those that run in parts, their scores stored");

using Dims = SmallVector<int64_t>;

/// Added to a score, it leaves nothing of it: as good as -inf, to the last bit.
static constexpr double kExcluded = -1e30;
/// Elementwise ops between contraction and softmax.
static constexpr unsigned kMostSteps = 8;

namespace {

/// What is added to scores, or decides which count.
struct Mask {
  Value added;     ///< a number for each score
  Value condition; ///< or: which scores stay, the others become `otherwise`
  Value otherwise;
};

struct Match {
  nn::EinsumOp scores, mixed;
  nn::SoftmaxOp softmax;
  double scale = 1;
  SmallVector<Mask> masks;    ///< the last one first
  unsigned probabilities = 0; ///< which operand of `mixed` they are
  Dims query, key, value;     ///< the order of dims that attention wants
  Dims result;                ///< the order in which the result is wanted
  int64_t batch = 0;
};

/// Masks that were made of two values: layers share them.
using Masks = llvm::DenseMap<std::pair<Value, Value>, Value>;

class Recognizer {
public:
  Recognizer(nn::SoftmaxOp softmax, Masks &known) : known(known) { match.softmax = softmax; }

  bool isBetweenEinsums();
  /// True if all is as it is in attention; else `getReason` says what is not. Precondition: it is between einsums.
  bool fits() { return walkBack(match.softmax.getInput(), kMostSteps) && fitsBehind() && fitsInFront(); }
  StringRef getReason() const { return reason; }
  nn::AttentionOp replace();

private:
  bool fail(StringRef why) {
    reason = why;
    return false;
  }
  bool walkBack(Value value, unsigned steps);
  bool walkAdd(nn::AddOp add, unsigned steps);
  bool walkSelect(nn::SelectOp select, unsigned steps);
  bool fitsBehind();
  bool fitsInFront();
  Value getMask(OpBuilder &builder);
  Value addBatch(OpBuilder &builder, Value value, ArrayRef<int64_t> order);

  Match match;
  Masks &known;
  StringRef reason = "something else is done to scores";
};

} // namespace

//===----------------------------------------------------------------------===//
// What stands around a softmax
//===----------------------------------------------------------------------===//

/// `is_nan(p) ? 0 : p`, the only readers of p: a query that sees nothing gives zeros.
static Value skipGuard(Value probabilities) {
  for (Operation *user : probabilities.getUsers()) {
    auto select = dyn_cast<nn::SelectOp>(user);
    auto test = select ? select.getCondition().getDefiningOp<nn::IsNanOp>() : nn::IsNanOp();
    bool isGuard = test && test->getOperand(0) == probabilities && test->hasOneUse() &&
                   select.getRhs() == probabilities && nn::getSplatNumber(select.getLhs()) == 0.0 &&
                   select.getType() == probabilities.getType();
    if (isGuard && std::distance(probabilities.use_begin(), probabilities.use_end()) == 2)
      return select;
  }
  return {};
}

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

bool Recognizer::isBetweenEinsums() {
  Value value = match.softmax;
  while (true) {
    if (Value guarded = skipGuard(value)) {
      value = guarded;
      continue;
    }
    if (!value.hasOneUse())
      return false;
    OpOperand &use = *value.use_begin();
    if (isFloatCast(use.getOwner())) {
      value = use.getOwner()->getResult(0);
      continue;
    }
    match.mixed = dyn_cast<nn::EinsumOp>(use.getOwner());
    match.probabilities = use.getOperandNumber();
    Value scores = match.softmax.getInput();
    return match.mixed && comesFromEinsum(scores, getTensorType(scores).getShape(), kMostSteps);
  }
}

/// From the softmax to the contraction; a value that has other readers is stored anyway.
bool Recognizer::walkBack(Value value, unsigned steps) {
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0 || getTensorType(value).getShape() != getTensorType(match.softmax.getInput()).getShape())
    return false;
  if (!value.hasOneUse())
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
  if (!isa<nn::MulOp, nn::DivOp>(op))
    return false;
  unsigned other = nn::getSplatNumber(op->getOperand(1)) || isa<nn::DivOp>(op) ? 1 : 0;
  std::optional<double> number = nn::getSplatNumber(op->getOperand(other));
  if (!number || (isa<nn::DivOp>(op) && *number == 0))
    return fail("scores are scaled by more than a number");
  match.scale = isa<nn::DivOp>(op) ? match.scale / *number : match.scale * *number;
  return walkBack(op->getOperand(1 - other), steps - 1);
}

bool Recognizer::walkAdd(nn::AddOp add, unsigned steps) {
  if (match.scale != 1)
    return fail("a mask is scaled together with the scores");
  for (unsigned other : {1, 0}) {
    Match before = match;
    match.masks.push_back({add->getOperand(other), {}, {}});
    if (walkBack(add->getOperand(1 - other), steps))
      return true;
    match = before;
  }
  return false;
}

/// What is excluded must get a number that no score can raise.
bool Recognizer::walkSelect(nn::SelectOp select, unsigned steps) {
  std::optional<double> number = nn::getSplatNumber(select.getRhs());
  if (match.scale != 1 || !number || *number > kExcluded)
    return fail("excluded scores get a number that does not exclude them");
  match.masks.push_back({{}, select.getCondition(), select.getRhs()});
  return walkBack(select.getLhs(), steps);
}

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

/// The dims of `einsum` with operand `first` as the first one.
static std::optional<MatmulDims> getDims(nn::EinsumOp einsum, unsigned first) {
  if (einsum.getInputs().size() != 2)
    return std::nullopt;
  std::optional<MatmulDims> dims = MatmulDims::get(einsum.getEquation(), einsum.getInputs().getTypes());
  if (!dims || first == 0)
    return dims;
  for (MatmulDims::OperandDims *places : {&dims->batch, &dims->rows, &dims->columns, &dims->depth})
    std::swap(places->lhs, places->rhs);
  std::swap(dims->rows, dims->columns);
  return dims;
}

/// Up to two dims of a batch, one of each other kind.
static bool isMatrixProduct(const MatmulDims &dims) {
  return dims.batch.lhs.size() <= 2 && dims.rows.lhs.size() == 1 && dims.columns.rhs.size() == 1 &&
         dims.depth.lhs.size() == 1;
}

static Dims join(ArrayRef<int64_t> batch, int64_t row, int64_t column) {
  Dims dims(batch);
  dims.append({row, column});
  return dims;
}

static bool isInOrder(ArrayRef<int64_t> dims) { return llvm::equal(dims, llvm::seq<int64_t>(0, dims.size())); }

/// The batch's dims in the order in which scores have them: the first operand of the product is the scores' tensor.
static bool sortBatch(MatmulDims::OperandDims &batch) {
  if (batch.lhs.size() == 2 && batch.lhs[0] > batch.lhs[1])
    for (auto *places : {&batch.lhs, &batch.rhs, &batch.result})
      std::swap((*places)[0], (*places)[1]);
  return isInOrder(batch.lhs);
}

bool Recognizer::fitsBehind() {
  std::optional<MatmulDims> dims = getDims(match.mixed, match.probabilities);
  if (!dims || !isMatrixProduct(*dims) || !sortBatch(dims->batch))
    return fail("probabilities are not multiplied with values head by head");
  int64_t rank = getTensorType(match.softmax).getRank(), last = rank - 1;
  if (!isInOrder(join(dims->batch.lhs, dims->rows.lhs[0], dims->depth.lhs[0])) ||
      int64_t(match.softmax.getDim()) != last)
    return fail("the softmax is not along the keys");
  match.batch = dims->batch.lhs.size();
  match.value = join(dims->batch.rhs, dims->depth.rhs[0], dims->columns.rhs[0]);
  // Result dim i is this dim of attention's.
  match.result.resize(rank);
  for (auto [place, dim] : llvm::enumerate(join(dims->batch.result, dims->rows.result[0], dims->columns.result[0])))
    match.result[dim] = place;
  return true;
}

bool Recognizer::fitsInFront() {
  std::optional<MatmulDims> dims = getDims(match.scores, 0);
  if (!dims || !isMatrixProduct(*dims))
    return fail("scores are not products of queries and keys head by head");
  if (dims->rows.result[0] > dims->columns.result[0])
    dims = getDims(match.scores, 1);
  // Here the result is the scores' tensor.
  std::swap(dims->batch.lhs, dims->batch.result);
  bool isSorted = sortBatch(dims->batch);
  std::swap(dims->batch.lhs, dims->batch.result);
  if (!isSorted || static_cast<int64_t>(dims->batch.lhs.size()) != match.batch)
    return fail("scores and probabilities have other heads");
  match.query = join(dims->batch.lhs, dims->rows.lhs[0], dims->depth.lhs[0]);
  match.key = join(dims->batch.rhs, dims->columns.rhs[0], dims->depth.rhs[0]);
  if (getTensorType(match.scores.getInputs()[0]).getElementType() != getTensorType(match.mixed).getElementType())
    return fail("queries and values have different element types");
  return true;
}

//===----------------------------------------------------------------------===//
// In its place
//===----------------------------------------------------------------------===//

/// In the order of dims, behind as many dims of size 1 as a batch of two dims lacks.
Value Recognizer::addBatch(OpBuilder &builder, Value value, ArrayRef<int64_t> order) {
  Value ordered = permute(builder, value, order);
  Dims shape(2 - match.batch, 1);
  llvm::append_range(shape, getTensorType(ordered).getShape());
  return match.batch == 2 ? ordered : reshapeTo(builder, ordered, shape);
}

/// What is added to a score, the select between a number and nothing as well.
static Value getAdded(OpBuilder &builder, const Mask &mask) {
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
Value Recognizer::getMask(OpBuilder &builder) {
  Value all;
  for (const Mask &mask : llvm::reverse(match.masks)) {
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

nn::AttentionOp Recognizer::replace() {
  OpBuilder builder(match.mixed);
  bool isSwapped = false;
  if (std::optional<MatmulDims> dims = getDims(match.scores, 0))
    isSwapped = dims->rows.result[0] > dims->columns.result[0];
  Value query = addBatch(builder, match.scores.getInputs()[isSwapped], match.query);
  Value key = addBatch(builder, match.scores.getInputs()[!isSwapped], match.key);
  Value value = addBatch(builder, match.mixed.getInputs()[1 - match.probabilities], match.value);
  SmallVector<Location> locations{match.mixed.getLoc(), nn::getInnerLoc(match.softmax.getLoc()),
                                  nn::getInnerLoc(match.scores.getLoc())};
  auto attention = nn::AttentionOp::create(builder, builder.getFusedLoc(locations), query, key, value, getMask(builder),
                                           APFloat(match.scale), /*causal=*/false, /*causalOffset=*/0, APFloat(0.0),
                                           /*left=*/IntegerAttr(), /*right=*/IntegerAttr());
  Value result = attention;
  if (match.batch != 2)
    result = reshapeTo(builder, result, getTensorType(result).getShape().drop_front(2 - match.batch));
  match.mixed.replaceAllUsesWith(permute(builder, result, match.result));
  return attention;
}

//===----------------------------------------------------------------------===//
// Every attention
//===----------------------------------------------------------------------===//

/// Factors of queries and keys are part of the scale, and heads that are repeated are there once.
static void simplify(nn::AttentionOp attention) {
  OpBuilder builder(attention);
  double scale = attention.getScale().convertToDouble();
  attention.getQueryMutable().assign(dropFactor(builder, attention.getQuery(), scale));
  attention.getKeyMutable().assign(dropFactor(builder, attention.getKey(), scale));
  attention.setScale(APFloat(scale));
  Value key = dropRepeats(builder, attention.getKey()), value = dropRepeats(builder, attention.getValue());
  if (!key || !value || getTensorType(key).getDimSize(1) != getTensorType(value).getDimSize(1))
    return;
  attention.getKeyMutable().assign(key);
  attention.getValueMutable().assign(value);
}

namespace {
struct RecognizeAttention : cleave::exec::impl::RecognizeAttentionBase<RecognizeAttention> {
  using Base::Base;

  void runOnOperation() override {
    OwnFaults faults(&getContext());
    for (auto param : getOperation().getOps<nn::ParamOp>())
      params[param.getSymNameAttr()] = param;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      spmd::restoreNodes(func);
      SmallVector<nn::SoftmaxOp> softmaxes;
      func.walk([&](nn::SoftmaxOp softmax) { softmaxes.push_back(softmax); });
      for (nn::SoftmaxOp softmax : softmaxes)
        recognize(softmax);
      nn::KnownMasks parts;
      func.walk([&](nn::AttentionOp attention) {
        simplify(attention);
        // What places alone hide, ahead of a query or far from it, need not be read.
        nn::useBand(attention, [&](Value value) { return getDense(value); }, /*windowsOnly=*/false, parts);
      });
      for (Block &block : func.getBody())
        for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
          if (isOpTriviallyDead(&op))
            op.erase();
    }
  }

private:
  void recognize(nn::SoftmaxOp softmax) {
    Recognizer recognizer(softmax, masks);
    if (!recognizer.isBetweenEinsums())
      return;
    if (recognizer.fits()) {
      ++numRecognized;
      recognizer.replace();
      return;
    }
    ++numInParts;
    LDBG() << recognizer.getReason() << ": " << softmax;
    if (told.insert(recognizer.getReason()).second)
      softmax.emitRemark() << "this attention runs in parts, its scores stored: " << recognizer.getReason();
  }

  /// The elements of a constant, or of a whole parameter whose elements are at hand.
  DenseElementsAttr getDense(Value value) {
    if (auto constant = value.getDefiningOp<nn::ConstantOp>())
      return dyn_cast<DenseElementsAttr>(constant.getValue());
    auto load = value.getDefiningOp<nn::LoadOp>();
    if (!load || load.isPart() || load.getSharding())
      return {};
    nn::ParamOp param = params.lookup(load.getParamAttr().getAttr());
    return param ? dyn_cast<DenseElementsAttr>(param.getValue()) : DenseElementsAttr();
  }

  llvm::DenseSet<StringRef> told;
  Masks masks;
  /// By name.
  llvm::DenseMap<StringAttr, nn::ParamOp> params;
};
} // namespace
