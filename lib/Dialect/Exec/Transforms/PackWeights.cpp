//===- PackWeights.cpp - weights in the order in which they are read ------===//
//
// A kernel is asked which of its arguments is the weight of a contraction or convolution, and which layout that wants; the
// rest is book-keeping:
//
//   %w ─▶ fused { einsum %a, %b }     ->     %w ─▶ pack ─▶ fused { unpack %b ─▶ einsum %a, . }
//
//===----------------------------------------------------------------------===//
#include "../Memory/BufferAssignment.h"
#include "cleave/Codegen/Library/Libraries.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
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
struct PackRequest {
  Value weight;
  Layout layout;
};
} // namespace

/// What is stored narrow is widened first thing in a kernel (NarrowFloats.cpp); it is packed as it is stored.
static Value getStored(Value value) {
  auto cast = value.getDefiningOp<nn::CastOp>();
  return cast ? Value(cast.getInput()) : value;
}

static bool isNarrow(Value value) { return cast<RankedTensorType>(value.getType()).getElementType().isBF16(); }

/// A panel is a stretch of the result's last dim, so that has to be the weight's.
static std::optional<PackRequest> getRequest(nn::EinsumOp op, int64_t width) {
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
  Value weight = getStored(op.getInputs()[1]);
  // Two narrow numbers are multiplied at a time.
  layout.interleave = isNarrow(weight) ? 2 : 1;
  return PackRequest{weight, layout};
}

/// Of several groups each has its own few channels: a vector runs along those of all groups, or along none.
static PackRequest getRequest(nn::ConvOp op, int64_t width) {
  Layout layout{{}, 0, op.getGroups() == 1 ? width : 0, 1};
  for (int64_t dim = 2; dim < op.getWeight().getType().getRank(); ++dim)
    layout.order.push_back(dim);
  layout.order.append({1, 0});
  Value weight = getStored(op.getWeight());
  // Of channels that fill no tiles each is widened by itself: pairs would gain nothing on one processor or another.
  constexpr int64_t tileDepth = 32;
  if (layout.width > 0 && isNarrow(weight) && op.getWeight().getType().getDimSize(1) % tileDepth == 0)
    layout.interleave = 2;
  return PackRequest{weight, layout};
}

/// Of a convolution that is a call of a library, the filter with channels last, where the images have them so.
static std::optional<PackRequest> findLibraryRequest(Block &body) {
  std::optional<codegen::LibraryConvolution> call = codegen::findConvolution(body);
  if (!call || call->input.strides.back() != 1 || call->result.strides.back() != 1)
    return std::nullopt;
  nn::ConvOp op = *body.getOps<nn::ConvOp>().begin();
  Layout layout{{0}, 0, 0, 1};
  for (int64_t dim = 2; dim < op.getWeight().getType().getRank(); ++dim)
    layout.order.push_back(dim);
  layout.order.push_back(1);
  return PackRequest{getStored(op.getWeight()), layout};
}

static std::optional<PackRequest> findRequest(Block &body, int64_t width) {
  for (Operation &op : body) {
    if (auto einsum = dyn_cast<nn::EinsumOp>(op))
      return getRequest(einsum, width);
    if (auto conv = dyn_cast<nn::ConvOp>(op))
      return getRequest(conv, width);
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
        if (std::optional<PackRequest> request = forLibraries ? findLibraryRequest(fused.getBody().front())
                                                              : findRequest(fused.getBody().front(), width))
          packArgument(fused, *request);
  }

private:
  void packArgument(FusedOp fused, const PackRequest &request) {
    auto argument = dyn_cast<BlockArgument>(request.weight);
    Value weight = argument ? fused.getInputs()[argument.getArgNumber()] : Value();
    if (!weight || !isLoaded(getPlain(weight)))
      return;
    Value packed = getPacked(weight, request.layout);
    fused.getInputsMutable()[argument.getArgNumber()].set(packed);
    if (auto cast = weight.getDefiningOp<PackOp>(); cast && cast->use_empty())
      cast.erase();
    auto builder = OpBuilder::atBlockBegin(&fused.getBody().front());
    auto unpack = UnpackOp::create(builder, weight.getLoc(), weight.getType(), argument, request.layout.order,
                                   request.layout.batch, request.layout.width, request.layout.interleave);
    argument.replaceAllUsesExcept(unpack, unpack);
    argument.setType(packed.getType());
  }

  /// What is only cast on its way into memory.
  static Value getPlain(Value weight) {
    auto pack = weight.getDefiningOp<PackOp>();
    return pack && pack.getWidth() == 0 ? Value(pack.getInput()) : weight;
  }

  /// Behind the weight, once for all who want it so.
  Value getPacked(Value weight, const Layout &layout) {
    auto type = cast<RankedTensorType>(weight.getType());
    auto packed = RankedTensorType::get(*getPackedShape(type.getShape(), layout), type.getElementType());
    Value plain = getPlain(weight);
    for (Operation *user : plain.getUsers())
      if (auto pack = dyn_cast<PackOp>(user); pack && pack.getLayout() == layout && pack.getType() == packed)
        return pack;
    OpBuilder builder(weight.getContext());
    builder.setInsertionPointAfterValue(weight);
    return PackOp::create(builder, weight.getLoc(), packed, plain, layout.order, layout.batch, layout.width,
                          layout.interleave);
  }
};
} // namespace
