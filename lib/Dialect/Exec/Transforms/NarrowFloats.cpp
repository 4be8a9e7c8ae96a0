//===- NarrowFloats.cpp - half as wide in memory, as wide as before in registers -===//
//
// What lies in memory between kernels becomes bf16; what a kernel computes stays f32. So kernels widen what they read and
// round what they write, and what contractions multiply has been rounded in any case:
//
//   %y = fused (%a = %x, %b = %w) { einsum %a, %b }         all of f32
//
//   %y = fused (%a = %x', %b = %w') { cast (einsum (cast %a), (cast %b)) }       %x', %w' and %y of bf16
//
// Four questions are asked, each in one walk in the order of the program:
//
//   data         does a value come from floats of the caller, or of an embedding? A product of other ones (positions times
//                frequencies) keeps f32, since a number of a position must stay one
//   activation   does it come from such a product, or from an embedding? Masks do not: -1e38 stays what it is
//   vast         may it be finite and yet round to an infinity? So may floats of the caller, and constants that do (the least f32, by
//                which attention is masked), until a product or a norm. Such numbers stop at the largest bf16: a softmax over a row of
//                -inf is NaN
//   whole        is all that is the same bytes, or that ranks exchange, of one kind? What is returned keeps its type
//
// What a loop carries comes from what it was at first and from what an iteration makes of it, so that where there are loops the first
// two are asked until nothing changes. It keeps its type: it may be a sum over more iterations than eight bits can count.
//
//===----------------------------------------------------------------------===//
#include "../Memory/BufferAssignment.h"
#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Exec/IR/Control.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/NnOps.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"

namespace cleave::exec {
#define GEN_PASS_DEF_NARROWFLOATS
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

//===----------------------------------------------------------------------===//
// Kinds of values and ops
//===----------------------------------------------------------------------===//

/// f32 is all that becomes narrow: f64 was asked for by the model, and f16 is as narrow already.
static bool isWide(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isF32();
}
static RankedTensorType narrowed(RankedTensorType type) { return type.clone(BFloat16Type::get(type.getContext())); }

/// A cast that loses nothing, of what lies in memory with half the bytes.
static nn::CastOp getWidening(Value value) {
  auto cast = value.getDefiningOp<nn::CastOp>();
  return cast && isWide(value) && getTensorType(cast.getInput()).getElementType().isBF16() ? cast : nn::CastOp();
}

static Value convert(OpBuilder &builder, Value value, RankedTensorType type, bool saturate = false) {
  return nn::CastOp::create(builder, value.getLoc(), type, value, saturate);
}

/// As bf16; what is finite stays finite.
static APFloat narrowed(APFloat number) {
  bool losesInfo, isFinite = number.isFinite(), isNegative = number.isNegative();
  number.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &losesInfo);
  return isFinite && !number.isFinite() ? APFloat::getLargest(APFloat::BFloat(), isNegative) : number;
}

/// True for a constant with a finite element that is none as bf16.
static bool hasVast(nn::ConstantOp constant) {
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!dense || !isWide(constant))
    return false;
  auto isVast = [](const APFloat &number) {
    APFloat size = abs(number);
    return size.isFinite() && size.convertToFloat() > APFloat::getLargest(APFloat::BFloat()).convertToDouble();
  };
  return dense.isSplat() ? isVast(dense.getSplatValue<APFloat>()) : llvm::any_of(dense.getValues<APFloat>(), isVast);
}

/// True for what brings its operands to a scale of its own.
static bool isScaling(Operation *op) {
  auto formed = dyn_cast<nn::FormOpInterface>(op);
  return formed && formed.getForm() == nn::Form::Row && !isa<nn::ReduceOp>(op);
}

/// How many operands, from the first, `op` multiplies with each other.
static unsigned countFactors(Operation *op) {
  // The second stage of attention to parts has no queries, and its values are sums.
  if (auto attention = dyn_cast<nn::AttentionOp>(op))
    return isa_and_present<nn::ConstantOp>(attention.getQuery().getDefiningOp()) ? 0 : 3;
  return isa<PartialAttentionOp, AttentionGradOp>(op) ? 3 : nn::countFactors(op);
}

