//===- RecomposeRmsNorm.cpp - x / sqrt(mean(x^2) + epsilon) ---------------===//
//
//   x ─┬─▶ square ─▶ mean ─▶ + epsilon ─▶ sqrt ─▶ 1/. ─▶ mul ─▶ (mul scale)        rms_norm x, scale
//      └───────────────────────────────────────────────▶──┘
//
// The scale joins in a second step: it may stand behind a cast that keeps it out.
//
//===----------------------------------------------------------------------===//
#include "Matching.h"

using namespace mlir;
using namespace cleave::nn;

namespace {

template <typename RootOp> struct RecomposeRmsNorm : public OpRewritePattern<RootOp> {
  using OpRewritePattern<RootOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(RootOp op, PatternRewriter &rewriter) const override {
    std::optional<InverseRoot> root = matchInverseRoot(op);
    if (!root)
      return failure();
    std::optional<MeanSquare> mean = matchMeanSquare(root->radicand);
    if (!mean || mean->input != root->numerator || op.getType() != mean->input.getType())
      return failure();
    rewriter.replaceOpWithNewOp<RmsNormOp>(op, op.getType(), mean->input, Value(),
                                           rewriter.getI64IntegerAttr(mean->dim),
                                           rewriter.getF64FloatAttr(mean->epsilon));
    return success();
  }
};

/// rms_norm(x) * scale, the scale along the normalised dims only.
struct AbsorbScale : public OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    auto parts = matchEither(op, [&](Value value) {
      auto norm = value.getDefiningOp<RmsNormOp>();
      return norm && !norm.getScale() && norm->hasOneUse();
    });
    if (!parts)
      return failure();
    auto norm = parts->first.getDefiningOp<RmsNormOp>();
    int64_t normalised = getShape(norm.getInput()).size() - norm.getDim();
    if (static_cast<int64_t>(getShape(parts->second).size()) > normalised || op.getType() != norm.getType())
      return failure();
    rewriter.replaceOpWithNewOp<RmsNormOp>(op, op.getType(), norm.getInput(), parts->second, norm.getDimAttr(),
                                           norm.getEpsilonAttr());
    return success();
  }
};
} // namespace

void cleave::nn::populateRmsNormPatterns(RewritePatternSet &patterns) {
  patterns.add<RecomposeRmsNorm<DivOp>, RecomposeRmsNorm<MulOp>, AbsorbScale>(patterns.getContext());
}
