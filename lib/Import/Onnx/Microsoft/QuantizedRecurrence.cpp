//===- QuantizedRecurrence.cpp - LSTM with weights of 8 bits --------------===//
//
// onnxruntime's DynamicQuantizeLSTM multiplies integers: what the input is to all gates in one product, what the state is in
// one for each step. Scale and zero point of the left side are made of its own least and largest number, the input's once
// and the state's in each step, so that steps are unrolled here:
//
//   q = quantize(x)     (q - zero) W   ──  x scale, W scale ──▶ projected [t, d, b, g, h]
//   q = quantize(h)     (q - zero) R   ──  h scale, R scale ──┬─ add ─▶ gates: an nn.recurrence of one step from zeros
//                                       projected of the step ┘
//
// A range is that of all samples together. onnxruntime takes the samples of each of its threads by themselves: results are
// those that it has on one thread.
//
//===----------------------------------------------------------------------===//
#include "../NodeContext.h"
#include "../RecurrenceImporter.h"
#include "../Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// A step is some thirty ops.
static constexpr int64_t kMostSteps = 1024;

namespace {

/// Bytes, and [d] scales and zero points for [d] parts along dim 0, or scalars.
struct Quantized {
  Value numbers, scale, zero;
};

class QuantizedLstm : public RecurrenceImporter {
public:
  explicit QuantizedLstm(NodeContext &node) : RecurrenceImporter(node, nn::RecurrenceKind::Lstm), f(node) {}

private:
  bool readShapes() override;
  SmallVector<Value> runDirections(int64_t first, int64_t count) override;
  bool checkScales(unsigned index, unsigned weight);
  Quantized quantize(Value value, Shape dims);
  Value multiply(const Quantized &left, StringRef equation, unsigned weight, int64_t first, int64_t count);
  Value countRunning(int64_t step);

  nn::Composer &f;
};

} // namespace

/// A number for each direction, or one for each direction and column.
bool QuantizedLstm::checkScales(unsigned index, unsigned weight) {
  if (!node.check(node.hasOperand(index),
                  "operand " + Twine(index) + ", the scale or zero point of operand " + Twine(weight) + ", is missing"))
    return false;
  Shape shape = NodeContext::shape(node.operand(index));
  int64_t directions = isReversed.size();
  return node.check(shape == Shape({directions}) || shape == Shape({directions, gates * hidden}),
                    "operand " + Twine(index) + " must be [" + Twine(directions) + "] or [" + Twine(directions) + ", " +
                        Twine(gates * hidden) + "]");
}

/// X [t, b, i], W [d, i, g h], R [d, h, g h]: weights are the other way round than those of LSTM.
bool QuantizedLstm::readShapes() {
  x = node.operand(0);
  Shape shape = NodeContext::shape(x), w = NodeContext::shape(node.operand(1)), r = NodeContext::shape(node.operand(2));
  if (node.failed() || !node.check(shape.size() == 3, "X must have 3 dims") ||
      !node.check(r.size() == 3, "W and R must have 3 dims"))
    return false;
  int64_t directions = isReversed.size();
  steps = shape[0], batch = shape[1], inputs = shape[2], hidden = r[1];
  int64_t given = node.intAttr("hidden_size", hidden);
  return node.check(given == hidden, "'hidden_size' is " + Twine(given) + ", but R has " + Twine(hidden)) &&
         node.check(w == Shape({directions, inputs, gates * hidden}),
                    "W must be [" + Twine(directions) + ", " + Twine(inputs) + ", " + Twine(gates * hidden) + "]") &&
         node.check(r == Shape({directions, hidden, gates * hidden}),
                    "R must be [" + Twine(directions) + ", " + Twine(hidden) + ", " + Twine(gates * hidden) + "]") &&
         node.check(steps > 0 && steps <= kMostSteps,
                    "X has " + Twine(steps) + " steps, expected 1 to " + Twine(kMostSteps)) &&
         checkScales(8, 1) && checkScales(9, 1) && checkScales(10, 2) && checkScales(11, 2);
}

/// To uint8, over the range of what is reduced over `dims` and 0; all in f32, as ONNX's DynamicQuantizeLinear.
Quantized QuantizedLstm::quantize(Value value, Shape dims) {
  Value low = f.min(f.reduce(nn::ReduceKind::Min, value, dims), 0);
  Value high = f.max(f.reduce(nn::ReduceKind::Max, value, dims), 0);
  Value scale = f.div(f.sub(high, low), 255);
  scale = f.select(f.eq(scale, 0), node.scalarLike(scale, 1), scale);
  Value zero = f.round(f.clamp(f.div(f.neg(low), scale), 0, 255));
  zero = node.cast(zero, node.getBuilder().getIntegerType(8, /*isSigned=*/false));
  if (node.failed())
    return {};
  auto type = RankedTensorType::get(NodeContext::shape(value), NodeContext::elementType(zero));
  return {node.createTyped<nn::QuantizeOp>(type, value, scale, zero, 0), scale, zero};
}

