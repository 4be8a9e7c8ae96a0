//===- Elementwise.cpp - one element at a time ----------------------------===//
//
// One line per op: its formula on a compute type. Formulas that lose digits or overflow in their textbook form
// (sigmoid, softplus) are written so that they do not. Integer arithmetic wraps: it is done modulo 2^64 and cut to the
// element's width when stored. Divisors are looked through for zeros before integers are divided.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "Arithmetic.h"
#include "Kernels.h"
#include "Loops.h"

#include <cassert>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

/// Adds an op of one operand on floats: `fn` takes and gives a float or double.
template <typename OpT, typename Fn> static void addUnaryFloat(KernelTable &table, Fn fn) {
  table.add<OpT>([fn](OpT op, Operands in) {
    return dispatchFloat(in[0].getElementType(), [&](auto tag) {
      return mapUnary<typename decltype(tag)::type>(in[0], getResultType(op), fn);
    });
  });
}

/// Adds an op of one operand on numbers; `fn` takes and gives any compute type.
template <typename OpT, typename Fn> static void addUnary(KernelTable &table, Fn fn) {
  table.add<OpT>([fn](OpT op, Operands in) {
    return dispatchCompute(in[0].getElementType(), [&](auto tag) {
      return mapUnary<typename decltype(tag)::type>(in[0], getResultType(op), fn);
    });
  });
}

/// Adds an op on floats with attributes: `makeFn(op)` gives the formula, on doubles' worth of attributes.
template <typename OpT, typename MakeFn> static void addUnaryFloatWith(KernelTable &table, MakeFn makeFn) {
  table.add<OpT>([makeFn](OpT op, Operands in) {
    return dispatchFloat(in[0].getElementType(), [&](auto tag) {
      return mapUnary<typename decltype(tag)::type>(in[0], getResultType(op), makeFn(op));
    });
  });
}

/// Negation that wraps.
template <typename C> static C negate(C x) {
  if constexpr (std::is_same_v<C, int64_t>)
    return int64_t(0 - uint64_t(x));
  else
    return -x;
}

template <typename C> static C signOf(C x) {
  if constexpr (std::is_floating_point_v<C>)
    return x > 0 ? C(1) : x < 0 ? C(-1) : x; // NaN and zeros stay
  else
    return C(x > 0) - C(x < 0);
}

