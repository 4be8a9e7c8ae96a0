//===- StepOps.cpp - the ops of a step, forward and backward --------------===//
//
// One walk: an op is of the backward if all names that it has are `grad(..)`, or if it has none and reads what the backward makes. What is
// made again for the backward has the names of the forward, and is told by exec.again, which it is made of. What ops of the forward read is
// of the forward, whatever it is called: equal ops have been merged, and the first of their names may be that of a gradient.
//
//   %y = einsum %x, %w   node "fc"          F of the stage of fc
//   %g = einsum %d, %w   node "grad(fc)"    I: the stage before reads it
//   %v = einsum %d, %x   node "grad(fc)"    W
//
//===----------------------------------------------------------------------===//
#include "StepOps.h"

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/Names.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;
using spmd::Span;

/// `fc` of `grad(fc)`; nothing of other names.
static StringRef getDifferentiated(StringRef node) {
  return node.consume_front("grad(") && node.consume_back(")") ? node : StringRef();
}

/// By which nn-differentiate names a gradient's node: that of the node, or of the first tensor that it makes.
static StringRef getNodeName(const spmd::NodeInfo &info) {
  bool isNamed = !info.node.empty() || info.results.empty() || info.results.front().empty();
  return isNamed ? info.node : info.results.front().front();
}

/// Forward first, by names; then what names could not know, against the order: who feeds the forward belongs to it.
StepOps::StepOps(func::FuncOp func, const spmd::Spans &spans) {
  DenseSet<Operation *> again;
  auto reads = [](Operation &op, auto &set) {
    return llvm::any_of(op.getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && set.contains(operand.getDefiningOp());
    });
  };
  auto isBackward = [&](Operation &op, ArrayRef<spmd::NodeInfo> infos) {
    if (isa<exec::AgainOp>(op) || reads(op, again))
      return again.insert(&op), true;
    if (infos.empty())
      return reads(op, backward);
    return llvm::all_of(infos,
                        [](const spmd::NodeInfo &info) { return !getDifferentiated(getNodeName(info)).empty(); });
  };
  Block &block = func.getBody().front();
  for (Operation &op : block.without_terminator()) {
    if (spans.get(&op) != Span::Each || nn::isData(&op))
      continue;
    SmallVector<spmd::NodeInfo, 1> infos = spmd::getNodeInfos(&op);
    if (isBackward(op, infos)) {
      backward.insert(&op);
      continue;
    }
    for (const spmd::NodeInfo &info : infos)
      if (StringRef name = getNodeName(info); !name.empty())
        forwardOf[name].push_back(&op);
  }
  DenseSet<Operation *> forward;
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    bool isNeeded = llvm::any_of(op.getUsers(), [&](Operation *user) { return forward.contains(user); });
    bool isInLoop = spans.get(&op) == Span::Each && !nn::isData(&op);
    if (isInLoop && (isNeeded || !backward.contains(&op)))
      forward.insert(&op);
  }
  backward.remove_if([&](Operation *op) { return forward.contains(op); });
  for (Operation *op : backward) {
    bool isGradient = llvm::any_of(spmd::getNodeInfos(op), [](const spmd::NodeInfo &info) {
      return !getDifferentiated(getNodeName(info)).empty();
    });
    bool isOfForward = llvm::all_of(op->getOperands(), [&](Value operand) {
      return !backward.contains(operand.getDefiningOp()) || remade.contains(operand.getDefiningOp());
    });
    if (isOfForward && (isa<exec::AgainOp>(op) || (!isGradient && reads(*op, remade))))
      remade.insert(op);
  }
}

/// Several where the node has become several ops, or where equal ops of several nodes are one.
SmallVector<Operation *> StepOps::getForward(Operation *op) const {
  SmallVector<Operation *> found;
  for (const spmd::NodeInfo &info : spmd::getNodeInfos(op)) {
    StringRef name = getNodeName(info), of = getDifferentiated(name);
    if (auto known = forwardOf.find(of.empty() ? name : of); known != forwardOf.end())
      llvm::append_range(found, known->second);
  }
  return found;
}

/// Of ops of a node, those that read what `op` reads, or make it: of a product and its bias in two stages each has its own gradient.
static bool isAkin(Operation *op, Operation *forward) {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return operand.getDefiningOp() == forward ||
           (!nn::isData(operand.getDefiningOp()) && llvm::is_contained(forward->getOperands(), operand));
  });
}

/// The backward comes to stages in falling order: an op is in none above one whose backward it reads.
int64_t StepOps::findStage(Operation *op, const ForwardStages &forward, const ForwardStages &stages) const {
  std::optional<int64_t> named, read, seen;
  SmallVector<Operation *> node = getForward(op);
  bool hasAkin = llvm::any_of(node, [&](Operation *of) { return isAkin(op, of); });
  for (Operation *of : node)
    if (auto known = forward.find(of); known != forward.end() && (!hasAkin || isAkin(op, of)))
      named = std::max(named.value_or(0), known->second);
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (!producer)
      continue;
    // What is made again is made where it is needed.
    if (remade.contains(producer))
      continue;
    if (auto known = stages.find(producer); known != stages.end())
      read = std::min(read.value_or(known->second), known->second);
    else if (auto made = forward.find(producer); made != forward.end())
      seen = std::max(seen.value_or(0), made->second);
  }
  if (named && read)
    return std::min(*named, *read);
  return named ? *named : read ? *read : seen.value_or(0);
}

/// First stages, in program order, and against it those of what is made again; then what other stages wait for, against it, then what is left for W. A table may put W anywhere behind its
/// I, so nothing of W may be read by I, of its own stage or another.
llvm::MapVector<Operation *, int64_t> StepOps::findUnits(const StageUnits &units, const ForwardStages &forward) const {
  ForwardStages stages;
  for (Operation *op : backward) {
    int64_t stage = findStage(op, forward, stages);
    stages[op] = stage;
  }
  // One value that is read by the backward of all layers, such as a scale, must not bring all of them to the stage that made it.
  for (Operation *op : llvm::reverse(backward)) {
    if (!remade.contains(op))
      continue;
    std::optional<int64_t> first;
    for (Operation *user : op->getUsers())
      if (auto known = stages.find(user); known != stages.end())
        first = std::max(first.value_or(0), known->second);
    if (first)
      stages[op] = *first;
  }
  auto isInStage = [&](Operation *op, int64_t stage) {
    auto found = stages.find(op);
    return found != stages.end() && found->second == stage;
  };
  // What is read by the backward of another stage, with all of its stage that it is made of.
  DenseSet<Operation *> needed;
  for (Operation *op : llvm::reverse(backward)) {
    int64_t stage = stages[op];
    if (llvm::any_of(op->getUsers(), [&](Operation *user) {
          return backward.contains(user) && (!isInStage(user, stage) || needed.contains(user));
        }))
      needed.insert(op);
  }
  DenseSet<Operation *> ofWeights;
  llvm::MapVector<Operation *, int64_t> found;
  for (Operation *op : backward) {
    bool isHeavy = nn::countFactors(op) > 1 || llvm::any_of(op->getOperands(), [&](Value operand) {
                     return operand.getDefiningOp() && ofWeights.contains(operand.getDefiningOp());
                   });
    if (isHeavy && !needed.contains(op))
      ofWeights.insert(op);
    found[op] = units.getUnit(ofWeights.contains(op) ? UnitKind::WeightGrad : UnitKind::InputGrad, stages[op]);
  }
  return found;
}
