//===- Matching.cpp - small questions that patterns ask -------------------===//
//
// Exporters write one thing in many ways: `x^2` as a power or a product, `1 / sqrt(v)` as a quotient, a reciprocal or a
// power, factors on either side. Each function here knows all ways to write one thing, so that a pattern names the
// thing. Numbers are compared to the precision of the element type: an epsilon went through f16 or f32 before it was
// stored.
//
//===----------------------------------------------------------------------===//
#include "Matching.h"

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

bool cleave::nn::isNumber(Value value, double number) {
  std::optional<double> found = getSplatNumber(value);
  if (!found)
    return false;
  // f16 and bf16 round what exporters compute in double: 11 and 8 bits of precision.
  Type type = getElementType(value);
  double precision = type.isBF16() ? 1.0 / 128 : type.isF16() ? 1.0 / 1024 : 1e-6;
  return std::fabs(*found - number) <= precision * std::fabs(number);
}

/// Larger lists of indices are not written out: 8 MiB of numbers.
static constexpr int64_t kMostIntegers = 1 << 20;

/// `from`, of `shape`, broadcast to `to` (numpy rules).
static SmallVector<int64_t> spread(ArrayRef<int64_t> from, ArrayRef<int64_t> shape, ArrayRef<int64_t> to) {
  SmallVector<int64_t> integers;
  int64_t count = 1;
  for (int64_t extent : to)
    count *= extent;
  integers.reserve(count);
  for (int64_t at = 0; at < count; ++at) {
    // From the last dim on; one of size 1 stays where it is.
    int64_t left = at, stride = 1, place = 0;
    for (int64_t dim = static_cast<int64_t>(to.size()) - 1, behind = 1; dim >= 0; --dim, ++behind) {
      int64_t position = left % to[dim], own = static_cast<int64_t>(shape.size()) - behind;
      left /= to[dim];
      if (own < 0)
        continue;
      place += shape[own] == 1 ? 0 : position * stride;
      stride *= shape[own];
    }
    integers.push_back(from[place]);
  }
  return integers;
}

/// An nn.iota written out.
static std::optional<SmallVector<int64_t>> getCounting(Operation *op) {
  auto iota = dyn_cast<IotaOp>(op);
  if (!iota)
    return std::nullopt;
  auto start = static_cast<int64_t>(iota.getStart()), step = static_cast<int64_t>(iota.getStep());
  ArrayRef<int64_t> shape = getShape(iota.getResult());
  SmallVector<int64_t> one(shape.size(), 1), integers;
  one[iota.getDim()] = shape[iota.getDim()];
  for (int64_t i = 0; i < shape[iota.getDim()]; ++i)
    integers.push_back(start + i * step);
  return spread(integers, one, shape);
}

/// The elements of a constant; null for others.
static DenseElementsAttr getDense(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
}

/// What constants, counts and arithmetic on them come to: exporters write positions so, and folding keeps what is large.
static std::optional<SmallVector<int64_t>> getIntegers(Value value, unsigned depth) {
  constexpr unsigned kDeepest = 16;
  auto type = cast<RankedTensorType>(value.getType());
  Operation *op = value.getDefiningOp();
  if (!op || depth > kDeepest || !type.getElementType().isIntOrIndex() || type.getNumElements() > kMostIntegers)
    return std::nullopt;
  if (DenseElementsAttr elements = getDense(value)) {
    SmallVector<int64_t> integers;
    integers.reserve(elements.getNumElements());
    for (const APInt &integer : elements.getValues<APInt>())
      integers.push_back(integer.getSExtValue());
    return integers;
  }
  if (!isa<ReshapeOp, BroadcastOp, AddOp, MulOp>(op) || !type.getElementType().isInteger(64))
    return getCounting(op);
  SmallVector<SmallVector<int64_t>, 2> operands;
  for (Value operand : op->getOperands()) {
    std::optional<SmallVector<int64_t>> integers = getIntegers(operand, depth + 1);
    if (!integers)
      return std::nullopt;
    operands.push_back(isa<ReshapeOp>(op) ? std::move(*integers)
                                          : spread(*integers, getShape(operand), type.getShape()));
  }
  for (size_t i = 0; operands.size() == 2 && i < operands[0].size(); ++i) {
    uint64_t x = static_cast<uint64_t>(operands[0][i]), y = static_cast<uint64_t>(operands[1][i]);
    operands[0][i] = static_cast<int64_t>(isa<AddOp>(op) ? x + y : x * y);
  }
  return std::move(operands.front());
}

std::optional<SmallVector<int64_t>> cleave::nn::getConstantIntegers(Value value) { return getIntegers(value, 0); }

std::optional<int64_t> cleave::nn::getSameDim(ReshapeOp op, int64_t dim) {
  ArrayRef<int64_t> from = getShape(op.getInput()), to = getShape(op);
  int64_t before = 1, product = 1;
  for (int64_t i = 0; i < dim; ++i)
    before *= to[i];
  for (auto [index, extent] : llvm::enumerate(from)) {
    if (product == before && extent == to[dim] && extent != 1)
      return index;
    product *= extent;
  }
  return std::nullopt;
}

