//===- Movement.cpp - result types and folds of movement ops --------------===//
//
// Folds drop only ops that do nothing at all: a difference in sharding counts as something.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "TypeInference.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/SameDim.h"
#include "cleave/Dialect/Nn/IR/SliceRange.h"

#include <cassert>

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// The operand, if the op would give back the very same type.
template <typename Op> static OpFoldResult foldToSameType(Op op) {
  return op.getInput().getType() == op.getResult().getType() ? OpFoldResult(op.getInput()) : nullptr;
}

//===----------------------------------------------------------------------===//
// Reshape, transpose, broadcast
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  auto from = getInput().getType(), to = getResult().getType();
  std::optional<int64_t> have = countElements(from.getShape()), want = countElements(to.getShape());
  if (from.getElementType() != to.getElementType())
    return emitOpError() << "operand " << from << " and result " << to << " have different element types (C1)";
  if (!have || have != want)
    return emitOpError() << "operand " << from << " and result " << to << " have different numbers of elements (C1)";
  return success();
}

/// A chain of reshapes is one: what the shape was in between is forgotten.
OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (OpFoldResult same = foldToSameType(*this))
    return same;
  // A sharding in between is an annotation that must stay.
  auto producer = getInput().getDefiningOp<ReshapeOp>();
  if (!producer || producer.getResult().getType().getEncoding())
    return nullptr;
  getInputMutable().assign(producer.getInput());
  return getResult();
}

LogicalResult TransposeOp::inferTypes(Adaptor op, TypeInference &infer) {
  auto input = getShape(op.getInput());
  ArrayRef<int64_t> permutation = op.getPermutation();
  SmallVector<int64_t> shape;
  llvm::SmallBitVector seen(input.size());
  for (int64_t dim : permutation) {
    if (dim < 0 || dim >= static_cast<int64_t>(input.size()) || seen.test(dim))
      break;
    seen.set(dim);
    shape.push_back(input[dim]);
  }
  if (shape.size() != input.size() || permutation.size() != input.size())
    return infer.reject("permutation is not one of the ", input.size(), " dims of the operand (C1)");
  return infer.give(shape, getElementType(op.getInput()));
}

/// Transposes of transposes are left to the pass that fuses whole chains of movement (FuseMovement).
OpFoldResult TransposeOp::fold(FoldAdaptor) {
  bool isIdentity = llvm::equal(getPermutation(), llvm::seq<int64_t>(0, getPermutation().size()));
  return isIdentity ? foldToSameType(*this) : nullptr;
}

LogicalResult BroadcastOp::verify() {
  auto from = getInput().getType(), to = getResult().getType();
  if (from.getElementType() != to.getElementType())
    return emitOpError() << "operand " << from << " and result " << to << " have different element types (C1)";
  if (!broadcastsTo(from.getShape(), to.getShape()))
    return emitOpError() << "operand " << from << " does not broadcast to result " << to << " (C2)";
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) { return foldToSameType(*this); }

//===----------------------------------------------------------------------===//
// Concat, slice, pad
//===----------------------------------------------------------------------===//

LogicalResult ConcatOp::inferTypes(Adaptor op, TypeInference &infer) {
  if (op.getInputs().empty())
    return infer.reject("has no operands (C1)");
  Value first = op.getInputs().front();
  if (failed(infer.checkElementTypes(op.getInputs(), "C2")) || failed(infer.checkDim(op.getDim(), first, "C3")))
    return failure();
  SmallVector<int64_t> shape(getShape(first));
  int64_t dim = op.getDim();
  for (Value input : op.getInputs().drop_front()) {
    SmallVector<int64_t> other(getShape(input));
    if (other.size() != shape.size())
      return infer.reject("operands ", first.getType(), " and ", input.getType(), " have different ranks (C2)");
    std::optional<int64_t> sum = addChecked(shape[dim], other[dim]);
    if (!sum)
      return infer.reject("result is too large along dim ", dim, " (C4)");
    shape[dim] = other[dim] = *sum;
    if (shape != other)
      return infer.reject("operands ", first.getType(), " and ", input.getType(), " differ in a dim other than ", dim,
                          " (C4)");
  }
  return infer.give(shape, getElementType(first));
}

