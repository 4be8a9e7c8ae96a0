//===- EmitReshard.cpp - one reshard as collectives -----------------------===//
//
// Each step of a plan is "state before -> state after", and each becomes one op on local types:
//
//   slice           spmd.local_slice of the axes that dims gained
//   make_partial    nn.select(this rank is number 0 of the axes, value, identity)
//   all_reduce      spmd.all_reduce over the axes that are partial no more
//   reduce_scatter  spmd.reduce_scatter of the axes that dims gained
//   all_gather      spmd.all_gather of the axes that dims lost
//   all_to_all      spmd.all_to_all: gathers what some dims lost, slices by what others gained
//   exchange        spmd.permute from one sharding to the other
//
//===----------------------------------------------------------------------===//
#include "EmitReshard.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/Transforms/Cause.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

//===----------------------------------------------------------------------===//
// Causes
//===----------------------------------------------------------------------===//

/// What the dims are called that `op` reduces over.
static StringRef getReducedDims(Operation *op) {
  if (isa<nn::EinsumOp>(op))
    return "contracting dim";
  if (isa<nn::GatherOp, nn::GatherElementsOp, nn::GatherNdOp>(op))
    return "indexed dim";
  if (isa<nn::ConvOp>(op))
    return "channel dim";
  return "reduced dim";
}

/// True if `producer` cuts a factor whose results are partial over all of `list`.
bool ReshardEmitter::isReducedBy(Operation *producer, ArrayRef<AtomId> list) {
  auto op = dyn_cast_if_present<ShardingRuleOpInterface>(producer);
  if (!op)
    return false;
  const RuleMatches::Entry &entry = rules.get(op);
  return entry.match && llvm::all_of(list, [&](AtomId atom) {
           return !entry.rule.choices[entry.match->choices[atom]].factors.empty();
         });
}

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
    return isReducedBy(producer, step.atoms)
               ? getReducedDims(producer).str() + " of " + name + " is sharded over " + axes
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
  bool isLocal = step.kind == ReshardStepKind::Slice || step.kind == ReshardStepKind::MakePartial;
  bool isOfProducer = isReduction(step.kind) || !consumer || isReturn(consumer);
  Location loc = isOfProducer ? reshard.op->getOperand(0).getLoc() : consumer->getLoc();
  return isLocal ? loc : withCause(loc, getCause(reshard, step));
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

/// The element that changes nothing when reduced with another.
static TypedAttr getIdentity(ReductionKind kind, Type type) {
  bool isLeast = kind == ReductionKind::Max, isMost = kind == ReductionKind::Min;
  if (auto floatType = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
    if (isLeast || isMost)
      return FloatAttr::get(type, APFloat::getInf(semantics, /*Negative=*/isLeast));
    return FloatAttr::get(type, APFloat(semantics, kind == ReductionKind::Prod ? 1 : 0));
  }
  unsigned width = type.getIntOrFloatBitWidth();
  bool isUnsigned = type.isUnsignedInteger() || width == 1;
  if (isLeast)
    return IntegerAttr::get(type, isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width));
  if (isMost)
    return IntegerAttr::get(type, isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width));
  return IntegerAttr::get(type, APInt(width, kind == ReductionKind::Prod ? 1 : 0));
}

static Value makeScalar(OpBuilder &builder, Location loc, TypedAttr value) {
  auto type = RankedTensorType::get({}, value.getType());
  return nn::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, ArrayRef<Attribute>(value)));
}

Value ReshardEmitter::makePartial(OpBuilder &builder, Location loc, const ReshardStep &step, Value value) {
  auto indexType = RankedTensorType::get({}, builder.getI64Type());
  Value index = AxisIndexOp::create(builder, loc, indexType, atoms.toAxisArray(step.atoms));
  Value zero = makeScalar(builder, loc, builder.getI64IntegerAttr(0));
  Value isFirst = nn::EqOp::create(builder, loc, RankedTensorType::get({}, builder.getI1Type()), index, zero);
  Type elementType = cast<RankedTensorType>(value.getType()).getElementType();
  Value identity = makeScalar(builder, loc, getIdentity(step.after.kind, elementType));
  return nn::SelectOp::create(builder, loc, value.getType(), isFirst, value, identity);
}

Value ReshardEmitter::emitStep(OpBuilder &builder, const Reshard &reshard, const ReshardStep &step, const State &before,
                               Value value) {
  const State &after = step.after;
  Location loc = getLoc(reshard, step);
  auto type = RankedTensorType::get(localShape(atoms.getAtoms(), reshard.global.getShape(), after),
                                    reshard.global.getElementType());
  switch (step.kind) {
  case ReshardStepKind::Slice:
    return LocalSliceOp::create(builder, loc, type, value, getAxesPerDim(after, before));
  case ReshardStepKind::MakePartial:
    return makePartial(builder, loc, step, value);
  case ReshardStepKind::AllReduce:
    return AllReduceOp::create(builder, loc, type, before.kind, value, atoms.toAxisArray(step.atoms));
  case ReshardStepKind::ReduceScatter:
    return ReduceScatterOp::create(builder, loc, type, before.kind, value, getAxesPerDim(after, before));
  case ReshardStepKind::AllToAll:
    return AllToAllOp::create(builder, loc, type, value, getAxesPerDim(before, after), getAxesPerDim(after, before));
  case ReshardStepKind::AllGather:
    return AllGatherOp::create(builder, loc, type, value, getAxesPerDim(before, after));
  case ReshardStepKind::Exchange: {
    auto global = RankedTensorType::get(reshard.global.getShape(), reshard.global.getElementType());
    // Terms move as whole values do, each among the ranks that share its coordinates.
    State from = before, to = after;
    for (State *state : {&from, &to}) {
      state->partial.clear();
      state->kind = ReductionKind::Sum;
    }
    return PermuteOp::create(builder, loc, type, value, atoms.toSharding(from), atoms.toSharding(to), global);
  }
  }
  return {};
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
    op.emitOpError() << "cannot be done: no sequence of collectives leads there";
    return {};
  }
  const State *state = reshard.from;
  for (const ReshardStep &step : plan->steps) {
    local = emitStep(builder, reshard, step, *state, local);
    state = &step.after;
  }
  return local;
}
