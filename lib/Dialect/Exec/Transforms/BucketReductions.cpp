//===- BucketReductions.cpp - reductions of gradients go together ---------===//
//
//   %g1 = ..                 %g1 = ..
//   %r1 = all_reduce %g1     %g0 = ..
//   %g0 = ..                 %r1 = all_reduce %g1 {exec.bucket = 0}      one command in the end: they are neighbors, and what reads one
//   %r0 = all_reduce %g0     %r0 = all_reduce %g0 {exec.bucket = 0}      of them waits for both
//   .. updates               .. updates
//
// Which ones is the solver's (Solver/Buckets.h): what it has to know is when a gradient is there, all before it computed, and what a
// collective takes on the machine's links. Where no machine is known, as many as fit.
//
// Of a rank of a pipeline, no bucket goes on over a message, nor over microbatches: what each of these reduces (ZeRO-2) is added up before the
// next one's is there, and would else be kept in full. Behind the last W of a stage are those that are summed up, which are reduced while other
// ranks and stages are still at work.
//
//===----------------------------------------------------------------------===//
#include "cleave/Cost/OpCosts.h"
#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Exec/IR/Bucket.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "cleave/Solver/Buckets.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"

#include <numeric>

namespace cleave::exec {
#define GEN_PASS_DEF_BUCKETREDUCTIONS
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define DEBUG_TYPE "exec-bucket-reductions"

ALWAYS_ENABLED_STATISTIC(numReductions, "reductions that only updates read");
ALWAYS_ENABLED_STATISTIC(numBuckets, "buckets of them");

/// Buckets that are made at least, where they are made by bytes, of gradients that have more than the first one may: what the last of them
/// sends, nothing is computed beside.
static constexpr double kLeastBuckets = 8;

namespace {

/// A collective that nothing waits for but what stands behind all of the backward.
struct Reduction {
  spmd::CollectiveOpInterface op;
  int64_t ready;    ///< number of the op that makes what it reads
  int64_t firstUse; ///< number of the first op that reads it
  double readyNs;
};

class Bucketer {
public:
  /// Null `times`: buckets by bytes alone.
  Bucketer(Block &block, const cost::OpTimes *times, double firstBytes, double mostBytes)
      : block(block), times(times), costs(times), firstBytes(firstBytes), mostBytes(mostBytes) {}

  void run(int64_t &next);

private:
  void findLate();
  void findTurns();
  bool isLateReduction(Operation &op) const;
  bool isLateMessage(Operation &op) const;
  void number();
  bool isChained(ArrayRef<spmd::CollectiveOpInterface> list) const;
  SmallVector<Reduction> place(ArrayRef<spmd::CollectiveOpInterface> list) const;
  void bucket(MutableArrayRef<Reduction> list, int64_t &next);
  std::vector<size_t> choose(ArrayRef<Reduction> list) const;
  void join(MutableArrayRef<Reduction> bucket, int64_t number);

  Block &block;
  const cost::OpTimes *times;
  cost::OpCosts costs;
  double firstBytes, mostBytes;
  /// Ops that lead to nothing but what the step gives back, by no product.
  DenseSet<Operation *> late;
  /// By op: the position of the addend it leads to in a sum over microbatches; 0 for the first one, and where nothing is added up.
  DenseMap<Operation *, int64_t> turns;
  /// Number of each op, and when it is done; and how many messages there are up to it.
  DenseMap<Operation *, std::pair<int64_t, double>> made;
  DenseMap<Operation *, int64_t> messagesBefore;
};

} // namespace

/// What makes a gradient; of a bucket all of it, which stays together.
static Operation *getMaker(spmd::CollectiveOpInterface op) {
  Operation *maker = op->getOperand(0).getDefiningOp();
  Attribute bucket = maker ? maker->getAttr(kBucketAttr) : Attribute();
  while (bucket && maker->getNextNode() && maker->getNextNode()->getAttr(kBucketAttr) == bucket)
    maker = maker->getNextNode();
  return maker;
}

static bool isMessage(Operation &op) { return isa<pipe::SendOp, pipe::RecvOp>(op); }

/// What goes to another rank outside of all microbatches leads to updates there, such as a sum of squares. All else is what a rank waits for.
bool Bucketer::isLateMessage(Operation &op) const {
  auto send = dyn_cast<pipe::SendOp>(op);
  return send && static_cast<int64_t>(send.getMicrobatch()) < 0;
}

/// From the back: the updates, and what leads to them alone. Of the backward whatever leads to another product is not late.
void Bucketer::findLate() {
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (isMessage(op) && !isLateMessage(op))
      continue;
    bool isRead = llvm::all_of(op.getUsers(), [&](Operation *user) {
      return user == block.getTerminator() || (late.contains(user) && !isAnchor(user));
    });
    if (isRead)
      late.insert(&op);
  }
}