LogicalResult SplitOp::inferTypes(Adaptor op, TypeInference &infer) {
  if (failed(infer.checkDim(op.getDim(), op.getInput())))
    return failure();
  SmallVector<int64_t> shape(getShape(op.getInput()));
  int64_t dim = op.getDim(), left = shape[dim];
  for (int64_t part : op.getParts()) {
    if (part < 0 || part > left)
      return infer.reject("part of ", part, " positions, expected 0 to ", left, ", what is left of dim ", dim, " (C2)");
    left -= part;
    shape[dim] = part;
    (void)infer.give(shape, getElementType(op.getInput()));
  }
  return left == 0 ? success() : infer.reject("parts leave ", left, " positions of dim ", dim, " (C2)");
}

/// The last element that a slice reads; nothing on overflow. Precondition: size > 0.
static std::optional<int64_t> getLast(int64_t start, int64_t size, int64_t step) {
  assert(size > 0 && "no element is read");
  std::optional<int64_t> way = mulChecked(size - 1, step);
  return way ? addChecked(start, *way) : std::nullopt;
}

LogicalResult SliceOp::inferTypes(Adaptor op, TypeInference &infer) {
  auto input = getShape(op.getInput());
  ArrayRef<int64_t> starts = op.getStarts(), sizes = op.getSizes(), steps = op.getSteps();
  if (starts.size() != input.size() || sizes.size() != input.size() || steps.size() != input.size())
    return infer.reject("has ", starts.size(), " starts, ", sizes.size(), " sizes and ", steps.size(), " steps for ",
                        input.size(), " dims (C1)");
  for (auto [dim, extent, start, size, step] : llvm::enumerate(input, starts, sizes, steps)) {
    if (step == 0)
      return infer.reject("step of dim ", dim, " is 0 (C2)");
    if (size < 0)
      return infer.reject("size of dim ", dim, " is ", size, " (C2)");
    if (size == 0)
      continue;
    std::optional<int64_t> last = getLast(start, size, step);
    if (start < 0 || start >= extent || !last || *last < 0 || *last >= extent)
      return infer.reject("dim ", dim, " of size ", extent, " has no ", size, " elements from ", start, " by step ",
                          step, " (C3)");
  }
  return infer.give(sizes, getElementType(op.getInput()));
}

/// Before the first dim that is cut, from the major side, there may be single elements only, and behind it whole dims.
std::optional<int64_t> cleave::nn::getRangeStart(SliceOp op) {
  ArrayRef<int64_t> shape = op.getInput().getType().getShape();
  int64_t offset = 0, stride = 1;
  bool isSplit = false;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    int64_t size = op.getSizes()[dim];
    if (size == 0 || (isSplit && size != 1) || (size != 1 && op.getSteps()[dim] != 1))
      return std::nullopt;
    isSplit |= size != shape[dim];
    offset += op.getStarts()[dim] * stride;
    stride *= shape[dim];
  }
  return offset;
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  bool isFull = llvm::all_of(getStarts(), [](int64_t start) { return start == 0; }) &&
                llvm::all_of(getSteps(), [](int64_t step) { return step == 1; });
  return isFull ? foldToSameType(*this) : nullptr;
}

LogicalResult PadOp::inferTypes(Adaptor op, TypeInference &infer) {
  auto input = getShape(op.getInput());
  ArrayRef<int64_t> low = op.getLow(), high = op.getHigh();
  if (low.size() != input.size() || high.size() != input.size())
    return infer.reject("has ", low.size(), " low and ", high.size(), " high amounts for ", input.size(), " dims (C1)");
  SmallVector<int64_t> shape;
  for (auto [dim, extent, before, after] : llvm::enumerate(input, low, high)) {
    if (before < 0 || after < 0)
      return infer.reject("amounts of dim ", dim, " are ", before, " and ", after, ", expected none below 0 (C1)");
    // A constant comes from nowhere; all else is read from the operand, and a reflection does not repeat its edge.
    bool isReflect = op.getMode() == PadMode::Reflect, isConstant = op.getMode() == PadMode::Constant;
    if (!isConstant && (before || after) && (extent == 0 || (isReflect && std::max(before, after) >= extent)))
      return infer.reject("mode ", stringifyPadMode(op.getMode()), " cannot pad dim ", dim, " of size ", extent, " by ",
                          before, " and ", after, " (C2)");
    std::optional<int64_t> sum = addChecked(before, after);
    sum = sum ? addChecked(*sum, extent) : std::nullopt;
    if (!sum)
      return infer.reject("result is too large along dim ", dim, " (C1)");
    shape.push_back(*sum);
  }
  if (Value value = op.getValue())
    if (!getShape(value).empty() || getElementType(value) != getElementType(op.getInput()))
      return infer.reject("value is ", value.getType(), ", expected a scalar of ", getElementType(op.getInput()),
                          " (C3)");
  return infer.give(shape, getElementType(op.getInput()));
}

