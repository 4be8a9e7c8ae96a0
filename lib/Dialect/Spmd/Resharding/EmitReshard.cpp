//===- EmitReshard.cpp - one reshard as collectives -----------------------===//
//
// Each step of a plan is "state before -> state after", and each becomes one op on local types:
//
//   slice           spmd.local_slice of the axes that dims gained
//   make_partial    spmd.keep_on_first of the axes that are partial now
//   all_reduce      spmd.all_reduce over the axes that are partial no more
//   reduce_scatter  spmd.reduce_scatter of the axes that dims gained
//   all_gather      spmd.all_gather of the axes that dims lost
//   all_to_all      spmd.all_to_all: gathers what some dims lost, slices by what others gained
//   exchange        spmd.permute from one sharding to the other
//
// These take and give whole pieces. Where shards do not divide, a value is padded before it is split, and what is gathered
// is cut off: 10 rows on 4 ranks are 3 on each, and 12 of all together.
//
//===----------------------------------------------------------------------===//
#include "EmitReshard.h"

#include "cleave/Dialect/Spmd/IR/ProgramDialect.h"

using namespace mlir;
using namespace cleave::spmd;

//===----------------------------------------------------------------------===//
// Causes
//===----------------------------------------------------------------------===//

/// What a dim that `producer` reduces over is called, if a split of such dims leaves its results partial over all of
/// `list`.
std::optional<StringRef> ReshardEmitter::getReducedDim(Operation *producer, ArrayRef<AtomId> list) {
  auto op = dyn_cast_if_present<ShardingRuleOpInterface>(producer);
  if (!op)
    return std::nullopt;
  const RuleMatches::Entry &entry = rules.get(op);
  auto isSplit = [&](AtomId atom) { return !entry.rule.choices[entry.match->choices[atom]].factors.empty(); };
  if (!entry.match || !llvm::all_of(list, isSplit))
    return std::nullopt;
  return entry.rule.reducedDim;
}

/// Steps that add up terms.
static bool isReduction(ReshardStepKind kind) {
  return kind == ReshardStepKind::AllReduce || kind == ReshardStepKind::ReduceScatter;
}

/// The op that makes the value, behind any reshards of it; null for an argument.
static Operation *getProducer(ReshardOp reshard) {
  Operation *producer = reshard.getInput().getDefiningOp();
  while (auto earlier = dyn_cast_if_present<ReshardOp>(producer))
    producer = earlier.getInput().getDefiningOp();
  return producer;
}

/// True if the value becomes partial over any of `list` on its way from its producer, or is an argument that is.
bool ReshardEmitter::isMadePartial(ReshardOp reshard, ArrayRef<AtomId> list) {
  Value source = reshard.getInput();
  while (auto earlier = source.getDefiningOp<ReshardOp>())
    source = earlier.getInput();
  const State &made = atoms.toState(getSharding(source.getType()));
  return !source.getDefiningOp() || llvm::any_of(list, [&](AtomId atom) { return !made.isPartialOver(atom); });
}

/// An op that reads the reshard, behind more reshards if nothing else does; null if none does.
static Operation *getConsumer(ReshardOp reshard) {
  for (Operation *user : reshard->getUsers())
    if (!isa<ReshardOp>(user))
      return user;
  return reshard->use_empty() ? nullptr : getConsumer(cast<ReshardOp>(*reshard->user_begin()));
}

/// The end of a function, which is at no place in the model.
static bool isReturn(Operation *consumer) { return consumer && consumer->hasTrait<OpTrait::IsTerminator>(); }

std::string ReshardEmitter::getCause(const Reshard &reshard, const ReshardStep &step) {
  Operation *producer = getProducer(reshard.op), *consumer = getConsumer(reshard.op);
  std::string axes = formatAxes(atoms.toAxes(step.atoms));
  if (isReduction(step.kind) && isMadePartial(reshard.op, step.atoms))
    return "a value is asked to be partial over " + axes;
  if (isReduction(step.kind) && producer) {
    std::string name = producer->getName().getStringRef().str();
    std::optional<StringRef> dim = getReducedDim(producer, step.atoms);
    return dim ? dim->str() + " of " + name + " is sharded over " + axes
               : name + " leaves partial results over " + axes;
  }
  std::string text = consumer ? consumer->getName().getStringRef().str() + " takes " : "nothing takes ";
  if (isReturn(consumer))
    text = "the output is ";
  text += spmd::toString(atoms.getAtoms(), atoms.getAxisNames(), *reshard.to) + " but ";
  text += producer ? producer->getName().getStringRef().str() + " gives " : "the argument is ";
  return text + spmd::toString(atoms.getAtoms(), atoms.getAxisNames(), *reshard.from);
}

