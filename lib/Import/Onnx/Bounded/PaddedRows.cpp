//===- PaddedRows.cpp - where padding is behind a node --------------------===//
//
// Ops that make each row of their result of the same row of what they read leave padding where it is; PaddedMasks.cpp has
// seen to others. What is left mixes rows with padding, and is refused. An output with padded rows has the number of those
// that count beside it, `s.count`, and a remark says so.
//
//===----------------------------------------------------------------------===//
#include "../Families.h"
#include "../Graph/GraphImporter.h"
#include "../NodeContext.h"
#include "../Registry.h"

#include "cleave/Dialect/Nn/IR/SameDim.h"
#include "cleave/Support/Status.h"

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

unsigned PaddedRows::addSlice(NodeContext &at, unsigned source, int64_t size) {
  if (size >= sources[source].room || at.failed())
    return source;
  auto [it, isNew] = slices.try_emplace({source, size}, 0);
  if (isNew)
    it->second = addSource(at, 0, at.min(sources[source].count, double(size)), size);
  return it->second;
}

std::optional<PaddedRows::Padding> PaddedRows::find(Value value) const {
  auto it = padded.find(value);
  return !value || it == padded.end() ? std::nullopt : std::optional(it->second);
}

std::optional<int64_t> cleave::onnx::findBroadcastRows(NodeContext &at, unsigned operand, int64_t dim) {
  return nn::findBroadcastDim(NodeContext::shape(at.operand(operand)), dim,
                              NodeContext::shape(at.getResults().front()));
}

std::optional<int64_t> cleave::onnx::findSamples(NodeContext &, unsigned operand, int64_t dim) {
  return operand == 0 && dim == 0 ? std::optional(dim) : std::nullopt;
}

/// How many rows count of what the node reads says the same of all results; sizes that are such numbers agree with it.
void PaddedRows::follow(NodeContext &at, const Step &step) {
  if (sources.empty() || finish(at, step))
    return;
  const OpImporter *row = Registry::get().find(at.getNode().domain, at.getOpType(), at.getOpset());
  std::optional<Padding> ofResults;
  auto agree = [&](std::optional<Padding> rows, unsigned operand, const Source &source) {
    bool isSame = rows && (!ofResults || *ofResults == *rows);
    ofResults = rows;
    return at.check(isSame, "mixes rows of " + quote(at.operandName(operand)) + ", of which only the first count (" +
                                quote(source.name) + " says how many): the others are padding");
  };
  auto sliceTo = [&](Padding padding) {
    return Padding{padding.dim, addSlice(at, padding.source, NodeContext::shape(at.getResults().front())[padding.dim])};
  };
  if (step.results)
    ofResults = step.isSplit ? sliceTo(*step.results) : *step.results;
  for (auto [index, operand] : llvm::enumerate(at.getOperands())) {
    std::optional<Padding> padding = find(operand);
    if (!padding || llvm::is_contained(step.settled, index))
      continue;
    bool isFollowed = row && row->findRows && at.getResults().front();
    std::optional<int64_t> dim = isFollowed ? row->findRows(at, index, padding->dim) : std::nullopt;
    std::optional<Padding> rows = dim ? std::optional(Padding{*dim, padding->source}) : std::nullopt;
    if (rows && row->slicesRows)
      rows = sliceTo(*rows);
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
