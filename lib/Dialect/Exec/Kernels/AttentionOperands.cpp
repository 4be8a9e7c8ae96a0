//===- AttentionOperands.cpp - what stands in front of attention ----------===//
//
// Factors and repeated heads are looked for behind chains of movement, whose order of dims is followed:
//
//   [b, kv, s, d] ─reshape▶ [b, kv, 1, s, d] ─broadcast▶ [b, kv, r, s, d] ─transpose, reshape▶ [b, kv * r, s, d]
//
//===----------------------------------------------------------------------===//
#include "AttentionOperands.h"

#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/SameDim.h"
#include "cleave/Dialect/Nn/IR/Splat.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

static SmallVector<int64_t> getIdentity(Value value) {
  return llvm::to_vector(llvm::seq<int64_t>(0, getTensorType(value).getRank()));
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// The operand that `op` multiplies by one number, which goes into `factor`; null if it does something else.
static Value getMultiplied(Operation *op, double &factor) {
  if (!isa_and_present<nn::MulOp, nn::DivOp>(op))
    return {};
  for (unsigned other : {1, 0}) {
    std::optional<double> number = nn::getSplatNumber(op->getOperand(other));
    Value kept = op->getOperand(1 - other);
    if (!number || kept.getType() != op->getResult(0).getType() || (isa<nn::DivOp>(op) && (other == 0 || *number == 0)))
      continue;
    factor = isa<nn::DivOp>(op) ? factor / *number : factor * *number;
    return kept;
  }
  return {};
}

Value cleave::exec::dropFactor(OpBuilder &builder, Value value, double &factor) {
  SmallVector<Operation *> movement;
  Value from = value;
  bool isFound = false;
  while (Operation *op = from.getDefiningOp()) {
    if (Value kept = getMultiplied(op, factor)) {
      isFound = true;
      from = kept;
    } else if (nn::onlyMoves(op)) {
      movement.push_back(op);
      from = op->getOperand(0);
    } else {
      break;
    }
  }
  if (!isFound)
    return value;
  for (Operation *op : llvm::reverse(movement)) {
    Operation *moved = builder.clone(*op);
    moved->setOperand(0, from);
    from = moved->getResult(0);
  }
  return from;
}

//===----------------------------------------------------------------------===//
// Repeated heads
//===----------------------------------------------------------------------===//

/// The input of the broadcast that makes `value`, if it repeats `dim` and nothing else.
static Value getRepeated(Value value, int64_t dim) {
  auto broadcast = value.getDefiningOp<nn::BroadcastOp>();
  if (!broadcast || getTensorType(broadcast.getInput()).getRank() != getTensorType(value).getRank())
    return {};
  SmallVector<int64_t> kept(getShape(value));
  kept[dim] = 1;
  return getShape(broadcast.getInput()) == ArrayRef<int64_t>(kept) ? broadcast.getInput() : Value();
}

/// The shape in front of a reshape if that merges `dim` and the one behind it, and does nothing else.
static bool mergesDims(nn::ReshapeOp reshape, int64_t dim) {
  SmallVector<int64_t> merged(getShape(reshape.getInput()));
  if (static_cast<int64_t>(merged.size()) != getTensorType(reshape).getRank() + 1)
    return false;
  merged[dim] *= merged[dim + 1];
  merged.erase(merged.begin() + dim + 1);
  return getShape(reshape) == ArrayRef<int64_t>(merged);
}

Value cleave::exec::dropRepeats(OpBuilder &builder, Value value) {
  SmallVector<int64_t> behind = getIdentity(value);
  Value merged = skipTransposes(value, behind);
  int64_t heads = behind[1];
  if (Value one = getRepeated(merged, heads))
    return permute(builder, one, behind);
  auto reshape = merged.getDefiningOp<nn::ReshapeOp>();
  if (!reshape || !mergesDims(reshape, heads))
    return {};
  SmallVector<int64_t> inFront = getIdentity(reshape.getInput());
  Value repeated = skipTransposes(reshape.getInput(), inFront);
  int64_t copies = inFront[heads + 1];
  Value once = getRepeated(repeated, copies);
  if (!once)
    return {};
  // Without the dim of the copies, here and in the order of dims.
  SmallVector<int64_t> shape(getShape(once)), order;
  shape.erase(shape.begin() + copies);
  for (auto [place, dim] : llvm::enumerate(inFront))
    if (static_cast<int64_t>(place) != heads + 1)
      order.push_back(dim > copies ? dim - 1 : dim);
  return permute(builder, permute(builder, reshapeTo(builder, once, shape), order), behind);
}
