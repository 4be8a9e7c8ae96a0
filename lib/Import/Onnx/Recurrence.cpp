//===- Recurrence.cpp - LSTM, GRU and RNN ---------------------------------===//
//
// ONNX has the gates of a direction one behind the other in a dim; here they are a dim of their own, so that a split of the
// hidden dim splits all gates alike. What the input alone says of all steps is one product:
//
//   x [t, b, i], reversed for a direction from the end ── einsum with W [d, g, h, i], + bias ──▶ projected [t, d, b, g, h]
//   nn.recurrence ──▶ y [t, d, b, h], reversed likewise
//
// A recurrence runs all its directions from the first step on. Two directions whose activations differ are two of them.
//
//===----------------------------------------------------------------------===//
#include "RecurrenceImporter.h"
#include "Registry.h"

#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Recurrence.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// X [t, b, i] (or batch first), W [d, g h, i], R [d, g h, h].
bool RecurrenceImporter::readShapes() {
  isBatchFirst = node.boolAttr("layout", false);
  x = node.operand(0);
  Shape w = NodeContext::shape(node.operand(1)), r = NodeContext::shape(node.operand(2));
  if (node.failed() || !node.check(NodeContext::rank(x) == 3, "X must have 3 dims") ||
      !node.check(w.size() == 3 && r.size() == 3, "W and R must have 3 dims"))
    return false;
  if (isBatchFirst)
    x = node.transpose(x, {1, 0, 2});
  Shape shape = NodeContext::shape(x);
  int64_t directions = isReversed.size();
  hidden = r[2];
  steps = shape[0], batch = shape[1], inputs = shape[2];
  int64_t given = node.intAttr("hidden_size", hidden);
  return node.check(given == hidden, "'hidden_size' is " + Twine(given) + ", but R has " + Twine(hidden)) &&
         node.check(r == Shape({directions, gates * hidden, hidden}),
                    "R must be [" + Twine(directions) + ", " + Twine(gates * hidden) + ", " + Twine(hidden) + "]") &&
         node.check(w == Shape({directions, gates * hidden, inputs}),
                    "W must be [" + Twine(directions) + ", " + Twine(gates * hidden) + ", " + Twine(inputs) + "]");
}

/// Before shapes, which have a part for each direction.
bool RecurrenceImporter::readDirections() {
  StringRef direction = node.stringAttr("direction", StringRef("forward"));
  if (direction == "forward")
    isReversed = {false};
  else if (direction == "reverse")
    isReversed = {true};
  else if (direction == "bidirectional")
    isReversed = {false, true};
  return node.check(!isReversed.empty(),
                    "attribute 'direction' is '" + direction + "', expected 'forward', 'reverse' or 'bidirectional'");
}

/// The name that nn.recurrence has for it, and the numbers that it has where the node gives none, as onnxruntime has them.
static std::optional<ActivationChoice> findChoice(StringRef name, unsigned &numbers) {
  struct Known {
    StringRef name;
    ActivationChoice choice;
    unsigned numbers;
  };
  static const Known known[] = {
      {"relu", {"relu"}, 0},
      {"tanh", {"tanh"}, 0},
      {"sigmoid", {"sigmoid"}, 0},
      {"softsign", {"softsign"}, 0},
      {"softplus", {"softplus"}, 0},
      {"affine", {"affine", 1, 0}, 2},
      {"leakyrelu", {"leaky_relu", 0.01, 0}, 1},
      {"thresholdedrelu", {"thresholded_relu", 1, 0}, 1},
      {"scaledtanh", {"scaled_tanh", 1, 1}, 2},
      {"hardsigmoid", {"hard_sigmoid", 0.2, 0.5}, 2},
      {"elu", {"elu", 1, 0}, 1},
  };
  for (const Known &one : known)
    if (name.equals_insensitive(one.name)) {
      numbers = one.numbers;
      return one.choice;
    }
  return std::nullopt;
}

