//===- PaddedSizes.cpp - sizes that data tell -----------------------------===//
//
// Models compute sizes of shapes: `k = min(100, rows)`, `ends = rows`, `shape = [rows, 4]`. Where only data tell how many rows
// there are, there must be room for the largest number that may come of it. How a size depends on the number n of rows, of
// which there is room for N, is proved from the ops in between and three values of it:
//
//   these ops (casts, movement, min, max, sums with what is known) give an f that never falls, and rises by 1 at most per row;
//   f(0) = 0 and f(K) = K for K = f(N) <= N      therefore     f(n) = min(n, K)
//
// So the result's rows are the first K of that source. Any other size is refused.
//
//===----------------------------------------------------------------------===//
#include "../Graph/GraphImporter.h"
#include "../Registry.h"

#include "cleave/Reference/Evaluator.h"
#include "cleave/Support/Status.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using reference::Tensor;

/// Puts the value, and what it is computed of, into `known`, which has numbers of rows; false where it does not follow from these
/// by gentle ops.
bool PaddedRows::evaluate(Value value, Known &known, llvm::SmallDenseSet<unsigned> &used) {
  if (auto it = sourceOfCount.find(value); it != sourceOfCount.end())
    used.insert(it->second);
  if (known.contains(value))
    return true;
  if (std::optional<Tensor> constant = importer.getFolder().compute(value)) {
    known[value] = *constant;
    return true;
  }
  Operation *op = value.getDefiningOp();
  auto gentle = dyn_cast_if_present<nn::GentleOpInterface>(op);
  if (!gentle)
    return false;
  SmallVector<Tensor, 4> operands, results;
  SmallVector<bool> depends;
  for (Value operand : op->getOperands()) {
    if (!evaluate(operand, known, used))
      return false;
    operands.push_back(known[operand]);
    depends.push_back(!importer.getFolder().compute(operand).has_value());
  }
  ScopedDiagnosticHandler silence(op->getContext(), [](mlir::Diagnostic &) { return success(); });
  if (!gentle.isGentle(depends) || !reference::canEvaluate(op) || failed(reference::evaluate(op, operands, results)))
    return false;
  for (auto [result, tensor] : llvm::zip(op->getResults(), results))
    known[result] = tensor;
  return true;
}

/// `root` where `varied` has `number` rows, and every other source as many as there is room for.
std::optional<Tensor> PaddedRows::evaluateWith(Value root, std::optional<unsigned> varied, int64_t number,
                                               llvm::SmallDenseSet<unsigned> &used) {
  Known known;
  for (auto [index, source] : llvm::enumerate(sources)) {
    Tensor count = Tensor::zeros(cast<RankedTensorType>(source.count.getType()));
    count.write<int64_t>()[0] = varied == index ? number : source.room;
    known[source.count] = count;
  }
  return evaluate(root, known, used) ? std::optional(known[root]) : std::nullopt;
}

static int64_t readElement(const Tensor &tensor, int64_t index) {
  return tensor.getElementType().isInteger(64) ? tensor.as<int64_t>()[index] : tensor.as<int32_t>()[index];
}

/// Notes the elements of an operand that are numbers of rows of `source`; false after an error.
bool PaddedRows::addSizes(NodeContext &at, unsigned index, unsigned source, const Tensor &most) {
  llvm::SmallDenseSet<unsigned> used;
  auto valueAt = [&](int64_t number) { return *evaluateWith(at.operand(index), source, number, used); };
  Tensor none = valueAt(0);
  for (int64_t element = 0; element < most.getNumElements(); ++element) {
    int64_t size = readElement(most, element);
    if (readElement(none, element) == size)
      continue;
    bool isFirst =
        readElement(none, element) == 0 && size <= sources[source].room && readElement(valueAt(size), element) == size;
    if (!at.check(isFirst, "operand " + Twine(index) + " (" + quote(at.operandName(index)) + ") follows from " +
                               quote(sources[source].name) +
                               ", but is neither that nor the smaller of it and a number"))
      return false;
    sized.push_back({index, element, addSlice(at, source, size)});
  }
  return true;
}

std::optional<Tensor> PaddedRows::computeAtMost(NodeContext &at, unsigned index) {
  const OpImporter *row = Registry::get().find(at.getNode().domain, at.getOpType(), at.getOpset());
  Value root = at.operand(index);
  Type type = NodeContext::elementType(root);
  if (sources.empty() || !row || !row->findSized || row->sizes != index || !(type.isInteger(64) || type.isInteger(32)))
    return std::nullopt;
  llvm::SmallDenseSet<unsigned> used, again;
  std::optional<Tensor> most = evaluateWith(root, std::nullopt, 0, used);
  if (!most)
    return std::nullopt;
  // Asked for a second time, an operand is noted once.
  if (llvm::any_of(sized, [&](const Sized &entry) { return entry.operand == index; }))
    return most;
  for (unsigned source : used)
    if (!addSizes(at, index, source, *most))
      return std::nullopt;
  return most;
}

/// Rows of the result whose number an element of an operand is.
std::optional<PaddedRows::Padding> PaddedRows::findSized(NodeContext &at, const Sized &entry) {
  const OpImporter *row = Registry::get().find(at.getNode().domain, at.getOpType(), at.getOpset());
  Shape to = NodeContext::shape(at.getResults().front());
  std::optional<int64_t> dim = row->findSized(at, entry.element);
  bool isThere = dim && *dim < int64_t(to.size()) && to[*dim] == sources[entry.source].room;
  return isThere ? std::optional(Padding{*dim, entry.source}) : std::nullopt;
}
