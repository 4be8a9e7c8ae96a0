//===- Program.cpp - what a rank's program takes --------------------------===//
//
// In the order of the program, since what overlaps depends on it:
//
//   window k', v'  ──▶ partial_attention k, v  ──▶ window k'', v'' ──▶ partial_attention k', v'
//   sent: t                 the shorter of t and its own time overlaps
//
//   dW1   dW0   ..            update                 reductions of gradients (exec.bucket) go on a clock of their own; of them what the first
//         [dW1 ──▶][dW0 ──▶]                         reader waits for is exposed, and the rest overlaps
//
//===----------------------------------------------------------------------===//
#include "cleave/Cost/Program.h"

#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Exec/IR/Bucket.h"
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
    else if (isa<exec::PartialAttentionOp, exec::AttentionGradOp>(op))
      return std::min(std::exchange(sentNs, 0), ns);
    return 0;
  }

private:
  double sentNs = 0;
};

/// Two clocks, of a step of training: of what a rank computes, and of what goes between ranks. Reductions of gradients are waited for where they
/// are read; all else where it stands.
class GradientClock {
public:
  explicit GradientClock(const OpTimes &times) : times(times) {}

  void add(Operation &op, double ns);
  /// Nanoseconds of the reductions that overlap with something else.
  double finish();

private:
  void addReduction(Operation &op, Attribute bucket, double ns);
  void wait(double until) {
    exposedNs += std::max(until - nowNs, 0.0);
    nowNs = std::max(nowNs, until);
  }

  const OpTimes &times;
  double reductionNs = 0, exposedNs = 0;
  double nowNs = 0, sentNs = 0;
  Attribute last;
  /// When a reduction, or what only shows its bytes, is there.
  DenseMap<Value, double> done;
};

class ProgramWalk {
public:
  using Visitor = llvm::function_ref<void(Operation &, const OpVisit &)>;
  ProgramWalk(const SymbolTable &symbols, const OpTimes *times, Visitor visit)
      : symbols(symbols), times(times), visit(visit), costs(times, &symbols) {
    if (times)
      gradients.emplace(*times);
  }

  void add(Block &block);
  void finish() { sum.time.overlappedNs += gradients ? gradients->finish() : 0; }

  ProgramCost sum;

private:
  void addOp(Operation &op, int64_t around, bool isInLoop, bool startsKernel, RingOverlap &overlap);

  const SymbolTable &symbols;
  const OpTimes *times;
  Visitor visit;
  OpCosts costs;
  std::optional<GradientClock> gradients;
};
} // namespace

/// The members of a bucket stand side by side; a collective begins once for all of them.
void GradientClock::addReduction(Operation &op, Attribute bucket, double ns) {
  auto collective = cast<spmd::CollectiveOpInterface>(op);
  // Buckets count as one collective in time, too.
  double savedNs = 0;
  if (bucket == last)
    savedNs = std::min(ns, times.getCollectiveNs(getKindOfCollective(&op), collective.getGroupAxes(), /*bytes=*/1,
                                                 collective.getNumPeers()));
  last = bucket;
  sentNs = std::max(sentNs, nowNs) + ns - savedNs;
  reductionNs += ns;
  done[op.getResult(0)] = sentNs;
}

void GradientClock::add(Operation &op, double ns) {
  double until = 0;
  for (Value operand : op.getOperands())
    until = std::max(until, done.lookup(operand));
  if (IntegerAttr bucket = exec::getBucket(&op); bucket && isa<spmd::CollectiveOpInterface>(op)) {
    wait(until);
    return addReduction(op, bucket, ns);
  }
  // What moves nothing and computes nothing waits for nobody: who reads it does.
  if (ns == 0) {
    for (Value result : op.getResults())
      if (until > 0)
        done[result] = until;
    return;
  }
  auto collective = dyn_cast<spmd::CollectiveOpInterface>(op);
  bool meets = collective && collective.communicates();
  wait(meets ? std::max(until, sentNs) : until);
  nowNs += ns;
  if (meets)
    sentNs = nowNs;
}

double GradientClock::finish() {
  if (last)
    wait(sentNs);
  return last ? std::max(reductionNs - exposedNs, 0.0) : 0;
}

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
  if (gradients)
    gradients->add(op, runs * one.cost.getNs() - one.overlappedNs);
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
  walk.finish();
  return walk.sum;
}
