//===- Recompute.cpp - what a step keeps, and what it makes again ---------===//
//
// All but the cuts is linear in the ops. Prices are tried from one at which next to nothing is made again to one at which time is worth nothing,
// each a quarter of the one before; blocks from all of the forward to the smallest that hold more than a value, each half of the one before.
//
//   forward    x ─▶ ln ─▶ q, k, v ─▶ s ─▶ p ─▶ o ─▶ x' ─▶ ln ─▶ ..       x' alone crosses the place behind it: a block may end there
//   again                                                                  in front of the first reader: p' of q, k, of ln', of x
//
// Peaks are those of lifetimes, op by op. Kernels store less, so that they are too high by what only lives within one; but what is kept of the
// forward is most of a peak, and of two choices the smaller one is so by planned memory, too, but for a few percent.
//
//===----------------------------------------------------------------------===//
#include "cleave/Solver/Recompute.h"

#include "cleave/Solver/MaxFlow.h"
#include "cleave/Support/Liveness.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace cleave;
using RecomputeOp = RecomputeProblem::Op;

unsigned RecomputeProblem::addValue(int64_t bytes) {
  values.emplace_back().bytes = bytes;
  values.back().root = values.size() - 1;
  return values.size() - 1;
}

/// By value whether something behind the loss reads it.
static llvm::BitVector findRead(const RecomputeProblem &problem) {
  llvm::BitVector read(problem.values.size());
  for (const RecomputeOp &op : problem.ops)
    if (!op.isForward)
      for (unsigned value : op.operands)
        read.set(value);
  return read;
}

//===----------------------------------------------------------------------===//
// Cuts
//===----------------------------------------------------------------------===//

/// Parts of a byte: capacities are whole, and as fine as all of them together let them be. A power of two, by which whole bytes stay whole.
static double countParts(const RecomputeProblem &problem, double price) {
  double sum = 1;
  for (const RecomputeProblem::Value &value : problem.values)
    sum += static_cast<double>(value.bytes);
  for (const RecomputeOp &op : problem.ops)
    sum += op.isForward ? price * op.ns : 0;
  return std::exp2(std::floor(58 - std::log2(sum)));
}

