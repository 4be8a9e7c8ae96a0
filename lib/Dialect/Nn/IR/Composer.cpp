//===- Composer.cpp - formulas of nn ops ----------------------------------===//
//
// All ops are made by `make`, so that whoever derives from the composer may check them, fold them, or remember what was made.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/NnOps.h"

#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

SmallVector<Value, 2> Composer::make(OperationState &state, InferFn infer) {
  assert(!llvm::is_contained(state.operands, Value()) && "an operand is missing");
  if (infer) {
    state.types.clear();
    MLIRContext *context = builder.getContext();
    if (failed(infer(context, state.location, state.operands, state.attributes.getDictionary(context),
                     state.getRawProperties(), state.regions, state.types)))
      mlir::detail::reportFatalInferReturnTypesError(state);
  }
  Operation *op = builder.create(state);
  assert(succeeded(op->getName().verifyInvariants(op)) && "a precondition of the op does not hold");
  return SmallVector<Value, 2>(op->getResults());
}

[[maybe_unused]] static bool hasDim(Value value, int64_t dim) { return dim >= 0 && dim < Composer::rank(value); }

Value Composer::again(Operation *op, ValueRange operands, RankedTensorType type) {
  OperationState state(loc, op->getName(), operands, TypeRange(Type(type)), op->getAttrs());
  return first(make(state, nullptr));
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

TypedAttr cleave::nn::getIdentity(spmd::ReductionKind kind, Type elementType) {
  bool isMax = kind == spmd::ReductionKind::Max, isExtremum = isMax || kind == spmd::ReductionKind::Min;
  if (auto floats = dyn_cast<FloatType>(elementType)) {
    const llvm::fltSemantics &semantics = floats.getFloatSemantics();
    if (isExtremum)
      return FloatAttr::get(elementType, APFloat::getInf(semantics, /*Negative=*/isMax));
    bool isOne = kind == spmd::ReductionKind::Prod;
    return FloatAttr::get(elementType, isOne ? APFloat::getOne(semantics) : APFloat::getZero(semantics));
  }
  unsigned width = elementType.getIntOrFloatBitWidth();
  if (!isExtremum)
    return IntegerAttr::get(elementType, APInt(width, kind == spmd::ReductionKind::Prod));
  bool isUnsigned = elementType.isUnsignedInteger() || width == 1;
  APInt least = isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
  APInt most = isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  return IntegerAttr::get(elementType, isMax ? least : most);
}

Value Composer::literal(DenseElementsAttr elements) {
  return createTyped<ConstantOp>(llvm::cast<RankedTensorType>(elements.getType()), elements);
}

Value Composer::scalar(Type elementType, double value) {
  auto type = RankedTensorType::get({}, elementType);
  if (auto floatType = dyn_cast<FloatType>(elementType)) {
    if (isa<Float8E8M0FNUType>(floatType)) // which has no 0
      value = std::max(value, 0x1p-127);
    return literal(DenseElementsAttr::get(type, FloatAttr::get(floatType, value).getValue()));
  }
  APInt number(elementType.getIntOrFloatBitWidth(), static_cast<uint64_t>(static_cast<int64_t>(value)),
               /*isSigned=*/true, /*implicitTrunc=*/true);
  return literal(DenseElementsAttr::get(type, number));
}

Value Composer::position(int64_t value) {
  return literal(DenseElementsAttr::get(RankedTensorType::get({}, i64()), value));
}

Value Composer::identity(spmd::ReductionKind kind, Type elementType) {
  return literal(
      DenseElementsAttr::get(RankedTensorType::get({}, elementType), Attribute(getIdentity(kind, elementType))));
}

Value Composer::iota(Shape shape, int64_t dim, Type type, int64_t start, int64_t step) {
  return createTyped<IotaOp>(RankedTensorType::get(shape, type), dim, start, step);
}

//===----------------------------------------------------------------------===//
// Element by element
//===----------------------------------------------------------------------===//

Value Composer::add(Value x, Value y) { return create<AddOp>(x, y); }
Value Composer::sub(Value x, Value y) { return create<SubOp>(x, y); }
Value Composer::mul(Value x, Value y) { return create<MulOp>(x, y); }
Value Composer::div(Value x, Value y) { return create<DivOp>(x, y); }
Value Composer::min(Value x, Value y) { return create<MinOp>(x, y); }
Value Composer::max(Value x, Value y) { return create<MaxOp>(x, y); }
Value Composer::pow(Value x, Value y) { return create<PowOp>(x, y); }
Value Composer::mod(Value x, Value y) { return create<ModOp>(x, y, false); }

Value Composer::neg(Value x) { return create<NegOp>(x); }
Value Composer::abs(Value x) { return create<AbsOp>(x); }
Value Composer::floor(Value x) { return create<FloorOp>(x); }
Value Composer::ceil(Value x) { return create<CeilOp>(x); }
Value Composer::round(Value x) { return create<RoundOp>(x); }
Value Composer::sqrt(Value x) { return create<SqrtOp>(x); }
Value Composer::reciprocal(Value x) { return create<ReciprocalOp>(x); }
Value Composer::exp(Value x) { return create<ExpOp>(x); }
Value Composer::log(Value x) { return create<LogOp>(x); }
Value Composer::cos(Value x) { return create<CosOp>(x); }
Value Composer::tanh(Value x) { return create<TanhOp>(x); }
Value Composer::sigmoid(Value x) { return create<SigmoidOp>(x); }

Value Composer::eq(Value x, Value y) { return create<EqOp>(x, y); }
Value Composer::lt(Value x, Value y) { return create<LtOp>(x, y); }
Value Composer::le(Value x, Value y) { return create<LeOp>(x, y); }
Value Composer::gt(Value x, Value y) { return create<GtOp>(x, y); }
Value Composer::ge(Value x, Value y) { return create<GeOp>(x, y); }
Value Composer::both(Value x, Value y) { return create<AndOp>(x, y); }
Value Composer::either(Value x, Value y) { return create<OrOp>(x, y); }
Value Composer::negate(Value x) { return create<NotOp>(x); }
Value Composer::select(Value condition, Value x, Value y) { return create<SelectOp>(condition, x, y); }

Value Composer::bitAnd(Value x, double y) { return create<BitwiseAndOp>(x, scalarLike(x, y)); }
Value Composer::bitXor(Value x, Value y) { return create<BitwiseXorOp>(x, y); }
Value Composer::shiftRight(Value x, Value y) { return create<ShiftOp>(x, y, true); }
Value Composer::shiftLeft(Value x, double y) { return create<ShiftOp>(x, scalarLike(x, y), false); }

Value Composer::combine(spmd::ReductionKind kind, Value x, Value y) {
  bool isBool = elementType(x) == boolean();
  switch (kind) {
  case spmd::ReductionKind::Sum:
    return add(x, y);
  case spmd::ReductionKind::Prod:
    return mul(x, y);
  case spmd::ReductionKind::Max:
    return isBool ? either(x, y) : max(x, y);
  case spmd::ReductionKind::Min:
    return isBool ? both(x, y) : min(x, y);
  }
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Value Composer::reduce(ReduceKind kind, Value x, Shape dims, bool keepDims) {
  return dims.empty() ? x : create<ReduceOp>(kind, x, dims, keepDims);
}

Value Composer::einsum(ValueRange operands, StringRef equation) { return create<EinsumOp>(operands, equation); }
Value Composer::gather(Value table, Value indices, int64_t dim) { return create<GatherOp>(table, indices, dim); }

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

Value Composer::reshape(Value value, Shape target) {
  if (!value || shape(value) == target)
    return value;
  return createTyped<ReshapeOp>(RankedTensorType::get(target, elementType(value)), value);
}

Value Composer::transpose(Value value, Shape permutation) {
  if (!value || llvm::equal(permutation, llvm::seq<int64_t>(0, rank(value))))
    return value;
  return create<TransposeOp>(value, permutation);
}

Value Composer::moveDim(Value value, int64_t from, int64_t to) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank(value)));
  if (value) {
    assert(hasDim(value, from) && hasDim(value, to) && "dims are of the value");
    order.erase(order.begin() + from);
    order.insert(order.begin() + to, from);
  }
  return transpose(value, order);
}

