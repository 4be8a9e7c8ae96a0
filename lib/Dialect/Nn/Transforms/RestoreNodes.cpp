//===- RestoreNodes.cpp - locations out of attributes ---------------------===//
//
// Before the rewrites of the canonical form, which carry names along in locations: see Names.h.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/Names.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNRESTORENODES
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;

namespace {
struct RestoreNodes : cleave::nn::impl::NnRestoreNodesBase<RestoreNodes> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>())
      cleave::spmd::restoreNodes(func);
  }
};
} // namespace
