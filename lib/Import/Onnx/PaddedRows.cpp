//===- PaddedRows.cpp - results of which data tell how many rows they have -===//
//
// A selection gives as many rows as there may be, those that it finds first, and their number (BoundedSelection.cpp). What is
// behind them must not be seen as if it were found, so padding is followed from node to node:
//
//   NonMaxSuppression -> s [60, 3] ── Gather axis 1 ──▶ [60, 1] ── Squeeze ──▶ [60] ── Gather (indices) ──▶ [60, 4], an output
//
// Ops that make each row of their result of the same row of what they read leave padding where it is. All others are refused. An
// output with padded rows has the number of those that count beside it, `s.count`, and a remark says so.
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"

#include "cleave/Support/Status.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

void NodeContext::padRows(ArrayRef<unsigned> ofResults, Value count) {
  if (!failed())
    importer.notePadding(*this, ofResults, count);
}

void GraphImporter::notePadding(NodeContext &at, ArrayRef<unsigned> ofResults, Value count) {
  for (unsigned index : ofResults)
    if (Value value = at.getResults()[index])
      padded[value] = {0, unsigned(paddedSources.size())};
  paddedSources.push_back({(qualify(at.getNode().output.front(), *at.getScope().frame) + ".count").str(), count});
}

/// The dim of `to` before which there are as many elements as before `dim` in `from`.
static std::optional<int64_t> findSameDim(Shape from, int64_t dim, Shape to) {
  int64_t before = ShapedType::getNumElements(from.take_front(dim)), count = 1;
  for (auto [index, extent] : llvm::enumerate(to)) {
    if (count == before && extent == from[dim])
      return index;
    count *= extent;
  }
  return std::nullopt;
}

/// Of a dim that several operands share, aligned at the end: none may be longer.
static std::optional<int64_t> findBroadcastDim(Shape from, int64_t dim, Shape to) {
  int64_t aligned = dim + int64_t(to.size()) - int64_t(from.size());
  return to[aligned] == from[dim] ? std::optional(aligned) : std::nullopt;
}

static std::optional<int64_t> findGatheredDim(NodeContext &at, unsigned operand, int64_t dim) {
  int64_t rank = NodeContext::rank(at.operand(0)), indices = NodeContext::rank(at.operand(1));
  int64_t axis = at.axis(at.intAttr("axis", 0), rank);
  if (operand == 1)
    return axis + dim;
  return axis == dim ? std::nullopt : std::optional(dim < axis ? dim : dim + indices - 1);
}

/// Where rows of an operand, along `dim`, are in the node's results; nothing where rows are mixed.
static std::optional<int64_t> findRows(NodeContext &at, unsigned operand, int64_t dim) {
  static const llvm::StringSet<> elementwise = {"Abs", "Add",   "Cast",     "Ceil",    "Clip", "Div",
                                                "Exp", "Floor", "Identity", "Max",     "Min",  "Mul",
                                                "Neg", "Relu",  "Round",    "Sigmoid", "Sqrt", "Sub"};
  StringRef type = at.getOpType();
  if (!at.getNode().domain.empty() || !at.getResults().front())
    return std::nullopt;
  Shape from = NodeContext::shape(at.operand(operand)), to = NodeContext::shape(at.getResults().front());
  if (elementwise.contains(type))
    return findBroadcastDim(from, dim, to);
  if (type == "Gather")
    return findGatheredDim(at, operand, dim);
  if (type == "GatherND" && operand == 1)
    return dim + 1 < int64_t(from.size()) ? std::optional(dim) : std::nullopt;
  if (type == "Reshape" || type == "Squeeze" || type == "Unsqueeze" || type == "Flatten")
    return operand == 0 ? findSameDim(from, dim, to) : std::nullopt;
  if (type == "Transpose") {
    Ints order = at.intsAttr("perm").value_or(llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, from.size()))));
    return llvm::find(order, dim) - order.begin();
  }
  if (type == "Concat" || type == "Split") {
    int64_t axis = at.axis(at.intAttr("axis", 0), from.size());
    return axis == dim ? std::nullopt : std::optional(dim);
  }
  // Rows that are all there, and not from the end.
  bool isForward = !at.hasOperand(4) || llvm::all_of(at.constantInts(4), [](int64_t step) { return step > 0; });
  return type == "Slice" && operand == 0 && isForward && from[dim] == to[dim] ? std::optional(dim) : std::nullopt;
}

LogicalResult GraphImporter::followPadding(NodeContext &at) {
  std::optional<Padding> ofResults;
  for (auto [index, operand] : llvm::enumerate(at.getOperands())) {
    auto it = padded.find(operand);
    if (!operand || it == padded.end())
      continue;
    auto [dim, source] = it->second;
    std::optional<int64_t> rows = findRows(at, index, dim);
    bool isSame = !ofResults || (rows == ofResults->dim && source == ofResults->source);
    if (!at.check(rows && isSame, "mixes rows of " + quote(at.operandName(index)) +
                                      ", of which only the first count (" + quote(paddedSources[source].name) +
                                      " says how many): the others are padding"))
      return failure();
    ofResults = {*rows, source};
  }
  for (Value result : at.getResults())
    if (ofResults && result)
      padded[result] = *ofResults;
  return success();
}

void GraphImporter::addCounts(SmallVectorImpl<NamedResult> &results) {
  llvm::SetVector<unsigned> sources;
  for (const NamedResult &result : results)
    if (auto it = padded.find(result.value); it != padded.end()) {
      auto [dim, source] = it->second;
      sources.insert(source);
      int64_t rows = NodeContext::shape(result.value)[dim];
      Location model = NameLoc::get(StringAttr::get(context, file.file->getPath()));
      emitRemark(model, printable("output " + quote(result.name) + " has room for " + Twine(rows) + " rows in dim " +
                                  Twine(dim) + ", and output " + quote(paddedSources[source].name) +
                                  " says how many there are"));
    }
  for (unsigned source : sources)
    results.push_back({paddedSources[source].name, paddedSources[source].count});
}
