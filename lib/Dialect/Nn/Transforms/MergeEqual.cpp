//===- MergeEqual.cpp - equal ops merge, unused ones go -------------------===//
//
// The pass around `mergeEqual` (cleave/Transforms/MergeEqual.h), which says how. It runs twice in the canonical form:
// early, so that later patterns see one value where a model repeats it, and last, when what was written in two ways has
// become one.
//
//===----------------------------------------------------------------------===//
#include "cleave/Transforms/MergeEqual.h"
#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNMERGEEQUAL
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;

namespace {
struct MergeEqual : cleave::nn::impl::NnMergeEqualBase<MergeEqual> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>())
      cleave::mergeEqual(func);
    getOperation().walk([](cleave::nn::LoopOp loop) { cleave::mergeEqual(loop.getBody().front()); });
  }
};
} // namespace
