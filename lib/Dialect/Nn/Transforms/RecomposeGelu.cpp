//===- RecomposeGelu.cpp - x * (1 + erf(x / sqrt 2)) / 2, and tanh --------===//
//
// Exporters multiply the three factors in any order, so the product tree is flattened first:
//
//   mul ─┬─ 0.5                                  gelu x
//        ├─ x
//        └─ add ─┬─ 1
//                └─ erf ── x / sqrt(2)           or tanh ── sqrt(2/pi) * (x + 0.044715 * x^3)
//                                                                      = sqrt(2/pi) * x * (1 + 0.044715 * x^2)
//
// Source of the formulas: Hendrycks and Gimpel, "Gaussian Error Linear Units", arXiv:1606.08415.
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"

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
void flatten(Value value, Product &product, int depth) {
  if (std::optional<double> number = getSplatNumber(value)) {
    product.constant *= *number;
    return;
  }
  if (auto mul = value.getDefiningOp<MulOp>(); mul && depth > 0) {
    flatten(mul.getLhs(), product, depth - 1);
    flatten(mul.getRhs(), product, depth - 1);
    return;
  }
  if (auto div = value.getDefiningOp<DivOp>(); div && depth > 0) {
    if (std::optional<double> number = getSplatNumber(div.getRhs()); number && *number != 0) {
      product.constant /= *number;
      flatten(div.getLhs(), product, depth - 1);
      return;
    }
  }
  product.factors.push_back(value);
}

bool isClose(double got, double want) { return std::fabs(got - want) <= 2e-3 * std::fabs(want); }

/// `value` is `constant * x`.
bool isScaled(Value value, Value x, double constant) {
  Product product;
  flatten(value, product, 2);
  return product.factors.size() == 1 && product.factors.front() == x && isClose(product.constant, constant);
}

/// `value` is `constant * x^degree`.
bool isMonomial(Value value, Value x, double constant, int64_t degree) {
  Product product;
  flatten(value, product, 3);
  if (!isClose(product.constant, constant))
    return false;
  int64_t found = 0;
  for (Value factor : product.factors) {
    auto power = factor.getDefiningOp<PowOp>();
    if (factor == x)
      ++found;
    else if (power && power.getLhs() == x && (isNumber(power.getRhs(), 2) || isNumber(power.getRhs(), 3)))
      found += isNumber(power.getRhs(), 2) ? 2 : 3;
    else
      return false;
  }
  return found == degree;
}

/// `value` is `sqrt(2/pi) * (x + 0.044715 * x^3)`, with x inside the sum or in front of it.
bool isTanhArgument(Value value, Value x) {
  Product product;
  flatten(value, product, 2);
  auto *front = llvm::find(product.factors, x);
  bool isInFront = front != product.factors.end();
  if (isInFront)
    product.factors.erase(front);
  if (product.factors.size() != 1 || !isClose(product.constant, std::sqrt(2 / 3.14159265358979323846)))
    return false;
  auto sum = product.factors.front().getDefiningOp<AddOp>();
  if (!sum)
    return false;
  auto parts = matchEither(sum, [&](Value operand) { return isInFront ? isNumber(operand, 1) : operand == x; });
  return parts && isMonomial(parts->second, x, 0.044715, isInFront ? 2 : 3);
}

/// `gate` is `1 + erf(..)` (false) or `1 + tanh(..)` (true) of `x`.
std::optional<bool> matchGate(Value gate, Value x) {
  auto sum = gate.getDefiningOp<AddOp>();
  if (!sum)
    return std::nullopt;
  auto parts = matchEither(sum, [](Value operand) { return isNumber(operand, 1); });
  if (!parts)
    return std::nullopt;
  if (auto erf = parts->second.getDefiningOp<ErfOp>())
    return isScaled(erf.getInput(), x, std::sqrt(0.5)) ? std::optional(false) : std::nullopt;
  if (auto tanh = parts->second.getDefiningOp<TanhOp>())
    return isTanhArgument(tanh.getInput(), x) ? std::optional(true) : std::nullopt;
  return std::nullopt;
}

/// The tree ends in a product, or in a division by 2.
template <typename RootOp> struct RecomposeGelu : public OpRewritePattern<RootOp> {
  using OpRewritePattern<RootOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(RootOp op, PatternRewriter &rewriter) const override {
    Product product;
    flatten(op.getResult(), product, 3);
    if (product.factors.size() != 2 || !isClose(product.constant, 0.5))
      return failure();
    for (auto [x, gate] :
         {std::pair(product.factors[0], product.factors[1]), std::pair(product.factors[1], product.factors[0])})
      if (std::optional<bool> isTanh = matchGate(gate, x); isTanh && x.getType() == op.getType()) {
        rewriter.replaceOpWithNewOp<GeluOp>(op, op.getType(), x, rewriter.getBoolAttr(*isTanh));
        return success();
      }
    return failure();
  }
};
} // namespace

void cleave::nn::populateGeluPatterns(RewritePatternSet &patterns) {
  patterns.add<RecomposeGelu<MulOp>, RecomposeGelu<DivOp>>(patterns.getContext());
}