/// Addends come in the order of microbatches: `sum` is what there was before, `addend` a microbatch's own.
void Bucketer::findTurns() {
  DenseMap<Operation *, int64_t> addends;
  for (Operation &op : block)
    if (op.hasAttr(spmd::kCombinesAttr))
      addends[&op] = addends.lookup(op.getOperand(0).getDefiningOp()) + 1;
  if (addends.empty())
    return;
  for (Operation &op : llvm::reverse(block))
    for (OpOperand &use : op.getUses()) {
      auto found = addends.find(use.getOwner());
      int64_t turn = found == addends.end()        ? turns.lookup(use.getOwner())
                     : use.getOperandNumber() == 0 ? 0
                                                   : found->second;
      if (turn > 0)
        turns[&op] = std::max(turns.lookup(&op), turn);
    }
}

bool Bucketer::isLateReduction(Operation &op) const {
  auto collective = dyn_cast<spmd::CollectiveOpInterface>(op);
  return collective && isa<spmd::AllReduceOp, spmd::ReduceScatterOp>(op) && collective.communicates() &&
         late.contains(&op) && !getElementTypeOrSelf(op.getResult(0)).isInteger(1);
}

/// What one command can do: all but what is reduced, and the words for people.
static Attribute getKey(Operation &op) {
  Builder builder(op.getContext());
  auto collective = cast<spmd::CollectiveOpInterface>(op);
  Attribute dims = builder.getUnitAttr();
  if (auto scatter = dyn_cast<spmd::ReduceScatterOp>(op))
    dims = scatter.getDims();
  SmallVector<Attribute> axes;
  llvm::append_range(axes, collective.getGroupAxes());
  return builder.getArrayAttr({builder.getStringAttr(op.getName().getStringRef()), builder.getArrayAttr(axes), dims,
                               builder.getI64IntegerAttr(int64_t(*collective.getReductionKind())),
                               TypeAttr::get(getElementTypeOrSelf(op.getResult(0)))});
}

std::vector<size_t> Bucketer::choose(ArrayRef<Reduction> list) const {
  if (!times) {
    std::vector<double> bytes;
    for (const Reduction &reduction : list)
      bytes.push_back(double(cost::countBytes(reduction.op->getOperand(0))));
    // A small model would be one bucket, which goes when all of the backward is done.
    double share = std::accumulate(bytes.begin(), bytes.end(), 0.0) / kLeastBuckets;
    return fillBuckets(bytes, firstBytes, std::min(mostBytes, std::max(firstBytes, share)));
  }
  // The calls of an interface are not const.
  auto getNs = [&](spmd::CollectiveOpInterface op, int64_t bytes) {
    return times->getCollectiveNs(cost::getKindOfCollective(op), op.getGroupAxes(), bytes, op.getNumPeers());
  };
  // Nothing takes no time; the least that is something takes a beginning.
  double beginNs = getNs(list.front().op, 1);
  std::vector<BucketItem> items;
  for (const Reduction &reduction : list)
    items.push_back(
        {reduction.readyNs, getNs(reduction.op, spmd::CollectiveOpInterface(reduction.op).getWireBytes()) - beginNs});
  return chooseBuckets(items, beginNs).ends;
}

/// Behind the last op that makes an operand, where all of them are there, in the order in which they are made.
void Bucketer::join(MutableArrayRef<Reduction> bucket, int64_t number) {
  Builder builder(block.getParentOp()->getContext());
  for (Reduction &reduction : bucket)
    reduction.op->setAttr(kBucketAttr, builder.getI64IntegerAttr(number));
  if (bucket.size() == 1)
    return;
  Operation *behind = getMaker(bucket.back().op);
  for (Reduction &reduction : llvm::reverse(bucket))
    if (behind)
      reduction.op->moveAfter(behind);
    else
      reduction.op->moveBefore(&block, block.begin());
}