Value Composer::broadcast(Value value, Shape target) {
  if (!value || shape(value) == target)
    return value;
  return createTyped<BroadcastOp>(RankedTensorType::get(target, elementType(value)), value);
}

Value Composer::cast(Value value, Type type) {
  if (!value || !type || elementType(value) == type)
    return value;
  return createTyped<CastOp>(RankedTensorType::get(shape(value), type), value);
}

Value Composer::unsqueeze(Value value, Shape positions) {
  if (!value || hasFailed)
    return {};
  SmallVector<int64_t> target(shape(value));
  for (int64_t position : positions)
    target.insert(target.begin() + position, 1);
  return reshape(value, target);
}

Value Composer::slice(Value value, Shape starts, Shape sizes, Shape steps) {
  if (!value || (shape(value) == sizes && llvm::all_of(steps, [](int64_t step) { return step == 1; })))
    return value;
  return create<SliceOp>(value, starts, sizes, steps);
}

Value Composer::sliceDim(Value value, int64_t dim, int64_t start, int64_t size) {
  if (!value || hasFailed)
    return {};
  assert(hasDim(value, dim) && "the dim is of the value");
  SmallVector<int64_t> starts(rank(value), 0), sizes(shape(value)), steps(rank(value), 1);
  starts[dim] = start;
  sizes[dim] = size;
  return slice(value, starts, sizes, steps);
}

