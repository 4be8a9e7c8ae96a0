//===- Ranks.cpp - what a call of a pipeline takes ------------------------===//
//
// Each rank goes as far as its next message; where two ranks stand at the two ends of one, both go on. A rank's first start is that of its
// first work: what it waits for before is no part of its span.
//
//===----------------------------------------------------------------------===//
#include "cleave/Cost/Ranks.h"

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::cost;

namespace {
/// A rank on its way.
struct Runner {
  ArrayRef<RankStep> steps;
  double now = 0;
  std::optional<double> start;

  bool isDone() const { return steps.empty(); }
  void take(double from) {
    start = start.value_or(from);
    now = from + steps.front().ns;
    steps = steps.drop_front();
  }
  /// Works as far as its next message.
  void work() {
    while (!isDone() && steps.front().peer < 0)
      take(now);
  }
};
} // namespace

/// One message between a rank and its peer, if both are there. A receive takes as long as its send.
static bool meet(MutableArrayRef<Runner> runners, int64_t rank) {
  Runner &sender = runners[rank];
  if (sender.isDone() || !sender.steps.front().sends)
    return false;
  int64_t peer = sender.steps.front().peer;
  if (peer >= static_cast<int64_t>(runners.size()))
    return false;
  Runner &receiver = runners[peer];
  if (receiver.isDone() || receiver.steps.front().sends || receiver.steps.front().peer != rank)
    return false;
  double begin = std::max(sender.now, receiver.now);
  sender.take(begin);
  receiver.take(begin);
  receiver.now = sender.now;
  return true;
}

/// Each round lets every rank work, and every pair that can meet; the last one finds nobody that can.
std::optional<RanksTime> cleave::cost::simulateRanks(ArrayRef<std::vector<RankStep>> ranks) {
  std::vector<Runner> runners;
  for (ArrayRef<RankStep> steps : ranks)
    runners.emplace_back().steps = steps;
  for (bool goesOn = true; goesOn;) {
    goesOn = false;
    for (Runner &runner : runners)
      runner.work();
    for (int64_t rank = 0; rank < static_cast<int64_t>(runners.size()); ++rank)
      goesOn |= meet(runners, rank);
  }
  RanksTime time;
  for (const Runner &runner : runners) {
    if (!runner.isDone())
      return std::nullopt;
    time.callNs = std::max(time.callNs, runner.now);
    time.spanNs = std::max(time.spanNs, runner.now - runner.start.value_or(runner.now));
  }
  return time;
}

/// Messages that memory planning made of one, a tensor each, are met one after the other, as they run.
std::vector<RankStep> cleave::cost::listSteps(func::FuncOp func, const SymbolTable &symbols, const OpTimes &times) {
  std::vector<RankStep> steps;
  auto add = [&](Operation &op, const OpVisit &visit) {
    double ns = static_cast<double>(visit.runs) * visit.cost.getNs() - visit.overlappedNs;
    if (auto send = dyn_cast<pipe::SendOp>(op))
      return steps.push_back({ns, static_cast<int64_t>(send.getPeer()), true});
    if (auto send = dyn_cast<exec::SendOp>(op))
      return steps.push_back({ns, static_cast<int64_t>(send.getPeer()), true});
    if (auto receive = dyn_cast<pipe::RecvOp>(op))
      return steps.push_back({ns, static_cast<int64_t>(receive.getPeer()), false});
    if (auto receive = dyn_cast<exec::ReceiveOp>(op))
      return steps.push_back({ns, static_cast<int64_t>(receive.getPeer()), false});
    if (steps.empty() || steps.back().peer >= 0)
      steps.emplace_back();
    steps.back().ns += ns;
  };
  countProgram(func, symbols, &times, add);
  return steps;
}
