//===- OptimizeCollectives.cpp - merge equal collectives ------------------===//
//
//   before   %a = spmd.all_gather %x ...      after   %a = spmd.all_gather %x ...
//            %b = spmd.all_gather %x ...
//
// Collectives are pure ops over values, so equal ones merge, whatever they are for: the first one's cause stays. Other
// pure ops merge too: equal collectives often hang on equal slices. Bytes are counted on both sides, since a rewrite of
// the program after its communication was decided must never send more.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "cleave/Transforms/MergeEqual.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_OPTIMIZECOLLECTIVES
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

#define DEBUG_TYPE "spmd-optimize-collectives"

ALWAYS_ENABLED_STATISTIC(numMerged, "collectives that are gone, as equal to another or unused");
ALWAYS_ENABLED_STATISTIC(numBytesSaved, "bytes that a rank sends no more");

/// Ops by which ranks send something; what each knows by itself does not count.
static int64_t countCollectives(func::FuncOp func) {
  int64_t count = 0;
  func.walk([&](CollectiveOpInterface op) { count += op.communicates(); });
  return count;
}

/// Merges with the causes out of sight, which are not what a collective computes.
static void mergeCollectives(func::FuncOp func) {
  llvm::DenseMap<Operation *, StringAttr> causes;
  func.walk([&](CollectiveOpInterface op) {
    causes[op] = op.getCauseAttr();
    op.setCauseAttr({});
  });
  cleave::mergeEqual(func);
  func.walk([](LoopOpInterface loop) { cleave::mergeEqual(loop.getBody().front()); });
  func.walk([&](CollectiveOpInterface op) { op.setCauseAttr(causes.lookup(op)); });
}

namespace {
struct OptimizeCollectives : cleave::spmd::impl::OptimizeCollectivesBase<OptimizeCollectives> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(enterPhase(getOperation(), Phase::Optimized)))
      return signalPassFailure();
    OwnFaults faults(&getContext());
    for (func::FuncOp func : getFunctions(getOperation())) {
      int64_t before = countWireBytes(func);
      int64_t collectives = countCollectives(func);
      mergeCollectives(func);
      numMerged += collectives - countCollectives(func);
      int64_t after = countWireBytes(func);
      if (after > before) {
        func.emitOpError() << "sends " << after << " bytes a rank after merging collectives, " << before << " before";
        return signalPassFailure();
      }
      numBytesSaved += before - after;
      LDBG() << "@" << func.getName() << " sends " << after << " bytes, " << before << " before";
    }
  }
};
} // namespace
