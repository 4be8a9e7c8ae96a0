//===- FuseKernels.cpp - puts ops into kernels ----------------------------===//
//
// Which ops go together is decided in Clusters.h; here the kernels are made, each where its last op stands:
//
//   1. convolutions that are products of their windows become these; contractions take in the transposes around them
//   2. clusters
//   3. per cluster: its ops move into a body. What they read from outside becomes an argument, but for numbers and
//      values that every reader computes, which are cloned. Aliases that ops of the body read through are cloned; those
//      that others read stand behind the kernel. Behind an anchor movement comes last          Movement.h
//   4. what nothing reads any more goes
//
//===----------------------------------------------------------------------===//
#include "../Kernels/Contractions.h"
#include "../Kernels/Movement.h"
#include "../Memory/BufferAssignment.h"
#include "../Memory/KeepStates.h"
#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/RowSums.h"
#include "cleave/Dialect/Spmd/IR/ClusterAttr.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"

namespace cleave::exec {
#define GEN_PASS_DEF_FUSEKERNELS
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define DEBUG_TYPE "exec-fuse-kernels"

ALWAYS_ENABLED_STATISTIC(numFused, "kernels formed");
ALWAYS_ENABLED_STATISTIC(numOps, "ops in kernels");

namespace {

/// Makes the kernel of one cluster.
class KernelBuilder {
public:
  KernelBuilder(const Clusters &clusters, const Cluster &cluster)
      : clusters(clusters), cluster(cluster), body(new Block()), builder(cluster.ops.front()->getContext()) {
    builder.setInsertionPointToEnd(body);
  }

  void build();

private:
  bool isMember(Operation *op) const { return clusters.getCluster(op) == &cluster; }
  bool isReadOutside(Operation *op) const;
  void findResults();
  /// The value of the body that stands for `value`.
  Value resolve(Value value);
  void clone(Operation *op);
  void moveIntoBody(Operation *op);
  FusedOp createFused(OpBuilder &outside);
  void placeAliases(Operation *behind);

  const Clusters &clusters;
  const Cluster &cluster;
  Block *body; ///< owned by the kernel once there is one
  OpBuilder builder;
  IRMapping values;
  SmallVector<Value> operands, results;
  SmallVector<Location> locations;
  /// Aliases of the cluster that ops outside of it read.
  llvm::SmallPtrSet<Operation *, 4> aliasesOutside;
};

} // namespace

bool KernelBuilder::isReadOutside(Operation *op) const {
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    return !isMember(user) || (getAliasOffset(user) && aliasesOutside.contains(user));
  });
}

/// Back to front: whether an alias is read outside is known before what it is an alias of.
void KernelBuilder::findResults() {
  for (Operation *op : llvm::reverse(cluster.ops)) {
    if (!isReadOutside(op))
      continue;
    if (getAliasOffset(op))
      aliasesOutside.insert(op);
    else
      for (Value result : llvm::reverse(op->getResults()))
        if (!result.use_empty())
          results.push_back(result);
  }
  std::reverse(results.begin(), results.end());
}

void KernelBuilder::clone(Operation *op) {
  for (Value operand : op->getOperands())
    resolve(operand);
  builder.clone(*op, values);
}

Value KernelBuilder::resolve(Value value) {
  if (Value known = values.lookupOrNull(value))
    return known;
  Operation *maker = value.getDefiningOp();
  if (maker && (isNumber(maker) || clusters.isInlined(maker) || isMember(maker))) {
    clone(maker);
  } else {
    operands.push_back(value);
    values.map(value, body->addArgument(value.getType(), value.getLoc()));
  }
  return values.lookup(value);
}

void KernelBuilder::moveIntoBody(Operation *op) {
  locations.push_back(op->getLoc());
  for (OpOperand &operand : op->getOpOperands())
    operand.set(resolve(operand.get()));
  op->moveBefore(body, body->end());
  for (Value result : op->getResults())
    values.map(result, result);
}

FusedOp KernelBuilder::createFused(OpBuilder &outside) {
  OperationState state(outside.getFusedLoc(locations), FusedOp::getOperationName());
  state.addOperands(operands);
  state.addTypes(ValueRange(results).getTypes());
  state.addRegion()->push_back(body);
  return cast<FusedOp>(outside.create(state));
}

