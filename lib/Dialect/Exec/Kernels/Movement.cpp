//===- Movement.cpp - movement where it costs nothing ---------------------===//
//
// Templates read operands through movement, and compute what follows element by element on the tile, in the shape of the
// tile. So transposes meet and cancel where they can, and behind an anchor they come last.
//
//===----------------------------------------------------------------------===//
#include "Movement.h"

#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace cleave;

bool cleave::exec::isFloatCast(Operation *op) {
  auto cast = dyn_cast_if_present<nn::CastOp>(op);
  return cast && isa<FloatType>(getTensorType(cast.getInput()).getElementType()) &&
         isa<FloatType>(getTensorType(cast).getElementType());
}

Value cleave::exec::skipTransposes(Value value, SmallVectorImpl<int64_t> &permutation, const Stops &stops) {
  while (auto transpose = stops.contains(value) ? nn::TransposeOp() : value.getDefiningOp<nn::TransposeOp>()) {
    for (int64_t &dim : permutation)
      dim = transpose.getPermutation()[dim];
    value = transpose.getInput();
  }
  return value;
}

/// Dims that have more than one element.
static SmallVector<int64_t> getLongDims(Value value) {
  return llvm::filter_to_vector(llvm::seq<int64_t>(0, getShape(value).size()),
                                [&](int64_t dim) { return getShape(value)[dim] != 1; });
}

/// The transpose in front of a reshape that puts in or drops dims of size 1, and does nothing else.
static nn::TransposeOp getTransposeBefore(nn::ReshapeOp reshape) {
  auto hasExtent = [](int64_t extent) { return extent != 1; };
  auto transpose = reshape ? reshape.getInput().getDefiningOp<nn::TransposeOp>() : nn::TransposeOp();
  bool isSame = transpose && llvm::equal(llvm::make_filter_range(getShape(reshape), hasExtent),
                                         llvm::make_filter_range(getShape(transpose), hasExtent));
  return isSame ? transpose : nn::TransposeOp();
}

Value cleave::exec::permute(OpBuilder &builder, Value value, ArrayRef<int64_t> permutation, const Stops &stops) {
  SmallVector<int64_t> whole(permutation);
  Value from = skipTransposes(value, whole, stops);
  nn::TransposeOp transpose = getTransposeBefore(from.getDefiningOp<nn::ReshapeOp>());
  if (transpose && !stops.contains(transpose)) {
    // The long dims in the order wanted, each where the transpose has it; the others in front.
    SmallVector<int64_t> longFrom = getLongDims(from), longBefore = getLongDims(transpose), wanted, order;
    for (int64_t dim : whole)
      if (const auto *found = llvm::find(longFrom, dim); found != longFrom.end())
        wanted.push_back(longBefore[found - longFrom.begin()]);
    for (int64_t dim = 0, rank = getShape(transpose).size(); dim < rank; ++dim)
      if (getShape(transpose)[dim] == 1)
        order.push_back(dim);
    llvm::append_range(order, wanted);
    SmallVector<int64_t> shape = llvm::map_to_vector(whole, [&](int64_t dim) { return getShape(from)[dim]; });
    return reshapeTo(builder, permute(builder, transpose, order, stops), shape);
  }
  return nn::Composer(builder, value.getLoc()).transpose(from, whole);
}

