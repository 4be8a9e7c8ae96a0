//===- SharedInvariants.cpp - whole values that several stages read -------===//
//
// From what stages read backward: what several need, and takes longer to make than to send, the first of them makes; only
// that one then needs what it is made of:
//
//   mask ──▶ %a ──▶ %b ──▶ stages 0, 2      %b is dear: stage 0 makes it, and needs %a alone
//             └──────────▶ stages 0, 1
//
// Then forward once more: where %a is sent as well, %b may be cheap after all, for stages that get %a.
//
//===----------------------------------------------------------------------===//
#include "SharedInvariants.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

namespace {
class Sharer {
public:
  Sharer(func::FuncOp func, ArrayRef<int64_t> ranks, const DeviceRates &rates, bool sendsCheap)
      : func(func), ranks(ranks), rates(rates), sendsCheap(sendsCheap) {}

  std::vector<SharedInvariant> run(ArrayRef<Values> wanted);

private:
  using Stages = SmallVector<int64_t>;

  void need(Value value, ArrayRef<int64_t> stages);
  double getCostNs(Operation *op, ArrayRef<int64_t> stages);
  double getMessageNs(Operation *op);
  bool isDear(Operation *op);
  void takeBack(Operation *op);

  func::FuncOp func;
  ArrayRef<int64_t> ranks;
  const DeviceRates &rates;
  bool sendsCheap;
  /// Who makes the results of an op, or gets them; ascending.
  DenseMap<Operation *, Stages> needs;
  DenseSet<Operation *> sent;
  /// Rules are asked once: chains of many ops share their beginnings.
  DenseMap<Operation *, double> opNs;
};
} // namespace

/// Parameters, constants and arguments every stage has.
static bool isMade(Value value) { return value.getDefiningOp() && !isOfEveryStage(value.getDefiningOp()); }

int64_t cleave::pipe::countResultBytes(Operation *op) {
  int64_t bytes = 0;
  for (Value result : op->getResults())
    bytes += spmd::getBytes(result.getType());
  return bytes;
}

void Sharer::need(Value value, ArrayRef<int64_t> stages) {
  if (!isMade(value))
    return;
  Stages &own = needs[value.getDefiningOp()];
  llvm::append_range(own, stages);
  llvm::sort(own);
  own.erase(llvm::unique(own), own.end());
}

/// Within a rank nothing is sent.
double Sharer::getMessageNs(Operation *op) {
  const Stages &stages = needs[op];
  if (llvm::all_of(stages, [&](int64_t stage) { return ranks[stage] == ranks[stages.front()]; }))
    return 0;
  return rates.getMessageNs(countResultBytes(op));
}

/// What each of `stages` would take to make the results: what is sent to all of them costs nothing more, what is not, a message.
double Sharer::getCostNs(Operation *op, ArrayRef<int64_t> stages) {
  double ns = 0;
  DenseSet<Operation *> seen;
  SmallVector<Operation *> todo{op};
  while (!todo.empty()) {
    Operation *next = todo.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (next != op && sent.contains(next)) {
      const Stages &known = needs[next];
      bool isThere = std::includes(known.begin(), known.end(), stages.begin(), stages.end());
      ns += isThere ? 0 : getMessageNs(next);
      continue;
    }
    auto [known, isNew] = opNs.try_emplace(next, 0.);
    if (isNew)
      known->second = getOpNs(*next, rates);
    ns += known->second;
    for (Value operand : next->getOperands())
      if (isMade(operand))
        todo.push_back(operand.getDefiningOp());
  }
  return ns;
}

bool Sharer::isDear(Operation *op) { return sendsCheap || getCostNs(op, needs[op]) > getMessageNs(op); }

/// Each stage makes the op by itself, and all that it does not get.
void Sharer::takeBack(Operation *op) {
  sent.erase(op);
  const Stages stages = needs[op];
  SmallVector<Operation *> todo{op};
  DenseSet<Operation *> seen;
  while (!todo.empty())
    for (Value operand : todo.pop_back_val()->getOperands()) {
      need(operand, stages);
      if (isMade(operand) && !sent.contains(operand.getDefiningOp()) && seen.insert(operand.getDefiningOp()).second)
        todo.push_back(operand.getDefiningOp());
    }
}

std::vector<SharedInvariant> Sharer::run(ArrayRef<Values> wanted) {
  // Users stand behind producers: walked from the back, all that need an op are known when it is looked at.
  for (auto [stage, values] : llvm::enumerate(wanted))
    for (Value value : values)
      need(value, static_cast<int64_t>(stage));
  Block &block = func.getBody().front();
  for (Operation &op : llvm::reverse(block)) {
    auto found = needs.find(&op);
    if (found == needs.end())
      continue;
    Stages makers = found->second;
    if (makers.size() > 1 && isDear(&op)) {
      sent.insert(&op);
      makers.resize(1);
    }
    for (Value operand : op.getOperands())
      need(operand, makers);
  }
  // What is only on the way to others is no news.
  auto isWanted = [&](Operation &op) {
    return llvm::count_if(wanted, [&](const Values &values) {
             return llvm::any_of(op.getResults(), [&](Value result) { return values.contains(result); });
           }) > 1;
  };
  std::vector<SharedInvariant> shared;
  for (Operation &op : block) {
    if (sent.contains(&op) && !isDear(&op))
      takeBack(&op);
    auto found = needs.find(&op);
    if (found != needs.end() && found->second.size() > 1 && (sent.contains(&op) || isWanted(op)))
      shared.push_back({&op, found->second, 0, getMessageNs(&op), countResultBytes(&op), sent.contains(&op)});
  }
  // Only now is it known what arrives anyway.
  for (SharedInvariant &whole : shared)
    whole.ns = getCostNs(whole.op, whole.stages);
  return shared;
}

std::vector<SharedInvariant> cleave::pipe::findSharedInvariants(func::FuncOp func, ArrayRef<Values> wanted,
                                                                ArrayRef<int64_t> ranks, const DeviceRates &rates,
                                                                bool sendsCheap) {
  return Sharer(func, ranks, rates, sendsCheap).run(wanted);
}
