//===- PackWeights.cpp - weights in the order in which they are read ------===//
//
// A kernel is asked which of its arguments is the weight of a contraction or convolution, and which layout that wants; the
// rest is book-keeping:
//
//   %w ─▶ fused { einsum %a, %b }     ->     %w ─▶ pack ─▶ fused { unpack %b ─▶ einsum %a, . }
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"

namespace cleave::exec {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

namespace {
/// The value of a body that is to be packed, and how.
struct Wish {
  Value weight;
  Layout layout;
};
} // namespace

/// A panel is a stretch of the result's last dim, so that has to be the weight's.
static std::optional<Wish> getWish(nn::EinsumOp op, int64_t width) {
  std::optional<MatmulDims> dims = MatmulDims::get(op.getEquation(), op.getInputs().getTypes());
  if (!dims || dims->depth.rhs.empty() || dims->columns.rhs.empty())
    return std::nullopt;
  int64_t last = op.getResult().getType().getRank() - 1;
  const auto *column = llvm::find(dims->columns.result, last);
  if (column == dims->columns.result.end())
    return std::nullopt;
  int64_t inner = dims->columns.rhs[column - dims->columns.result.begin()];
  Layout layout;
  layout.width = width;
  layout.order.append(dims->batch.rhs);
  for (int64_t dim : dims->columns.rhs)
    if (dim != inner)
      layout.order.push_back(dim);
  layout.batch = layout.order.size();
  layout.order.append(dims->depth.rhs);
  layout.order.push_back(inner);
  return Wish{op.getInputs()[1], layout};
}

/// Of several groups each has its own few channels: a vector runs along those of all groups, or along none.
static Wish getWish(nn::ConvOp op, int64_t width) {
  Layout layout{{}, 0, op.getGroups() == 1 ? width : 0, 1};
  for (int64_t dim = 2; dim < op.getWeight().getType().getRank(); ++dim)
    layout.order.push_back(dim);
  layout.order.append({1, 0});
  return Wish{op.getWeight(), layout};
}

static std::optional<Wish> findWish(Block &body, int64_t width) {
  for (Operation &op : body) {
    if (auto einsum = dyn_cast<nn::EinsumOp>(op))
      return getWish(einsum, width);
    if (auto conv = dyn_cast<nn::ConvOp>(op))
      return getWish(conv, width);
  }
  return std::nullopt;
}

namespace {
struct PackWeights : cleave::exec::impl::PackWeightsBase<PackWeights> {
  using Base::Base;

  void runOnOperation() override {
    OwnFaults faults(&getContext());
    if (width < 1) {
      getOperation().emitError() << "panels of width " << width.getValue() << " hold nothing";
      return signalPassFailure();
    }
    for (auto func : getOperation().getOps<func::FuncOp>())
      for (auto fused : func.getOps<FusedOp>())
        if (std::optional<Wish> wish = findWish(fused.getBody().front(), width))
          packArgument(fused, *wish);
  }

private:
  void packArgument(FusedOp fused, const Wish &wish) {
    auto argument = dyn_cast<BlockArgument>(wish.weight);
    Value weight = argument ? fused.getInputs()[argument.getArgNumber()] : Value();
    if (!weight || !isa_and_present<nn::LoadOp, nn::ConstantOp>(weight.getDefiningOp()))
      return;
    Value packed = getPacked(weight, wish.layout);
    fused.getInputsMutable()[argument.getArgNumber()].set(packed);
    auto builder = OpBuilder::atBlockBegin(&fused.getBody().front());
    auto unpack = UnpackOp::create(builder, weight.getLoc(), weight.getType(), argument, wish.layout.order,
                                   wish.layout.batch, wish.layout.width, wish.layout.interleave);
    argument.replaceAllUsesExcept(unpack, unpack);
    argument.setType(packed.getType());
  }

  /// Behind the weight, once for all who want it so.
  Value getPacked(Value weight, const Layout &layout) {
    for (Operation *user : weight.getUsers())
      if (auto pack = dyn_cast<PackOp>(user); pack && pack.getLayout() == layout)
        return pack;
    OpBuilder builder(weight.getContext());
    builder.setInsertionPointAfterValue(weight);
    auto type = cast<RankedTensorType>(weight.getType());
    auto packed = RankedTensorType::get(*getPackedShape(type.getShape(), layout), type.getElementType());
    return PackOp::create(builder, weight.getLoc(), packed, weight, layout.order, layout.batch, layout.width,
                          layout.interleave);
  }
};
} // namespace