Value Composer::pick(Value value, int64_t dim, int64_t at) {
  if (!value || hasFailed)
    return {};
  assert(hasDim(value, dim) && "the dim is of the value");
  SmallVector<int64_t> target(shape(value));
  target.erase(target.begin() + dim);
  return reshape(sliceDim(value, dim, at, 1), target);
}

Value Composer::concat(ValueRange values, int64_t dim) {
  assert((hasFailed || !values.empty()) && "there is something to put together");
  return values.size() == 1 ? values.front() : create<ConcatOp>(values, dim);
}

Value Composer::pad(Value x, Shape low, Shape high, double value) {
  auto isZero = [](int64_t amount) { return amount == 0; };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return x;
  return create<PadOp>(PadMode::Constant, x, scalarLike(x, value), low, high);
}

//===----------------------------------------------------------------------===//
// Several at once
//===----------------------------------------------------------------------===//

RankedTensorType cleave::nn::getStackedType(Value value, int64_t count) {
  SmallVector<int64_t> shape{count};
  llvm::append_range(shape, getShape(value));
  return RankedTensorType::get(shape, getElementType(value));
}

/// Numpy lines dims up at the end; the new one stands in front of all.
Value cleave::nn::stackAligned(Composer &compose, Operation *op, ArrayRef<Value> operands, ArrayRef<bool> isStacked,
                               int64_t count) {
  size_t rank = getShape(op->getResult(0)).size();
  SmallVector<Value> aligned;
  for (auto [operand, hasDim] : llvm::zip_equal(operands, isStacked)) {
    aligned.push_back(operand);
    if (!hasDim)
      continue;
    ArrayRef<int64_t> shape = getShape(operand);
    SmallVector<int64_t> wide(rank + 2 - shape.size(), 1);
    wide.front() = shape.front();
    llvm::append_range(wide, shape.drop_front());
    aligned.back() = compose.reshape(operand, wide);
  }
  return compose.again(op, aligned, getStackedType(op->getResult(0), count));
}
