//===- Program.cpp - what a rank's program takes --------------------------===//
//
// In the order of the program, since what overlaps depends on it:
//
//   window k', v'  ──▶ partial_attention k, v  ──▶ window k'', v'' ──▶ partial_attention k', v'
//   sent: t                 the shorter of t and its own time overlaps
//
//===----------------------------------------------------------------------===//
#include "cleave/Cost/Program.h"

#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Exec/IR/Control.h"
#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Spmd/IR/Repeated.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::cost;

namespace {
/// What of a ring goes on at a time: blocks are sent before others are attended to.
class RingOverlap {
public:
  /// The part of `ns` that overlaps with what was sent before.
  double add(Operation &op, double ns) {
    if (auto window = dyn_cast<spmd::WindowOp>(op); window && window.getWraps())
      sentNs += ns;
    else if (isa<exec::PartialAttentionOp>(op))
      return std::min(std::exchange(sentNs, 0), ns);
    return 0;
  }

private:
  double sentNs = 0;
};

class ProgramWalk {
public:
  using Visitor = llvm::function_ref<void(Operation &, const OpVisit &)>;
  ProgramWalk(const SymbolTable &symbols, const OpTimes *times, Visitor visit)
      : symbols(symbols), times(times), visit(visit), costs(times, &symbols) {}

  void add(Block &block);

  ProgramCost sum;

private:
  void addOp(Operation &op, int64_t around, bool isInLoop, bool startsKernel, RingOverlap &overlap);

  const SymbolTable &symbols;
  const OpTimes *times;
  Visitor visit;
  OpCosts costs;
};
} // namespace

func::FuncOp cleave::cost::getCallee(Operation *op, const SymbolTable &symbols) {
  auto call = dyn_cast<func::CallOp>(op);
  return call ? symbols.lookup<func::FuncOp>(call.getCallee()) : func::FuncOp();
}

/// `around`: iterations of loops that are marks in the block.
void ProgramWalk::addOp(Operation &op, int64_t around, bool isInLoop, bool startsKernel, RingOverlap &overlap) {
  OpVisit one;
  one.runs = spmd::multiplyTimes(around, spmd::getTimes(&op));
  one.isRepeated = isInLoop || op.getParentOfType<nn::LoopOp>();
  one.cost = costs.get(op);
  // Products are launched in any case.
  if (startsKernel && one.cost.flops == 0)
    one.cost.computeNs += times->getCluster().device.launchNs;
  auto runs = static_cast<double>(one.runs);
  one.overlappedNs = overlap.add(op, runs * one.cost.getNs());
  sum.flops += runs * one.cost.flops;
  sum.time.computeNs += runs * one.cost.computeNs;
  sum.time.communicationNs += runs * one.cost.communicationNs;
  sum.time.overlappedNs += one.overlappedNs;
  if (visit)
    visit(op, one);
}

void ProgramWalk::add(Block &block) {
  RingOverlap overlap;
  llvm::DenseSet<Operation *> starts;
  if (times)
    starts = exec::findKernelStarts(block, exec::FusionCosts(times->getCluster().device));
  SmallVector<int64_t> around{1};
  for (Operation &op : block) {
    if (isa<exec::EnterOp, exec::LoopOp>(op)) {
      auto here = op.getAttrOfType<IntegerAttr>(spmd::kTimesAttr);
      around.push_back(spmd::multiplyTimes(around.back(), here ? here.getInt() : 1));
    } else if (exec::isMark(&op)) {
      around.pop_back();
    }
    if (func::FuncOp callee = getCallee(&op, symbols))
      add(callee.getBody().front());
    else if (auto loop = dyn_cast<nn::LoopOp>(op))
      add(loop.getBody().front());
    else
      addOp(op, around.back(), around.size() > 1, starts.contains(&op), overlap);
  }
}

ProgramCost cleave::cost::countProgram(func::FuncOp func, const SymbolTable &symbols, const OpTimes *times,
                                       llvm::function_ref<void(Operation &, const OpVisit &)> visit) {
  assert(func.getBody().hasOneBlock() && "a program has one block");
  ProgramWalk walk(symbols, times, visit);
  walk.add(func.getBody().front());
  return walk.sum;
}
