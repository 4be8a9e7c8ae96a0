//===- ConvolvePhases.cpp - transposed convolutions become convolutions ---===//
//
//   %y = nn.conv_transpose %x, %w strides [2]   ─▶   %0 = nn.conv %x, %w[every other]   %1 = nn.conv %x, %w[those between]   side by side
//
// What the phases are stands in Phases.h of the nn dialect, by which convolutions of strides have their gradients, too. It is done
// behind deciding: the solver sees one op, whose halo and channels are those of the op.
//
//===----------------------------------------------------------------------===//
#include "../Kernels/Contractions.h"

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Phases.h"
#include "llvm/ADT/Statistic.h"

namespace cleave::exec {
#define GEN_PASS_DEF_CONVOLVEPHASES
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;

#define DEBUG_TYPE "exec-convolve-phases"

ALWAYS_ENABLED_STATISTIC(numTransposed, "transposed convolutions written as convolutions");

namespace {
struct ConvolvePhases : exec::impl::ConvolvePhasesBase<ConvolvePhases> {
  void runOnOperation() override {
    SmallVector<nn::ConvTransposeOp> ops;
    // Boxes side by side are one product; a result without elements needs nothing.
    getOperation().walk([&](nn::ConvTransposeOp op) {
      bool isEmpty = op.getResult().getType().getNumElements() == 0 || op.getInput().getType().getNumElements() == 0 ||
                     op.getWeight().getType().getNumElements() == 0;
      if (!exec::isBoxes(op) && !isEmpty)
        ops.push_back(op);
    });
    numTransposed += ops.size();
    for (nn::ConvTransposeOp op : ops) {
      OpBuilder builder(op);
      nn::Composer f(builder, op.getLoc());
      nn::Windows windows = {op.getWeight().getType().getShape().drop_front(2), op.getStrides(), op.getPadsLow(),
                             op.getDilations()};
      op.replaceAllUsesWith(nn::handBack(f, op.getInput(), op.getWeight(), op.getBias(), windows,
                                         op.getResult().getType().getShape().drop_front(2), int64_t(op.getGroups())));
      op.erase();
    }
  }
};
} // namespace
