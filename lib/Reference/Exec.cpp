//===- Exec.cpp - kernels and layouts ---------------------------------------===//
//
// A kernel is its ops, one after the other. So what a lowered program gives are the bits of the program that it was made
// from.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"
#include "Loops.h"

#include "cleave/Reference/Evaluator.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

LogicalResult cleave::reference::runBody(Block &body, Operands operands, SmallVectorImpl<Tensor> &results) {
  llvm::DenseMap<Value, Tensor> values;
  auto lookUp = [&](ValueRange used) { return llvm::map_to_vector(used, [&](Value value) { return values[value]; }); };
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), operands))
    values[argument] = operand;
  for (Operation &op : body.without_terminator()) {
    SmallVector<Tensor> own;
    if (failed(evaluate(&op, lookUp(op.getOperands()), own)))
      return failure();
    for (auto [value, tensor] : llvm::zip_equal(op.getResults(), own))
      values[value] = tensor;
  }
  llvm::append_range(results, lookUp(body.getTerminator()->getOperands()));
  return success();
}

/// Calls `fn` with the places of each element in both forms.
static void forEachPlace(ArrayRef<int64_t> plain, ArrayRef<int64_t> packed, const exec::Layout &layout,
                         function_ref<void(int64_t inPlain, int64_t inPacked)> fn) {
  SmallVector<int64_t> extents, strides, own = getRowMajorStrides(plain), steps = getRowMajorStrides(packed);
  for (int64_t dim : layout.order) {
    extents.push_back(plain[dim]);
    strides.push_back(own[dim]);
  }
  // Of a tensor in panels: the dims in front, n's panel, the k's, and then what is left of n and of the last k.
  size_t rank = extents.size(), batch = layout.width ? layout.batch : rank;
  Odometer odometer(extents, {strides});
  for (int64_t left = ShapedType::getNumElements(extents); left > 0; --left, odometer.next()) {
    ArrayRef<int64_t> at = odometer.getPosition();
    int64_t place = 0;
    for (size_t dim = 0; dim < batch; ++dim)
      place += at[dim] * steps[dim];
    if (layout.width) {
      int64_t n = at.back(), k = at[rank - 2];
      for (size_t dim = batch; dim + 2 < rank; ++dim)
        place += at[dim] * steps[dim + 1];
      place += n / layout.width * steps[batch] + k / layout.interleave * steps[rank - 1] +
               n % layout.width * layout.interleave + k % layout.interleave;
    }
    fn(odometer.getOffsets()[0], place);
  }
}

Tensor cleave::reference::pack(const Tensor &tensor, const exec::Layout &layout) {
  assert(exec::getPackedShape(tensor.getShape(), layout) && "no layout of this shape");
  Tensor result =
      Tensor::zeros(RankedTensorType::get(*exec::getPackedShape(tensor.getShape(), layout), tensor.getElementType()));
  int64_t bytes = getElementBytes(result.getElementType());
  forEachPlace(tensor.getShape(), result.getShape(), layout, [&](int64_t inPlain, int64_t inPacked) {
    std::memcpy(result.write<char>().data() + inPacked * bytes, tensor.getBytes().data() + inPlain * bytes, bytes);
  });
  return result;
}

/// The other way; what fills panels up goes nowhere.
static Tensor unpack(exec::UnpackOp op, Operands in) {
  Tensor result = Tensor::zeros(getResultType(op));
  int64_t bytes = getElementBytes(result.getElementType());
  forEachPlace(result.getShape(), in[0].getShape(), op.getLayout(), [&](int64_t inPlain, int64_t inPacked) {
    std::memcpy(result.write<char>().data() + inPlain * bytes, in[0].getBytes().data() + inPacked * bytes, bytes);
  });
  return result;
}

