//===- RecomposeLayerNorm.cpp - (x - mean) / sqrt(variance + epsilon) -----===//
//
//   x ─┬─▶ mean ─▶ sub ─┬─▶ square ─▶ mean ─▶ + epsilon ─▶ sqrt ─▶ div ─▶ (mul scale) ─▶ (add bias)
//      └────────▶───┘   └────────────────────────────────────▶──┘
//
// Scale and bias join in second and third steps. Or the scale is multiplied into 1 / sqrt first, and TensorFlow spreads
// the difference besides:
//
//   x * r + (bias - mean * r),   r = scale / sqrt(variance + epsilon)
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"

using namespace mlir;
using namespace cleave::nn;

namespace {

/// True if `value` is the mean of `x` over the dims from `dim` on.
bool isMean(Value value, Value x, int64_t dim) {
  auto mean = value.getDefiningOp<ReduceOp>();
  return mean && mean.getKind() == ReduceKind::Mean && mean.getInput() == x && getTrailingDim(mean) == dim;
}

/// x of `x - mean(x)` over the dims from `dim` on.
Value matchCentered(Value value, int64_t dim) {
  auto sub = value.getDefiningOp<SubOp>();
  return sub && isMean(sub.getRhs(), sub.getLhs(), dim) ? sub.getLhs() : Value();
}

template <typename RootOp> struct RecomposeLayerNorm : public OpRewritePattern<RootOp> {
  RecomposeLayerNorm(MLIRContext *context) : OpRewritePattern<RootOp>(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(RootOp op, PatternRewriter &rewriter) const override {
    std::optional<Normalized> end = matchNormalized(op);
    if (!end)
      return failure();
    std::optional<MeanSquare> mean = matchMeanSquare(end->root.radicand);
    if (!mean)
      return failure();
    // The difference is often computed twice.
    Value input = matchCentered(mean->input, mean->dim);
    if (!input || matchCentered(end->numerator, mean->dim) != input || op.getType() != input.getType() ||
        !isAlong(end->root.scale, input, mean->dim))
      return failure();
    rewriter.replaceOpWithNewOp<LayerNormOp>(op, op.getType(), input, end->root.scale, Value(),
                                             rewriter.getI64IntegerAttr(mean->dim),
                                             rewriter.getF64FloatAttr(mean->epsilon));
    return success();
  }
};

/// x * r + (bias - mean(x) * r).
struct RecomposeSpreadLayerNorm : public OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    auto parts = matchEither(op, [](Value value) { return value.getDefiningOp<SubOp>() != nullptr; });
    auto shift = parts ? parts->first.getDefiningOp<SubOp>() : SubOp();
    auto scaled = parts ? parts->second.getDefiningOp<MulOp>() : MulOp();
    auto offset = shift ? shift.getRhs().getDefiningOp<MulOp>() : MulOp();
    if (!scaled || !offset)
      return failure();
    auto factors = matchEither(scaled, [&](Value value) { return llvm::is_contained(offset->getOperands(), value); });
    std::optional<InverseRoot> root = factors ? matchInverseRoot(factors->first) : std::nullopt;
    std::optional<MeanSquare> square = root && root->scale ? matchMeanSquare(root->radicand) : std::nullopt;
    if (!square)
      return failure();
    Value input = factors->second, bias = shift.getLhs();
    Value mean = offset.getLhs() == factors->first ? offset.getRhs() : offset.getLhs();
    if (matchCentered(square->input, square->dim) != input || !isMean(mean, input, square->dim) ||
        op.getType() != input.getType() || !isAlong(root->scale, input, square->dim) ||
        !isAlong(bias, input, square->dim))
      return failure();
    rewriter.replaceOpWithNewOp<LayerNormOp>(op, op.getType(), input, root->scale, bias,
                                             rewriter.getI64IntegerAttr(square->dim),
                                             rewriter.getF64FloatAttr(square->epsilon));
    return success();
  }
};

/// layer_norm(x) `RootOp` parameter, the parameter along the normalized dims only.
template <typename RootOp> struct AbsorbParameter : public OpRewritePattern<RootOp> {
  static constexpr bool isScale = std::is_same_v<RootOp, MulOp>;
  using OpRewritePattern<RootOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(RootOp op, PatternRewriter &rewriter) const override {
    auto parts = matchEither(op, [&](Value value) {
      auto norm = value.getDefiningOp<LayerNormOp>();
      bool isFree = norm && !norm.getBias() && (isScale ? !norm.getScale() : static_cast<bool>(norm.getScale()));
      return isFree && norm->hasOneUse();
    });
    if (!parts)
      return failure();
    auto norm = cast<LayerNormOp>(parts->first.getDefiningOp());
    Value parameter = parts->second;
    if (!isAlong(parameter, norm.getInput(), norm.getDim()) || op.getType() != norm.getType())
      return failure();
    rewriter.replaceOpWithNewOp<LayerNormOp>(op, op.getType(), norm.getInput(),
                                             isScale ? parameter : Value(norm.getScale()),
                                             isScale ? Value() : parameter, norm.getDimAttr(), norm.getEpsilonAttr());
    return success();
  }
};
} // namespace

void cleave::nn::populateLayerNormPatterns(RewritePatternSet &patterns) {
  patterns.add<RecomposeLayerNorm<DivOp>, RecomposeLayerNorm<MulOp>, RecomposeSpreadLayerNorm, AbsorbParameter<MulOp>,
               AbsorbParameter<AddOp>>(patterns.getContext());
}
