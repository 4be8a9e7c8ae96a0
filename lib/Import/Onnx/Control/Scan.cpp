//===- Scan.cpp - one iteration for each position -------------------------===//
//
// Unrolled while that is within the budget, else one nn.loop (LoopBuilder.h).
//
// In opset 8 a Scan has samples along the first dim of everything, and the body sees one of them. So there is a scan for each
// sample, and what they give is stacked:
//
//   lens [b] | states [b, ..] | inputs [b, length, ..]  ─▶  states [b, ..] | outputs [b, length, ..]
//
// A sample of fewer than `length` steps has zeros behind them, as onnxruntime writes. From the last place to the first means from
// its own last one.
//
//===----------------------------------------------------------------------===//
#include "../Graph/GraphImporter.h"
#include "../NodeContext.h"
#include "Control.h"
#include "LoopBuilder.h"

#include "cleave/Support/Status.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

namespace {

/// Axes and directions of the inputs and outputs that have a part for each iteration.
struct ScanDims {
  Ints axes;
  SmallVector<bool> isReversed;
};

/// A scan of which all is known but what its body does.
struct Scan {
  const GraphProto &body;
  /// Parts that inputs and outputs have.
  int64_t length = 0;
  /// Iterations, where there are fewer: known, or else a scalar of i64 in [0, length].
  std::optional<int64_t> steps = {};
  Value stepsValue = {};
  SmallVector<Bound> carried = {};
  SmallVector<ScanPart> inputs = {}, outputs = {};
  /// The sample, where there are some.
  std::optional<int64_t> sample = {};
  bool isUnrolled = true;
};

} // namespace

static ScanDims readDirections(NodeContext &node, StringRef attribute, StringRef kind, size_t count, Ints axes) {
  ScanDims dims{std::move(axes), {}};
  Ints directions = node.intsAttr(attribute).value_or(Ints(count, 0));
  node.check(dims.axes.size() == count && directions.size() == count,
             "there must be one axis and one direction for each scan " + kind);
  for (int64_t direction : directions)
    dims.isReversed.push_back(node.check(direction == 0 || direction == 1, "a direction is neither 0 nor 1") &&
                              direction);
  return dims;
}

/// `kind`: input or output. Missing lists are zeros.
static ScanDims readScanDims(NodeContext &node, StringRef kind, size_t count) {
  Ints axes = node.intsAttr(("scan_" + kind + "_axes").str()).value_or(Ints(count, 0));
  return readDirections(node, ("scan_" + kind + "_directions").str(), kind, count, std::move(axes));
}

/// The part of an input that iteration `index` reads.
static Value readPart(NodeContext &node, const Scan &scan, const ScanPart &input, int64_t index) {
  if (input.isReversed && scan.stepsValue) {
    // Iterations that are not the sample's own read anything.
    nn::Composer &f = node;
    return f.gather(input.whole, f.max(f.sub(scan.stepsValue, double(index + 1)), 0), input.axis);
  }
  Ints shape(NodeContext::shape(input.whole));
  shape.erase(shape.begin() + input.axis);
  int64_t place = input.isReversed ? scan.steps.value_or(scan.length) - 1 - index : index;
  return node.reshape(node.sliceDim(input.whole, input.axis, place, 1), shape);
}

/// What is carried in the end, then the parts of each output.
static SmallVector<SmallVector<Value>> unroll(NodeContext &node, Scan &scan) {
  nn::Composer &f = node;
  size_t states = scan.carried.size();
  SmallVector<SmallVector<Value>> parts(scan.outputs.size());
  // Of a sample without steps one is taken for what its parts look like, and forgotten.
  if (scan.steps == 0 && scan.length > 0) {
    scan.stepsValue = node.scalar(f.i64(), 0);
    scan.steps = 1;
  }
  int64_t count = scan.steps.value_or(scan.length);
  for (int64_t index = 0; !node.failed() && index < count; ++index) {
    SmallVector<Bound> all = scan.carried;
    for (const ScanPart &input : scan.inputs)
      all.push_back({readPart(node, scan, input, index), nullptr});
    if (node.failed() || !node.getImporter().spendNodes(node, 1))
      return {};
    std::string path = scan.sample ? getPath(node, *scan.sample) + "/" + std::to_string(index) : getPath(node, index);
    auto outputs = node.getImporter().importBody(node, scan.body, all, path, /*isRepeated=*/true);
    if (!outputs) {
      node.fail();
      return {};
    }
    Value running = scan.stepsValue ? f.gt(scan.stepsValue, double(index)) : Value();
    for (auto [i, state] : llvm::enumerate(scan.carried))
      state = running ? select(node, running, (*outputs)[i], state,
                               "what the scan carries in " + quote(scan.body.output[i].name),
                               ", so lengths of sequences must be known at import")
                      : (*outputs)[i];
    for (auto [i, list] : llvm::enumerate(parts)) {
      Value part = (*outputs)[states + i].value;
      list.push_back(running && part ? f.select(running, part, 0) : part);
    }
  }
  for (SmallVector<Value> &list : parts)
    while (!node.failed() && !list.empty() && list.front() && int64_t(list.size()) < scan.length)
      list.push_back(node.broadcast(node.scalarLike(list.front(), 0), NodeContext::shape(list.front())));
  return parts;
}

