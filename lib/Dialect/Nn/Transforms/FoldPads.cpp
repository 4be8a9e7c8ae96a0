//===- FoldPads.cpp - pads that another op, or two, do better -------------===//
//
// Exporters that know no uneven padding of windows write it as a node, and a step in time as a value that is padded at one end
// and cropped at the other:
//
//   pad constant 0 low [0, 0, 1], conv pads_low [0]      conv pads_low [1]
//
//   x = [ a b c d ]      [ 0 a b c d ] cropped to [ 0 a b c ]      rotate x, and 0 for what came round
//
// Padded values have extents that ranks do not divide (34 rows of 32), and where they are cut edges would be asked for twice.
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "llvm/Support/CheckedArithmetic.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNFOLDPADS
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {

/// True if the op puts zeros around spatial dims, and nothing else.
bool padsWithZeros(PadOp op) {
  auto isNothing = [](ArrayRef<int64_t> pads) { return pads[0] == 0 && pads[1] == 0; };
  if (op.getMode() != PadMode::Constant || op.getLow().size() < 3 || !isNothing(op.getLow()) ||
      !isNothing(op.getHigh()))
    return false;
  return !op.getValue() || matchPattern(op.getValue(), m_Zero()) || matchPattern(op.getValue(), m_AnyZeroFloat());
}

/// Sums, one by one; nothing where one is no number.
std::optional<SmallVector<int64_t>> addPads(ArrayRef<int64_t> pads, ArrayRef<int64_t> more) {
  SmallVector<int64_t> sums;
  for (auto [lhs, rhs] : llvm::zip_equal(pads, more)) {
    std::optional<int64_t> sum = llvm::checkedAdd(lhs, rhs);
    if (!sum)
      return std::nullopt;
    sums.push_back(*sum);
  }
  return sums;
}

struct FoldPad : public OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ConvOp op, PatternRewriter &rewriter) const override {
    auto pad = op.getInput().getDefiningOp<PadOp>();
    if (!pad || !padsWithZeros(pad))
      return failure();
    auto low = addPads(op.getPadsLow(), pad.getLow().drop_front(2)),
         high = addPads(op.getPadsHigh(), pad.getHigh().drop_front(2));
    if (!low || !high)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getInputMutable().assign(pad.getInput());
      op.setPadsLow(*low);
      op.setPadsHigh(*high);
    });
    return success();
  }
};

/// What a shift takes the place of: along `dim` positions [first, end) are those of `value`, `amount` further on; others are padding.
struct Shift {
  Value value;
  int64_t dim, amount, first, end;
};

/// The one dim that is padded, if a constant is put there.
std::optional<int64_t> getPaddedDim(PadOp op) {
  std::optional<int64_t> padded;
  for (auto [dim, pads] : llvm::enumerate(llvm::zip_equal(op.getLow(), op.getHigh()))) {
    auto [low, high] = pads;
    if (low == 0 && high == 0)
      continue;
    if (padded)
      return std::nullopt;
    padded = dim;
  }
  return op.getMode() == PadMode::Constant ? padded : std::nullopt;
}

/// True if the slice takes a range of `dim`, and all of the other dims.
bool isRange(SliceOp op, int64_t dim) {
  for (auto [i, extent] : llvm::enumerate(getShape(op.getInput())))
    if (op.getSteps()[i] != 1 || (int64_t(i) != dim && op.getSizes()[i] != extent))
      return false;
  return true;
}

std::optional<Shift> matchShift(SliceOp slice, PadOp pad) {
  std::optional<int64_t> dim = getPaddedDim(pad);
  if (!dim || !isRange(slice, *dim))
    return std::nullopt;
  int64_t start = slice.getStarts()[*dim], low = pad.getLow()[*dim];
  if (slice.getInput() != pad.getResult())
    return Shift{slice.getInput(), *dim, start - low, low, low + slice.getSizes()[*dim]};
  int64_t extent = getShape(pad.getInput())[*dim];
  return Shift{pad.getInput(), *dim, start - low, std::max<int64_t>(low - start, 0),
               std::min(extent, extent + low - start)};
}

/// Where half of the value at least stays, and its extent: else less is moved as it is.
LogicalResult replaceByShift(Operation *op, PadOp pad, const Shift &shift, PatternRewriter &rewriter) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  int64_t extent = type.getDimSize(shift.dim);
  if (type != shift.value.getType() || 2 * (shift.end - shift.first) < extent || shift.amount == 0)
    return failure();
  SmallVector<bool> isThere(extent);
  for (int64_t position = 0; position < extent; ++position)
    isThere[position] = position >= shift.first && position < shift.end;
  SmallVector<int64_t> alongDim(type.getRank() - shift.dim, 1);
  alongDim[0] = extent;
  Composer f(rewriter, op->getLoc());
  Value rotated = f.createTyped<RotateOp>(type, shift.value, shift.dim, (shift.amount % extent + extent) % extent);
  Value mask = f.literal(DenseElementsAttr::get(RankedTensorType::get(alongDim, rewriter.getI1Type()), isThere));
  Value padding = pad.getValue();
  if (!padding)
    padding = f.scalar(type.getElementType(), 0);
  rewriter.replaceOpWithNewOp<SelectOp>(op, mask, rotated, padding);
  return success();
}

struct ShiftPadded : public OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    auto pad = op.getInput().getDefiningOp<PadOp>();
    std::optional<Shift> shift = pad ? matchShift(op, pad) : std::nullopt;
    return shift ? replaceByShift(op, pad, *shift, rewriter) : failure();
  }
};

struct ShiftCropped : public OpRewritePattern<PadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PadOp op, PatternRewriter &rewriter) const override {
    auto slice = op.getInput().getDefiningOp<SliceOp>();
    std::optional<Shift> shift = slice ? matchShift(slice, op) : std::nullopt;
    return shift ? replaceByShift(op, op, *shift, rewriter) : failure();
  }
};

struct FoldPads : public cleave::nn::impl::NnFoldPadsBase<FoldPads> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldPad, ShiftPadded, ShiftCropped>(&getContext());
    if (failed(applyPatterns(getOperation(), std::move(patterns), llvm::IsaPred<ConvOp, SliceOp, PadOp>)))
      signalPassFailure();
  }
};
} // namespace