/// `left` times the weights of some directions, in floats again. Scales [d] or [d, g h] stand over a product [.., d, b, g h].
Value QuantizedLstm::multiply(const Quantized &left, StringRef equation, unsigned weight, int64_t first,
                              int64_t count) {
  auto align = [&](Value value) {
    if (!value || NodeContext::rank(value) == 0)
      return value;
    Ints shape(NodeContext::shape(value));
    shape.resize(2, 1);
    return node.reshape(value, {shape[0], 1, shape[1]});
  };
  auto ofWeight = [&](unsigned index) { return align(node.sliceDim(node.operand(index), 0, first, count)); };
  unsigned scale = weight == 1 ? 8 : 10;
  Value zero = align(left.zero);
  Value numbers = f.sub(node.cast(left.numbers, f.i32()), node.cast(zero, f.i32()));
  Value table = f.sub(node.cast(node.sliceDim(node.operand(weight), 0, first, count), f.i32()),
                      node.cast(ofWeight(scale + 1), f.i32()));
  return f.mul(node.cast(f.einsum({numbers, table}, equation), f.f32()), f.mul(align(left.scale), ofWeight(scale)));
}

/// 1 for each sample that has step `step`, else 0; null without lengths.
Value QuantizedLstm::countRunning(int64_t step) {
  return lengths ? f.clamp(f.sub(lengths, double(step)), 0, 1) : Value();
}

/// A range takes what onnxruntime has in the buffer that it reads: of the input no step behind the longest sample, of the state zeros
/// where a sample has ended, or, where nobody asks for the sequence, the last state.
SmallVector<Value> QuantizedLstm::runDirections(int64_t first, int64_t count) {
  Value seen = x;
  if (lengths) {
    Value longest = node.create<nn::ReduceOp>(nn::ReduceKind::Max, lengths, Shape({0}), true);
    Value step = f.iota({steps}, 0, NodeContext::elementType(lengths));
    seen = f.select(node.reshape(f.lt(step, longest), {steps, 1, 1}), x, 0);
  }
  Quantized input = quantize(seen, {0, 1, 2});
  input.numbers = getInput(input.numbers, first, count);
  Value projected = multiply(input, count == 1 ? "tbi,dij->tdbj" : "tdbi,dij->tdbj", 1, first, count);
  auto [ofInput, ofState] = getBias(first, count);
  Value bias = ofInput ? node.reshape(f.add(ofInput, ofState), {count, 1, gates * hidden}) : Value();
  Value peepholes = getPeepholes(first, count);
  Value read = getInitial(5, first, count), cell = getInitial(6, first, count);
  Value nothing = node.broadcast(node.scalarLike(x, 0), {count, batch, hidden}), last = nothing;
  Value noWeight = node.broadcast(node.scalarLike(x, 0), {count, gates, hidden, hidden});
  SmallVector<Value> sequence;
  for (int64_t step = 0; step < steps && !node.failed(); ++step) {
    Value ofStep = node.reshape(node.sliceDim(projected, 0, step, 1), {count, batch, gates * hidden});
    Value sums = f.add(ofStep, multiply(quantize(read, {1, 2}), "dbk,dkj->dbj", 2, first, count));
    sums = node.reshape(bias ? f.add(sums, bias) : sums, {1, count, batch, gates, hidden});
    Value running = countRunning(step);
    SmallVector<Value> made = makeSteps(first, sums, noWeight, {nothing, cell}, Value(), peepholes, running);
    if (node.failed())
      return {};
    sequence.push_back(made[0]);
    Value state = node.reshape(made[0], {count, batch, hidden});
    last = running ? f.select(node.reshape(f.gt(running, 0), {1, batch, 1}), state, last) : state;
    cell = made[2];
    read = node.wantsResult(0) ? state : last;
  }
  if (lengths)
    cell = f.select(node.reshape(f.gt(lengths, 0), {1, batch, 1}), cell, 0);
  return joinDirections({node.concat(sequence, 0), last, cell}, first, count);
}

static void importDynamicQuantizeLstm(NodeContext &node) { QuantizedLstm(node).run(); }

void cleave::onnx::registerQuantizedRecurrence(Registry &registry) {
  registry.add("com.microsoft.DynamicQuantizeLSTM", {3, 12, 3}, importDynamicQuantizeLstm);
}
