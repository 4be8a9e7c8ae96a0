//===- StoreNodes.cpp - attributes out of locations -----------------------===//
//
// After the rewrites of the canonical form: see Names.h.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/Names.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNSTORENODES
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;

namespace {
struct StoreNodes : cleave::nn::impl::NnStoreNodesBase<StoreNodes> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>())
      cleave::spmd::storeNodes(func);
  }
};
} // namespace
