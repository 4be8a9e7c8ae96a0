//===- Binary.cpp - elementwise ops of two and three operands -------------===//
//
// Integer arithmetic wraps: it is done modulo 2^64 and cut to the element's width when stored. Divisors are looked
// through for zeros before integers are divided.
//
//===----------------------------------------------------------------------===//
#include "Arithmetic.h"
#include "Kernels.h"
#include "Loops.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

/// Adds an op whose operands and result have one element type.
template <typename OpT, typename Fn> static void addNumber(KernelTable &table, Fn fn) {
  table.add<OpT>([fn](OpT op, Operands in) {
    return dispatchCompute(in[0].getElementType(), [&](auto tag) {
      return mapBinary<typename decltype(tag)::type>(in[0], in[1], getResultType(op), fn);
    });
  });
}

/// As `addNumber`, for integers and bool.
template <typename OpT, typename Fn> static void addInteger(KernelTable &table, Fn fn) {
  table.add<OpT>([fn](OpT op, Operands in) {
    if (in[0].getElementType().isUnsignedInteger())
      return mapBinary<uint64_t>(in[0], in[1], getResultType(op), fn);
    return mapBinary<int64_t>(in[0], in[1], getResultType(op), fn);
  });
}

/// Adds a comparison: the result is bool.
template <typename OpT, typename Fn> static void addComparison(KernelTable &table, Fn fn) {
  table.add<OpT>([fn](OpT op, Operands in) {
    return dispatchCompute(in[0].getElementType(), [&](auto tag) {
      return mapBinary<typename decltype(tag)::type, int64_t>(in[0], in[1], getResultType(op),
                                                              [fn](auto x, auto y) { return int64_t(fn(x, y)); });
    });
  });
}

/// Precondition: y is not 0 for integers. The smallest integer over -1 wraps.
template <typename C> static C divide(C x, C y) {
  if constexpr (std::is_same_v<C, int64_t>)
    if (y == -1)
      return int64_t(0 - uint64_t(x));
  return x / y;
}

/// Precondition: y is not 0 for integers.
template <typename C> static C modulo(C x, C y, bool truncated) {
  C rest;
  if constexpr (std::is_floating_point_v<C>)
    rest = std::fmod(x, y);
  else if constexpr (std::is_same_v<C, int64_t>)
    rest = y == -1 ? 0 : x % y;
  else
    rest = x % y;
  if (!truncated && rest != 0 && (rest < 0) != (y < 0))
    rest += y;
  return rest;
}

/// x to the power of y; of integers modulo 2^64, and truncated where y is negative.
template <typename C> static C power(C x, C y) {
  if constexpr (std::is_floating_point_v<C>) {
    return std::pow(x, y);
  } else {
    if (y < 0)
      return x == 1 ? 1 : x == C(-1) ? (y % 2 == 0 ? 1 : C(-1)) : 0;
    uint64_t result = 1, square = uint64_t(x);
    for (uint64_t rest = uint64_t(y); rest != 0; rest >>= 1, square *= square)
      if (rest & 1)
        result *= square;
    return C(result);
  }
}

/// `x` shifted by `y` bits; `width` and more bits shift everything out.
template <typename C> static C shift(C x, C y, bool right, unsigned width) {
  bool all = uint64_t(y) >= width;
  if (right)
    return all ? (x < 0 ? C(-1) : C(0)) : x >> y;
  return all ? C(0) : C(uint64_t(x) << y);
}

/// Fails if integers would be divided by a zero in `divisor`.
static LogicalResult checkDivisor(Operation *op, const Tensor &divisor) {
  if (!divisor.getElementType().isInteger() || llvm::is_contained(getResultType(op).getShape(), 0))
    return success();
  int64_t elementBytes = getElementBytes(divisor.getElementType());
  ArrayRef<char> bytes = divisor.getBytes();
  for (int64_t i = 0, count = divisor.getNumElements(); i < count; ++i)
    if (llvm::all_of(bytes.slice(i * elementBytes, elementBytes), [](char byte) { return byte == 0; }))
      return op->emitOpError() << "divides integers by zero: element " << i << " of the divisor is 0";
  return success();
}

