//===- Epilogue.cpp - what stands around a product ------------------------===//
//
// What stands behind a product is walked from the result back to the product. Movement on the way says how the result lies
// in the product's own dims, and so do a bias and a residual that are added on the way:
//
//   %p = einsum %a, %b "ik,kj->ij"          result: strides (1, 8) in (i, j)
//   %s = add %p, %bias                      bias:   strides (0, 1)
//   %t = transpose %s [1, 0]
//   yield %t                                result: strides (8, 1), row-major
//
//===----------------------------------------------------------------------===//
#include "Epilogue.h"

#include "../Elements.h"
#include "../View.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/SameDim.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// Nothing where elements of `value` are computed, lie in panels, or are not all that its buffer has.
std::optional<Placed> cleave::codegen::placeOperand(Value value) {
  View view = View::get(value);
  auto argument = dyn_cast<BlockArgument>(view.base);
  if (!argument || view.offset != 0)
    return std::nullopt;
  Placed placed{argument.getArgNumber(), {}};
  int64_t last = 0;
  for (auto [dim, size] : llvm::zip_equal(view.dims, getShape(value))) {
    if (dim.width)
      return std::nullopt;
    placed.strides.push_back(dim.stride);
    last += (size - 1) * dim.stride;
  }
  return last + 1 == countElements(getShape(view.base)) ? std::optional<Placed>(placed) : std::nullopt;
}

bool cleave::codegen::areFactors(const std::optional<Placed> &a, const std::optional<Placed> &b, Block &region,
                                 Value result) {
  if (!a || !b || countElements(getShape(result)) == 0)
    return false;
  Type element = getElementType(region.getArgument(a->buffer));
  return element == getElementType(region.getArgument(b->buffer)) && isa<FloatType>(element);
}

/// Strides in dims `to` of what has them in dims `from`, as many elements; nothing where a group of dims is no run.
static std::optional<Strides> regroup(ArrayRef<int64_t> strides, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  Strides result;
  for (const DimGroup &group : matchDims(from, to)) {
    std::optional<int64_t> inner, next;
    for (int64_t dim = group.fromEnd; dim-- > group.from;) {
      if (from[dim] == 1)
        continue;
      if (next && strides[dim] != *next)
        return std::nullopt;
      inner = inner.value_or(strides[dim]);
      next = strides[dim] * from[dim];
    }
    Strides split(group.toEnd - group.to);
    int64_t stride = inner.value_or(0);
    for (int64_t dim = group.toEnd; dim-- > group.to; stride *= to[dim])
      split[dim - group.to] = stride;
    result.append(split);
  }
  return result;
}

static Strides getRowMajor(ArrayRef<int64_t> shape) {
  Strides strides(shape.size());
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0; stride *= shape[dim])
    strides[dim] = stride;
  return strides;
}

/// The number that all elements of a value are.
static std::optional<double> getNumber(Value value) {
  while (auto *op = value.getDefiningOp()) {
    if (!nn::onlyMoves(op))
      break;
    value = op->getOperand(0);
  }
  auto constant = value.getDefiningOp<nn::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!elements || !elements.isSplat() || !isa<FloatType>(elements.getElementType()))
    return std::nullopt;
  return elements.getSplatValue<APFloat>().convertToDouble();
}

//===----------------------------------------------------------------------===//
// Epilogues
//===----------------------------------------------------------------------===//

bool Epilogue::reorder(nn::TransposeOp op) {
  return change([&](Placed &tensor) {
    Strides moved(tensor.strides.size());
    for (auto [place, dim] : llvm::enumerate(op.getPermutation()))
      moved[dim] = tensor.strides[place];
    tensor.strides = moved;
    return true;
  });
}

bool Epilogue::reshape(nn::ReshapeOp op) {
  return change([&](Placed &tensor) {
    std::optional<Strides> moved = regroup(tensor.strides, getShape(op.getResult()), getShape(op.getInput()));
    if (moved)
      tensor.strides = *moved;
    return moved.has_value();
  });
}

/// Broadcast as numpy does. Elements must be those of the result, since a library widens nothing here.
bool Epilogue::add(Operation *op, Value other) {
  std::optional<Placed> tensor = placeOperand(other);
  if (!tensor || isScaled || added.size() == 2 || getElementType(View::get(other).base) != element)
    return false;
  ArrayRef<int64_t> whole = getShape(op->getResult(0)), own = getShape(other);
  Strides strides(whole.size());
  for (size_t dim = 0, lead = whole.size() - own.size(); dim < own.size(); ++dim)
    strides[lead + dim] = own[dim] == 1 ? 0 : tensor->strides[dim];
  tensor->strides = strides;
  added.push_back(*tensor);
  return true;
}

/// The last of all that computes.
bool Epilogue::activate(LibraryActivation which) {
  if (activation != LibraryActivation::None || !added.empty() || isScaled)
    return false;
  activation = which;
  return true;
}

/// One op nearer to the product; `main` is its operand that comes from there.
bool Epilogue::stepBack(Operation *op, Value main) {
  if (auto transpose = dyn_cast<nn::TransposeOp>(op))
    return reorder(transpose);
  if (auto reshaped = dyn_cast<nn::ReshapeOp>(op))
    return reshape(reshaped);
  // Rounding what was summed in f32, once, in the end; integers, bools and other floats are a kernel's.
  if (auto cast = dyn_cast<nn::CastOp>(op))
    return getElementType(main).isF32() && ElementBuilder::isHalf(getElementType(op->getResult(0))) &&
           !cast.getSaturate() && !std::exchange(isRounded, true);
  isRounded = true;
  if (getShape(main) != getShape(op->getResult(0)))
    return false;
  if (isa<nn::ReluOp>(op))
    return activate(LibraryActivation::Relu);
  if (auto gelu = dyn_cast<nn::GeluOp>(op))
    return gelu.getTanh() && activate(LibraryActivation::GeluTanh);
  if (op->getNumOperands() != 2)
    return false;
  Value other = op->getOperand(op->getOperand(0) == main ? 1 : 0);
  if (isa<nn::AddOp>(op))
    return add(op, other);
  std::optional<double> number = getNumber(other);
  bool divides = isa<nn::DivOp>(op) && op->getOperand(0) == main && number && *number != 0;
  if (!number || !(divides || isa<nn::MulOp>(op)))
    return false;
  scale *= divides ? 1 / *number : *number;
  isScaled = true;
  return true;
}

std::optional<Epilogue> Epilogue::find(Block &region, Operation *product) {
  Operation *end = region.getTerminator();
  if (end->getNumOperands() != 1)
    return std::nullopt;
  llvm::DenseSet<Value> behind{product->getResult(0)};
  for (Operation &op : region)
    if (op.getNumResults() == 1 && llvm::any_of(op.getOperands(), [&](Value v) { return behind.contains(v); }))
      behind.insert(op.getResult(0));
  Value value = end->getOperand(0);
  Epilogue epilogue;
  epilogue.result = {region.getNumArguments(), getRowMajor(getShape(value))};
  epilogue.element = getElementType(value);
  while (value != product->getResult(0)) {
    Operation *op = value.getDefiningOp();
    SmallVector<Value> main;
    for (Value operand : op ? op->getOperands() : OperandRange(nullptr, 0))
      if (behind.contains(operand))
        main.push_back(operand);
    if (main.size() != 1 || !epilogue.stepBack(op, main.front()))
      return std::nullopt;
    value = main.front();
  }
  return epilogue;
}