//===----------------------------------------------------------------------===//
// Rotate, trilu
//===----------------------------------------------------------------------===//

LogicalResult RotateOp::inferTypes(Adaptor op, TypeInference &infer) {
  if (failed(infer.checkDim(op.getDim(), op.getInput())))
    return failure();
  int64_t amount = op.getAmount(), size = getShape(op.getInput())[op.getDim()];
  if (amount < 0 || amount >= size)
    return infer.reject("amount ", amount, " is not in [0, ", size, ") (C2)");
  return infer.giveLike(op.getInput());
}

LogicalResult TriluOp::inferTypes(Adaptor op, TypeInference &infer) {
  if (getShape(op.getInput()).size() < 2)
    return infer.reject("input is ", op.getInput().getType(), ", expected at least 2 dims (C1)");
  return infer.giveLike(op.getInput());
}

//===----------------------------------------------------------------------===//
// Where dims go
//===----------------------------------------------------------------------===//

std::optional<int64_t> ReshapeOp::followDim(int64_t dim) {
  return findReshapedDim(getShape(getInput()), dim, getShape(getResult()));
}
std::optional<int64_t> TransposeOp::followDim(int64_t dim) { return findInOrder(getPermutation(), dim); }
std::optional<int64_t> BroadcastOp::followDim(int64_t dim) {
  return findBroadcastDim(getShape(getInput()), dim, getShape(getResult()));
}
std::optional<int64_t> SliceOp::followDim(int64_t dim) {
  bool isBeginning = llvm::all_of(getStarts(), [](int64_t start) { return start == 0; }) &&
                     llvm::all_of(getSteps(), [](int64_t step) { return step == 1; });
  for (auto [at, extent] : llvm::enumerate(getShape(getInput())))
    isBeginning &= int64_t(at) == dim || getSizes()[at] == extent;
  return isBeginning ? std::optional(dim) : std::nullopt;
}

void ConcatOp::reorder(ArrayRef<int64_t> order) { setDim(findInOrder(order, getDim())); }
void SliceOp::reorder(ArrayRef<int64_t> order) {
  setStarts(putInOrder(order, getStarts()));
  setSizes(putInOrder(order, getSizes()));
  setSteps(putInOrder(order, getSteps()));
}
void PadOp::reorder(ArrayRef<int64_t> order) {
  setLow(putInOrder(order, getLow()));
  setHigh(putInOrder(order, getHigh()));
}

//===----------------------------------------------------------------------===//
// Several at once
//===----------------------------------------------------------------------===//

/// `number`, then `numbers`, each with `more` added.
static SmallVector<int64_t> putInFront(int64_t number, ArrayRef<int64_t> numbers, int64_t more = 0) {
  SmallVector<int64_t> result{number};
  for (int64_t each : numbers)
    result.push_back(each + more);
  return result;
}

Value ReshapeOp::stack(Composer &compose, ArrayRef<Value> operands, ArrayRef<bool>, int64_t count) {
  return compose.reshape(operands[0], getStackedType(getResult(), count).getShape());
}
Value TransposeOp::stack(Composer &compose, ArrayRef<Value> operands, ArrayRef<bool>, int64_t) {
  return compose.transpose(operands[0], putInFront(0, getPermutation(), /*more=*/1));
}
Value BroadcastOp::stack(Composer &compose, ArrayRef<Value> operands, ArrayRef<bool> isStacked, int64_t count) {
  return stackAligned(compose, *this, operands, isStacked, count);
}
Value SliceOp::stack(Composer &compose, ArrayRef<Value> operands, ArrayRef<bool>, int64_t count) {
  return compose.slice(operands[0], putInFront(0, getStarts()), putInFront(count, getSizes()),
                       putInFront(1, getSteps()));
}