static void registerDivisions(KernelTable &table) {
  table.add<nn::DivOp>([](nn::DivOp op, Operands in) -> FailureOr<Tensor> {
    if (failed(checkDivisor(op, in[1])))
      return failure();
    return dispatchCompute(in[0].getElementType(), [&](auto tag) {
      return mapBinary<typename decltype(tag)::type>(in[0], in[1], getResultType(op),
                                                     [](auto x, auto y) { return divide(x, y); });
    });
  });
  table.add<nn::ModOp>([](nn::ModOp op, Operands in) -> FailureOr<Tensor> {
    if (failed(checkDivisor(op, in[1])))
      return failure();
    bool truncated = op.getTruncated();
    return dispatchCompute(in[0].getElementType(), [&](auto tag) {
      return mapBinary<typename decltype(tag)::type>(in[0], in[1], getResultType(op),
                                                     [=](auto x, auto y) { return modulo(x, y, truncated); });
    });
  });
}

/// Bytes of `condition ? x : y`, chosen element by element whatever their type.
template <typename T> static Tensor select(Operands in, RankedTensorType type) {
  Tensor result = Tensor::zeros(type);
  T *to = result.write<T>().data();
  const char *condition = in[0].getBytes().data();
  const T *lhs = in[1].as<T>().data(), *rhs = in[2].as<T>().data();
  Runs runs(type.getShape(), {in[0].getShape(), in[1].getShape(), in[2].getShape()});
  int64_t steps[3];
  for (unsigned i = 0; i < 3; ++i)
    steps[i] = runs.staysWithinRun(i) ? 0 : 1;
  runs.forEach([&](int64_t start, int64_t length, ArrayRef<int64_t> starts) {
    for (int64_t i = 0; i < length; ++i)
      to[start + i] =
          condition[starts[0] + i * steps[0]] ? lhs[starts[1] + i * steps[1]] : rhs[starts[2] + i * steps[2]];
  });
  return result;
}

static void registerSelect(KernelTable &table) {
  table.add<nn::SelectOp>([](nn::SelectOp op, Operands in) {
    switch (getElementBytes(in[1].getElementType())) {
    case 1:
      return select<uint8_t>(in, getResultType(op));
    case 2:
      return select<uint16_t>(in, getResultType(op));
    case 4:
      return select<uint32_t>(in, getResultType(op));
    default:
      return select<uint64_t>(in, getResultType(op));
    }
  });
}

static void registerBits(KernelTable &table) {
  addInteger<nn::BitwiseAndOp>(table, [](auto x, auto y) { return x & y; });
  addInteger<nn::BitwiseOrOp>(table, [](auto x, auto y) { return x | y; });
  addInteger<nn::BitwiseXorOp>(table, [](auto x, auto y) { return x ^ y; });
  addInteger<nn::AndOp>(table, [](auto x, auto y) { return x & y; });
  addInteger<nn::OrOp>(table, [](auto x, auto y) { return x | y; });
  addInteger<nn::XorOp>(table, [](auto x, auto y) { return x ^ y; });
  table.add<nn::ShiftOp>([](nn::ShiftOp op, Operands in) {
    bool right = op.getRight();
    unsigned width = in[0].getElementType().getIntOrFloatBitWidth();
    auto fn = [=](auto x, auto y) { return shift(x, y, right, width); };
    if (in[0].getElementType().isUnsignedInteger())
      return mapBinary<uint64_t>(in[0], in[1], getResultType(op), fn);
    return mapBinary<int64_t>(in[0], in[1], getResultType(op), fn);
  });
}

void cleave::reference::registerBinary(KernelTable &table) {
  addNumber<nn::AddOp>(table, [](auto x, auto y) { return addWrapping(x, y); });
  addNumber<nn::SubOp>(table, [](auto x, auto y) { return subtractWrapping(x, y); });
  addNumber<nn::MulOp>(table, [](auto x, auto y) { return multiplyWrapping(x, y); });
  addNumber<nn::PowOp>(table, [](auto x, auto y) { return power(x, y); });
  addNumber<nn::MinOp>(table, [](auto x, auto y) { return smaller(x, y); });
  addNumber<nn::MaxOp>(table, [](auto x, auto y) { return larger(x, y); });
  addNumber<nn::PreluOp>(table, [](auto x, auto y) { return x < 0 ? multiplyWrapping(x, y) : x; });
  addComparison<nn::EqOp>(table, [](auto x, auto y) { return x == y; });
  addComparison<nn::LtOp>(table, [](auto x, auto y) { return x < y; });
  addComparison<nn::LeOp>(table, [](auto x, auto y) { return x <= y; });
  addComparison<nn::GtOp>(table, [](auto x, auto y) { return x > y; });
  addComparison<nn::GeOp>(table, [](auto x, auto y) { return x >= y; });
  registerDivisions(table);
  registerBits(table);
  registerSelect(table);
}