/// Those that nothing outside reads have clones in the body, if anything does.
void KernelBuilder::placeAliases(Operation *behind) {
  for (Operation *op : cluster.ops)
    if (aliasesOutside.contains(op)) {
      op->moveAfter(behind);
      behind = op;
    }
  for (Operation *op : llvm::reverse(cluster.ops))
    if (getAliasOffset(op) && !aliasesOutside.contains(op))
      op->erase();
}

void KernelBuilder::build() {
  findResults();
  auto computing = llvm::make_filter_range(cluster.ops, [](Operation *op) { return !getAliasOffset(op); });
  SmallVector<Operation *> ops(computing.begin(), computing.end());
  OpBuilder outside(ops.back()->getContext());
  outside.setInsertionPointAfter(ops.back());
  for (Operation *op : ops)
    moveIntoBody(op);
  YieldOp::create(builder, ops.back()->getLoc(), results);
  FusedOp fused = createFused(outside);
  for (auto [inside, result] : llvm::zip_equal(results, fused.getResults()))
    inside.replaceUsesWithIf(result, [&](OpOperand &use) { return use.getOwner()->getBlock() != body; });
  placeAliases(fused);
  if (cluster.hasAnchor)
    sinkMovement(*body);
}

/// Back to front, so that whole chains go in one pass.
static void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Zeros that are a sum's first term, as where rows of a table are added up: the other ranks would have zeros in their place, so all ranks
/// may have them, and no kernel needs to choose.
static void dropZeroTerms(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto keep = dyn_cast<spmd::KeepOnFirstOp>(op);
    if (!keep || keep.getKind() != spmd::ReductionKind::Sum)
      continue;
    Value kept = keep.getInput();
    auto broadcast = kept.getDefiningOp<nn::BroadcastOp>();
    if (nn::getSplatNumber(broadcast ? broadcast.getInput() : kept) != 0.0)
      continue;
    keep.replaceAllUsesWith(kept);
    keep.erase();
  }
}

/// The number that rows of a table are added to is each kernel's own, whoever else reads it: it is an anchor for as long as it knows it.
static void ownNumbers(Block &block) {
  for (Operation &op : block) {
    auto broadcast = nn::sumsRows(&op) ? op.getOperand(0).getDefiningOp<nn::BroadcastOp>() : nn::BroadcastOp();
    if (broadcast && !broadcast->hasOneUse())
      op.setOperand(0, OpBuilder(&op).clone(*broadcast)->getResult(0));
  }
}

namespace {
struct FuseKernels : cleave::exec::impl::FuseKernelsBase<FuseKernels> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<std::optional<spmd::Cluster>> cluster = spmd::readCluster(getOperation());
    if (failed(cluster) || failed(enterPhase(getOperation(), Phase::Clustered)))
      return signalPassFailure();
    const FusionCosts costs(forDevices ? cluster->value_or(spmd::Cluster()).device : spmd::ClusterDevice::hostCore());
    OwnFaults faults(&getContext());
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      if (!func.getBody().hasOneBlock()) {
        func.emitOpError("has control flow");
        return signalPassFailure();
      }
      FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
      if (failed(states))
        return signalPassFailure();
      appendStates(func, *states);
      fuseKernels(func.getBody().front(), costs);
      spmd::storeNodes(func);
    }
  }

private:
  void fuseKernels(Block &block, const FusionCosts &costs) {
    eraseUnused(block);
    dropZeroTerms(block);
    ownNumbers(block);
    contractConvolutions(block);
    if (!forDevices) {
      unfoldConvolutions(block, isLoaded);
      joinPads(block);
      eraseUnused(block);
    }
    foldTransposes(block);
    groupConcats(block);
    remarkSlow(block, slow);
    Clusters clusters(block, costs);
    for (const Cluster *cluster : clusters.getAll()) {
      ++numFused;
      numOps += cluster->ops.size();
      LDBG() << cluster->ops.size() << " ops, the first " << *cluster->ops.front();
      KernelBuilder(clusters, *cluster).build();
    }
    eraseUnused(block);
  }

  /// Kinds of ops that a remark has been made on.
  llvm::DenseSet<OperationName> slow;
};
} // namespace
