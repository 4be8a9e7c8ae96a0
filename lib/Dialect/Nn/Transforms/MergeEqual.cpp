//===- MergeEqual.cpp - equal ops merge, unused ones go -------------------===//
#include "cleave/Transforms/MergeEqual.h"
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
  }
};
} // namespace