/// True for ops that give the elements that they read, in another order or number.
static bool isMovement(Operation *op) {
  auto formed = dyn_cast<nn::FormOpInterface>(op);
  return formed && op->getNumResults() == 1 && (formed.getForm() == nn::Form::Movement || isa<nn::BroadcastOp>(op));
}

/// What `value` is moved from, by whatever has one operand: transposes, reshapes, slices, repetitions. A concat or gather
/// has several and ends the way.
static Value findBase(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isMovement(op) || op->getNumOperands() != 1)
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// A parameter as a kernel gets it. Vectors are biases and scales, of which a program has few bytes, and which would lose
/// what accumulates in them.
static bool isWeight(Value value) { return isLoaded(value) && isWide(value) && getTensorType(value).getRank() >= 2; }

/// True for a kernel of one op that computes in the type that it reads: sorting, scattering, resizing.
static bool isAlone(FusedOp fused) {
  return llvm::any_of(fused.getBody().front().without_terminator(),
                      [](Operation &op) { return !isNumber(&op) && !isFusable(&op) && !isAnchor(&op); });
}

namespace {
/// What a value comes from.
struct Origin {
  bool isData = false, isActivation = false, isVast = false;
  void add(Origin other) {
    isData |= other.isData;
    isActivation |= other.isActivation;
    isVast |= other.isVast;
  }
  bool operator==(Origin other) const {
    return isData == other.isData && isActivation == other.isActivation && isVast == other.isVast;
  }
};

class Narrower {
public:
  explicit Narrower(func::FuncOp func) : func(func) {}
  void run();

private:
  void trace(Operation *op);
  void traceEnter(EnterOp enter);
  bool traceLeave(EnterOp enter, LeaveOp leave);
  bool traceAll();
  void traceBody(FusedOp fused);
  void noteWeight(Value inBody, FusedOp fused);
  bool mayNarrow(OpResult result);
  SmallVector<SmallVector<Value>> getGroups(Operation *op);
  void settle();
  void narrowWeights();
  void narrowBody(FusedOp fused);
  void narrowFactors(Operation *op);
  void moveNarrow(Operation *op);

  func::FuncOp func;
  llvm::DenseMap<Value, Origin> origins;
  /// Products that round what they multiply.
  llvm::DenseSet<Operation *> products;
  /// Values of the function that become narrow; parameters among them.
  llvm::SetVector<Value> narrow, weights;
};
} // namespace

//===----------------------------------------------------------------------===//
// Where values come from
//===----------------------------------------------------------------------===//

/// What one op makes of its operands: its result comes from whatever they come from, and a product of data is where
/// activations begin. Integers and bools that are made of floats are none. Rows of a table of floats that indices pick are data of their own.
void Narrower::trace(Operation *op) {
  Origin origin;
  for (Value operand : op->getOperands())
    origin.add(origins.lookup(operand));
  unsigned factors = countFactors(op);
  bool isFactor =
      factors && isWide(op->getResult(0)) &&
      llvm::any_of(op->getOperands().take_front(factors), [&](Value v) { return origins.lookup(v).isData; });
  if (isFactor) {
    products.insert(op);
    origin.isActivation = true;
  }
  auto constant = dyn_cast<nn::ConstantOp>(op);
  origin.isVast = constant ? hasVast(constant) : origin.isVast && !factors && !isScaling(op);
  for (Value result : op->getResults())
    origins[result] = isWide(result) ? origin : Origin();
}

/// Each value by itself. What is carried may be known from an iteration already.
void Narrower::traceEnter(EnterOp enter) {
  SmallVector<Value> outside(enter.getInitial());
  llvm::append_range(outside, enter.getCaptured());
  for (auto [value, result] : llvm::zip_equal(outside, enter.getValues()))
    origins[result].add(origins.lookup(value));
}

