//===- FuseRotations.cpp - tail and head of one value, concatenated -------===//
//
//   x = [ head | tail ]      concat(tail, head) = [ tail | head ]      rotate x by |head|
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNFUSEROTATIONS
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {

/// True if `slice` takes [start, start + size) of `dim` and all of the other dims.
bool isPiece(SliceOp slice, int64_t dim, int64_t start, int64_t size) {
  ArrayRef<int64_t> shape = getShape(slice.getInput());
  for (int64_t i = 0, rank = shape.size(); i < rank; ++i) {
    int64_t wantedStart = i == dim ? start : 0, wantedSize = i == dim ? size : shape[i];
    if (slice.getSteps()[i] != 1 || slice.getStarts()[i] != wantedStart || slice.getSizes()[i] != wantedSize)
      return false;
  }
  return true;
}

struct FuseRotation : public OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    if (op.getInputs().size() != 2)
      return failure();
    auto tail = op.getInputs()[0].getDefiningOp<SliceOp>(), head = op.getInputs()[1].getDefiningOp<SliceOp>();
    if (!tail || !head || tail.getInput() != head.getInput())
      return failure();
    int64_t dim = op.getDim(), extent = getShape(tail.getInput())[dim], amount = getShape(head)[dim];
    if (!isPiece(head, dim, 0, amount) || !isPiece(tail, dim, amount, extent - amount) || amount == extent)
      return failure();
    rewriter.replaceOpWithNewOp<RotateOp>(op, op.getType(), tail.getInput(), dim, amount);
    return success();
  }
};

struct FuseRotations : public cleave::nn::impl::NnFuseRotationsBase<FuseRotations> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseRotation>(&getContext());
    if (failed(applyPatterns(getOperation(), std::move(patterns), llvm::IsaPred<ConcatOp>)))
      signalPassFailure();
  }
};
} // namespace
