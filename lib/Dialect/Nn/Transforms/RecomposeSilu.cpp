//===- RecomposeSilu.cpp - x * sigmoid(x) ---------------------------------===//
//
//      x ──▶ sigmoid ──▶ mul ──▶ y          x ──▶ silu ──▶ y
//      └───────────────▶──┘
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"

using namespace mlir;
using namespace cleave::nn;

namespace {
struct RecomposeSilu : public OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    auto parts = matchEither(op, [](Value value) { return value.getDefiningOp<SigmoidOp>() != nullptr; });
    if (!parts)
      return failure();
    if (parts->first.getDefiningOp<SigmoidOp>().getInput() != parts->second)
      return failure();
    rewriter.replaceOpWithNewOp<SiluOp>(op, op.getType(), parts->second);
    return success();
  }
};
} // namespace

void cleave::nn::populateSiluPatterns(RewritePatternSet &patterns) {
  patterns.add<RecomposeSilu>(patterns.getContext());
}