/// True if the next iteration finds something that the ones before did not.
bool Narrower::traceLeave(EnterOp enter, LeaveOp leave) {
  bool isNew = false;
  for (auto [next, result, carried] : llvm::zip(leave.getNext(), leave.getValues(), enter.getValues())) {
    Origin origin = origins.lookup(carried);
    origin.add(origins.lookup(next));
    isNew |= !(origin == origins.lookup(carried));
    origins[result] = origins[carried] = origin;
  }
  return isNew;
}

/// One walk; true if there has to be another one.
bool Narrower::traceAll() {
  bool isNew = false;
  SmallVector<EnterOp> open;
  for (Operation &op : func.getBody().front())
    if (auto fused = dyn_cast<FusedOp>(op)) {
      traceBody(fused);
    } else if (auto receive = dyn_cast<pipe::RecvOp>(op)) {
      for (Value value : receive.getValues())
        origins[value] = {isWide(value), false, isWide(value)};
    } else if (auto enter = dyn_cast<EnterOp>(op)) {
      traceEnter(open.emplace_back(enter));
    } else if (auto leave = dyn_cast<LeaveOp>(op)) {
      isNew |= traceLeave(open.pop_back_val(), leave);
    } else {
      trace(&op);
    }
  return isNew;
}

/// What a product multiplies is looked at by where it lies, not by how it is turned there: the argument of the kernel, and
/// what the kernel is given for it.
/// A table in the memory of weights is stored narrow where it is read as factors are, or row by row.
void Narrower::noteWeight(Value inBody, FusedOp fused) {
  auto argument = dyn_cast<BlockArgument>(findBase(inBody));
  if (Value weight = argument ? fused.getInputs()[argument.getArgNumber()] : Value(); weight && isWeight(weight))
    weights.insert(weight);
}

/// Origins of arguments are those of operands, and origins of results those of what is yielded; in between each op by itself.
void Narrower::traceBody(FusedOp fused) {
  Block &body = fused.getBody().front();
  for (auto [argument, input] : llvm::zip_equal(body.getArguments(), fused.getInputs()))
    origins[argument] = origins.lookup(input);
  for (Operation &op : body.without_terminator()) {
    auto gather = dyn_cast<nn::GatherOp>(op);
    auto table = gather ? dyn_cast<BlockArgument>(gather.getInput()) : BlockArgument();
    if (table && !isAlone(fused) && isWeight(fused.getInputs()[table.getArgNumber()]) &&
        getTensorType(table).getRank() == 2) {
      noteWeight(table, fused);
      origins[gather.getResult()] = {true, true};
      continue;
    }
    trace(&op);
    if (products.contains(&op) && !isAlone(fused))
      for (Value factor : op.getOperands().take_front(countFactors(&op)))
        noteWeight(factor, fused);
  }
  for (auto [result, inside] : llvm::zip_equal(fused.getResults(), body.getTerminator()->getOperands()))
    origins[result] = origins.lookup(inside);
}

//===----------------------------------------------------------------------===//
// What becomes narrow
//===----------------------------------------------------------------------===//

/// A statistic of each row is few bytes, and of more use as it is; parts of one result are rounded when they are together.
bool Narrower::mayNarrow(OpResult result) {
  if (!isWide(result) || !origins.lookup(result).isActivation)
    return false;
  auto enter = dyn_cast<EnterOp>(result.getOwner());
  if (isa<LeaveOp>(result.getOwner()) || (enter && result.getResultNumber() < enter.getInitial().size()))
    return false;
  auto fused = dyn_cast<FusedOp>(result.getOwner());
  if (!fused)
    return true;
  if (!fused.getBody().front().getOps<PartialAttentionOp>().empty())
    return false;
  // Running sums are as they are: kernels of devices end with them, and what is added up outgrows eight bits.
  Operation *last = fused.getBody().front().getTerminator()->getOperand(result.getResultNumber()).getDefiningOp();
  if (auto formed = dyn_cast_if_present<nn::FormOpInterface>(last); formed && formed.getForm() == nn::Form::Scan)
    return false;
  int64_t most = 0;
  for (Value input : fused.getInputs())
    most = std::max(most, getTensorType(input).getNumElements());
  bool hasRows = llvm::any_of(fused.getBody().front().without_terminator(), [](Operation &op) {
    return cast<nn::FormOpInterface>(op).getForm() == nn::Form::Row && isa<nn::ReduceOp>(op);
  });
  return !hasRows || getTensorType(result).getNumElements() * 8 > most;
}

