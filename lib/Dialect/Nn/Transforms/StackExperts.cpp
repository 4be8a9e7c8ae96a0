//===- StackExperts.cpp - one weight for each expert becomes their stack --===//
//
// A mixture of experts that was exported as a loop has for each of them a product with its own weight, and joins what
// they give in one of three ways:
//
//   sum       add(add(.., y0), y1) ..           every expert sees every token, a factor masks the result
//   stack     concat(y0, y1, ..)                what follows weighs them
//   update    scatter(scatter(.., y0), y1) ..   each expert's rows are added where they belong
//
// Where a plan asks for the experts of weights (an annotation with a dim more than they have), those that are computed alike
// are stacked, and the join is one over the new dim: a sum over it, the dim itself, one update with all rows.
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "../Patterns/Stacking.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Pieces.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNSTACKEXPERTS
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {

/// Values in groups that are alike, each in the order in which they stand.
SmallVector<SmallVector<Value>> groupAlike(ArrayRef<Value> values) {
  SmallVector<SmallVector<Value>> groups;
  for (Value value : values) {
    auto *group = llvm::find_if(groups, [&](ArrayRef<Value> group) {
      return !llvm::is_contained(group, value) && areAlike(group.front(), value);
    });
    if (group != groups.end())
      group->push_back(value);
    else
      groups.push_back({value});
  }
  return groups;
}

class ExpertStacker {
public:
  explicit ExpertStacker(func::FuncOp func, SymbolTable &symbols) : func(func), symbols(symbols) {}

  LogicalResult run();

private:
  void findDependents();
  bool isOf(Value value) const { return dependents.contains(value.getDefiningOp()); }
  Value stack(ArrayRef<Value> values, Operation *before, bool mustBeAskedFor = true);
  void joinSum(AddOp root);
  void joinConcat(ConcatOp root);
  void joinUpdates(ScatterNdOp root);
  void replace(Operation *root, Value value);
  LogicalResult reportLeft();

  func::FuncOp func;
  SymbolTable &symbols;
  /// Ops that need a weight which is to be stacked.
  llvm::DenseSet<Operation *> dependents;
};
} // namespace

/// In program order, so that one look at each op is enough.
void ExpertStacker::findDependents() {
  func.walk([&](Operation *op) {
    auto pin = dyn_cast<spmd::PinOp>(op);
    if ((pin && asksForStack(pin)) || llvm::any_of(op->getOperands(), [&](Value operand) { return isOf(operand); }))
      dependents.insert(op);
  });
}

/// Null where the values cannot be stacked. The annotation of each is that of the stack now.
Value ExpertStacker::stack(ArrayRef<Value> values, Operation *before, bool mustBeAskedFor) {
  Stacker stacker(before, symbols);
  Value stacked = values.size() > 1 ? stacker.stack(values, mustBeAskedFor) : Value();
  if (!stacked)
    return {};
  llvm::SmallPtrSet<Operation *, 8> seen;
  for (spmd::PinOp pin : stacker.getStackedPins())
    if (seen.insert(pin).second)
      pin.removeAnnotationAttr();
  return stacked;
}

/// `root` and what only it needed go.
void ExpertStacker::replace(Operation *root, Value value) {
  value.getDefiningOp()->setLoc(root->getLoc());
  root->getResult(0).replaceAllUsesWith(value);
  llvm::SmallSetVector<Operation *, 16> todo;
  todo.insert(root);
  while (!todo.empty()) {
    Operation *op = todo.pop_back_val();
    auto pin = dyn_cast<spmd::PinOp>(op);
    if (!op->use_empty() || (pin && pin.getAnnotation()))
      continue;
    llvm::SmallSetVector<Operation *, 4> producers;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        producers.insert(producer);
    dependents.erase(op);
    op->erase();
    todo.insert(producers.begin(), producers.end());
  }
}

/// The terms of a tree of sums, those of major operands first.
static void collectTerms(AddOp op, SmallVectorImpl<Value> &terms) {
  for (Value operand : op->getOperands()) {
    auto inner = operand.getDefiningOp<AddOp>();
    if (inner && inner->hasOneUse() && inner.getType() == op.getType())
      collectTerms(inner, terms);
    else
      terms.push_back(operand);
  }
}

/// Terms that are no experts (the residual, one that all tokens share) stay terms.
void ExpertStacker::joinSum(AddOp root) {
  auto user = root->hasOneUse() ? dyn_cast<AddOp>(*root->user_begin()) : AddOp();
  if (user && user.getType() == root.getType())
    return; // part of a larger one
  SmallVector<Value> terms, sums, others;
  collectTerms(root, terms);
  for (const SmallVector<Value> &group : groupAlike(terms)) {
    bool isFull = group.front().getType() == root.getType() && isOf(group.front());
    Value stacked = isFull ? stack(group, root) : Value();
    if (!stacked) {
      llvm::append_range(others, group);
      continue;
    }
    OpBuilder builder(root);
    sums.push_back(Composer(builder, getInnerLoc(root.getLoc())).sum(stacked, {0}));
  }
  if (sums.empty())
    return;
  OpBuilder builder(root);
  Composer f(builder, getInnerLoc(root.getLoc()));
  Value sum = sums.front();
  for (Value term : llvm::concat<Value>(MutableArrayRef(sums).drop_front(), others))
    sum = f.add(sum, term);
  replace(root, sum);
}

