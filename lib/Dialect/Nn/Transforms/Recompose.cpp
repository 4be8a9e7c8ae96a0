//===- Recompose.cpp - puts together what exporters take apart ------------===//
//
// Runs the patterns of Recompose*.cpp to a fixpoint. Each matches a whole op at its last node; the nodes before it
// become dead and are erased with it.
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNRECOMPOSE
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave::nn;

namespace {
struct Recompose : public cleave::nn::impl::NnRecomposeBase<Recompose> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateLayerNormPatterns(patterns);
    populateRmsNormPatterns(patterns);
    populateGeluPatterns(patterns);
    populateSiluPatterns(patterns);
    if (failed(applyPatterns(getOperation(), std::move(patterns), llvm::IsaPred<MulOp, DivOp, AddOp>)))
      signalPassFailure();
  }
};
} // namespace