/// What has to be of one type at `op`, a list for each: all of it, but at marks of loops each value by itself.
SmallVector<SmallVector<Value>> Narrower::getGroups(Operation *op) {
  SmallVector<SmallVector<Value>> groups;
  if (isMark(op)) {
    ValueRange operands = op->getOperands().take_back(op->getNumResults());
    for (auto [operand, result] : llvm::zip_equal(operands, op->getResults()))
      if (isWide(operand))
        groups.push_back({operand, result});
    return groups;
  }
  SmallVector<Value> &together = groups.emplace_back();
  llvm::append_range(together, llvm::make_filter_range(op->getOperands(), isWide));
  llvm::append_range(together, llvm::make_filter_range(op->getResults(), isWide));
  return groups;
}

/// Candidates are all activations but what is returned, since the caller gets what the model says, and a kernel has one
/// result for both; and what goes to another rank of a pipeline, which decides by itself. Who sees the same bytes, or exchanges them, has one type: until nothing changes, one that must stay keeps the others.
void Narrower::settle() {
  for (Operation &op : func.getBody().front())
    for (OpResult result : op.getResults())
      if (mayNarrow(result))
        narrow.insert(result);
  for (Value value : func.getBody().front().getTerminator()->getOperands())
    narrow.remove(value);
  for (auto send : func.getOps<pipe::SendOp>())
    for (Value value : send.getValues())
      narrow.remove(value);
  for (bool isSettled = false; !isSettled;) {
    isSettled = true;
    for (Operation &op : func.getBody().front()) {
      auto fused = dyn_cast<FusedOp>(op);
      if (isa<func::ReturnOp>(op) || (fused && !isAlone(fused)))
        continue;
      auto isNarrow = [&](Value value) { return narrow.contains(value); };
      for (const SmallVector<Value> &together : getGroups(&op))
        if (llvm::any_of(together, isNarrow) && (fused || !llvm::all_of(together, isNarrow))) {
          isSettled = false;
          for (Value value : together)
            narrow.remove(value);
        }
    }
  }
}

