//===- Recurrence.cpp - result types of recurrent nets --------------------===//
//
//   projected [t, d, b, g, h], weight [d, g, h, h], initial [d, b, h] -> [t, d, b, h], last [d, b, h]
//
// How many gates, states and activations there are, the kind says; that there is a step at least spares all that reads
// the op the question what a net without steps gives.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Recurrence.h"
#include "TypeInference.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Recurrence.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

std::optional<Activation> cleave::nn::findActivation(StringRef name) {
  return llvm::StringSwitch<std::optional<Activation>>(name)
      .Case("relu", Activation::Relu)
      .Case("tanh", Activation::Tanh)
      .Case("sigmoid", Activation::Sigmoid)
      .Case("affine", Activation::Affine)
      .Case("leaky_relu", Activation::LeakyRelu)
      .Case("thresholded_relu", Activation::ThresholdedRelu)
      .Case("scaled_tanh", Activation::ScaledTanh)
      .Case("hard_sigmoid", Activation::HardSigmoid)
      .Case("elu", Activation::Elu)
      .Case("softsign", Activation::Softsign)
      .Case("softplus", Activation::Softplus)
      .Default(std::nullopt);
}

unsigned cleave::nn::countActivations(RecurrenceKind kind) {
  return kind == RecurrenceKind::Lstm ? 3 : kind == RecurrenceKind::Gru ? 2 : 1;
}
unsigned cleave::nn::countStates(RecurrenceKind kind) { return kind == RecurrenceKind::Lstm ? 2 : 1; }
int64_t cleave::nn::countGates(RecurrenceKind kind) {
  return kind == RecurrenceKind::Lstm ? 4 : kind == RecurrenceKind::Gru ? 3 : 1;
}

/// C1 of one operand; of one that is left out nothing is asked.
static LogicalResult checkShape(StringRef name, Value value, ArrayRef<int64_t> expected, TypeInference &infer) {
  if (!value || getShape(value) == expected)
    return success();
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(expected, os);
  return infer.reject(name, " is ", value.getType(), ", expected [", text, "] (C1)");
}

/// C4: a name, an alpha and a beta for each.
static LogicalResult checkActivations(RecurrenceOp::Adaptor op, TypeInference &infer) {
  size_t count = countActivations(op.getKind());
  if (op.getActivations().size() != count || op.getAlphas().size() != count || op.getBetas().size() != count)
    return infer.reject(op.getActivations().size(), " activations with ", op.getAlphas().size(), " alphas and ",
                        op.getBetas().size(), " betas, expected ", count, " of each (C4)");
  for (StringAttr name : op.getActivations().getAsRange<StringAttr>())
    if (!findActivation(name))
      return infer.reject("activation ", name, " is not known (C4)");
  return success();
}

/// The number that all elements of a constant are; nothing of what is none, or of several numbers.
static std::optional<APFloat> getSplat(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  return splat ? std::optional(splat.getSplatValue<APFloat>()) : std::nullopt;
}

/// Which op made an operand, no rule may ask: what it spares is written down on the op, for all who come later.
LogicalResult RecurrenceOp::canonicalize(RecurrenceOp op, PatternRewriter &rewriter) {
  std::optional<APFloat> h = getSplat(op.getInitial().front());
  if (op.getStartsFromZeros() || !h || !h->isPosZero())
    return failure();
  rewriter.modifyOpInPlace(op, [&] { op.setStartsFromZeros(true); });
  return success();
}

LogicalResult RecurrenceOp::inferTypes(Adaptor op, TypeInference &infer) {
  RecurrenceKind kind = op.getKind();
  ArrayRef<int64_t> projected = getShape(op.getProjected());
  if (projected.size() != 5 || projected[3] != countGates(kind) || projected[0] < 1)
    return infer.reject("projected is ", op.getProjected().getType(), ", expected [steps, directions, batch, ",
                        countGates(kind), ", hidden] with a step at least (C1)");
  if (op.getInitial().size() != countStates(kind))
    return infer.reject(op.getInitial().size(), " initial states, expected ", countStates(kind), " (C2)");
  int64_t directions = projected[1], batch = projected[2], gates = projected[3], hidden = projected[4];
  SmallVector<int64_t, 3> state = {directions, batch, hidden};
  if (failed(checkShape("weight", op.getWeight(), {directions, gates, hidden, hidden}, infer)) ||
      failed(checkShape("bias", op.getBias(), {directions, hidden}, infer)) ||
      failed(checkShape("peepholes", op.getPeepholes(), {directions, 3, hidden}, infer)) ||
      failed(checkShape("lengths", op.getLengths(), {batch}, infer)))
    return failure();
  for (Value initial : op.getInitial())
    if (failed(checkShape("initial state", initial, state, infer)))
      return failure();
  SmallVector<Value> floats = {op.getProjected(), op.getWeight()};
  llvm::append_range(floats, op.getInitial());
  for (Value value : {op.getBias(), op.getPeepholes()})
    if (value)
      floats.push_back(value);
  if (failed(infer.checkElementTypes(floats, "C1")))
    return failure();
  bool isReset = op.getLinearBeforeReset();
  if (isReset != bool(op.getBias()) || (isReset && kind != RecurrenceKind::Gru))
    return infer.reject("bias goes with linearBeforeReset of a gru (C3)");
  if ((op.getPeepholes() || op.getInputForget()) && kind != RecurrenceKind::Lstm)
    return infer.reject("peepholes and inputForget are of an lstm (C3)");
  if (failed(checkActivations(op, infer)))
    return failure();
  if (std::optional<APFloat> h = getSplat(op.getInitial().front()); op.getStartsFromZeros() && h && !h->isZero())
    return infer.reject("startsFromZeros, but the initial state is ", h->convertToDouble(), " (C5)");
  Type element = getElementType(op.getProjected());
  (void)infer.give({projected[0], directions, batch, hidden}, element);
  for (unsigned i = 0; i < countStates(kind); ++i)
    (void)infer.give(state, element);
  return success();
}