/// A scale broadcasts along the dims from `dim` on, and along no other.
bool cleave::nn::isAlong(Value parameter, Value input, int64_t dim) {
  return !parameter || getShape(parameter).size() + dim <= getShape(input).size();
}

/// The driver would look at every op of the model once per pass; most models have few where a pattern can start.
LogicalResult cleave::nn::applyPatterns(ModuleOp module, RewritePatternSet &&patterns,
                                        function_ref<bool(Operation *)> startsAt) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (startsAt(op))
      ops.push_back(op);
  });
  if (ops.empty())
    return success();
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::AnyOp)
      .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return applyOpPatternsGreedily(ops, std::move(patterns), config);
}

/// Only means over the last dims, kept as ones, are those of a norm.
std::optional<int64_t> cleave::nn::getTrailingDim(ReduceOp op) {
  ArrayRef<int64_t> dims = op.getDims();
  int64_t rank = getShape(op.getInput()).size();
  if (dims.empty() || !op.getKeepDims())
    return std::nullopt;
  for (auto [index, dim] : llvm::enumerate(dims))
    if (dim != rank - static_cast<int64_t>(dims.size() - index))
      return std::nullopt;
  return dims.front();
}

/// v of `sqrt(v)`, also written `v ^ 0.5`.
static Value matchRoot(Value value) {
  if (auto root = value.getDefiningOp<SqrtOp>())
    return root.getInput();
  auto power = value.getDefiningOp<PowOp>();
  return power && isNumber(power.getRhs(), 0.5) ? power.getLhs() : Value();
}

/// v of `1 / sqrt(v)`.
static Value matchReciprocalRoot(Value value) {
  if (auto reciprocal = value.getDefiningOp<ReciprocalOp>())
    return matchRoot(reciprocal.getInput());
  if (auto div = value.getDefiningOp<DivOp>())
    return isNumber(div.getLhs(), 1) ? matchRoot(div.getRhs()) : Value();
  auto power = value.getDefiningOp<PowOp>();
  return power && isNumber(power.getRhs(), -0.5) ? power.getLhs() : Value();
}

std::optional<InverseRoot> cleave::nn::matchInverseRoot(Value value) {
  if (Value radicand = matchReciprocalRoot(value))
    return InverseRoot{radicand, {}};
  auto mul = value.getDefiningOp<MulOp>();
  if (!mul)
    return std::nullopt;
  auto parts = matchEither(mul, [](Value factor) { return static_cast<bool>(matchReciprocalRoot(factor)); });
  return parts ? std::optional(InverseRoot{matchReciprocalRoot(parts->first), parts->second}) : std::nullopt;
}

std::optional<Normalized> cleave::nn::matchNormalized(Operation *op) {
  if (auto div = dyn_cast<DivOp>(op)) {
    Value radicand = matchRoot(div.getRhs());
    return radicand ? std::optional(Normalized{div.getLhs(), {radicand, {}}}) : std::nullopt;
  }
  auto mul = dyn_cast<MulOp>(op);
  if (!mul)
    return std::nullopt;
  // In `scale * (y * root)` the factor `y * root` looks like a scaled root too: one without a scale goes first.
  for (bool hasScale : {false, true})
    for (auto [factor, other] : {std::pair(mul.getLhs(), mul.getRhs()), std::pair(mul.getRhs(), mul.getLhs())})
      if (std::optional<InverseRoot> root = matchInverseRoot(factor);
          root && static_cast<bool>(root->scale) == hasScale)
        return Normalized{other, *root};
  return std::nullopt;
}

/// x of `x^2`, written as a power or a product.
static Value matchSquare(Value value) {
  if (auto power = value.getDefiningOp<PowOp>())
    return isNumber(power.getRhs(), 2) ? power.getLhs() : Value();
  if (auto product = value.getDefiningOp<MulOp>())
    return product.getLhs() == product.getRhs() ? product.getLhs() : Value();
  return {};
}

/// `mean(x^2) + epsilon`, epsilon on either side.
std::optional<MeanSquare> cleave::nn::matchMeanSquare(Value value) {
  auto sum = value.getDefiningOp<AddOp>();
  if (!sum)
    return std::nullopt;
  auto parts = matchEither(sum, [](Value operand) { return getSplatNumber(operand).has_value(); });
  if (!parts)
    return std::nullopt;
  auto mean = parts->second.getDefiningOp<ReduceOp>();
  if (!mean || mean.getKind() != ReduceKind::Mean)
    return std::nullopt;
  std::optional<int64_t> dim = getTrailingDim(mean);
  Value input = matchSquare(mean.getInput());
  if (!dim || !input)
    return std::nullopt;
  return MeanSquare{input, *dim, *getSplatNumber(parts->first)};
}