Value cleave::exec::reshapeTo(OpBuilder &builder, Value value, ArrayRef<int64_t> shape) {
  if (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getInput();
  return nn::Composer(builder, value.getLoc()).reshape(value, shape);
}

//===----------------------------------------------------------------------===//
// Behind an anchor
//===----------------------------------------------------------------------===//

/// `other`, an operand beside the result of `movement`, as it is beside the operand of that; null if it has no such form.
static Value undo(OpBuilder &builder, Operation *movement, Value other) {
  ArrayRef<int64_t> moved = getShape(movement->getResult(0)), before = getShape(movement->getOperand(0));
  if (getTensorType(other).getNumElements() == 1)
    return getShape(other).size() <= before.size() ? other : exec::reshapeTo(builder, other, {});
  if (auto transpose = dyn_cast<nn::TransposeOp>(movement)) {
    SmallVector<int64_t> padded(moved.size() - getShape(other).size(), 1), inverse(moved.size());
    llvm::append_range(padded, getShape(other));
    for (auto [place, dim] : llvm::enumerate(transpose.getPermutation()))
      inverse[dim] = place;
    return exec::permute(builder, exec::reshapeTo(builder, other, padded), inverse);
  }
  if (getShape(other) == moved)
    return exec::reshapeTo(builder, other, before);
  // A vector along the last dim stays one.
  bool isVector = getTensorType(other).getNumElements() == getShape(other).back() && moved.back() == before.back();
  return isVector ? exec::reshapeTo(builder, other, {moved.back()}) : Value();
}

/// Lets `op` work on what `movement` moves: the op that then does, and the movement of its result. Null where it cannot.
static std::pair<Operation *, Operation *> swap(Operation *op, Operation *movement) {
  OpBuilder builder(op);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(operand == movement->getResult(0) ? movement->getOperand(0) : undo(builder, movement, operand));
  if (llvm::is_contained(operands, Value()))
    return {};
  Operation *inside = builder.clone(*op), *outside = builder.clone(*movement);
  inside->setOperands(operands);
  inside->getResult(0).setType(
      RankedTensorType::get(getShape(movement->getOperand(0)), getTensorType(op->getResult(0)).getElementType()));
  outside->setOperand(0, inside->getResult(0));
  outside->getResult(0).setType(getTensorType(op->getResult(0)));
  op->replaceAllUsesWith(outside);
  op->erase();
  return {inside, outside};
}

/// The movement of one of `moved` that `op` reads element by element.
static Operation *findMovement(Operation *op, const llvm::DenseSet<Value> &moved) {
  if (!op->hasTrait<nn::Elementwise>())
    return nullptr;
  for (Value operand : op->getOperands())
    if (moved.contains(operand) && getShape(operand) == getShape(op->getResult(0)) &&
        isa<nn::TransposeOp, nn::ReshapeOp>(operand.getDefiningOp()))
      return operand.getDefiningOp();
  return nullptr;
}

void cleave::exec::sinkMovement(Block &body) {
  llvm::DenseSet<Value> behind;
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
    bool isBehind = llvm::any_of(op.getOperands(), [&](Value operand) { return behind.contains(operand); });
    if (!isBehind && !isAnchor(&op))
      continue;
    if (auto transpose = dyn_cast<nn::TransposeOp>(op);
        transpose && transpose.getInput().getDefiningOp<nn::TransposeOp>()) {
      OpBuilder builder(transpose);
      Value whole = permute(builder, transpose.getInput(), transpose.getPermutation());
      transpose.replaceAllUsesWith(whole);
      behind.insert(whole);
      continue;
    }
    Operation *last = &op;
    while (Operation *movement = findMovement(last, behind)) {
      auto [inside, outside] = swap(last, movement);
      if (!inside)
        break;
      behind.insert(outside->getResult(0));
      last = inside;
    }
    behind.insert(last->getResult(0));
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Groups of equal operands are equal kernels: all but the last have as many.
static void groupConcat(nn::ConcatOp op) {
  OpBuilder builder(op);
  nn::Composer f(builder, op.getLoc());
  SmallVector<Value> all(op.getInputs()), groups;
  for (ArrayRef<Value> rest = all; !rest.empty();
       rest = rest.drop_front(std::min(rest.size(), exec::kMostConcatenated)))
    groups.push_back(f.concat(rest.take_front(exec::kMostConcatenated), op.getDim()));
  op.getInputsMutable().assign(groups);
}

void cleave::exec::groupConcats(Block &block) {
  for (auto op : block.getOps<nn::ConcatOp>())
    if (llvm::any_of(getShape(op.getResult()).take_front(op.getDim()), [](int64_t size) { return size != 1; }))
      while (op.getInputs().size() > exec::kMostConcatenated)
        groupConcat(op);
}

//===----------------------------------------------------------------------===//
// Sums of parts
//===----------------------------------------------------------------------===//

/// The one dim along which `pad` puts zeros; nothing if there are several, or other numbers.
static std::optional<int64_t> getZeroDim(nn::PadOp pad) {
  if (pad.getMode() != nn::PadMode::Constant ||
      (pad.getValue() && !matchPattern(pad.getValue(), m_AnyZeroFloat()) && !matchPattern(pad.getValue(), m_Zero())))
    return std::nullopt;
  std::optional<int64_t> found;
  for (auto [dim, low, high] : llvm::enumerate(pad.getLow(), pad.getHigh()))
    if (low != 0 || high != 0) {
      if (found)
        return std::nullopt;
      found = dim;
    }
  return found;
}

/// All pads that `sum` adds up, by additions that nobody else reads; false if it adds up anything else.
static bool collectPads(nn::AddOp sum, SmallVectorImpl<nn::PadOp> &pads) {
  for (Value part : sum->getOperands()) {
    if (auto pad = part.getDefiningOp<nn::PadOp>()) {
      pads.push_back(pad);
      continue;
    }
    auto inner = part.getDefiningOp<nn::AddOp>();
    if (!inner || !part.hasOneUse() || !collectPads(inner, pads))
      return false;
  }
  return true;
}

/// Zeros that are added to a number leave it as it is, so where parts fill the whole each number of it is one of theirs.
static void joinPads(nn::AddOp sum) {
  SmallVector<nn::PadOp> pads;
  if (!collectPads(sum, pads))
    return;
  std::optional<int64_t> dim = getZeroDim(pads.front());
  if (!dim || llvm::any_of(pads, [&](nn::PadOp pad) { return getZeroDim(pad) != dim; }))
    return;
  llvm::sort(pads, [&](nn::PadOp a, nn::PadOp b) { return a.getLow()[*dim] < b.getLow()[*dim]; });
  int64_t end = 0;
  SmallVector<Value> parts;
  for (nn::PadOp pad : pads) {
    if (pad.getLow()[*dim] != end || getTensorType(pad) != getTensorType(sum))
      return;
    end += getShape(pad.getInput())[*dim];
    parts.push_back(pad.getInput());
  }
  if (end != getShape(sum)[*dim])
    return;
  OpBuilder builder(sum);
  sum.replaceAllUsesWith(nn::Composer(builder, sum.getLoc()).concat(parts, *dim));
}

void cleave::exec::joinPads(Block &block) {
  // The last addition of each sum comes first; those inside of one that was joined are not read any more.
  for (Operation &op : llvm::reverse(block))
    if (auto sum = dyn_cast<nn::AddOp>(op); sum && !sum->use_empty())
      ::joinPads(sum);
}
