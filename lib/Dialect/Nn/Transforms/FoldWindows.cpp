//===- FoldWindows.cpp - masks that are windows become attributes ---------===//
//
//   mask: i - 4 < j <= i, and padding   ─▶   causal {left = 3}, mask: padding
//
// IR/Bands.cpp says which masks are understood. Only where far keys are hidden: what is causal alone stays a mask here, which kernels
// understand by themselves later.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Bands.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNFOLDWINDOWS
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave::nn;

namespace {
struct FoldWindows : public cleave::nn::impl::NnFoldWindowsBase<FoldWindows> {
  void runOnOperation() override {
    auto getDense = [](Value value) {
      auto constant = value.getDefiningOp<ConstantOp>();
      return constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
    };
    KnownMasks known;
    getOperation().walk([&](AttentionOp attention) { useBand(attention, getDense, /*windowsOnly=*/true, known); });
  }
};
} // namespace