/// What is reduced for updates travels while others are computed; all else is waited for.
void Bucketer::number() {
  int64_t count = 0, messages = 0;
  double nowNs = 0;
  for (Operation &op : block) {
    if (times && !isLateReduction(op) && !op.hasTrait<OpTrait::IsTerminator>())
      nowNs += costs.get(op).getNs();
    made[&op] = {count++, nowNs};
    messagesBefore[&op] = messages += isMessage(op);
  }
}

/// What is reduced over one axis and then over another is a reduction that another one makes or reads: buckets of those move what is next to it.
bool Bucketer::isChained(ArrayRef<spmd::CollectiveOpInterface> list) const {
  return llvm::any_of(list, [&](spmd::CollectiveOpInterface op) {
    Operation *maker = op->getOperand(0).getDefiningOp();
    return (maker && isLateReduction(*maker)) ||
           llvm::any_of(op->getUsers(), [&](Operation *user) { return isLateReduction(*user); });
  });
}

/// In the order in which their gradients are there.
SmallVector<Reduction> Bucketer::place(ArrayRef<spmd::CollectiveOpInterface> list) const {
  SmallVector<Reduction> placed;
  for (spmd::CollectiveOpInterface op : list) {
    Operation *maker = getMaker(op);
    auto [ready, readyNs] = maker ? made.lookup(maker) : std::pair<int64_t, double>(-1, 0);
    int64_t firstUse = std::numeric_limits<int64_t>::max();
    for (Operation *user : op->getUsers())
      firstUse = std::min(firstUse, made.lookup(user).first);
    placed.push_back({op, ready, firstUse, readyNs});
  }
  auto getPlace = [&](const Reduction &one) { return std::pair(one.ready, made.lookup(one.op).first); };
  llvm::sort(placed, [&](const Reduction &a, const Reduction &b) { return getPlace(a) < getPlace(b); });
  return placed;
}

/// Buckets of what one command can do, in that order.
void Bucketer::bucket(MutableArrayRef<Reduction> list, int64_t &next) {
  size_t begin = 0;
  for (size_t end : choose(list)) {
    while (begin < end) {
      // What is read before the last one is there goes without it.
      size_t stop = begin;
      int64_t firstUse = std::numeric_limits<int64_t>::max();
      while (stop < end && list[stop].ready < std::min(firstUse, list[stop].firstUse))
        firstUse = std::min(firstUse, list[stop++].firstUse);
      MutableArrayRef<Reduction> together = list.slice(begin, stop - begin);
      begin = stop;
      LDBG() << "bucket " << next << " of " << together.size() << " after " << *together.back().op;
      join(together, next++);
      ++numBuckets;
    }
  }
}

/// Every reduction gets a number, also one that goes by itself: memory planning may start it as soon as its gradient is there, since it takes no
/// memory that the gradient would not take.
void Bucketer::run(int64_t &next) {
  findLate();
  findTurns();
  number();
  llvm::MapVector<std::tuple<Attribute, int64_t, int64_t>, SmallVector<spmd::CollectiveOpInterface>> lists;
  for (Operation &op : block) {
    if (!isLateReduction(op))
      continue;
    Operation *maker = op.getOperand(0).getDefiningOp();
    int64_t between = maker ? messagesBefore[maker] : 0;
    lists[{getKey(op), between, turns.lookup(&op)}].push_back(cast<spmd::CollectiveOpInterface>(op));
    ++numReductions;
  }
  for (auto &[key, list] : lists) {
    if (isChained(list))
      number();
    SmallVector<Reduction> placed = place(list);
    bucket(placed, next);
  }
}

namespace {
struct BucketReductions : cleave::exec::impl::BucketReductionsBase<BucketReductions> {
  using Base::Base;

  void runOnOperation() override {
    std::optional<cost::OpTimes> times;
    if (byTime) {
      FailureOr<cost::OpTimes> found = cost::OpTimes::get(getOperation());
      if (failed(found))
        return signalPassFailure();
      times = *found;
    }
    OwnFaults faults(&getContext());
    int64_t next = 0;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
      if (failed(states))
        return signalPassFailure();
      if (!states->empty() && func.getBody().hasOneBlock())
        Bucketer(func.getBody().front(), times ? &*times : nullptr, double(firstBytes), double(mostBytes)).run(next);
    }
  }
};
} // namespace