static SmallVector<Bound> keepLoop(NodeContext &node, const Scan &scan) {
  LoopParts parts{scan.body, /*isLoop=*/false};
  parts.count = scan.length;
  parts.carried = scan.carried;
  parts.inputs = scan.inputs;
  parts.outputs = scan.outputs;
  parts.countValue = scan.steps ? node.scalar(node.getBuilder().getI64Type(), double(*scan.steps)) : scan.stepsValue;
  SmallVector<Bound> results;
  for (Value result : buildLoop(node, parts))
    results.push_back({result, nullptr});
  return results;
}

/// States in the end, then scan outputs; an empty list after an error.
static SmallVector<Bound> run(NodeContext &node, Scan &scan) {
  if (!scan.isUnrolled)
    return keepLoop(node, scan);
  SmallVector<SmallVector<Value>> parts = unroll(node, scan);
  SmallVector<Bound> results = scan.carried;
  for (auto [i, list] : llvm::enumerate(parts)) {
    if (node.failed())
      return {};
    if (scan.outputs[i].isReversed)
      std::reverse(list.begin(), list.end());
    results.push_back({stack(node, list, scan.outputs[i].axis, scan.body.output[scan.carried.size() + i]), nullptr});
  }
  return node.failed() ? SmallVector<Bound>() : results;
}

/// True if so many iterations are within what is left of the budget.
static bool fits(NodeContext &node, const GraphProto &body, double iterations) {
  return predictNodes(body, 1) * iterations <= double(GraphImporter::kMaxRepeatedNodes) &&
         predictNodes(body, int64_t(iterations)) <=
             double(GraphImporter::kMaxRepeatedNodes - node.getImporter().getRepeatedNodes());
}

/// Number of states, behind `first` other operands; nothing after an error.
static std::optional<size_t> countStates(NodeContext &node, const GraphProto *body, int64_t first) {
  int64_t inputs = node.intAttr("num_scan_inputs"), operands = int64_t(node.getNumOperands()) - first;
  if (node.failed() || !node.check(inputs >= 1 && inputs <= operands,
                                   "'num_scan_inputs' is " + Twine(inputs) + ", expected 1 to " + Twine(operands)))
    return std::nullopt;
  size_t states = operands - inputs, results = node.getNode().output.size();
  if (!node.check(results >= states && body->output.size() == results, "the body has another number of outputs"))
    return std::nullopt;
  return states;
}

/// From opset 9 on: no batch, and each scanned input and output with an axis and a direction of its own.
static void importScan(NodeContext &node) {
  const GraphProto *body = node.graphAttr("body");
  std::optional<size_t> states = countStates(node, body, 0);
  if (!states)
    return;
  size_t inputs = node.getNumOperands() - *states, results = body->output.size();
  ScanDims in = readScanDims(node, "input", inputs), out = readScanDims(node, "output", results - *states);
  std::optional<int64_t> length;
  for (size_t i = 0; i < inputs && !node.failed(); ++i) {
    Shape shape = NodeContext::shape(node.operand(*states + i));
    in.axes[i] = node.axis(in.axes[i], shape.size());
    if (!node.failed() && !shape.empty())
      length = length.value_or(shape[in.axes[i]]);
    node.check(!shape.empty() && length == shape[in.axes[i]], "scan inputs differ in length");
  }
  if (node.failed())
    return;
  Scan scan{*body, *length};
  scan.isUnrolled = fits(node, *body, double(*length));
  for (size_t i = 0; i < *states; ++i)
    scan.carried.push_back(node.bound(i));
  for (size_t i = 0; i < inputs; ++i)
    scan.inputs.push_back({node.operand(*states + i), in.axes[i], in.isReversed[i]});
  for (size_t i = 0; i < results - *states; ++i)
    scan.outputs.push_back({{}, out.axes[i], out.isReversed[i]});
  for (auto [i, result] : llvm::enumerate(run(node, scan)))
    node.result(i, result);
}

