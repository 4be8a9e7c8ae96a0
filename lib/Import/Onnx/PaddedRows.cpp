//===- PaddedRows.cpp - where padding is behind a node --------------------===//
//
// Ops that make each row of their result of the same row of what they read leave padding where it is; PaddedMasks.cpp has
// seen to others. What is left mixes rows with padding, and is refused. An output with padded rows has the number of those
// that count beside it, `s.count`, and a remark says so.
//
//===----------------------------------------------------------------------===//
#include "Composer.h"
#include "Families.h"
#include "GraphImporter.h"

#include "cleave/Dialect/Nn/IR/SameDim.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

void NodeContext::padRows(ArrayRef<unsigned> ofResults, Value count, int64_t dim) {
  if (!failed())
    importer.getPaddedRows().note(*this, ofResults, count, dim);
}

std::string GraphImporter::getCountName(NodeContext &at, unsigned result) {
  return (qualify(at.getNode().output[result], *at.getScope().frame) + ".count").str();
}

unsigned PaddedRows::addSource(NodeContext &at, unsigned result, Value count, int64_t room) {
  // Sizes never come of a number that these inputs have by chance.
  importer.getFolder().hide(count);
  sourceOfCount[count] = sources.size();
  sources.push_back({importer.getCountName(at, result), count, room});
  return sources.size() - 1;
}

/// Their number is named after the first of the results that there are.
void PaddedRows::note(NodeContext &at, ArrayRef<unsigned> ofResults, Value count, int64_t dim) {
  std::optional<unsigned> source;
  for (unsigned index : ofResults)
    if (Value value = at.getResults()[index]) {
      if (!source)
        source = addSource(at, index, count, NodeContext::shape(value)[dim]);
      padded[value] = {dim, *source};
    }
}

unsigned PaddedRows::cut(NodeContext &at, unsigned source, int64_t size) {
  if (size >= sources[source].room || at.failed())
    return source;
  auto [it, isNew] = cuts.try_emplace({source, size}, 0);
  if (isNew)
    it->second = addSource(at, 0, Composer(at).min(sources[source].count, double(size)), size);
  return it->second;
}

std::optional<PaddedRows::Padding> PaddedRows::find(Value value) const {
  auto it = padded.find(value);
  return !value || it == padded.end() ? std::nullopt : std::optional(it->second);
}

static std::optional<int64_t> findGatheredDim(NodeContext &at, unsigned operand, int64_t dim) {
  int64_t rank = NodeContext::rank(at.operand(0)), indices = NodeContext::rank(at.operand(1));
  int64_t axis = at.axis(at.intAttr("axis", 0), rank);
  if (operand == 1)
    return axis + dim;
  return axis == dim ? std::nullopt : std::optional(dim < axis ? dim : dim + indices - 1);
}

/// Of what a reduction leaves; nothing where it is over that dim.
static std::optional<int64_t> findReducedDim(NodeContext &at, int64_t dim) {
  Ints dims;
  bool keepDims = at.boolAttr("keepdims", true);
  if (at.getOpType().starts_with("Arg"))
    dims.push_back(at.axis(at.intAttr("axis", 0), NodeContext::rank(at.operand(0))));
  else
    dims = readReducedDims(at).dims;
  if (llvm::is_contained(dims, dim))
    return std::nullopt;
  return dim - (keepDims ? 0 : llvm::count_if(dims, [&](int64_t other) { return other < dim; }));
}

