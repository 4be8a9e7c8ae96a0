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
#include "TypeInference.h"
#include "cleave/Dialect/Nn/IR/Recurrence.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {

class Unroller {
public:
  Unroller(OpBuilder &builder, Location loc, RecurrenceOp op, ValueRange operands,
           llvm::function_ref<Value(Value)> gather)
      : builder(builder), loc(loc), op(op), in(operands, op), gather(gather),
        element(getElementType(in.getProjected())), extents(getShape(in.getProjected())) {}

  SmallVector<Value> run();

private:
  int64_t getSteps() const { return extents[0]; }
  int64_t getDirections() const { return extents[1]; }
  int64_t getBatch() const { return extents[2]; }
  int64_t getHidden() const { return extents[4]; }

  template <typename OpTy> Value make(Value lhs, Value rhs) { return OpTy::create(builder, loc, lhs, rhs); }
  Value add(Value lhs, Value rhs) { return make<AddOp>(lhs, rhs); }
  Value mul(Value lhs, Value rhs) { return make<MulOp>(lhs, rhs); }
  Value number(double value);
  Value reshape(Value value, ArrayRef<int64_t> shape);
  /// `count` positions of a dim.
  Value slice(Value value, int64_t dim, int64_t start, int64_t count);
  /// One position of a dim, without the dim.
  Value pick(Value value, int64_t dim, int64_t at);

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

  OpBuilder &builder;
  Location loc;
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

Value Unroller::number(double value) {
  APFloat real(value);
  bool losesInfo;
  real.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  auto type = RankedTensorType::get({}, element);
  return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, real));
}

Value Unroller::reshape(Value value, ArrayRef<int64_t> shape) {
  if (getShape(value) == shape)
    return value;
  return ReshapeOp::create(builder, loc, RankedTensorType::get(shape, getElementType(value)), value);
}

Value Unroller::slice(Value value, int64_t dim, int64_t start, int64_t count) {
  SmallVector<int64_t> sizes(getShape(value)), starts(sizes.size(), 0), steps(sizes.size(), 1);
  if (sizes[dim] == count)
    return value;
  starts[dim] = start;
  sizes[dim] = count;
  return SliceOp::create(builder, loc, value, starts, sizes, steps);
}

Value Unroller::pick(Value value, int64_t dim, int64_t at) {
  SmallVector<int64_t> shape(getShape(value));
  shape.erase(shape.begin() + dim);
  return reshape(slice(value, dim, at, 1), shape);
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

Value Unroller::clip(Value value) {
  double bound = op.getClip().convertToDouble();
  return bound > 0 ? make<MinOp>(make<MaxOp>(value, number(-bound)), number(bound)) : value;
}

/// Of what is clipped, as ONNX has it.
Value Unroller::activate(unsigned index, Value value) {
  double alpha = op.getAlphas()[index], beta = op.getBetas()[index];
  FloatAttr alphaAttr = builder.getF64FloatAttr(alpha), betaAttr = builder.getF64FloatAttr(beta);
  Type type = value.getType();
  switch (*findActivation(cast<StringAttr>(op.getActivations()[index]))) {
  case Activation::Relu:
    return ReluOp::create(builder, loc, value);
  case Activation::Tanh:
    return TanhOp::create(builder, loc, value);
  case Activation::Sigmoid:
    return SigmoidOp::create(builder, loc, value);
  case Activation::Affine:
    return add(mul(value, number(alpha)), number(beta));
  case Activation::LeakyRelu:
    return LeakyReluOp::create(builder, loc, type, value, alphaAttr);
  case Activation::ThresholdedRelu:
    return SelectOp::create(builder, loc, make<LtOp>(value, number(alpha)), number(0), value);
  case Activation::ScaledTanh:
    return mul(TanhOp::create(builder, loc, mul(value, number(beta))), number(alpha));
  case Activation::HardSigmoid:
    return HardSigmoidOp::create(builder, loc, type, value, alphaAttr, betaAttr);
  case Activation::Elu:
    return EluOp::create(builder, loc, type, value, alphaAttr);
  case Activation::Softsign:
    return make<DivOp>(value, add(AbsOp::create(builder, loc, value), number(1)));
  case Activation::Softplus:
    return SoftplusOp::create(builder, loc, value);
  }
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// A matrix with the state's elements along its rows, one matrix a direction where there are two.
Value Unroller::prepareRows(Value weight, int64_t first, int64_t gates) {
  Value part = slice(weight, 1, first, gates);
  SmallVector<int64_t> shape = {getDirections(), gates * getHidden(), getShape(weight).back()};
  return reshape(part, getDirections() == 1 ? ArrayRef<int64_t>(shape).drop_front() : ArrayRef<int64_t>(shape));
}

Value Unroller::multiply(Value state, Value rows, int64_t gates) {
  ArrayRef<int64_t> shape = getShape(state);
  bool isSingle = getDirections() == 1;
  Value left = isSingle ? reshape(state, shape.drop_front()) : state;
  Value product =
      EinsumOp::create(builder, loc, ValueRange{left, rows}, isSingle ? "bk,nk->bn" : "dbk,dnk->dbn").getResult();
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
  Value step = IotaOp::create(builder, loc, RankedTensorType::get({getSteps(), 1}, index), /*dim=*/0, /*start=*/0,
                              /*step=*/1);
  isRunning = make<LtOp>(step, reshape(in.getLengths(), {1, getBatch()}));
}

/// Peepholes look at the cell before the step, and that of the output gate at the one behind it.
void Unroller::stepLstm(Value projected) {
  Value all = op.multipliesNothing() ? projected : add(projected, multiply(gatherState(states[0]), rows, 4));
  auto gate = [&](int64_t index, Value cell) {
    Value value = pick(all, 2, index);
    return peepholes.empty() || index == 3 ? clip(value) : clip(add(value, mul(peepholes[index], cell)));
  };
  Value input = activate(0, gate(0, states[1]));
  Value forget = op.getInputForget() ? make<SubOp>(number(1), input) : activate(0, gate(2, states[1]));
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
  states = {add(mul(make<SubOp>(number(1), update), made), mul(update, states[0]))};
}

void Unroller::stepRnn(Value projected) {
  Value product = multiply(gatherState(states[0]), rows, 1);
  states = {activate(0, clip(pick(add(projected, product), 2, 0)))};
}

Value Unroller::keepEnded(int64_t step, ArrayRef<Value> before) {
  if (!isRunning)
    return states[0];
  Value runs = reshape(slice(isRunning, 0, step, 1), {1, getBatch(), 1});
  Value result = SelectOp::create(builder, loc, runs, states[0], number(0));
  for (auto [state, old] : llvm::zip_equal(states, before))
    state = SelectOp::create(builder, loc, runs, state, old);
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
  auto type = RankedTensorType::get({getSteps(), getDirections(), getBatch(), getHidden()}, element);
  SmallVector<Value> all = {getSteps() == 1 ? results.front()
                                            : ConcatOp::create(builder, loc, type, results, /*dim=*/0).getResult()};
  llvm::append_range(all, states);
  return all;
}

SmallVector<Value> cleave::nn::unrollRecurrence(OpBuilder &builder, Location loc, RecurrenceOp op, ValueRange operands,
                                                llvm::function_ref<Value(Value)> gather) {
  return Unroller(builder, loc, op, operands, gather).run();
}