Location ReshardEmitter::getLoc(const Reshard &reshard, const ReshardStep &step) {
  Operation *consumer = getConsumer(reshard.op);
  bool isOfProducer = isReduction(step.kind) || !consumer || isReturn(consumer);
  return isOfProducer ? reshard.op->getOperand(0).getLoc() : consumer->getLoc();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Per dim the axes that `longer` has behind those of `shorter`.
ArrayAttr ReshardEmitter::getAxesPerDim(const State &longer, const State &shorter) const {
  SmallVector<Attribute> lists;
  for (auto [more, less] : llvm::zip_equal(longer.dims, shorter.dims)) {
    auto extra = more.size() > less.size() ? ArrayRef(more).drop_front(less.size()) : ArrayRef<AtomId>();
    lists.push_back(atoms.toAxisArray(extra));
  }
  return ArrayAttr::get(atoms.getMesh().getContext(), lists);
}

Value ReshardEmitter::emitStep(OpBuilder &builder, const Reshard &reshard, const ReshardStep &step, const State &before,
                               Value value) {
  const State &after = step.after;
  Location loc = getLoc(reshard, step);
  auto cause = [&] { return builder.getStringAttr(getCause(reshard, step)); };
  auto type =
      RankedTensorType::get(getPaddedShape(after, before, reshard.global.getShape()), reshard.global.getElementType());
  switch (step.kind) {
  case ReshardStepKind::Slice:
    return LocalSliceOp::create(builder, loc, type, value, getAxesPerDim(after, before));
  case ReshardStepKind::MakePartial:
    return KeepOnFirstOp::create(builder, loc, type, after.kind, value, atoms.toAxisArray(step.atoms));
  case ReshardStepKind::AllReduce:
    return AllReduceOp::create(builder, loc, type, before.kind, value, atoms.toAxisArray(step.atoms), cause());
  case ReshardStepKind::ReduceScatter:
    return ReduceScatterOp::create(builder, loc, type, before.kind, value, getAxesPerDim(after, before), cause());
  case ReshardStepKind::AllToAll:
    return AllToAllOp::create(builder, loc, type, value, getAxesPerDim(before, after), getAxesPerDim(after, before),
                              cause());
  case ReshardStepKind::AllGather:
    return AllGatherOp::create(builder, loc, type, value, getAxesPerDim(before, after), cause());
  case ReshardStepKind::Exchange: {
    type = RankedTensorType::get(localShape(atoms.getAtoms(), reshard.global.getShape(), after), type.getElementType());
    auto global = RankedTensorType::get(reshard.global.getShape(), reshard.global.getElementType());
    // Terms move as whole values do, each among the ranks that share its coordinates.
    State from = before, to = after;
    for (State *state : {&from, &to}) {
      state->partial.clear();
      state->kind = ReductionKind::Sum;
    }
    return PermuteOp::create(builder, loc, type, value, atoms.toSharding(from, global.getShape()),
                             atoms.toSharding(to, global.getShape()), global, cause());
  }
  }
  return {};
}

/// Local extents of a state, those of dims that are split further in `other` a multiple of the pieces there.
SmallVector<int64_t, 4> ReshardEmitter::getPaddedShape(const State &state, const State &other,
                                                       ArrayRef<int64_t> global) const {
  const AtomMesh &mesh = atoms.getAtoms();
  SmallVector<int64_t, 4> shape = localShape(mesh, global, state), pieces = localShape(mesh, global, other);
  for (auto [extent, piece, mine, theirs] : llvm::zip_equal(shape, pieces, state.dims, other.dims))
    if (theirs.size() > mine.size())
      extent = piece * mesh.product(ArrayRef(theirs).drop_front(mine.size()));
  return shape;
}

/// The step on padded values: from what ranks have before to what they have after. An exchange, and what keeps the shape,
/// takes shards as they are.
Value ReshardEmitter::emitFitted(OpBuilder &builder, const Reshard &reshard, const ReshardStep &step,
                                 const State &before, Value value) {
  if (step.kind == ReshardStepKind::Exchange)
    return emitStep(builder, reshard, step, before, value);
  ArrayRef<int64_t> global = reshard.global.getShape();
  Location loc = getLoc(reshard, step);
  value = program.fit(builder, loc, value, getPaddedShape(before, step.after, global));
  value = emitStep(builder, reshard, step, before, value);
  return program.fit(builder, loc, value, localShape(atoms.getAtoms(), global, step.after));
}

const ReshardPlan *ReshardEmitter::getPlan(const Reshard &reshard) {
  auto [it, isNew] = plans.try_emplace({reshard.op->getOperand(0).getType(), reshard.global});
  if (isNew)
    it->second = planner.plan(reshard.global.getShape(), getElementBytes(reshard.global.getElementType()),
                              *reshard.from, *reshard.to);
  return it->second ? &*it->second : nullptr;
}

Value ReshardEmitter::emit(OpBuilder &builder, ReshardOp op, Value local) {
  auto global = cast<RankedTensorType>(op.getResult().getType());
  Reshard reshard{op, global, &atoms.toState(getSharding(op.getInput().getType())),
                  &atoms.toState(getSharding(global))};
  const ReshardPlan *plan = getPlan(reshard);
  if (!plan) {
    op.emitOpError() << "has no implementation as a sequence of collectives";
    return {};
  }
  const State *state = reshard.from;
  for (const ReshardStep &step : plan->steps) {
    local = emitFitted(builder, reshard, step, *state, local);
    if (!local)
      return {};
    state = &step.after;
  }
  return local;
}