/// One list of activations for each direction, one behind the other. The lists of numbers go on with each activation that
/// takes one: of Sigmoid, HardSigmoid the first alpha is the second activation's.
bool RecurrenceImporter::readActivations() {
  SmallVector<StringRef> names;
  if (auto given = node.stringsAttr("activations"))
    names = *given;
  size_t count = nn::countActivations(kind) * isReversed.size();
  if (names.empty()) {
    SmallVector<StringRef, 3> usual = isLstm ? SmallVector<StringRef, 3>{"Sigmoid", "Tanh", "Tanh"}
                                      : kind == nn::RecurrenceKind::Gru ? SmallVector<StringRef, 3>{"Sigmoid", "Tanh"}
                                                                        : SmallVector<StringRef, 3>{"Tanh"};
    for (size_t i = 0; i < isReversed.size(); ++i)
      names.append(usual);
  }
  if (!node.check(names.size() == count, "has " + Twine(names.size()) + " activations, expected " + Twine(count)))
    return false;
  SmallVector<double> alphas = node.floatsAttr("activation_alpha").value_or(SmallVector<double>());
  SmallVector<double> betas = node.floatsAttr("activation_beta").value_or(SmallVector<double>());
  size_t nextAlpha = 0, nextBeta = 0;
  for (StringRef name : names) {
    unsigned numbers = 0;
    std::optional<ActivationChoice> choice = findChoice(name, numbers);
    if (!node.check(choice.has_value(), "activation '" + name + "' is not known"))
      return false;
    if (numbers > 0 && nextAlpha < alphas.size())
      choice->alpha = alphas[nextAlpha++];
    if (numbers > 1 && nextBeta < betas.size())
      choice->beta = betas[nextBeta++];
    activations.push_back(*choice);
  }
  return !node.failed();
}

/// Lengths that are known and leave nothing out are none.
void RecurrenceImporter::readLengths() {
  lengths = node.operand(4);
  if (!lengths)
    return;
  if (!node.check(NodeContext::shape(lengths) == Shape({batch}), "sequence_lens must be [" + Twine(batch) + "]"))
    return;
  if (!node.tryConstant(4))
    return;
  Ints known = node.constantInts(4);
  for (int64_t length : known)
    if (!node.check(length >= 0 && length <= steps, "a length is outside [0, " + Twine(steps) + "]"))
      return;
  if (llvm::all_of(known, [&](int64_t length) { return length == steps; }))
    lengths = {};
}

/// Where all samples are as long, a slice backwards; else step i of a sample is its step `length - 1 - i`, and what is
/// behind its end stays there.
Value RecurrenceImporter::reverse(Value value, int64_t batchDim) {
  Shape shape = NodeContext::shape(value);
  if (!lengths) {
    Ints starts(shape.size(), 0), strides(shape.size(), 1);
    starts[0] = steps - 1;
    strides[0] = -1;
    return steps == 1 ? value : node.slice(value, starts, shape, strides);
  }
  Type index = NodeContext::elementType(lengths);
  Value step = node.createTyped<nn::IotaOp>(RankedTensorType::get({steps, 1}, index), 0, 0, 1);
  Value length = node.reshape(lengths, {1, batch});
  Value mirrored = node.create<nn::SubOp>(node.create<nn::SubOp>(length, step), node.scalar(index, 1));
  Value places = node.create<nn::SelectOp>(node.create<nn::LtOp>(step, length), mirrored, step);
  Ints along(shape.size(), 1);
  along[0] = steps;
  along[batchDim] = batch;
  return node.create<nn::GatherElementsOp>(value, node.broadcast(node.reshape(places, along), shape), 0);
}

Value RecurrenceImporter::getInput(Value value, int64_t first, int64_t count) {
  SmallVector<Value> each;
  for (int64_t direction = first; direction < first + count; ++direction)
    each.push_back(isReversed[direction] ? reverse(value, 1) : value);
  if (count == 1)
    return each.front();
  for (Value &one : each)
    one = node.unsqueeze(one, {1});
  return node.concat(each, 1);
}