/// All rows, or the first ones, as they are: nothing for others. Ends count from the front.
static std::optional<int64_t> findSlicedDim(NodeContext &at, int64_t dim) {
  Shape from = NodeContext::shape(at.operand(0)), to = NodeContext::shape(at.getResults().front());
  bool areOperands = at.getOpset() >= 10;
  auto read = [&](unsigned index, StringRef name) {
    return areOperands ? at.hasOperand(index) ? std::optional(at.constantInts(index)) : std::nullopt
                       : at.intsAttr(name);
  };
  Ints starts = *read(1, "starts"), ends = *read(2, "ends");
  Ints axes = read(3, "axes").value_or(llvm::to_vector(llvm::seq<int64_t>(0, starts.size())));
  Ints steps = areOperands && at.hasOperand(4) ? at.constantInts(4) : Ints(starts.size(), 1);
  for (auto [axis, start, end, step] : llvm::zip(axes, starts, ends, steps))
    if (at.axis(axis, from.size()) == dim && (start != 0 || end < 0 || step != 1))
      return std::nullopt;
  return to[dim] > 0 ? std::optional(dim) : std::nullopt;
}

/// A product has rows of either side, but of the dim that is summed over.
static std::optional<int64_t> findProductDim(NodeContext &at, unsigned operand, int64_t dim, Shape from, Shape to) {
  int64_t rank = from.size();
  if (at.getOpType() == "Gemm")
    return operand == 0 && dim == at.intAttr("transA", 0) ? std::optional<int64_t>(0) : std::nullopt;
  int64_t summed = operand == 0 ? rank - 1 : rank - 2;
  bool isMatrix = NodeContext::rank(at.operand(1 - operand)) >= 2 && rank >= 2;
  return isMatrix && dim != summed ? std::optional(dim + int64_t(to.size()) - rank) : std::nullopt;
}

/// Where rows of an operand, along `dim`, are in the node's results; nothing where rows are mixed.
static std::optional<int64_t> findRows(NodeContext &at, unsigned operand, int64_t dim) {
  static const llvm::StringSet<> elementwise = {"Abs",
                                                "Add",
                                                "And",
                                                "Cast",
                                                "Ceil",
                                                "Clip",
                                                "Div",
                                                "Elu",
                                                "Equal",
                                                "Erf",
                                                "Expand",
                                                "Exp",
                                                "Floor",
                                                "Gelu",
                                                "Greater",
                                                "HardSigmoid",
                                                "Less",
                                                "LeakyRelu",
                                                "GreaterOrEqual",
                                                "Log",
                                                "Max",
                                                "LessOrEqual",
                                                "Min",
                                                "HardSwish",
                                                "Identity",
                                                "IsNaN",
                                                "Mod",
                                                "Mul",
                                                "Neg",
                                                "Not",
                                                "Or",
                                                "Pow",
                                                "Reciprocal",
                                                "Relu",
                                                "Round",
                                                "Sigmoid",
                                                "Sign",
                                                "Softplus",
                                                "Sqrt",
                                                "Sub",
                                                "Tanh",
                                                "ThresholdedRelu",
                                                "Where",
                                                "Xor",
                                                "Sum",
                                                "Mean"};
  static const llvm::StringSet<> bySample = {"AveragePool",   "BatchNormalization", "Conv",
                                             "ConvTranspose", "GlobalAveragePool",  "GlobalMaxPool",
                                             "MaxPool",       "LayerNormalization"};
  StringRef type = at.getOpType();
  if (!at.getNode().domain.empty() || !at.getResults().front())
    return std::nullopt;
  Shape from = NodeContext::shape(at.operand(operand)), to = NodeContext::shape(at.getResults().front());
  auto axis = [&](int64_t fallback) { return at.axis(at.intAttr("axis", fallback), from.size()); };
  if (elementwise.contains(type))
    return nn::findBroadcastDim(from, dim, to);
  if (bySample.contains(type) && operand == 0)
    return dim == 0 && (type != "LayerNormalization" || axis(-1) > 0) ? std::optional(dim) : std::nullopt;
  if (type == "Gather")
    return findGatheredDim(at, operand, dim);
  if (type == "GatherND" && operand == 1)
    return dim + 1 < int64_t(from.size()) ? std::optional(dim) : std::nullopt;
  if (type == "GatherElements")
    return operand == 1 || axis(0) != dim ? nn::findBroadcastDim(from, dim, to) : std::nullopt;
  if (type == "Reshape" || type == "Squeeze" || type == "Unsqueeze" || type == "Flatten")
    return operand == 0 ? nn::findReshapedDim(from, dim, to) : std::nullopt;
  if (type == "Transpose") {
    Ints order = at.intsAttr("perm").value_or(llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, from.size()))));
    return llvm::find(order, dim) - order.begin();
  }
  if (type == "Concat" || type == "Split")
    return axis(0) == dim ? std::nullopt : std::optional(dim);
  if (operand == 0 && (type.starts_with("Reduce") || type.starts_with("Arg")))
    return findReducedDim(at, dim);
  // Of old opsets all dims from the axis on.
  if (type == "Softmax" || type == "LogSoftmax")
    return dim < axis(at.getOpset() < 13 ? 1 : -1) ? std::optional(dim) : std::nullopt;
  if (type == "TopK" && operand == 0)
    return axis(-1) == dim ? std::nullopt : std::optional(dim);
  // A sum up to each row does not see those behind it.
  if (type == "CumSum" && operand == 0)
    return at.boolAttr("reverse", false) ? std::nullopt : std::optional(dim);
  if (type == "MatMul" || type == "Gemm")
    return findProductDim(at, operand, dim, from, to);
  if (type == "RoiAlign" && (operand == 1 || operand == 2))
    return dim == 0 ? std::optional(dim) : std::nullopt;
  return type == "Slice" && operand == 0 ? findSlicedDim(at, dim) : std::nullopt;
}

