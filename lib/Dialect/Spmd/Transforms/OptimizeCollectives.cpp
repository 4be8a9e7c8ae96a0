//===- OptimizeCollectives.cpp - merge equal collectives ------------------===//
//
//   before   %a = spmd.all_gather %x ...      after   %a = spmd.all_gather %x ...
//            %b = spmd.all_gather %x ...
//
// Collectives are pure ops over values, so equal ones merge. Other pure ops merge too: equal collectives often hang on
// equal slices. Bytes are counted on both sides, since a rewrite of the program after its communication was decided
// must never send more.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Nn/Transforms/MergeEqual.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/Transforms/WireBytes.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_OPTIMIZECOLLECTIVES
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

namespace {
struct OptimizeCollectives : cleave::spmd::impl::OptimizeCollectivesBase<OptimizeCollectives> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(enterPhase(getOperation(), Phase::Optimized)))
      return signalPassFailure();
    for (func::FuncOp func : getFunctions(getOperation())) {
      int64_t before = countWireBytes(func);
      nn::mergeEqual(func);
      if (int64_t after = countWireBytes(func); after > before) {
        func.emitOpError() << "sends " << after << " bytes a rank after merging collectives, " << before << " before";
        return signalPassFailure();
      }
    }
  }
};
} // namespace