/// All parts, or none: a stack of some would have to be put between the others.
void ExpertStacker::joinConcat(ConcatOp root) {
  SmallVector<Value> parts(root.getInputs());
  if (!isOf(parts.front()) || groupAlike(parts).size() != 1)
    return;
  Value stacked = stack(parts, root);
  if (!stacked)
    return;
  // Experts are the major part of the dim along which they were put together.
  OpBuilder builder(root);
  Composer f(builder, getInnerLoc(root.getLoc()));
  Value moved = f.moveDim(stacked, 0, static_cast<int64_t>(root.getDim()));
  replace(root, f.at(root.getLoc()).reshape(moved, getShape(root)));
}

/// A chain of updates that nothing else reads in between. As all of them add, one with all rows, those of major experts
/// first, is the same, also where experts share rows.
void ExpertStacker::joinUpdates(ScatterNdOp root) {
  auto isStep = [](Operation *op) {
    auto scatter = dyn_cast<ScatterNdOp>(op);
    return scatter && scatter.getKind() == ScatterKind::Add;
  };
  if (!isStep(root) || (root->hasOneUse() && isStep(*root->user_begin()) && root->use_begin()->getOperandNumber() == 0))
    return;
  SmallVector<Value> places, updates;
  Value start = root.getResult();
  for (ScatterNdOp step = root; step && isStep(step) && (step == root || step->hasOneUse());
       step = start.getDefiningOp<ScatterNdOp>()) {
    places.insert(places.begin(), step.getIndices());
    updates.insert(updates.begin(), step.getUpdates());
    start = step.getInput();
  }
  if (!isOf(updates.front()) || groupAlike(updates).size() != 1 || groupAlike(places).size() != 1)
    return;
  // Places first: they take no annotation along.
  Value allPlaces = stack(places, root, false), allUpdates = allPlaces ? stack(updates, root) : Value();
  if (!allUpdates)
    return;
  OpBuilder builder(root);
  replace(root, ScatterNdOp::create(builder, root.getLoc(), root.getKind(), start, allPlaces, allUpdates));
}

/// What a plan asks for, and nothing follows.
LogicalResult ExpertStacker::reportLeft() {
  LogicalResult result = success();
  func.walk([&](spmd::PinOp pin) {
    if (asksForStack(pin)) {
      emitError(pin.getAnnotation()->getPlace())
          << "'" << pin.getName() << "' is not the weight of one of several experts that are computed alike and then"
          << " summed, put side by side, or added to rows: there is nothing to stack it with";
      result = failure();
    }
    if (std::optional<spmd::AnnotationAttr> annotation = pin.getAnnotation(); annotation && succeeded(result)) {
      spmd::ShardingAttr sharding = annotation->getSharding();
      int64_t experts = getShape(pin.getResult()).empty() ? 1 : getShape(pin.getResult()).front();
      auto load = pin.getInput().getDefiningOp<LoadOp>();
      auto param = load ? symbols.lookup<ParamOp>(load.getParam()) : ParamOp();
      if (param && isStack(param) && experts % sharding.getNumShards(0) != 0) {
        emitError(annotation->getPlace()) << "'" << pin.getName() << "' are the weights of " << experts
                                          << " experts, which " << sharding.getNumShards(0) << " shards do not divide";
        result = failure();
      }
    }
  });
  return result;
}

/// Joins are found before any is made: what a join becomes is none.
LogicalResult ExpertStacker::run() {
  findDependents();
  if (dependents.empty())
    return success();
  SmallVector<Operation *> roots;
  func.walk([&](Operation *op) {
    if (dependents.contains(op) && isa<AddOp, ConcatOp, ScatterNdOp>(op))
      roots.push_back(op);
  });
  // Last first: the root of a tree goes with its inner ops.
  for (Operation *op : llvm::reverse(roots)) {
    if (!dependents.contains(op))
      continue;
    if (auto add = dyn_cast<AddOp>(op))
      joinSum(add);
    else if (auto concat = dyn_cast<ConcatOp>(op))
      joinConcat(concat);
    else
      joinUpdates(cast<ScatterNdOp>(op));
  }
  return reportLeft();
}

namespace {
struct StackExperts : public cleave::nn::impl::NnStackExpertsBase<StackExperts> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (failed(ExpertStacker(func, symbols).run()))
        return signalPassFailure();
    eraseUnusedParameters();
  }

private:
  /// Weights that nothing loads by themselves any more.
  void eraseUnusedParameters() {
    llvm::StringSet<> loaded;
    bool hasStack = false;
    for (auto param : getOperation().getOps<ParamOp>())
      hasStack |= isStack(param);
    if (!hasStack)
      return;
    getOperation().walk([&](LoadOp load) { loaded.insert(load.getParam()); });
    for (auto param : llvm::make_early_inc_range(getOperation().getOps<ParamOp>()))
      if (!loaded.contains(param.getSymName()))
        param.erase();
  }
};
} // namespace
