//===- Gradients.cpp - gradients of attention whose keys go round ---------===//
//
// In a step of training keys and values that are gathered for attention are read once more, by its gradients, whose sums over the queries of
// all ranks go where keys and values are:
//
//   all_gather k ─┬─ attention ─▶ y ..  dy ─┬─ products ─▶ dk of all keys ── reduce_scatter ─▶ dk
//   all_gather v ─┴─────────────────────────┴─ products ─▶ dv of all keys ── reduce_scatter ─▶ dv
//
// Products are found as `exec-recognize-attention` finds them, from the softmax that has the attention's number. Heads that share keys are
// repeated in front of them, and added up behind. Then all that reads what is gathered, but attention, is for these gradients alone, or
// it would have to be gathered all the same.
//
//===----------------------------------------------------------------------===//
#include "Rings.h"

#include "cleave/Dialect/Nn/IR/GradientOf.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

SoftmaxOf cleave::exec::findSoftmaxes(func::FuncOp func) {
  SoftmaxOf found;
  func.walk([&](nn::SoftmaxOp softmax) {
    if (auto number = softmax->getAttrOfType<IntegerAttr>(nn::kGradientOfAttr))
      found[number.getInt()] = softmax;
  });
  return found;
}

/// True if `value` is `from`, wider, in another order, or repeated for heads that share it. The rule of the gradient does nothing else.
static bool comesFrom(Value value, Value from) {
  while (value != from) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_present<nn::CastOp, nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return true;
}

static Operation *getOnlyReader(Value value) { return value.hasOneUse() ? *value.user_begin() : nullptr; }

/// The sum over the heads that share keys, of which there are `heads`: what of a product is a gradient of keys. Null where they are added
/// otherwise.
static Value findJoined(Value product, int64_t heads) {
  ArrayRef<int64_t> shape = getShape(product);
  if (shape[1] == heads)
    return product;
  auto apart = dyn_cast_if_present<nn::ReshapeOp>(getOnlyReader(product));
  SmallVector<int64_t> grouped = {shape[0], heads, shape[1] / heads, shape[2], shape[3]};
  if (!apart || getShape(apart.getResult()) != ArrayRef(grouped))
    return {};
  auto sum = dyn_cast_if_present<nn::ReduceOp>(getOnlyReader(apart.getResult()));
  bool isJoin = sum && sum.getKind() == nn::ReduceKind::Sum && sum.getDims() == ArrayRef<int64_t>{2};
  return isJoin && getTensorType(sum).getRank() == 4 ? Value(sum) : Value();
}

/// Where dim `dim` of the operand is in the result; nothing where it is not all there. Behind uneven shards' last rows there may be more.
static std::optional<int64_t> follow(Operation *op, int64_t dim) {
  if (auto pad = dyn_cast<nn::PadOp>(op)) {
    bool isBehind = llvm::all_of(pad.getLow(), [](int64_t low) { return low == 0; });
    for (auto [place, high] : llvm::enumerate(pad.getHigh()))
      isBehind &= high == 0 || static_cast<int64_t>(place) == dim;
    return isBehind ? std::optional(dim) : std::nullopt;
  }
  auto moves = dyn_cast<nn::MovesDimsOpInterface>(op);
  return moves && !isa<nn::BroadcastOp>(op) ? moves.followDim(dim) : std::nullopt;
}

/// The way down from a product to the scatter; false where there is none that gives blocks of `shard` over `axes`.
static bool followDown(const AttentionGradientParts::Result &result, int64_t heads, int64_t shard,
                       ArrayRef<spmd::AxisAttr> axes, ScatteredSequence &found) {
  if (!result.einsum)
    return true;
  for (auto [place, dim] : llvm::enumerate(result.order))
    if (static_cast<int64_t>(place) != dim)
      return false;
  Value value = found.from = findJoined(nn::EinsumOp(result.einsum).getResult(), heads);
  int64_t dim = 2;
  for (Operation *op = value ? getOnlyReader(value) : nullptr; op; op = getOnlyReader(value)) {
    if ((found.scatter = dyn_cast<spmd::ReduceScatterOp>(op)))
      break;
    std::optional<int64_t> at = follow(op, dim);
    if (!at)
      return false;
    found.moves.push_back({op, dim = *at});
    value = op->getResult(0);
  }
  if (!found.scatter || found.scatter.getKind() != spmd::ReductionKind::Sum ||
      getShape(found.scatter.getResult())[dim] != shard)
    return false;
  for (auto [place, list] : llvm::enumerate(found.scatter.getDims().getAsRange<ArrayAttr>())) {
    auto over = llvm::to_vector(list.getAsRange<spmd::AxisAttr>());
    if (static_cast<int64_t>(place) == dim ? ArrayRef(over) != axes : !over.empty())
      return false;
  }
  return true;
}

