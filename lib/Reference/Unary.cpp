//===- Unary.cpp - elementwise ops of one operand -------------------------===//
//
// One line per op: its formula on a compute type. Formulas that lose digits or overflow in their textbook form
// (sigmoid, softplus) are written so that they do not.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"
#include "Loops.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

/// Adds an op on floats: `fn` takes and gives a float or double.
template <typename OpT, typename Fn> static void addFloat(KernelTable &table, Fn fn) {
  table.add<OpT>([fn](OpT op, Operands in) {
    return dispatchFloat(in[0].getElementType(), [&](auto tag) {
      return mapUnary<typename decltype(tag)::type>(in[0], getResultType(op), fn);
    });
  });
}

/// Adds an op on numbers; `fn` takes and gives any compute type.
template <typename OpT, typename Fn> static void addNumber(KernelTable &table, Fn fn) {
  table.add<OpT>([fn](OpT op, Operands in) {
    return dispatchCompute(in[0].getElementType(), [&](auto tag) {
      return mapUnary<typename decltype(tag)::type>(in[0], getResultType(op), fn);
    });
  });
}

/// Adds an op on floats with attributes: `makeFn(op)` gives the formula, on doubles' worth of attributes.
template <typename OpT, typename MakeFn> static void addFloatWith(KernelTable &table, MakeFn makeFn) {
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

template <typename C> static C sigmoid(C x) {
  C e = std::exp(-std::abs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

template <typename C> static C gelu(C x) { return x * (1 + std::erf(x * C(0.70710678118654752440))) / 2; }
template <typename C> static C tanhGelu(C x) {
  C inner = C(0.79788456080286535588) * (x + C(0.044715) * x * x * x); // sqrt(2 / pi)
  return x * (1 + std::tanh(inner)) / 2;
}

/// `x` limited to [0, 1]; NaN stays.
template <typename C> static C clampToUnit(C x) { return x < 0 ? C(0) : x > 1 ? C(1) : x; }

static void registerMath(KernelTable &table) {
  addFloat<nn::SqrtOp>(table, [](auto x) { return std::sqrt(x); });
  addFloat<nn::ReciprocalOp>(table, [](auto x) { return 1 / x; });
  addFloat<nn::ExpOp>(table, [](auto x) { return std::exp(x); });
  addFloat<nn::LogOp>(table, [](auto x) { return std::log(x); });
  addFloat<nn::ErfOp>(table, [](auto x) { return std::erf(x); });
  addFloat<nn::SinOp>(table, [](auto x) { return std::sin(x); });
  addFloat<nn::CosOp>(table, [](auto x) { return std::cos(x); });
  addFloat<nn::TanOp>(table, [](auto x) { return std::tan(x); });
  addFloat<nn::AsinOp>(table, [](auto x) { return std::asin(x); });
  addFloat<nn::AcosOp>(table, [](auto x) { return std::acos(x); });
  addFloat<nn::AtanOp>(table, [](auto x) { return std::atan(x); });
  addFloat<nn::SinhOp>(table, [](auto x) { return std::sinh(x); });
  addFloat<nn::CoshOp>(table, [](auto x) { return std::cosh(x); });
  addFloat<nn::TanhOp>(table, [](auto x) { return std::tanh(x); });
  addFloat<nn::AsinhOp>(table, [](auto x) { return std::asinh(x); });
  addFloat<nn::AcoshOp>(table, [](auto x) { return std::acosh(x); });
  addFloat<nn::AtanhOp>(table, [](auto x) { return std::atanh(x); });
  addFloat<nn::FloorOp>(table, [](auto x) { return std::floor(x); });
  addFloat<nn::CeilOp>(table, [](auto x) { return std::ceil(x); });
  addFloat<nn::RoundOp>(table, [](auto x) { return std::nearbyint(x); });
}

static void registerActivations(KernelTable &table) {
  addNumber<nn::ReluOp>(table, [](auto x) { return x < 0 ? decltype(x)(0) : x; });
  addFloat<nn::SigmoidOp>(table, [](auto x) { return sigmoid(x); });
  addFloat<nn::SiluOp>(table, [](auto x) { return x * sigmoid(x); });
  addFloat<nn::SoftplusOp>(table,
                           [](auto x) { return (x > 0 ? x : decltype(x)(0)) + std::log1p(std::exp(-std::abs(x))); });
  addFloat<nn::HardSwishOp>(table, [](auto x) { return x * clampToUnit(x / 6 + decltype(x)(0.5)); });
  addFloatWith<nn::GeluOp>(
      table, [](nn::GeluOp op) { return [tanh = op.getTanh()](auto x) { return tanh ? tanhGelu(x) : gelu(x); }; });
  addFloatWith<nn::LeakyReluOp>(table, [](nn::LeakyReluOp op) {
    return [alpha = op.getAlpha().convertToDouble()](auto x) { return x < 0 ? decltype(x)(alpha) * x : x; };
  });
  addFloatWith<nn::EluOp>(table, [](nn::EluOp op) {
    return [alpha = op.getAlpha().convertToDouble()](auto x) { return x < 0 ? decltype(x)(alpha) * std::expm1(x) : x; };
  });
  addFloatWith<nn::HardSigmoidOp>(table, [](nn::HardSigmoidOp op) {
    return [alpha = op.getAlpha().convertToDouble(), beta = op.getBeta().convertToDouble()](auto x) {
      return clampToUnit(decltype(x)(alpha) * x + decltype(x)(beta));
    };
  });
}

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

void cleave::reference::registerUnary(KernelTable &table) {
  addNumber<nn::NegOp>(table, [](auto x) { return negate(x); });
  addNumber<nn::AbsOp>(table, [](auto x) {
    if constexpr (std::is_floating_point_v<decltype(x)>)
      return std::abs(x);
    else
      return x > 0 ? x : negate(x);
  });
  addNumber<nn::SignOp>(table, [](auto x) { return signOf(x); });
  addNumber<nn::BitwiseNotOp>(table, [](auto x) {
    if constexpr (std::is_integral_v<decltype(x)>)
      return ~x;
    else
      return x; // the verifier admits integers only
  });
  addNumber<nn::NotOp>(table, [](auto x) { return decltype(x)(x == 0); });
  registerMath(table);
  registerActivations(table);
  registerTests(table);
}
