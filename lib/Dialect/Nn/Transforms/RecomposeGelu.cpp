//===- RecomposeGelu.cpp - x * (1 + erf(x / sqrt 2)) / 2, and tanh --------===//
//
// Exporters multiply the three factors in any order, so the product tree is flattened first:
//
//   mul ─┬─ 0.5                                  gelu x
//        ├─ x
//        └─ add ─┬─ 1
//                └─ erf ── x / sqrt(2)           or tanh ── sqrt(2/pi) * (x + 0.044715 * x^3)
//
// Source of the formulas: Hendrycks and Gimpel, "Gaussian Error Linear Units", arXiv:1606.08415.
//
//===----------------------------------------------------------------------===//
#include "Matching.h"

#include <cmath>

using namespace mlir;
using namespace cleave::nn;

namespace {

/// A product: its constant part and its other factors.
struct Product {
  double constant = 1;
  SmallVector<Value, 4> factors;
};

/// Flattens nested muls and divisions by constants below `value`, `depth` levels deep.
void flatten(Value value, Product &product, const KeptTensors &kept, int depth) {
  if (std::optional<double> number = getSplatNumber(value)) {
    product.constant *= *number;
    return;
  }
  bool isInner = depth > 0 && !kept.contains(value);
  if (auto mul = value.getDefiningOp<MulOp>(); mul && isInner) {
    flatten(mul.getLhs(), product, kept, depth - 1);
    flatten(mul.getRhs(), product, kept, depth - 1);
    return;
  }
  if (auto div = value.getDefiningOp<DivOp>(); div && isInner) {
    if (std::optional<double> number = getSplatNumber(div.getRhs()); number && *number != 0) {
      product.constant /= *number;
      flatten(div.getLhs(), product, kept, depth - 1);
      return;
    }
  }
  product.factors.push_back(value);
}

bool isClose(double got, double want) { return std::fabs(got - want) <= 2e-3 * std::fabs(want); }

/// `value` is `constant * x`.
bool isScaled(Value value, Value x, double constant, const KeptTensors &kept) {
  Product product;
  flatten(value, product, kept, 2);
  return product.factors.size() == 1 && product.factors.front() == x && isClose(product.constant, constant);
}

/// `value` is `constant * x^3`.
bool isCube(Value value, Value x, double constant, const KeptTensors &kept) {
  Product product;
  flatten(value, product, kept, 3);
  if (!isClose(product.constant, constant))
    return false;
  int64_t degree = 0;
  for (Value factor : product.factors) {
    auto power = factor.getDefiningOp<PowOp>();
    if (factor == x)
      ++degree;
    else if (power && power.getLhs() == x && (isNumber(power.getRhs(), 2) || isNumber(power.getRhs(), 3)))
      degree += isNumber(power.getRhs(), 2) ? 2 : 3;
    else
      return false;
  }
  return degree == 3;
}

/// `value` is `sqrt(2/pi) * (x + 0.044715 * x^3)`.
bool isTanhArgument(Value value, Value x, const KeptTensors &kept) {
  Product product;
  flatten(value, product, kept, 1);
  if (product.factors.size() != 1 || !isClose(product.constant, std::sqrt(2 / 3.14159265358979323846)))
    return false;
  auto sum = product.factors.front().getDefiningOp<AddOp>();
  if (!sum)
    return false;
  auto parts = matchEither(sum, [&](Value operand) { return operand == x; });
  return parts && isCube(parts->second, x, 0.044715, kept);
}

struct RecomposeGelu : public OpRewritePattern<MulOp> {
  RecomposeGelu(MLIRContext *context, const KeptTensors &kept) : OpRewritePattern(context), kept(kept) {}

  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    Product product;
    flatten(op.getLhs(), product, kept, 2);
    flatten(op.getRhs(), product, kept, 2);
    if (product.factors.size() != 2 || !isClose(product.constant, 0.5))
      return failure();
    for (auto [x, gate] :
         {std::pair(product.factors[0], product.factors[1]), std::pair(product.factors[1], product.factors[0])})
      if (std::optional<bool> isTanh = matchGate(gate, x);
          isTanh && x.getType() == op.getType() && !kept.containsBetween(x, op)) {
        rewriter.replaceOpWithNewOp<GeluOp>(op, op.getType(), x, rewriter.getBoolAttr(*isTanh));
        return success();
      }
    return failure();
  }

  /// `gate` is `1 + erf(..)` (false) or `1 + tanh(..)` (true) of `x`.
  std::optional<bool> matchGate(Value gate, Value x) const {
    auto sum = gate.getDefiningOp<AddOp>();
    if (!sum || kept.contains(gate))
      return std::nullopt;
    auto parts = matchEither(sum, [](Value operand) { return isNumber(operand, 1); });
    if (!parts)
      return std::nullopt;
    if (auto erf = parts->second.getDefiningOp<ErfOp>())
      return isScaled(erf.getInput(), x, std::sqrt(0.5), kept) ? std::optional(false) : std::nullopt;
    if (auto tanh = parts->second.getDefiningOp<TanhOp>())
      return isTanhArgument(tanh.getInput(), x, kept) ? std::optional(true) : std::nullopt;
    return std::nullopt;
  }
  const KeptTensors &kept;
};
} // namespace

void cleave::nn::populateGeluPatterns(RewritePatternSet &patterns, const KeptTensors &kept) {
  patterns.add<RecomposeGelu>(patterns.getContext(), kept);
}