std::pair<Value, Value> RecurrenceImporter::getBias(int64_t first, int64_t count) {
  int64_t directions = isReversed.size();
  if (!node.hasOperand(3) || !node.check(NodeContext::shape(node.operand(3)) == Shape({directions, 2 * gates * hidden}),
                                         "B must be [" + Twine(directions) + ", " + Twine(2 * gates * hidden) + "]"))
    return {};
  Value both = node.reshape(node.sliceDim(node.operand(3), 0, first, count), {count, 2, gates, hidden});
  auto half = [&](int64_t which) { return node.reshape(node.sliceDim(both, 1, which, 1), {count, gates, hidden}); };
  return {half(0), half(1)};
}

/// `W x + Wb + Rb`. Where a gru resets behind its product, the bias of that is not added here but given to the op.
Value RecurrenceImporter::project(int64_t first, int64_t count, Value &resetBias) {
  Value weight = node.reshape(node.sliceDim(node.operand(1), 0, first, count), {count, gates, hidden, inputs});
  Value projected = node.create<nn::EinsumOp>(ValueRange{getInput(x, first, count), weight},
                                              count == 1 ? "tbi,dghi->tdbgh" : "tdbi,dghi->tdbgh");
  bool isReset = isLinear && kind == nn::RecurrenceKind::Gru;
  Value zeros = node.broadcast(node.scalarLike(x, 0), {count, hidden});
  if (isReset)
    resetBias = zeros;
  auto [ofInput, ofState] = getBias(first, count);
  if (!ofInput)
    return projected;
  if (isReset) {
    resetBias = node.reshape(node.sliceDim(ofState, 1, 2, 1), {count, hidden});
    ofState = node.concat({node.sliceDim(ofState, 1, 0, 2), node.reshape(zeros, {count, 1, hidden})}, 1);
  }
  Value bias = node.create<nn::AddOp>(ofInput, ofState);
  return node.create<nn::AddOp>(projected, node.reshape(bias, {count, 1, gates, hidden}));
}

/// Zeros where the node gives none. With the batch first, states have it first, too.
Value RecurrenceImporter::getInitial(unsigned operand, int64_t first, int64_t count) {
  int64_t directions = isReversed.size();
  Value value = node.operand(operand);
  if (!value)
    return node.broadcast(node.scalarLike(x, 0), {count, batch, hidden});
  if (isBatchFirst && NodeContext::rank(value) == 3)
    value = node.transpose(value, {1, 0, 2});
  if (!node.check(NodeContext::shape(value) == Shape({directions, batch, hidden}),
                  "operand " + Twine(operand) + " must have " + Twine(directions) + " directions, " + Twine(batch) +
                      " samples and " + Twine(hidden) + " units"))
    return {};
  return node.sliceDim(value, 0, first, count);
}

/// Of an lstm: for the gates i, o and f.
Value RecurrenceImporter::getPeepholes(int64_t first, int64_t count) {
  int64_t directions = isReversed.size();
  if (!isLstm || !node.hasOperand(7) ||
      !node.check(NodeContext::shape(node.operand(7)) == Shape({directions, 3 * hidden}),
                  "P must be [" + Twine(directions) + ", " + Twine(3 * hidden) + "]"))
    return {};
  return node.reshape(node.sliceDim(node.operand(7), 0, first, count), {count, 3, hidden});
}

SmallVector<Value> RecurrenceImporter::makeSteps(int64_t first, Value projected, Value weight, ValueRange initial,
                                                 Value bias, Value peepholes, Value lengths) {
  SmallVector<Attribute> names;
  SmallVector<double> alphas, betas;
  for (const ActivationChoice &choice : getActivations(first)) {
    names.push_back(node.getBuilder().getStringAttr(choice.name));
    alphas.push_back(choice.alpha);
    betas.push_back(choice.beta);
  }
  return SmallVector<Value>(node.createAll<nn::RecurrenceOp>(kind, projected, weight, initial, bias, peepholes, lengths,
                                                             node.getBuilder().getArrayAttr(names), alphas, betas,
                                                             APFloat(clip), inputForget, isLinear));
}