/// Cast where they are loaded, which casts anyway.
void Narrower::narrowWeights() {
  for (Value weight : weights) {
    OpBuilder builder(func.getContext());
    builder.setInsertionPointAfterValue(weight);
    RankedTensorType type = getTensorType(weight);
    auto order = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    Value packed = PackOp::create(builder, weight.getLoc(), narrowed(type), weight, order, 0, 0, 1);
    for (OpOperand &use : llvm::make_early_inc_range(weight.getUses()))
      if (auto fused = dyn_cast<FusedOp>(use.getOwner()); fused && !isAlone(fused))
        use.set(packed);
  }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Movement of what was widened moves half the bytes, and widens then.
void Narrower::moveNarrow(Operation *op) {
  SmallVector<Value> wide = llvm::filter_to_vector(op->getOperands(), isWide);
  if (wide.empty() || !isWide(op->getResult(0)) ||
      !llvm::all_of(wide, [](Value value) { return !!getWidening(value); }))
    return;
  OpBuilder builder(op);
  Operation *moved = builder.clone(*op);
  for (OpOperand &operand : moved->getOpOperands())
    if (isWide(operand.get()))
      operand.set(getWidening(operand.get()).getInput());
  RankedTensorType type = getTensorType(op->getResult(0));
  moved->getResult(0).setType(narrowed(type));
  op->replaceAllUsesWith(ValueRange{convert(builder, moved->getResult(0), type)});
  op->erase();
}

/// What is multiplied has been rounded: where it was not in memory, here.
void Narrower::narrowFactors(Operation *op) {
  OpBuilder builder(op);
  for (OpOperand &factor : llvm::make_early_inc_range(op->getOpOperands().take_front(countFactors(op)))) {
    Value value = factor.get();
    if (isWide(value) && !getWidening(findBase(value)))
      factor.set(convert(builder, convert(builder, value, narrowed(getTensorType(value))), getTensorType(value)));
  }
}

/// Arguments are widened first thing, results rounded last: in between the body is what it was. Where both meet with nothing but
/// movement in between, neither is done.
void Narrower::narrowBody(FusedOp fused) {
  if (isAlone(fused))
    return;
  Block &body = fused.getBody().front();
  auto builder = OpBuilder::atBlockBegin(&body);
  for (auto [argument, input] : llvm::zip_equal(body.getArguments(), fused.getInputs())) {
    if (argument.getType() == input.getType())
      continue;
    RankedTensorType type = getTensorType(argument);
    argument.setType(input.getType());
    Value widened = convert(builder, argument, type);
    argument.replaceAllUsesExcept(widened, widened.getDefiningOp());
  }
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
    if (products.contains(&op))
      narrowFactors(&op);
    else if (isMovement(&op) && !isa<nn::PadOp>(op))
      moveNarrow(&op);
  }
  Operation *yield = body.getTerminator();
  builder.setInsertionPoint(yield);
  for (auto [result, inside] : llvm::zip_equal(fused.getResults(), yield->getOpOperands())) {
    if (!narrow.contains(result))
      continue;
    nn::CastOp widening = getWidening(inside.get());
    bool isThere = widening && !isa<BlockArgument>(widening.getInput());
    inside.set(
        isThere ? widening.getInput()
                : convert(builder, inside.get(), narrowed(getTensorType(inside.get())), origins.lookup(result).isVast));
    result.setType(inside.get().getType());
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Types in attributes follow: those of the whole of which shards are exchanged, and of the number that a window fills in.
static void narrowAttributes(Operation *op) {
  for (NamedAttribute attribute : llvm::to_vector(op->getAttrs()))
    if (auto of = dyn_cast<TypeAttr>(attribute.getValue()))
      if (auto whole = dyn_cast<RankedTensorType>(of.getValue()); whole && whole.getElementType().isF32())
        op->setAttr(attribute.getName(),
                    TypeAttr::get(RankedTensorType::get(whole.getShape(), BFloat16Type::get(op->getContext()),
                                                        whole.getEncoding())));
  auto window = dyn_cast<spmd::WindowOp>(op);
  auto fill = window ? dyn_cast_or_null<FloatAttr>(window.getFillAttr()) : FloatAttr();
  auto type = BFloat16Type::get(op->getContext());
  if (!fill || fill.getType() == type)
    return;
  window.setFillAttr(FloatAttr::get(type, narrowed(fill.getValue())));
}

/// Questions first, then weights, whose readers are looked up by type, then kernels in order.
void Narrower::run() {
  Block &block = func.getBody().front();
  for (BlockArgument argument : func.getArguments())
    origins[argument] = {isWide(argument), false, isWide(argument)};
  while (traceAll()) {
  }
  settle();
  narrowWeights();
  for (Operation &op : block)
    if (auto fused = dyn_cast<FusedOp>(op))
      narrowBody(fused);
    else
      for (OpResult result : op.getResults())
        if (narrow.contains(result)) {
          result.setType(narrowed(getTensorType(result)));
          narrowAttributes(&op);
        }
}

namespace {
struct NarrowFloats : cleave::exec::impl::NarrowFloatsBase<NarrowFloats> {
  using Base::Base;

  void runOnOperation() override {
    OwnFaults faults(&getContext());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal())
        Narrower(func).run();
  }
};
} // namespace
