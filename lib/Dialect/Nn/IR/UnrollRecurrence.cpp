//===- UnrollRecurrence.cpp - a recurrence as its steps -------------------===//
//
// Every step is the same few ops, so that lowering finds them equal and keeps one copy of their code:
//
//   projected ──slice t──▶ [d, b, g, h] ──┐
//   h ──(gather)──▶ einsum with weight ───┴─ add ─▶ gates ─▶ h', c'          result = concat of all h', along steps
//
// Slices of the first dim and parts of a concat along it are bytes where they lie: nothing is moved. Nothing in a step may
// depend on its number but such a slice, or steps were not equal: which samples still run is computed for all steps at once.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Recurrence.h"
#include "cleave/Dialect/Nn/IR/Recurrence.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {

class Unroller : Composer {
public:
  Unroller(OpBuilder &builder, Location loc, RecurrenceOp op, ValueRange operands,
           llvm::function_ref<Value(Value)> gather)
      : Composer(builder, loc), op(op), in(operands, op), gather(gather), element(getElementType(in.getProjected())),
        extents(getShape(in.getProjected())) {}

  SmallVector<Value> run();

private:
  int64_t getSteps() const { return extents[0]; }
  int64_t getDirections() const { return extents[1]; }
  int64_t getBatch() const { return extents[2]; }
  int64_t getHidden() const { return extents[4]; }

  Value number(double value) { return scalar(element, value); }

  Value clip(Value value);
  Value activate(unsigned index, Value value);
  void prepare();
  /// `state` times the rows of `rows`, [directions * gates * hidden, hidden]: [directions, batch, gates, hidden].
  Value multiply(Value state, Value rows, int64_t gates);
  Value prepareRows(Value weight, int64_t first, int64_t gates);
  Value gatherState(Value state) { return gather ? gather(state) : state; }

  void stepLstm(Value projected);
  void stepGru(Value projected);
  void stepRnn(Value projected);
  /// Of samples that have ended, states stay and results are 0.
  Value keepEnded(int64_t step, ArrayRef<Value> before);

  RecurrenceOp op;
  RecurrenceOp::Adaptor in;
  llvm::function_ref<Value(Value)> gather;
  Type element;
  ArrayRef<int64_t> extents;

  SmallVector<Value, 2> states;
  /// Rows of the weights for all gates; of a gru that resets first, without and for its last gate.
  Value rows, lastRows;
  SmallVector<Value, 3> peepholes;
  Value bias, isRunning;
};

} // namespace

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

Value Unroller::clip(Value value) {
  double bound = op.getClip().convertToDouble();
  return bound > 0 ? clamp(value, -bound, bound) : value;
}

