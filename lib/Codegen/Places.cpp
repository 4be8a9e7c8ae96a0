//===- Places.cpp - arithmetic on positions in tensors --------------------===//
//
// What is known is computed here rather than left to the optimizer: an alignment is proved from the ops that are left.
//
//===----------------------------------------------------------------------===//
#include "Places.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <numeric>

using namespace mlir;
using namespace cleave::codegen;

Value PlaceBuilder::number(int64_t value) {
  Value &made = numbers[value];
  if (!made) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(entry);
    made = arith::ConstantIndexOp::create(b, loc, value);
  }
  return made;
}

std::optional<int64_t> PlaceBuilder::getKnown(Value value) { return getConstantIntValue(value); }

Value PlaceBuilder::add(Value x, Value y) {
  std::optional<int64_t> m = getKnown(x), n = getKnown(y);
  if (m && n)
    return number(*m + *n);
  return m == 0 ? y : n == 0 ? x : Value(arith::AddIOp::create(b, loc, x, y));
}
Value PlaceBuilder::add(Value x, int64_t y) { return y == 0 ? x : add(x, number(y)); }
Value PlaceBuilder::mul(Value x, int64_t y) {
  if (std::optional<int64_t> known = getKnown(x))
    return number(*known * y);
  return y == 1 ? x : y == 0 ? number(0) : Value(arith::MulIOp::create(b, loc, x, number(y)));
}
Value PlaceBuilder::div(Value x, int64_t y) {
  assert(y > 0 && getKnown(x).value_or(0) >= 0 && "a quotient of unsigned numbers");
  if (std::optional<int64_t> known = getKnown(x))
    return number(*known / y);
  return y == 1 ? x : Value(arith::DivUIOp::create(b, loc, x, number(y)));
}
Value PlaceBuilder::rem(Value x, int64_t y) {
  assert(y > 0 && getKnown(x).value_or(0) >= 0 && "a rest of unsigned numbers");
  if (std::optional<int64_t> known = getKnown(x))
    return number(*known % y);
  return y == 1 ? number(0) : Value(arith::RemUIOp::create(b, loc, x, number(y)));
}
/// By assembly without an instruction, whose result is in the operand's register.
Value PlaceBuilder::hide(Value x) {
  if (getKnown(x))
    return x;
  Value bits = arith::IndexCastOp::create(b, loc, b.getI64Type(), x);
  auto same = LLVM::InlineAsmOp::create(b, loc, TypeRange{b.getI64Type()}, ValueRange{bits}, "", "=r,0",
                                        /*has_side_effects=*/false, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                        /*asm_dialect=*/nullptr, /*operand_attrs=*/nullptr);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), same.getResult(0));
}
Value PlaceBuilder::isLess(Value x, Value y) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y); }
Value PlaceBuilder::isLess(Value x, int64_t y) { return isLess(x, number(y)); }
Value PlaceBuilder::clamp(Value x, int64_t low, int64_t high) {
  if (std::optional<int64_t> known = getKnown(x))
    return number(std::min(std::max(*known, low), high));
  return arith::MinSIOp::create(b, loc, arith::MaxSIOp::create(b, loc, x, number(low)), number(high));
}
Value PlaceBuilder::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}

/// By the op that made it: of products the product of divisors, of sums and bounds what divides both.
int64_t PlaceBuilder::getDivisor(Value value) {
  constexpr int64_t anything = (int64_t(1) << 20) * 3 * 5 * 7; // divides 0, as everything does
  if (std::optional<int64_t> known = getKnown(value))
    return *known == 0 ? anything : std::abs(*known);
  Operation *op = value.getDefiningOp();
  if (!op) {
    auto loop = dyn_cast<scf::ForOp>(value.getParentBlock()->getParentOp());
    if (!loop || loop.getInductionVar() != value)
      return 1;
    return std::gcd(getDivisor(loop.getLowerBound()), getDivisor(loop.getStep()));
  }
  if (isa<arith::IndexCastOp, LLVM::InlineAsmOp>(op)) // hidden
    return getDivisor(op->getOperand(0));
  if (isa<arith::MulIOp>(op))
    return std::gcd(anything, getDivisor(op->getOperand(0)) * getDivisor(op->getOperand(1)));
  if (isa<arith::AddIOp, arith::RemUIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return std::gcd(getDivisor(op->getOperand(0)), getDivisor(op->getOperand(1)));
  if (isa<arith::SelectOp>(op))
    return std::gcd(getDivisor(op->getOperand(1)), getDivisor(op->getOperand(2)));
  if (auto divide = dyn_cast<arith::DivUIOp>(op))
    if (int64_t has = getDivisor(divide.getLhs()), by = *getKnown(divide.getRhs()); has % by == 0)
      return has / by;
  return 1;
}

Value PlaceBuilder::linearize(ArrayRef<Value> at, ArrayRef<int64_t> shape) {
  Value sum = number(0);
  for (auto [index, extent] : llvm::zip_equal(at, shape))
    sum = add(mul(sum, extent), index);
  return sum;
}

/// The first dim needs no remainder: what is left is inside.
SmallVector<Value> PlaceBuilder::delinearize(Value linear, ArrayRef<int64_t> shape) {
  SmallVector<Value> at(shape.size());
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    // Of a dim of one element the place is known, and the same for who finds what was evaluated there.
    at[dim] = shape[dim] == 1 ? number(0) : dim == 0 ? linear : rem(linear, shape[dim]);
    linear = dim == 0 ? linear : div(linear, shape[dim]);
  }
  return at;
}

void PlaceBuilder::know(const Point &point, ArrayRef<int64_t> shape, Value linear) {
  known = Known{point, SmallVector<int64_t>(shape), linear};
}

Index PlaceBuilder::linearize(const Point &point, ArrayRef<int64_t> shape) {
  auto areSame = [](const auto &pair) {
    const auto &[x, y] = pair;
    return x.base == y.base && x.lane == y.lane;
  };
  if (known && shape == ArrayRef(known->shape) && llvm::all_of(llvm::zip_equal(point, known->point), areSame))
    return {known->linear, point.empty() ? 0 : point.back().lane};
  Index linear{number(0)};
  for (auto [index, extent] : llvm::zip_equal(point, shape))
    linear = {add(mul(linear.base, extent), index.base), linear.lane * extent + index.lane};
  return linear;
}
