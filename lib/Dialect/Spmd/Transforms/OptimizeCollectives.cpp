//===- OptimizeCollectives.cpp - merge equal collectives ------------------===//
//
//   before   %a = spmd.all_gather %x ...      after   %a = spmd.all_gather %x ...
//            %b = spmd.all_gather %x ...
//
// Collectives are pure ops over values, so equal ones merge: one walk in order, a table from hash to ops. Other pure
// ops merge too: equal collectives often hang on equal slices. Bytes are counted on both sides, since a rewrite of the
// program after its communication was decided must never send more.
//
// (Upstream's common subexpression elimination keeps no hashes, and so looks at every op several times over; on a large
// model that is the whole cost. A partitioned function is one block, which needs no dominance.)
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/Transforms/MeshAtoms.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/Transforms/WireBytes.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

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
      for (Block &block : func.getBody())
        mergeEqual(block);
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

  /// Every op whose like came before goes, and its users read that one.
  static void mergeEqual(Block &block) {
    llvm::DenseMap<size_t, SmallVector<Operation *, 1>> seen;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (op.getNumRegions() != 0 || op.hasTrait<OpTrait::IsTerminator>() || !isMemoryEffectFree(&op))
        continue;
      SmallVector<Operation *, 1> &candidates = seen[getHash(&op)];
      Operation **equal = llvm::find_if(candidates, [&](Operation *other) {
        return OperationEquivalence::isEquivalentTo(&op, other, OperationEquivalence::IgnoreLocations);
      });
      if (equal == candidates.end()) {
        candidates.push_back(&op);
        continue;
      }
      op.replaceAllUsesWith(*equal);
      op.erase();
    }
  }

  static size_t getHash(Operation *op) {
    size_t hash =
        OperationEquivalence::computeHash(op, OperationEquivalence::directHashValue,
                                          OperationEquivalence::ignoreHashValue, OperationEquivalence::IgnoreLocations);
    // Two values are taken by the table itself.
    return hash >> 1;
  }
};
} // namespace
