//===- OptimizeCollectives.cpp - merge equal collectives ------------------===//
//
//   before   %a = spmd.all_gather %x ...      after   %a = spmd.all_gather %x ...
//            %b = spmd.all_gather %x ...
//
// Collectives are pure ops over values, so equal ones merge by common subexpression elimination, which is linear. Other
// pure ops merge too: equal collectives often hang on equal slices. Bytes are counted on both sides, since a rewrite of
// the program after its communication was decided must never send more.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/Transforms/MeshAtoms.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/Transforms/WireBytes.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_OPTIMIZECOLLECTIVES
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave::spmd;

namespace {
struct OptimizeCollectives : cleave::spmd::impl::OptimizeCollectivesBase<OptimizeCollectives> {
  using Base::Base;

  void runOnOperation() override {
    for (func::FuncOp func : getFunctions(getOperation())) {
      int64_t before = countWireBytes(func);
      removeUnused(func);
      DominanceInfo dominance(func);
      IRRewriter rewriter(&getContext());
      eliminateCommonSubExpressions(rewriter, dominance, func);
      if (int64_t after = countWireBytes(func); after > before) {
        func.emitOpError() << "sends " << after << " bytes a rank after merging collectives, " << before << " before";
        return signalPassFailure();
      }
    }
  }

private:
  /// Back to front, so that whole chains go in one pass.
  static void removeUnused(func::FuncOp func) {
    for (Block &block : func.getBody())
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
        if (isOpTriviallyDead(&op))
          op.erase();
  }
};
} // namespace
