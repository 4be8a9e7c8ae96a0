//===- InsertReshards.cpp - changes of sharding become ops ----------------===//
//
//   before   %h : [{data}, {}]      nn.einsum %h, %w {spmd.operands = [[{data}, {model}], unit]}
//   after    %r = spmd.reshard %h : [{data}, {}] -> [{data}, {model}]      nn.einsum %r, %w
//
// First every value learns who wants it otherwise; then its copies are made right after it, one per wanted sharding, in
// the order that costs least, each from the value or from a copy made before (`ServeWants`, which the solver counts
// by). A result that is computed otherwise than it is shared gets one reshard in front of that, and so does an argument of a
// loop's body. `spmd.constrain` is an annotation like any other, and then gone.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/Costs.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/IR/Repeated.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "cleave/Sharding/ServeWants.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_INSERTRESHARDS
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

#define DEBUG_TYPE "spmd-insert-reshards"

ALWAYS_ENABLED_STATISTIC(numInserted, "reshards inserted");
ALWAYS_ENABLED_STATISTIC(numUsers, "operands that take a reshard for a value made otherwise than they want it");

namespace {
/// Rewrites one function.
class ReshardInserter {
public:
  ReshardInserter(func::FuncOp func, MeshAtoms &atoms, const CostModel &model)
      : func(func), atoms(atoms), planner(atoms.getAtoms(), {/*useIdleAtoms=*/false, model}), costs(planner, states),
        builder(func.getContext()) {}

  LogicalResult run();

private:
  struct Want {
    ShardingAttr sharding;
    SmallVector<OpOperand *, 2> operands;
  };

  LogicalResult readOperands(Operation *op);
  LogicalResult readResults(Operation *op);
  LogicalResult readMade(Operation *op, StringRef name, ValueRange values);
  void want(OpOperand &operand, ShardingAttr sharding);
  void serve(Value value, ArrayRef<Want> wants);
  Value reshard(Value value, ShardingAttr sharding);
  StateId intern(ShardingAttr sharding);

  func::FuncOp func;
  MeshAtoms &atoms;
  StateTable states;
  ReshardPlanner planner;
  ReshardCosts costs;
  OpBuilder builder;
  llvm::MapVector<Value, SmallVector<Want, 1>> wantsOf;
  SmallVector<ConstrainOp> constraints;
  llvm::DenseMap<ShardingAttr, StateId> stateIds;
};

struct InsertReshards : spmd::impl::InsertReshardsBase<InsertReshards> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(enterPhase(getOperation(), Phase::Resharded)))
      return signalPassFailure();
    OwnFaults faults(&getContext());
    std::unique_ptr<MeshAtoms> atoms = MeshAtoms::create(getOperation());
    FailureOr<CostModel> costs = readCosts(getOperation());
    if (!atoms || failed(costs))
      return signalPassFailure();
    for (func::FuncOp func : getFunctions(getOperation()))
      if (failed(ReshardInserter(func, *atoms, *costs).run()))
        return signalPassFailure();
  }
};
} // namespace

StateId ReshardInserter::intern(ShardingAttr sharding) {
  auto [it, isNew] = stateIds.try_emplace(sharding);
  if (isNew)
    it->second = states.intern(atoms.toState(sharding));
  return it->second;
}

//===----------------------------------------------------------------------===//
// Reading what is wanted
//===----------------------------------------------------------------------===//

void ReshardInserter::want(OpOperand &operand, ShardingAttr sharding) {
  if (getSharding(operand.get().getType()) == sharding)
    return;
  SmallVector<Want, 1> &wants = wantsOf[operand.get()];
  auto *it = llvm::find_if(wants, [&](const Want &want) { return want.sharding == sharding; });
  if (it == wants.end())
    it = wants.insert(wants.end(), {sharding, {}});
  it->operands.push_back(&operand);
}

/// The array `name` of `op`, `count` long, each a sharding or unit; null if it has none.
static FailureOr<ArrayAttr> getAnnotations(Operation *op, StringRef name, unsigned count) {
  Attribute attribute = op->getDiscardableAttr(name);
  if (!attribute)
    return ArrayAttr();
  auto array = dyn_cast<ArrayAttr>(attribute);
  bool isLegal = array && array.size() == count &&
                 llvm::all_of(array, [](Attribute entry) { return isa<ShardingAttr, UnitAttr>(entry); });
  if (!isLegal)
    return op->emitOpError() << "attribute '" << name << "' is not a list of " << count << " shardings or units";
  op->removeDiscardableAttr(name);
  return array;
}

