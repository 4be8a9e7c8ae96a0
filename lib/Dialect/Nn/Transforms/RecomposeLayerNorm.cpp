//===- RecomposeLayerNorm.cpp - (x - mean) / sqrt(variance + epsilon) -----===//
//
//   x ─┬─▶ mean ─▶ sub ─┬─▶ square ─▶ mean ─▶ + epsilon ─▶ sqrt ─▶ div ─▶ (mul scale) ─▶ (add bias)
//      └────────▶───┘   └────────────────────────────────────▶──┘
//
// Scale and bias join in second and third steps.
//
//===----------------------------------------------------------------------===//
#include "Matching.h"

using namespace mlir;
using namespace cleave::nn;

namespace {

/// x of `x - mean(x)` over the dims from `dim` on.
Value matchCentred(Value value, int64_t dim) {
  auto sub = value.getDefiningOp<SubOp>();
  if (!sub)
    return {};
  auto mean = sub.getRhs().getDefiningOp<ReduceOp>();
  if (!mean || mean.getKind() != ReduceKind::Mean || mean.getInput() != sub.getLhs() || getTrailingDim(mean) != dim)
    return {};
  return sub.getLhs();
}

template <typename RootOp> struct RecomposeLayerNorm : public OpRewritePattern<RootOp> {
  RecomposeLayerNorm(MLIRContext *context) : OpRewritePattern<RootOp>(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(RootOp op, PatternRewriter &rewriter) const override {
    std::optional<InverseRoot> root = matchInverseRoot(op);
    if (!root)
      return failure();
    std::optional<MeanSquare> mean = matchMeanSquare(root->radicand);
    if (!mean)
      return failure();
    // The difference is often computed twice.
    Value input = matchCentred(mean->input, mean->dim);
    if (!input || matchCentred(root->numerator, mean->dim) != input || op.getType() != input.getType())
      return failure();
    rewriter.replaceOpWithNewOp<LayerNormOp>(op, op.getType(), input, Value(), Value(),
                                             rewriter.getI64IntegerAttr(mean->dim),
                                             rewriter.getF64FloatAttr(mean->epsilon));
    return success();
  }
};

/// layer_norm(x) `RootOp` parameter, the parameter along the normalised dims only.
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
    int64_t normalised = getShape(norm.getInput()).size() - norm.getDim();
    if (static_cast<int64_t>(getShape(parameter).size()) > normalised || op.getType() != norm.getType())
      return failure();
    rewriter.replaceOpWithNewOp<LayerNormOp>(op, op.getType(), norm.getInput(),
                                             isScale ? parameter : Value(norm.getScale()),
                                             isScale ? Value() : parameter, norm.getDimAttr(), norm.getEpsilonAttr());
    return success();
  }
};
} // namespace

void cleave::nn::populateLayerNormPatterns(RewritePatternSet &patterns) {
  patterns.add<RecomposeLayerNorm<DivOp>, RecomposeLayerNorm<MulOp>, AbsorbParameter<MulOp>, AbsorbParameter<AddOp>>(
      patterns.getContext());
}