/// Query by query, part by part, in f64; nothing of keys that nobody sees.
static LogicalResult attendToParts(exec::PartialAttentionOp op, Operands in, SmallVectorImpl<Tensor> &results) {
  constexpr double excluded = -std::numeric_limits<double>::infinity();
  Elements<double> query(in[0]), key(in[1]), value(in[2]);
  ResultBuffer<double> sums(op.getSums().getType()), logs(op.getLogs().getType());
  ArrayRef<int64_t> shape = op.getSums().getType().getShape();
  int64_t heads = shape[1], queries = shape[2], parts = shape[3], valueSize = shape[4], part = op.getPart();
  int64_t size = in[0].getShape()[3], keys = in[1].getShape()[2], group = heads / in[1].getShape()[1];
  double scale = op.getScale().convertToDouble(), cap = op.getSoftcap().convertToDouble();
  std::optional<Elements<double>> mask;
  SmallVector<int64_t> strides;
  if (op.getSeen() && Elements<double>(in.back())[0] == 0) {
    for (int64_t line = 0, count = product(shape.drop_back()); line < count; ++line)
      logs[line] = excluded;
    results.append({sums.finish(), logs.finish()});
    return success();
  }
  if (op.getMask()) {
    mask.emplace(in[3]);
    strides = getBroadcastStrides(in[3].getShape(), {shape[0], heads, queries, keys});
  }
  bool isBool = mask && in[3].getElementType().isInteger(1);
  nn::KeyBand band = op.getBand();
  auto findScore = [&](int64_t batch, int64_t head, int64_t row, int64_t at) {
    double score = 0;
    for (int64_t i = 0; i < size; ++i)
      score += query[((batch * heads + head) * queries + row) * size + i] *
               key[((batch * heads + head) / group * keys + at) * size + i];
    score *= scale;
    score = cap > 0 ? cap * std::tanh(score / cap) : score;
    if (mask) {
      double added = (*mask)[batch * strides[0] + head * strides[1] + row * strides[2] + at * strides[3]];
      score = !isBool ? score + added : added != 0 ? score : excluded;
    }
    return band.sees(row, at) ? score : excluded;
  };
  for (int64_t number = 0, count = product(shape.drop_back()); number < count; ++number) {
    int64_t line = number / parts, row = line % queries, head = line / queries % heads, batch = line / queries / heads;
    int64_t from = number % parts * part, to = std::min(from + part, keys);
    std::vector<double> weights;
    for (int64_t at = from; at < to; ++at)
      weights.push_back(findScore(batch, head, row, at));
    double largest = *llvm::max_element(weights), total = 0;
    for (double &weight : weights)
      total += weight = largest == excluded ? 0 : std::exp(weight - largest);
    logs[number] = largest == excluded ? excluded : largest + std::log(total);
    for (int64_t i = 0; i < valueSize; ++i) {
      double sum = 0;
      for (int64_t at = from; at < to; ++at)
        sum += weights[at - from] * value[((batch * heads + head) / group * keys + at) * valueSize + i];
      sums[number * valueSize + i] = total > 0 ? sum / total : 0;
    }
  }
  results.append({sums.finish(), logs.finish()});
  return success();
}

namespace {
/// Gradients of attention by their formulas, query by query, in f64.
class AttentionGradients {
public:
  AttentionGradients(exec::AttentionGradOp op, Operands in);
  void addRow(int64_t batch, int64_t head, int64_t row);
  void finish(SmallVectorImpl<Tensor> &results) { results.append({dQuery.finish(), dKey.finish(), dValue.finish()}); }

  int64_t batches, heads, queries;

private:
  /// Reads a tensor that broadcasts to the scores.
  struct OfScores {
    Elements<double> elements;
    SmallVector<int64_t> strides;
    bool isBool;
    double at(int64_t batch, int64_t head, int64_t row, int64_t key) const {
      return elements[batch * strides[0] + head * strides[1] + row * strides[2] + key * strides[3]];
    }
  };
  std::optional<OfScores> read(bool isThere, const Tensor &tensor) const;

  int64_t kvHeads, keys, size, valueSize;
  double scale, cap;
  nn::KeyBand band;
  Elements<double> query, key, value, gradient;
  std::optional<OfScores> mask, shown;
  /// Of all keys, where those here are some of them.
  std::optional<Elements<double>> logs, means;
  ResultBuffer<double> dQuery, dKey, dValue;
};
} // namespace

std::optional<AttentionGradients::OfScores> AttentionGradients::read(bool isThere, const Tensor &tensor) const {
  if (!isThere)
    return std::nullopt;
  return OfScores{Elements<double>(tensor), getBroadcastStrides(tensor.getShape(), {batches, heads, queries, keys}),
                  tensor.getElementType().isInteger(1)};
}

AttentionGradients::AttentionGradients(exec::AttentionGradOp op, Operands in)
    : batches(in[0].getShape()[0]), heads(in[0].getShape()[1]), queries(in[0].getShape()[2]),
      kvHeads(in[1].getShape()[1]), keys(in[1].getShape()[2]), size(in[0].getShape()[3]),
      valueSize(in[2].getShape()[3]), scale(op.getScale().convertToDouble()), cap(op.getSoftcap().convertToDouble()),
      band(nn::KeyBand::get(queries, keys, op.getCausal(), op.getCausalOffset(), op.getLeft(), op.getRight())),
      query(in[0]), key(in[1]), value(in[2]), gradient(in[op.getMask() ? 4 : 3]),
      mask(read(bool(op.getMask()), in[op.getMask() ? 3 : 0])),
      shown(read(bool(op.getShown()), in[op.getMask() && op.getShown() ? 5
                                         : op.getShown()               ? 4
                                                                       : 0])),
      dQuery(getResultType(op, 0)), dKey(getResultType(op, 1)), dValue(getResultType(op, 2)) {
  if (!op.getLogs())
    return;
  Operands behind = in.drop_back(op.getSeen() ? 1 : 0);
  logs.emplace(behind[behind.size() - 2]);
  means.emplace(behind.back());
}