LogicalResult ReshardInserter::readOperands(Operation *op) {
  if (auto constraint = dyn_cast<ConstrainOp>(op)) {
    want(constraint.getInputMutable(), getSharding(constraint.getResult().getType()));
    constraints.push_back(constraint);
    return success();
  }
  FailureOr<ArrayAttr> annotations = getAnnotations(op, SpmdDialect::kOperandShardingsAttr, op->getNumOperands());
  if (failed(annotations) || !*annotations)
    return failure(failed(annotations));
  for (auto [operand, annotation] : llvm::zip_equal(op->getOpOperands(), *annotations))
    if (auto sharding = dyn_cast<ShardingAttr>(annotation))
      want(operand, sharding);
  return success();
}

/// Values made in another sharding than their types say are resharded at once, where the builder stands.
LogicalResult ReshardInserter::readMade(Operation *op, StringRef name, ValueRange values) {
  FailureOr<ArrayAttr> annotations = getAnnotations(op, name, values.size());
  if (failed(annotations) || !*annotations)
    return failure(failed(annotations));
  for (auto [result, annotation] : llvm::zip_equal(values, *annotations)) {
    auto computed = dyn_cast<ShardingAttr>(annotation);
    auto shared = cast<RankedTensorType>(result.getType());
    if (!computed || computed == getSharding(shared))
      continue;
    result.setType(withSharding(shared, computed));
    auto reshard = ReshardOp::create(builder, op->getLoc(), shared, result);
    ++numInserted;
    LDBG() << "made otherwise: " << reshard;
    result.replaceAllUsesExcept(reshard.getResult(), reshard);
  }
  return success();
}

/// What an iteration of a loop hands on as it came goes no way there and back, though others in the body want it otherwise.
LogicalResult ReshardInserter::readResults(Operation *op) {
  for (Region &body : op->getRegions()) {
    SmallVector<std::pair<OpOperand *, Value>> unchanged;
    auto yielded = body.front().getTerminator()->getOpOperands().take_back(op->getNumResults());
    for (auto [argument, next] : llvm::zip(body.getArguments(), yielded))
      if (next.get() == argument)
        unchanged.push_back({&next, argument});
    builder.setInsertionPointToStart(&body.front());
    if (failed(readMade(op, kArgumentShardingsAttr, body.getArguments())))
      return failure();
    for (auto [next, argument] : unchanged)
      next->set(argument);
  }
  builder.setInsertionPointAfter(op);
  return readMade(op, SpmdDialect::kResultShardingsAttr, op->getResults());
}

//===----------------------------------------------------------------------===//
// Serving it
//===----------------------------------------------------------------------===//

Value ReshardInserter::reshard(Value value, ShardingAttr sharding) {
  ++numInserted;
  auto type = withSharding(cast<RankedTensorType>(value.getType()), sharding);
  return ReshardOp::create(builder, value.getLoc(), type, value);
}

void ReshardInserter::serve(Value value, ArrayRef<Want> wants) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<StateId> wanted;
  for (const Want &want : wants)
    wanted.push_back(intern(want.sharding));
  ShapeId shape = costs.internShape(type.getShape(), getElementBytes(type.getElementType()));
  Want whole{atoms.toSharding(State::replicated(type.getRank()), type.getShape()), {}};
  SmallVector<Value> copies{value};
  for (const ServedWant &served : serveWants(costs, shape, intern(getSharding(type)), wanted, intern(whole.sharding))) {
    const Want &want = served.want < wants.size() ? wants[served.want] : whole;
    copies.push_back(reshard(copies[served.source], want.sharding));
    numUsers += want.operands.size();
    LDBG() << "for " << want.operands.size() << " users: " << copies.back();
    for (OpOperand *operand : want.operands)
      operand->set(copies.back());
  }
}

LogicalResult ReshardInserter::run() {
  Block &body = func.getBody().front();
  // Those that are there: what is put in between wants nothing. Of a block the first one, in front of which its arguments are resharded.
  SmallVector<Operation *> ops;
  llvm::DenseMap<Block *, Operation *> first;
  body.walk<WalkOrder::PreOrder>([&](Operation *op) {
    ops.push_back(op);
    first.try_emplace(op->getBlock(), op);
  });
  for (Operation *op : ops)
    if (failed(readOperands(op)) || failed(readResults(op)))
      return failure();
  for (auto &[value, wants] : wantsOf) {
    if (!getSharding(value.getType()))
      return emitError(value.getLoc()) << "value of type " << value.getType() << " has no sharding";
    if (Operation *producer = value.getDefiningOp())
      builder.setInsertionPointAfter(producer);
    else
      builder.setInsertionPoint(first.lookup(value.getParentBlock()));
    serve(value, wants);
  }
  for (ConstrainOp constraint : constraints) {
    constraint.getResult().replaceAllUsesWith(constraint.getInput());
    constraint.erase();
  }
  func.setFunctionType(
      FunctionType::get(func.getContext(), body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
  return success();
}