//===----------------------------------------------------------------------===//
// Opset 8
//===----------------------------------------------------------------------===//

/// Sample `index` of a tensor, without the dim of samples.
static Value takeSample(NodeContext &node, Value all, int64_t index) {
  return node.reshape(node.sliceDim(all, 0, index, 1), NodeContext::shape(all).drop_front());
}

/// Samples and length that all operands agree on; nothing after an error.
static std::optional<std::pair<int64_t, int64_t>> readBatch(NodeContext &node, size_t states) {
  Shape first = NodeContext::shape(node.operand(1 + states));
  for (size_t i = 1; i < node.getNumOperands(); ++i) {
    size_t dims = i > states ? 2 : 1;
    Shape shape = NodeContext::shape(node.operand(i));
    if (!node.check(node.operand(i) && shape.size() >= dims,
                    "operand " + Twine(i) + " must have a dim of samples" + (dims == 2 ? " and one of steps" : "")) ||
        !node.check(first.size() >= 2 && shape.take_front(dims) == first.take_front(dims),
                    "operand " + Twine(i) + " differs in samples or length from the first scan input"))
      return std::nullopt;
  }
  if (!node.check(first[0] > 0, "there are no samples"))
    return std::nullopt;
  return std::pair(first[0], first[1]);
}

/// How many steps a sample has, into `scan`.
static void readSteps(NodeContext &node, int64_t sample, Scan &scan) {
  if (!node.hasOperand(0))
    return;
  if (!node.tryConstant(0)) {
    nn::Composer &f = node;
    Value steps = node.cast(takeSample(node, node.operand(0), sample), f.i64());
    scan.stepsValue = f.clamp(steps, 0, double(scan.length));
    return;
  }
  Ints known = node.constantInts(0);
  if (node.failed())
    return;
  int64_t steps = known[sample];
  if (node.check(steps >= 0 && steps <= scan.length,
                 "sample " + Twine(sample) + " has " + Twine(steps) + " steps, expected 0 to " + Twine(scan.length)) &&
      steps < scan.length)
    scan.steps = steps;
}

/// Sample by sample, each with as many steps as its sequence is long; then the results are stacked along the batch.
static void importBatchedScan(NodeContext &node) {
  const GraphProto *body = node.graphAttr("body");
  std::optional<size_t> states = countStates(node, body, 1);
  if (!states)
    return;
  size_t inputs = node.getNumOperands() - 1 - *states, results = body->output.size();
  ScanDims in = readDirections(node, "directions", "input", inputs, Ints(inputs, 0));
  auto batch = readBatch(node, *states);
  if (node.failed() || !batch ||
      !node.check(!node.hasOperand(0) || NodeContext::shape(node.operand(0)) == Shape({batch->first}),
                  "the lengths of sequences are not a list of " + Twine(batch->first)))
    return;
  auto [samples, length] = *batch;
  bool isUnrolled = fits(node, *body, double(samples) * double(length));
  SmallVector<SmallVector<Value>> parts(results);
  for (int64_t sample = 0; sample < samples; ++sample) {
    Scan scan{*body, length};
    scan.sample = sample;
    scan.isUnrolled = isUnrolled;
    readSteps(node, sample, scan);
    for (size_t i = 0; i < *states; ++i)
      scan.carried.push_back({takeSample(node, node.operand(1 + i), sample), nullptr});
    for (size_t i = 0; i < inputs; ++i)
      scan.inputs.push_back({takeSample(node, node.operand(1 + *states + i), sample), 0, in.isReversed[i]});
    scan.outputs.resize(results - *states);
    // A loop stands for a body each, which is not counted otherwise.
    if (node.failed() || !node.getImporter().spendNodes(node, isUnrolled ? 1 : int64_t(predictNodes(*body, 1))))
      return;
    for (auto [i, result] : llvm::enumerate(run(node, scan)))
      parts[i].push_back(result.value);
    if (node.failed())
      return;
  }
  for (size_t i = 0; i < results && !node.failed(); ++i)
    node.result(i, stack(node, parts[i], 0, body->output[i]));
}

void cleave::onnx::registerScan(Registry &registry) {
  registry.add("Scan", 8, {0, Arity::kAny, Arity::kAny}, importBatchedScan);
  registry.add("Scan", 9, {1, Arity::kAny, Arity::kAny}, importScan);
}
