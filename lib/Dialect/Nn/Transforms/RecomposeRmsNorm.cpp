//===- RecomposeRmsNorm.cpp - x / sqrt(mean(x^2) + epsilon) ---------------===//
//
//   x ─┬─▶ square ─▶ mean ─▶ + epsilon ─▶ sqrt ─▶ 1/. ─▶ mul ─▶ (mul scale)        rms_norm x, scale
//      └───────────────────────────────────────────────▶──┘
//
// The scale joins in a second step: it may stand behind a cast that keeps it out. Or it is multiplied into 1/. first.
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"

using namespace mlir;
using namespace cleave::nn;

namespace {

template <typename RootOp> struct RecomposeRmsNorm : public OpRewritePattern<RootOp> {
  using OpRewritePattern<RootOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(RootOp op, PatternRewriter &rewriter) const override {
    std::optional<Normalized> end = matchNormalized(op);
    if (!end)
      return failure();
    std::optional<MeanSquare> mean = matchMeanSquare(end->root.radicand);
    if (!mean || mean->input != end->numerator || op.getType() != mean->input.getType() ||
        !isAlong(end->root.scale, mean->input, mean->dim))
      return failure();
    rewriter.replaceOpWithNewOp<RmsNormOp>(op, op.getType(), mean->input, end->root.scale,
                                           rewriter.getI64IntegerAttr(mean->dim),
                                           rewriter.getF64FloatAttr(mean->epsilon));
    return success();
  }
};

/// rms_norm(x) * scale, the scale along the normalized dims only.
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
    if (!isAlong(parts->second, norm.getInput(), norm.getDim()) || op.getType() != norm.getType())
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
