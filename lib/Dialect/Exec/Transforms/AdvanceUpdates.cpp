//===- AdvanceUpdates.cpp - updates stand behind their gradients ----------===//
//
//   found from the back     op is elementwise, and all that reads it is an update, or is returned as the next value of a state; numbers by
//                           themselves, such as the rate, in any case
//   place of an update      behind its operands' makers, and behind other readers of the state that it is the next value of
//
// A kernel stands where its last op does. So a product of an activation and a gradient, with the update of the weight behind it in one kernel,
// would stand at the end, and both operands would live until then, of all layers.
//
// All other ops stay in their order, and so do updates among themselves where nothing keeps them apart.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Dialect/Spmd/IR/States.h"

namespace cleave::exec {
#define GEN_PASS_DEF_ADVANCEUPDATES
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

namespace {
class UpdateAdvancer {
public:
  UpdateAdvancer(func::FuncOp func, ArrayRef<spmd::StatePlace> states)
      : block(func.getBody().front()), states(states), clusters(block, FusionCosts(spmd::ClusterDevice::hostCore())) {}

  void run();

private:
  void findUpdates();
  int64_t getEnd(Operation *reader, Operation *update);
  /// -1: it stays.
  int64_t getKey(Operation *op);

  Block &block;
  ArrayRef<spmd::StatePlace> states;
  Clusters clusters;
  DenseSet<Operation *> updates;
  DenseMap<Operation *, int64_t> keys;
  /// Of an update that makes a whole next value: the old one.
  DenseMap<Operation *, SmallVector<Value, 1>> replaced;
};
} // namespace

static bool hasMapForm(Operation *op) {
  auto formed = dyn_cast<nn::FormOpInterface>(op);
  return formed && formed.getForm() == nn::Form::Map;
}

/// A rate may be a result, too, and costs nothing wherever it stands.
static bool isOneNumber(Operation *op) {
  return cast<RankedTensorType>(op->getResult(0).getType()).getNumElements() == 1;
}

/// What waits for other ranks, or for all microbatches, is waited for as late as can be.
static bool isLate(Value value) {
  Operation *maker = value.getDefiningOp();
  return isa_and_present<spmd::CollectiveOpInterface, pipe::AccumulateOp>(maker);
}

void UpdateAdvancer::findUpdates() {
  Operation *terminator = block.getTerminator();
  llvm::SmallBitVector isState(terminator->getNumOperands());
  for (const spmd::StatePlace &state : states)
    isState.set(state.result);
  for (Operation &op : llvm::reverse(block))
    if (hasMapForm(&op) && (isOneNumber(&op) || llvm::all_of(op.getUses(), [&](OpOperand &use) {
                              return use.getOwner() == terminator ? isState.test(use.getOperandNumber())
                                                                  : updates.contains(use.getOwner());
                            })))
      updates.insert(&op);
  for (const spmd::StatePlace &state : states)
    if (Operation *maker = terminator->getOperand(state.result).getDefiningOp())
      replaced[maker].push_back(block.getArgument(state.argument));
}

/// Where the kernel of a reader stands: a kernel reads what it reads where its last op is.
int64_t UpdateAdvancer::getEnd(Operation *reader, Operation *update) {
  int64_t end = keys.lookup(reader);
  // What only moves elements does so in the kernels that read it, which are the ones that find the old value or the next one.
  if (clusters.isInlined(reader) || getAliasOffset(reader))
    for (Operation *next : reader->getUsers())
      if (next != update && !next->hasTrait<OpTrait::IsTerminator>())
        end = std::max(end, getEnd(next, update));
  const Cluster *cluster = clusters.getCluster(reader);
  if (!cluster || cluster == clusters.getCluster(update))
    return end;
  for (Operation *op : cluster->ops)
    if (!updates.contains(op))
      end = std::max(end, keys.lookup(op));
  return end;
}

int64_t UpdateAdvancer::getKey(Operation *op) {
  int64_t key = 0;
  for (Value operand : op->getOperands()) {
    if (isLate(operand))
      return -1;
    if (Operation *maker = operand.getDefiningOp())
      key = std::max(key, keys.lookup(maker));
  }
  for (Value old : replaced.lookup(op))
    for (Operation *reader : old.getUsers())
      if (reader != op)
        key = std::max(key, getEnd(reader, op));
  return key < keys.lookup(op) ? key : -1;
}

void UpdateAdvancer::run() {
  findUpdates();
  int64_t number = 0;
  SmallVector<std::tuple<int64_t, int64_t, Operation *>> order;
  // What stays keeps its number; readers of a state that come later are looked at before the update is.
  for (Operation &op : block)
    keys[&op] = number++;
  for (Operation &op : block) {
    int64_t own = keys[&op], key = updates.contains(&op) ? getKey(&op) : -1;
    keys[&op] = key < 0 ? own : key;
    order.push_back({keys[&op], own, &op});
  }
  llvm::sort(order);
  for (auto [key, own, op] : order)
    op->moveBefore(&block, block.end());
}

namespace {
struct AdvanceUpdates : cleave::exec::impl::AdvanceUpdatesBase<AdvanceUpdates> {
  void runOnOperation() override {
    OwnFaults faults(&getContext());
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
      if (failed(states))
        return signalPassFailure();
      if (!states->empty() && func.getBody().hasOneBlock())
        UpdateAdvancer(func, *states).run();
    }
  }
};
} // namespace