/// The exponential of what is never positive cannot overflow.
template <typename C> static C sigmoid(C x) {
  C e = std::exp(-std::abs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

/// With the error function, exactly; below its approximation (Hendrycks and Gimpel, arXiv:1606.08415).
template <typename C> static C gelu(C x) { return x * (1 + std::erf(x * C(0.70710678118654752440))) / 2; }
template <typename C> static C tanhGelu(C x) {
  C inner = C(0.79788456080286535588) * (x + C(0.044715) * x * x * x); // sqrt(2 / pi)
  return x * (1 + std::tanh(inner)) / 2;
}

/// `x` limited to [0, 1]; NaN stays.
template <typename C> static C clampToUnit(C x) { return x < 0 ? C(0) : x > 1 ? C(1) : x; }

static void registerMath(KernelTable &table) {
  addUnaryFloat<nn::SqrtOp>(table, [](auto x) { return std::sqrt(x); });
  addUnaryFloat<nn::ReciprocalOp>(table, [](auto x) { return 1 / x; });
  addUnaryFloat<nn::ExpOp>(table, [](auto x) { return std::exp(x); });
  addUnaryFloat<nn::LogOp>(table, [](auto x) { return std::log(x); });
  addUnaryFloat<nn::ErfOp>(table, [](auto x) { return std::erf(x); });
  addUnaryFloat<nn::SinOp>(table, [](auto x) { return std::sin(x); });
  addUnaryFloat<nn::CosOp>(table, [](auto x) { return std::cos(x); });
  addUnaryFloat<nn::TanOp>(table, [](auto x) { return std::tan(x); });
  addUnaryFloat<nn::AsinOp>(table, [](auto x) { return std::asin(x); });
  addUnaryFloat<nn::AcosOp>(table, [](auto x) { return std::acos(x); });
  addUnaryFloat<nn::AtanOp>(table, [](auto x) { return std::atan(x); });
  addUnaryFloat<nn::SinhOp>(table, [](auto x) { return std::sinh(x); });
  addUnaryFloat<nn::CoshOp>(table, [](auto x) { return std::cosh(x); });
  addUnaryFloat<nn::TanhOp>(table, [](auto x) { return std::tanh(x); });
  addUnaryFloat<nn::AsinhOp>(table, [](auto x) { return std::asinh(x); });
  addUnaryFloat<nn::AcoshOp>(table, [](auto x) { return std::acosh(x); });
  addUnaryFloat<nn::AtanhOp>(table, [](auto x) { return std::atanh(x); });
  addUnaryFloat<nn::FloorOp>(table, [](auto x) { return std::floor(x); });
  addUnaryFloat<nn::CeilOp>(table, [](auto x) { return std::ceil(x); });
  addUnaryFloat<nn::RoundOp>(table, [](auto x) { return std::nearbyint(x); });
}

static void registerActivations(KernelTable &table) {
  addUnary<nn::ReluOp>(table, [](auto x) { return x < 0 ? decltype(x)(0) : x; });
  addUnaryFloat<nn::SigmoidOp>(table, [](auto x) { return sigmoid(x); });
  addUnaryFloat<nn::SiluOp>(table, [](auto x) { return x * sigmoid(x); });
  addUnaryFloat<nn::SoftplusOp>(
      table, [](auto x) { return (x > 0 ? x : decltype(x)(0)) + std::log1p(std::exp(-std::abs(x))); });
  addUnaryFloat<nn::HardSwishOp>(table, [](auto x) { return x * clampToUnit(x / 6 + decltype(x)(0.5)); });
  addUnaryFloatWith<nn::GeluOp>(
      table, [](nn::GeluOp op) { return [tanh = op.getTanh()](auto x) { return tanh ? tanhGelu(x) : gelu(x); }; });
  addUnaryFloatWith<nn::LeakyReluOp>(table, [](nn::LeakyReluOp op) {
    return [alpha = op.getAlpha().convertToDouble()](auto x) { return x < 0 ? decltype(x)(alpha) * x : x; };
  });
  addUnaryFloatWith<nn::EluOp>(table, [](nn::EluOp op) {
    return [alpha = op.getAlpha().convertToDouble()](auto x) { return x < 0 ? decltype(x)(alpha) * std::expm1(x) : x; };
  });
  addUnaryFloatWith<nn::HardSigmoidOp>(table, [](nn::HardSigmoidOp op) {
    return [alpha = op.getAlpha().convertToDouble(), beta = op.getBeta().convertToDouble()](auto x) {
      return clampToUnit(decltype(x)(alpha) * x + decltype(x)(beta));
    };
  });
}

/// Tests give bools, which are computed as integers.
static void registerTests(KernelTable &table) {
  table.add<nn::IsNanOp>([](nn::IsNanOp op, Operands in) {
    return dispatchFloat(in[0].getElementType(), [&](auto tag) {
      return mapUnary<typename decltype(tag)::type, int64_t>(in[0], getResultType(op),
                                                             [](auto x) { return int64_t(std::isnan(x)); });
    });
  });
  table.add<nn::IsInfOp>([](nn::IsInfOp op, Operands in) {
    bool positive = op.getPositive(), negative = op.getNegative();
    return dispatchFloat(in[0].getElementType(), [&](auto tag) {
      return mapUnary<typename decltype(tag)::type, int64_t>(
          in[0], getResultType(op), [=](auto x) { return int64_t(std::isinf(x) && (x > 0 ? positive : negative)); });
    });
  });
}

static void registerUnary(KernelTable &table) {
  addUnary<nn::NegOp>(table, [](auto x) { return negate(x); });
  addUnary<nn::AbsOp>(table, [](auto x) {
    if constexpr (std::is_floating_point_v<decltype(x)>)
      return std::abs(x);
    else
      return x > 0 ? x : negate(x);
  });
  addUnary<nn::SignOp>(table, [](auto x) { return signOf(x); });
  addUnary<nn::BitwiseNotOp>(table, [](auto x) {
    if constexpr (std::is_integral_v<decltype(x)>)
      return ~x;
    else
      return x; // the verifier admits integers only
  });
  addUnary<nn::NotOp>(table, [](auto x) { return decltype(x)(x == 0); });
  registerMath(table);
  registerActivations(table);
  registerTests(table);
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

/// Adds an op whose two operands and result have one element type.
template <typename OpT, typename Fn> static void addBinary(KernelTable &table, Fn fn) {
  table.add<OpT>([fn](OpT op, Operands in) {
    return dispatchCompute(in[0].getElementType(), [&](auto tag) {
      return mapBinary<typename decltype(tag)::type>(in[0], in[1], getResultType(op), fn);
    });
  });
}

/// As `addBinary`, for integers and bool.
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
  assert((std::is_floating_point_v<C> || y != 0) && "checkDivisor has not been asked");
  if constexpr (std::is_same_v<C, int64_t>)
    if (y == -1)
      return int64_t(0 - uint64_t(x));
  return x / y;
}

/// Precondition: y is not 0 for integers.
template <typename C> static C modulo(C x, C y, bool truncated) {
  assert((std::is_floating_point_v<C> || y != 0) && "checkDivisor has not been asked");
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
    if (llvm::all_of(bytes.slice(i * elementBytes, elementBytes), [](char byte) { return byte == 0; })) {
      InFlightDiagnostic error = op->emitOpError()
                                 << "divides integers by zero: element " << i << " of the divisor is 0";
      error.attachNote(op->getOperand(1).getLoc()) << "the divisor comes from here";
      return error;
    }
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

static void registerBinary(KernelTable &table) {
  addBinary<nn::AddOp>(table, [](auto x, auto y) { return addWrapping(x, y); });
  addBinary<nn::SubOp>(table, [](auto x, auto y) { return subtractWrapping(x, y); });
  addBinary<nn::MulOp>(table, [](auto x, auto y) { return multiplyWrapping(x, y); });
  addBinary<nn::PowOp>(table, [](auto x, auto y) { return power(x, y); });
  addBinary<nn::MinOp>(table, [](auto x, auto y) { return smaller(x, y); });
  addBinary<nn::MaxOp>(table, [](auto x, auto y) { return larger(x, y); });
  addBinary<nn::PreluOp>(table, [](auto x, auto y) { return x < 0 ? multiplyWrapping(x, y) : x; });
  addComparison<nn::EqOp>(table, [](auto x, auto y) { return x == y; });
  addComparison<nn::LtOp>(table, [](auto x, auto y) { return x < y; });
  addComparison<nn::LeOp>(table, [](auto x, auto y) { return x <= y; });
  addComparison<nn::GtOp>(table, [](auto x, auto y) { return x > y; });
  addComparison<nn::GeOp>(table, [](auto x, auto y) { return x >= y; });
  registerDivisions(table);
  registerBits(table);
}

//===----------------------------------------------------------------------===//
// Three operands
//===----------------------------------------------------------------------===//

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

void cleave::reference::registerElementwise(KernelTable &table) {
  registerUnary(table);
  registerBinary(table);
  registerSelect(table);
}