/// From the results back: all whose readers die.
static void findDying(RingGradient &gradient) {
  SmallVector<Operation *> todo(gradient.dying.begin(), gradient.dying.end());
  while (!todo.empty()) {
    for (Value operand : todo.pop_back_val()->getOperands()) {
      Operation *op = operand.getDefiningOp();
      auto dies = [&](Operation *user) { return gradient.dying.contains(user); };
      if (op && isMemoryEffectFree(op) && llvm::all_of(op->getUsers(), dies) && gradient.dying.insert(op))
        todo.push_back(op);
    }
  }
}

std::optional<RingGradient> cleave::exec::findRingGradient(nn::AttentionOp attention, nn::SoftmaxOp softmax,
                                                           int64_t shard, ArrayRef<spmd::AxisAttr> axes,
                                                           std::string &reason) {
  StringRef why;
  std::optional<AttentionGradient> found;
  if (softmax->getBlock() == attention->getBlock())
    found = recognizeGradient(softmax, why);
  auto fail = [&](const Twine &what) {
    reason = what.str();
    return std::nullopt;
  };
  if (!found)
    return fail("its gradients read them otherwise" + (why.empty() ? Twine() : ": " + why));
  AttentionParts &forward = found->forward;
  AttentionGradientParts &parts = found->gradients;
  if (forward.batch != 2 || !comesFrom(forward.getQuery(), attention.getQuery()) ||
      !comesFrom(forward.getKey(), attention.getKey()) || !comesFrom(parts.value, attention.getValue()))
    return fail("its gradients read other keys and values");
  RingGradient gradient{parts.gradient, parts.gradientOrder, {}, parts.ofQuery.order, {}, {}, parts.rows,
                        found->place,   softmax.getLoc(),    {}};
  if (parts.ofQuery.einsum)
    gradient.ofQuery = parts.ofQuery.einsum;
  int64_t heads = attention.getKey().getType().getDimSize(1);
  for (auto [result, sequence] :
       {std::pair(&parts.ofKey, &gradient.ofKey), std::pair(&parts.ofValue, &gradient.ofValue)}) {
    if (!followDown(*result, heads, shard, axes, *sequence))
      return fail("gradients of keys and values do not go where these are");
    for (Value value = sequence->from; value && value != result->einsum; value = value.getDefiningOp()->getOperand(0))
      gradient.dying.insert(value.getDefiningOp());
    for (auto [op, dim] : sequence->moves)
      gradient.dying.insert(op);
    if (sequence->scatter)
      gradient.dying.insert(sequence->scatter);
  }
  for (nn::EinsumOp einsum : {parts.ofQuery.einsum, parts.ofKey.einsum, parts.ofValue.einsum})
    if (einsum)
      gradient.dying.insert(einsum);
  // Statistics are there behind the forward, whatever the gradient of its result is made of.
  if (!gradient.place || gradient.place->getBlock() != attention->getBlock() ||
      gradient.place->isBeforeInBlock(attention))
    gradient.place = attention;
  for (Value result : {gradient.ofQuery, Value(gradient.ofKey.scatter), Value(gradient.ofValue.scatter)})
    if (result && llvm::any_of(result.getUsers(), [&](Operation *user) {
          return user->getBlock() == attention->getBlock() && !gradient.place->isBeforeInBlock(user);
        }))
      return fail("a gradient is read before all that it is made of is there");
  findDying(gradient);
  return gradient;
}