SmallVector<Value> RecurrenceImporter::joinDirections(SmallVector<Value> results, int64_t first, int64_t count) {
  SmallVector<Value> sequences;
  for (int64_t i = 0; i < count; ++i) {
    Value one = node.sliceDim(results[0], 1, i, 1);
    sequences.push_back(isReversed[first + i] ? reverse(one, 2) : one);
  }
  if (llvm::is_contained(isReversed, true))
    results[0] = node.concat(sequences, 1);
  return results;
}

/// What the node has for these directions alone, put together: each operand has directions as its first dim, and so has each
/// result but the sequence, where steps come first.
SmallVector<Value> RecurrenceImporter::runDirections(int64_t first, int64_t count) {
  Value bias, peepholes;
  Value projected = project(first, count, bias);
  Value weight = node.reshape(node.sliceDim(node.operand(2), 0, first, count), {count, gates, hidden, hidden});
  SmallVector<Value, 2> initial = {getInitial(5, first, count)};
  if (isLstm)
    initial.push_back(getInitial(6, first, count));
  peepholes = getPeepholes(first, count);
  if (node.failed())
    return {};
  SmallVector<Value> results = makeSteps(first, projected, weight, initial, bias, peepholes, lengths);
  if (node.failed())
    return {};
  return joinDirections(std::move(results), first, count);
}

/// After no steps, as of a sample whose length is 0, states are what they were: nothing is multiplied, and nothing is in the sequence.
SmallVector<Value> RecurrenceImporter::takeNoStep(int64_t first, int64_t count) {
  SmallVector<Value> results{node.broadcast(node.scalarLike(x, 0), {0, count, batch, hidden})};
  for (unsigned i = 0; i < nn::countStates(kind); ++i)
    results.push_back(getInitial(5 + i, first, count));
  return results;
}

void RecurrenceImporter::run() {
  if (!readDirections() || !readShapes() || !readActivations())
    return;
  clip = node.floatAttr("clip", 0.0);
  isLinear = kind == nn::RecurrenceKind::Gru && node.boolAttr("linear_before_reset", false);
  inputForget = isLstm && node.boolAttr("input_forget", false);
  readLengths();
  int64_t directions = isReversed.size();
  // Of one op all directions have the same activations, so that ranks that have one each run one program.
  bool isAlike = directions == 1 || getActivations(0) == getActivations(1);
  SmallVector<SmallVector<Value>> groups;
  for (int64_t first = 0; first < directions && !node.failed(); first += isAlike ? directions : 1)
    groups.push_back(steps == 0 ? takeNoStep(first, isAlike ? directions : 1)
                                : runDirections(first, isAlike ? directions : 1));
  if (node.failed())
    return;
  // What nobody asks for is not made: a transpose of all steps would stay, as results of a node may be named in a plan.
  for (unsigned i = 0, count = 1 + nn::countStates(kind); i < count; ++i) {
    if (!node.wantsResult(i))
      continue;
    SmallVector<Value> parts;
    for (SmallVector<Value> &group : groups)
      parts.push_back(group[i]);
    Value whole = node.concat(parts, i == 0 ? 1 : 0);
    if (isBatchFirst)
      whole = node.transpose(whole, i == 0 ? Shape({2, 0, 1, 3}) : Shape({1, 0, 2}));
    node.result(i, whole);
  }
}

template <nn::RecurrenceKind kind> static void importRecurrence(NodeContext &node) {
  RecurrenceImporter(node, kind).run();
}

void cleave::onnx::registerRecurrence(Registry &registry) {
  registry.add("LSTM", {3, 8, 3}, importRecurrence<nn::RecurrenceKind::Lstm>);
  registry.add("GRU", {3, 6, 2}, importRecurrence<nn::RecurrenceKind::Gru>);
  registry.add("RNN", {3, 6, 2}, importRecurrence<nn::RecurrenceKind::Rnn>);
}