/// Of what is clipped, as ONNX has it.
Value Unroller::activate(unsigned index, Value value) {
  double alpha = op.getAlphas()[index], beta = op.getBetas()[index];
  FloatAttr alphaAttr = builder.getF64FloatAttr(alpha), betaAttr = builder.getF64FloatAttr(beta);
  RankedTensorType type = getTensorType(value);
  switch (*findActivation(llvm::cast<StringAttr>(op.getActivations()[index]))) {
  case Activation::Relu:
    return create<ReluOp>(value);
  case Activation::Tanh:
    return tanh(value);
  case Activation::Sigmoid:
    return sigmoid(value);
  case Activation::Affine:
    return add(mul(value, alpha), beta);
  case Activation::LeakyRelu:
    return createTyped<LeakyReluOp>(type, value, alphaAttr);
  case Activation::ThresholdedRelu:
    return select(lt(value, alpha), number(0), value);
  case Activation::ScaledTanh:
    return mul(tanh(mul(value, beta)), alpha);
  case Activation::HardSigmoid:
    return createTyped<HardSigmoidOp>(type, value, alphaAttr, betaAttr);
  case Activation::Elu:
    return createTyped<EluOp>(type, value, alphaAttr);
  case Activation::Softsign:
    return div(value, add(abs(value), 1));
  case Activation::Softplus:
    return create<SoftplusOp>(value);
  }
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// A matrix with the state's elements along its rows, one matrix a direction where there are two.
Value Unroller::prepareRows(Value weight, int64_t first, int64_t gates) {
  Value part = sliceDim(weight, 1, first, gates);
  SmallVector<int64_t> shape = {getDirections(), gates * getHidden(), getShape(weight).back()};
  return reshape(part, getDirections() == 1 ? ArrayRef<int64_t>(shape).drop_front() : ArrayRef<int64_t>(shape));
}

Value Unroller::multiply(Value state, Value rows, int64_t gates) {
  ArrayRef<int64_t> shape = getShape(state);
  bool isSingle = getDirections() == 1;
  Value left = isSingle ? reshape(state, shape.drop_front()) : state;
  Value product = einsum({left, rows}, isSingle ? "bk,nk->bn" : "dbk,dnk->dbn");
  return reshape(product, {getDirections(), getBatch(), gates, getHidden()});
}

/// What all steps share.
void Unroller::prepare() {
  int64_t gates = extents[3];
  bool resetsFirst = op.getKind() == RecurrenceKind::Gru && !op.getLinearBeforeReset();
  rows = prepareRows(in.getWeight(), 0, resetsFirst ? gates - 1 : gates);
  if (resetsFirst)
    lastRows = prepareRows(in.getWeight(), gates - 1, 1);
  SmallVector<int64_t> perState = {getDirections(), 1, getHidden()};
  if (in.getBias())
    bias = reshape(in.getBias(), perState);
  if (in.getPeepholes())
    for (int64_t gate = 0; gate < 3; ++gate)
      peepholes.push_back(reshape(pick(in.getPeepholes(), 1, gate), perState));
  if (!in.getLengths())
    return;
  Type index = getElementType(in.getLengths());
  Value step = iota({getSteps(), 1}, /*dim=*/0, index);
  isRunning = lt(step, reshape(in.getLengths(), {1, getBatch()}));
}

/// Peepholes look at the cell before the step, and that of the output gate at the one behind it.
void Unroller::stepLstm(Value projected) {
  Value all = op.multipliesNothing() ? projected : add(projected, multiply(gatherState(states[0]), rows, 4));
  auto gate = [&](int64_t index, Value cell) {
    Value value = pick(all, 2, index);
    return peepholes.empty() || index == 3 ? clip(value) : clip(add(value, mul(peepholes[index], cell)));
  };
  Value input = activate(0, gate(0, states[1]));
  Value forget = op.getInputForget() ? sub(1, input) : activate(0, gate(2, states[1]));
  Value cell = add(mul(forget, states[1]), mul(input, activate(1, gate(3, nullptr))));
  Value output = activate(0, gate(1, cell));
  states = {mul(output, activate(2, cell)), cell};
}

/// The product of what is reset is gathered once more, as the reset of a rank's units is known to itself alone.
void Unroller::stepGru(Value projected) {
  bool isLinear = op.getLinearBeforeReset();
  Value products = multiply(gatherState(states[0]), rows, isLinear ? 3 : 2);
  auto gate = [&](int64_t index) {
    return activate(0, clip(add(pick(projected, 2, index), pick(products, 2, index))));
  };
  Value update = gate(0), reset = gate(1);
  Value last = isLinear ? mul(reset, add(pick(products, 2, 2), bias))
                        : pick(multiply(gatherState(mul(reset, states[0])), lastRows, 1), 2, 0);
  Value made = activate(1, clip(add(pick(projected, 2, 2), last)));
  states = {add(mul(sub(1, update), made), mul(update, states[0]))};
}

void Unroller::stepRnn(Value projected) {
  Value product = multiply(gatherState(states[0]), rows, 1);
  states = {activate(0, clip(pick(add(projected, product), 2, 0)))};
}

Value Unroller::keepEnded(int64_t step, ArrayRef<Value> before) {
  if (!isRunning)
    return states[0];
  Value runs = reshape(sliceDim(isRunning, 0, step, 1), {1, getBatch(), 1});
  Value result = select(runs, states[0], 0);
  for (auto [state, old] : llvm::zip_equal(states, before))
    state = select(runs, state, old);
  return result;
}

SmallVector<Value> Unroller::run() {
  prepare();
  llvm::append_range(states, in.getInitial());
  SmallVector<Value> results;
  for (int64_t step = 0; step < getSteps(); ++step) {
    Value projected = pick(in.getProjected(), 0, step);
    SmallVector<Value, 2> before = states;
    if (op.getKind() == RecurrenceKind::Lstm)
      stepLstm(projected);
    else if (op.getKind() == RecurrenceKind::Gru)
      stepGru(projected);
    else
      stepRnn(projected);
    results.push_back(reshape(keepEnded(step, before), {1, getDirections(), getBatch(), getHidden()}));
  }
  SmallVector<Value> all = {concat(results, /*dim=*/0)};
  llvm::append_range(all, states);
  return all;
}

SmallVector<Value> cleave::nn::unrollRecurrence(OpBuilder &builder, Location loc, RecurrenceOp op, ValueRange operands,
                                                llvm::function_ref<Value(Value)> gather) {
  return Unroller(builder, loc, op, operands, gather).run();
}