/// How many rows count of what the node reads says the same of all results; sizes that are such numbers agree with it.
void PaddedRows::follow(NodeContext &at, const Step &step) {
  if (sources.empty() || finish(at, step))
    return;
  std::optional<Padding> ofResults;
  auto agree = [&](std::optional<Padding> rows, unsigned operand, const Source &source) {
    bool isSame = rows && (!ofResults || *ofResults == *rows);
    ofResults = rows;
    return at.check(isSame, "mixes rows of " + quote(at.operandName(operand)) + ", of which only the first count (" +
                                quote(source.name) + " says how many): the others are padding");
  };
  auto cutTo = [&](Padding padding) {
    return Padding{padding.dim, cut(at, padding.source, NodeContext::shape(at.getResults().front())[padding.dim])};
  };
  if (step.results)
    ofResults = step.isCut ? cutTo(*step.results) : *step.results;
  for (auto [index, operand] : llvm::enumerate(at.getOperands())) {
    std::optional<Padding> padding = find(operand);
    if (!padding || llvm::is_contained(step.settled, index))
      continue;
    std::optional<int64_t> dim = findRows(at, index, padding->dim);
    std::optional<Padding> rows = dim ? std::optional(Padding{*dim, padding->source}) : std::nullopt;
    if (rows && at.getOpType() == "Slice")
      rows = cutTo(*rows);
    if (!agree(rows, index, sources[padding->source]))
      return;
  }
  for (const Sized &entry : sized)
    if (!agree(findSized(at, entry), entry.operand, sources[entry.source]))
      return;
  for (Value result : at.getResults())
    if (ofResults && result)
      padded[result] = *ofResults;
}

void PaddedRows::addCounts(SmallVectorImpl<NamedResult> &results, Location model) {
  llvm::SetVector<unsigned> shown;
  for (const NamedResult &result : results)
    if (std::optional<Padding> padding = find(result.value)) {
      shown.insert(padding->source);
      int64_t rows = NodeContext::shape(result.value)[padding->dim];
      emitRemark(model, printable("output " + quote(result.name) + " has room for " + Twine(rows) + " rows in dim " +
                                  Twine(padding->dim) + ", and output " + quote(sources[padding->source].name) +
                                  " says how many there are"));
    }
  for (unsigned source : shown)
    results.push_back({sources[source].name, sources[source].count});
}