/// What the weights of one query, w, add: with y = sum(w v) / total and its gradient g,
///
///   dv += w g     d(score) = w (g v - sum(w (g v)))     dq = scale sum(d(score) k)     dk += scale d(score) q
///
/// A query that sees nothing adds nothing.
void AttentionGradients::addRow(int64_t batch, int64_t head, int64_t row) {
  constexpr double excluded = -std::numeric_limits<double>::infinity();
  int64_t line = (batch * heads + head) * queries + row;
  int64_t first = (batch * kvHeads + head / (heads / kvHeads)) * keys;
  std::vector<double> weights, slopes, inner(keys);
  double largest = excluded, total = 0, mean = 0;
  for (int64_t at = 0; at < keys; ++at) {
    double score = 0;
    for (int64_t i = 0; i < size; ++i)
      score += query[line * size + i] * key[(first + at) * size + i];
    score *= scale;
    double turned = cap > 0 ? std::tanh(score / cap) : 0;
    score = cap > 0 ? cap * turned : score;
    if (mask) {
      double added = mask->at(batch, head, row, at);
      score = !mask->isBool ? score + added : added != 0 ? score : excluded;
    }
    // A number in the place of a score has no slope; nor has what is far beyond the cap.
    bool passes = !shown || shown->at(batch, head, row, at) != 0;
    slopes.push_back(passes ? scale * (1 - turned * turned) : 0);
    weights.push_back(band.sees(row, at) ? score : excluded);
    largest = std::max(largest, weights.back());
  }
  // A query that sees nothing at all has the logarithm of 0. No score is above the logarithm but by rounding: it counts as that.
  if (logs) {
    largest = (*logs)[line];
    for (double &weight : weights)
      weight = std::min(weight, largest);
  }
  for (double &weight : weights)
    total += weight = largest == excluded ? 0 : std::exp(weight - largest);
  if (logs)
    total = 1;
  for (int64_t at = 0; at < keys; ++at) {
    weights[at] = total > 0 ? weights[at] / total : 0;
    for (int64_t i = 0; i < valueSize; ++i) {
      inner[at] += gradient[line * valueSize + i] * value[(first + at) * valueSize + i];
      dValue[(first + at) * valueSize + i] += weights[at] * gradient[line * valueSize + i];
    }
    mean += weights[at] * inner[at];
  }
  if (means)
    mean = (*means)[line];
  for (int64_t at = 0; at < keys; ++at) {
    double ofScore = weights[at] * (inner[at] - mean) * slopes[at];
    for (int64_t i = 0; i < size; ++i) {
      dQuery[line * size + i] += ofScore * key[(first + at) * size + i];
      dKey[(first + at) * size + i] += ofScore * query[line * size + i];
    }
  }
}

/// Row by row, in one order: gradients of keys and values are sums over rows.
static LogicalResult differentiateAttention(exec::AttentionGradOp op, Operands in, SmallVectorImpl<Tensor> &results) {
  AttentionGradients gradients(op, in);
  bool isSeen = !op.getSeen() || Elements<double>(in.back())[0] != 0;
  for (int64_t batch = 0; isSeen && batch < gradients.batches; ++batch)
    for (int64_t head = 0; head < gradients.heads; ++head)
      for (int64_t row = 0; row < gradients.queries; ++row)
        gradients.addRow(batch, head, row);
  gradients.finish(results);
  return success();
}

/// As nn.concat; where the operands came to stand is a matter of memory.
static Tensor append(exec::AppendOp op, Operands in) {
  Tensor result = Tensor::zeros(getResultType(op));
  SmallVector<int64_t> from(result.getShape().size(), 0), to(from);
  for (const Tensor &part : in) {
    copyBox(part.getShape(), part, from, result, to);
    to[op.getDim()] += part.getShape()[op.getDim()];
  }
  return result;
}

void cleave::reference::registerExec(KernelTable &table) {
  using Results = SmallVectorImpl<Tensor>;
  table.addMany<exec::FusedOp>([](exec::FusedOp op, Operands operands, Results &results) {
    return runBody(op.getBody().front(), operands, results);
  });
  table.addMany<exec::LaunchOp>([](exec::LaunchOp op, Operands operands, Results &results) -> LogicalResult {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<exec::KernelOp>(op, op.getKernelAttr());
    if (!kernel)
      return op.emitOpError() << "cannot be evaluated: there is no " << op.getKernelAttr();
    return runBody(kernel.getBody().front(), operands, results);
  });
  table.add<exec::PackOp>([](exec::PackOp op, Operands in) {
    return pack(castElements(in[0], getResultType(op).getElementType()), op.getLayout());
  });
  table.add<exec::UnpackOp>(unpack);
  table.add<exec::AppendOp>(append);
  table.add<exec::AgainOp>([](exec::AgainOp, Operands in) { return in[0]; });
  table.add<exec::OffloadOp>([](exec::OffloadOp, Operands in) { return in[0]; });
  table.add<exec::FetchOp>([](exec::FetchOp, Operands in) { return in[0]; });
  table.addMany<exec::PartialAttentionOp>(attendToParts);
  table.addMany<exec::AttentionGradOp>(differentiateAttention);
}