/// The network of the header. Nodes of ops behind the loss are left out: what they read leads to the sink.
RecomputeOptimum cleave::findOptimum(const RecomputeProblem &problem, double price, const llvm::BitVector &kept) {
  MaxFlow network;
  std::vector<MaxFlow::Node> ops, values(problem.values.size(), MaxFlow::kSource);
  llvm::BitVector read = findRead(problem);
  double parts = countParts(problem, price);
  auto getCapacity = [&](double bytes) { return static_cast<int64_t>(bytes * parts); };
  auto isKept = [&](unsigned value) {
    return problem.values[value].mustKeep || (value < kept.size() && kept.test(value));
  };
  for (const RecomputeOp &op : problem.ops) {
    if (!op.isForward)
      break;
    ops.push_back(network.addNode());
    network.addEdge(MaxFlow::kSource, ops.back(), op.mayRepeat ? getCapacity(price * op.ns) : MaxFlow::kInfinite);
    for (unsigned value : op.operands)
      if (values[value] != MaxFlow::kSource)
        network.addEdge(values[value], ops.back(), MaxFlow::kInfinite);
    for (unsigned value : op.results) {
      const RecomputeProblem::Value &result = problem.values[value];
      if (result.isGiven || isKept(value))
        continue;
      values[value] = network.addNode();
      int64_t bytes = problem.values[result.root].isGiven ? 0 : problem.values[result.root].bytes;
      network.addEdge(ops.back(), values[value], op.mustRepeat ? MaxFlow::kInfinite : getCapacity(bytes));
      if (read.test(value))
        network.addEdge(values[value], MaxFlow::kSink, MaxFlow::kInfinite);
    }
  }
  RecomputeOptimum cut;
  cut.least = static_cast<double>(network.solve()) / parts;
  llvm::BitVector side = network.getSinkSide();
  cut.repeated.resize(problem.ops.size());
  for (auto [number, node] : llvm::enumerate(ops))
    if (side.test(node))
      cut.repeated.set(number);
  return cut;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

namespace {
/// The forward, op by op, with the bytes that cross each place.
class BlockFinder {
public:
  BlockFinder(const RecomputeProblem &problem, int64_t budget);
  llvm::BitVector run();

private:
  void restart(size_t begin);
  void pass(size_t place);
  void keepCrossing(size_t place);

  const RecomputeProblem &problem;
  int64_t budget;
  size_t end = 0;
  llvm::BitVector read, kept;
  /// By value the op that makes it, and the last one of the forward that reads it, or what shows its bytes.
  std::vector<size_t> made, last;
  /// Of the block that is being looked at: where it begins, bytes that are read behind the loss, bytes that cross this place and are not kept.
  size_t begin = 0;
  int64_t held = 0, crossing = 0;
  std::vector<std::vector<unsigned>> endsAt;
};
} // namespace

/// Bytes are those of roots: what shows them reads them.
BlockFinder::BlockFinder(const RecomputeProblem &problem, int64_t budget)
    : problem(problem), budget(budget), read(problem.values.size()), kept(problem.values.size()),
      made(problem.values.size()), last(problem.values.size()) {
  llvm::BitVector behind = findRead(problem);
  for (unsigned value : behind.set_bits())
    read.set(problem.values[value].root);
  for (; end < problem.ops.size() && problem.ops[end].isForward; ++end) {
    for (unsigned value : problem.ops[end].results)
      made[value] = last[value] = end;
    for (unsigned value : problem.ops[end].operands)
      last[problem.values[value].root] = end;
  }
  endsAt.resize(end);
  for (auto [number, value] : llvm::enumerate(problem.values))
    if (value.root == number && !value.isGiven && last[number] > made[number])
      endsAt[last[number]].push_back(number);
}

/// What was kept of blocks before crosses at no cost.
void BlockFinder::restart(size_t at) {
  begin = at;
  held = crossing = 0;
}

/// Counts what the op makes, and what it reads for the last time.
void BlockFinder::pass(size_t place) {
  for (unsigned value : problem.ops[place].results) {
    const RecomputeProblem::Value &result = problem.values[value];
    if (result.root != value || result.isGiven)
      continue;
    held += read.test(value) ? result.bytes : 0;
    crossing += last[value] > place ? result.bytes : 0;
  }
  for (unsigned value : endsAt[place])
    crossing -= made[value] >= begin ? problem.values[value].bytes : 0;
}

/// What was made in this block up to here and is read later in the forward.
void BlockFinder::keepCrossing(size_t place) {
  for (size_t op = begin; op <= place; ++op)
    for (unsigned value : problem.ops[op].results)
      if (last[problem.values[value].root] > place && !problem.values[value].isGiven)
        kept.set(value);
}

/// A block ends in its last half, or at the op that exceeds its budget; the next one begins behind that, and is walked from there.
llvm::BitVector BlockFinder::run() {
  size_t best = 0;
  int64_t least = -1;
  for (size_t place = 0; place < end; ++place) {
    pass(place);
    if (2 * held < budget)
      continue;
    if (least < 0 || crossing <= least) {
      best = place;
      least = crossing;
    }
    if (held <= budget)
      continue;
    keepCrossing(best);
    restart(best + 1);
    place = best;
    least = -1;
  }
  return kept;
}

llvm::BitVector cleave::findBlockEnds(const RecomputeProblem &problem, int64_t budget) {
  return BlockFinder(problem, budget).run();
}

//===----------------------------------------------------------------------===//
// Order, time and memory
//===----------------------------------------------------------------------===//

/// Ops that an op asks for come before it, whatever asks for them first; a stack takes the place of a recursion as deep as the model.
std::vector<RecomputeStep> cleave::listSteps(const RecomputeProblem &problem, const RepeatedOps &repeated) {
  std::vector<RecomputeStep> steps;
  std::vector<int64_t> makers(problem.values.size(), -1);
  llvm::BitVector isDone(problem.ops.size());
  // What has to run again first is on top.
  llvm::SmallVector<unsigned> open;
  auto ask = [&](const RecomputeOp &op) {
    for (unsigned value : op.operands)
      if (int64_t maker = makers[value]; maker >= 0 && repeated.test(maker) && !isDone.test(maker))
        open.push_back(maker);
  };
  for (auto [number, op] : llvm::enumerate(problem.ops)) {
    if (op.isForward)
      for (unsigned value : op.results)
        makers[value] = number;
    else
      ask(op);
    while (!open.empty()) {
      unsigned next = open.back();
      size_t height = open.size();
      if (!isDone.test(next))
        ask(problem.ops[next]);
      if (open.size() > height)
        continue;
      open.pop_back();
      if (!isDone.test(next))
        steps.push_back({next, true});
      isDone.set(next);
    }
    steps.push_back({static_cast<unsigned>(number), false});
  }
  return steps;
}

namespace {
/// Buffers of the values of a step, of those that are made twice two.
class PeakWalk {
public:
  PeakWalk(const RecomputeProblem &problem, const RepeatedOps &repeated)
      : problem(problem), repeated(repeated), first(problem.values.size()), again(problem.values.size()),
        isRepeated(problem.values.size()), isKept(problem.values.size()) {}

  RecomputeCosts run();

private:
  void read(unsigned value, bool isBehind, int64_t step);

  const RecomputeProblem &problem;
  const RepeatedOps &repeated;
  Liveness liveness;
  std::vector<Liveness::Buffer> first, again;
  /// Values that behind the loss are other ones.
  llvm::BitVector isRepeated, isKept;
  RecomputeCosts costs;
};
} // namespace

/// Behind the loss a value that was made again is read there.
void PeakWalk::read(unsigned value, bool isBehind, int64_t step) {
  unsigned root = problem.values[value].root;
  if (problem.values[root].isGiven)
    return;
  liveness.use(isBehind && isRepeated.test(root) ? again[root] : first[root], step);
  if (isBehind && !isRepeated.test(root))
    isKept.set(root);
}

RecomputeCosts PeakWalk::run() {
  std::vector<RecomputeStep> steps = listSteps(problem, repeated);
  auto end = static_cast<int64_t>(steps.size());
  llvm::BitVector isOfForward(problem.values.size());
  for (const RecomputeProblem::Value &value : problem.values)
    costs.givenBytes += value.isGiven ? value.bytes : 0;
  for (auto [number, run] : llvm::enumerate(steps)) {
    const RecomputeOp &op = problem.ops[run.op];
    auto step = static_cast<int64_t>(number);
    bool isBehind = run.isAgain || !op.isForward;
    costs.ns += run.isAgain ? op.ns : 0;
    for (unsigned value : op.operands)
      read(value, isBehind, step);
    for (unsigned value : op.results) {
      const RecomputeProblem::Value &result = problem.values[value];
      if (result.root != value || result.isGiven)
        continue;
      (run.isAgain ? again : first)[value] = liveness.define(step, result.bytes);
      if (run.isAgain)
        isRepeated.set(value);
      else if (result.isResult)
        liveness.use(first[value], end);
      if (op.isForward)
        isOfForward.set(value);
    }
  }
  isKept &= isOfForward;
  for (unsigned value : isKept.set_bits())
    costs.keptBytes += problem.values[value].bytes;
  costs.peakBytes = costs.givenBytes + liveness.getPeakBytes();
  return costs;
}

RecomputeCosts cleave::countCosts(const RecomputeProblem &problem, const RepeatedOps &repeated) {
  return PeakWalk(problem, repeated).run();
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

namespace {
/// All of the forward: what prices and blocks begin with.
struct ForwardSum {
  double ns = 0;
  int64_t bytes = 0, mostBytes = 0;
};
} // namespace

static ForwardSum sumForward(const RecomputeProblem &problem) {
  ForwardSum sum;
  llvm::BitVector read = findRead(problem);
  for (const RecomputeOp &op : problem.ops) {
    if (!op.isForward)
      break;
    sum.ns += op.ns;
    for (unsigned value : op.results) {
      int64_t bytes = problem.values[value].isGiven ? 0 : problem.values[value].bytes;
      sum.bytes += read.test(value) ? bytes : 0;
      sum.mostBytes = std::max(sum.mostBytes, bytes);
    }
  }
  return sum;
}

/// A price at which time is worth nothing: what is not needed is not made again all the same.
static constexpr double kLeastPrice = 1e-9;

static RecomputeChoice choose(const RecomputeProblem &problem, double price, const llvm::BitVector &kept = {}) {
  RecomputeChoice choice;
  choice.repeated = findOptimum(problem, price, kept).repeated;
  choice.costs = countCosts(problem, choice.repeated);
  return choice;
}

/// Of blocks of all sizes what each price makes again.
static std::vector<RecomputeChoice> listBlocks(const RecomputeProblem &problem, llvm::ArrayRef<double> prices) {
  std::vector<RecomputeChoice> blocks;
  ForwardSum sum = sumForward(problem);
  for (int64_t budget = sum.bytes; budget > sum.mostBytes; budget /= 2) {
    llvm::BitVector ends = findBlockEnds(problem, budget);
    for (double price : prices)
      blocks.push_back(choose(problem, price, ends));
  }
  return blocks;
}

/// The lower hull of all cuts bounds what takes how long, whatever is kept: least <= kept + price x time.
static void boundTimes(std::vector<RecomputeChoice> &choices, llvm::ArrayRef<std::pair<double, double>> cuts) {
  for (RecomputeChoice &choice : choices)
    for (auto [price, least] : cuts)
      choice.leastNs = std::max(choice.leastNs, (least - static_cast<double>(choice.costs.keptBytes)) / price);
}

std::vector<RecomputeChoice> cleave::findChoices(const RecomputeProblem &problem) {
  ForwardSum sum = sumForward(problem);
  std::vector<RecomputeChoice> all;
  std::vector<std::pair<double, double>> cuts;
  double middle = static_cast<double>(sum.bytes) / std::max(sum.ns, 1.0);
  for (double price = 16 * middle; price > middle / 100; price /= 4) {
    RecomputeOptimum cut = findOptimum(problem, price);
    cuts.push_back({price, cut.least});
    all.push_back({cut.repeated, countCosts(problem, cut.repeated)});
  }
  llvm::append_range(all, listBlocks(problem, {kLeastPrice, middle / 16, middle / 4}));
  RepeatedOps none(problem.ops.size());
  all.push_back({none, countCosts(problem, none)});
  llvm::sort(all, [](const RecomputeChoice &a, const RecomputeChoice &b) {
    return std::tuple(a.costs.ns, a.costs.peakBytes, a.costs.keptBytes) <
           std::tuple(b.costs.ns, b.costs.peakBytes, b.costs.keptBytes);
  });
  std::vector<RecomputeChoice> front;
  for (RecomputeChoice &choice : all)
    if (front.empty() || choice.costs.peakBytes < front.back().costs.peakBytes)
      front.push_back(std::move(choice));
  boundTimes(front, cuts);
  return front;
}

RecomputeChoice cleave::findBlocks(const RecomputeProblem &problem) {
  std::vector<RecomputeChoice> blocks = listBlocks(problem, kLeastPrice);
  blocks.push_back(choose(problem, kLeastPrice));
  return *llvm::min_element(
      blocks, [](const RecomputeChoice &a, const RecomputeChoice &b) { return a.costs.peakBytes < b.costs.peakBytes; });
}
