//===- Attention.cpp - attention and rotary embedding ---------------------===//
//
// Where every query sees a key and places alone decide which, ONNX's Attention means the same. What a query gives that sees nothing
// (zeros here) it leaves open, and it has no windows: then attention is written as its formula,
//
//   softmax(softcap(q k^T * scale) + mask) v,      excluded scores being -inf
//
// with all heads that share keys as one more dim: [batch, kvHeads, heads / kvHeads, sequence, size]. A step of a ring is always that, as
// it gives the logarithm of the sum of its weights, too.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "Writers.h"
#include "cleave/Dialect/Exec/IR/Exec.h"

#include <limits>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

namespace {
struct AttentionWriter {
  AttentionWriter(nn::AttentionOp op, GraphBuilder &out)
      : op(op), out(out), band(op.getBand()), type(getResultType(op)),
        wide(type.getElementType().isF64() ? type.getElementType() : Float32Type::get(op.getContext())) {
    auto query = op.getQuery().getType(), key = op.getKey().getType();
    batches = query.getDimSize(0), heads = query.getDimSize(1), length = query.getDimSize(2);
    kvHeads = key.getDimSize(1), keyLength = key.getDimSize(2);
  }

  std::string write();
  /// The result, which is not rounded, and the logarithms.
  Names writeStep();

private:
  bool isPlain();
  bool seesAlways();
  std::string writePlain();
  /// A tensor of keys or values, or of queries, with its heads in groups.
  std::string group(const std::string &x, int64_t shared);
  std::string makeScores();
  std::string places(int64_t count, int64_t dim, int64_t offset = 0);
  std::string exclude(const std::string &scores);
  std::string attend(const std::string &scores, bool isSeeing);

  nn::AttentionOp op;
  GraphBuilder &out;
  nn::KeyBand band;
  RankedTensorType type;
  Type wide; ///< what scores are computed in
  int64_t batches, heads, kvHeads, length, keyLength;
};
} // namespace

/// ONNX's own causal attention starts at the first key for the first query: a band that ends on the diagonal. Masks are left to the
/// formula, as are empty tensors, of which runtimes think differently.
bool AttentionWriter::isPlain() {
  bool isCausal = band.high && *band.high == 0;
  return !op.getMask() && !band.low && (!band.high || isCausal) && keyLength > 0 && length > 0;
}

/// Places let each query see a key. A band's ends move on with the query, so that the first and the last query tell for all.
bool AttentionWriter::seesAlways() {
  for (int64_t query : {int64_t(0), length - 1}) {
    int64_t first = band.low ? std::max<int64_t>(query + *band.low, 0) : 0;
    int64_t last = band.high ? std::min(query + *band.high, keyLength - 1) : keyLength - 1;
    if (first > last)
      return false;
  }
  return !op.getMask();
}

std::string AttentionWriter::writePlain() {
  std::vector<NodeAttribute> attributes = {{"scale", op.getScale().convertToDouble()},
                                           {"is_causal", band.high.has_value()}};
  if (double softcap = op.getSoftcap().convertToDouble(); softcap > 0)
    attributes.emplace_back("softcap", softcap);
  return out.node("Attention", {out(op.getQuery()), out(op.getKey()), out(op.getValue())}, type, std::move(attributes));
}

std::string AttentionWriter::group(const std::string &x, int64_t shared) {
  ArrayRef<int64_t> shape = out.typeOf(x).getShape();
  return out.reshape(x, {batches, kvHeads, shared, shape[2], shape[3]});
}

/// Keys of a head serve a group of query heads: they broadcast over it, and are not repeated. Softmax has each head by itself again.
std::string AttentionWriter::makeScores() {
  std::string query = group(out.cast(out(op.getQuery()), wide), heads / kvHeads);
  std::string key = out.transpose(group(out.cast(out(op.getKey()), wide), 1), {0, 1, 2, 4, 3});
  auto grouped = RankedTensorType::get({batches, kvHeads, heads / kvHeads, length, keyLength}, wide);
  std::string scores = out.reshape(out.node("MatMul", {query, key}, grouped), {batches, heads, length, keyLength});
  scores = out.binary("Mul", scores, out.scalar(op.getScale().convertToDouble(), wide));
  double softcap = op.getSoftcap().convertToDouble();
  if (softcap <= 0)
    return scores;
  std::string cap = out.scalar(softcap, wide);
  return out.binary("Mul", out.unary("Tanh", out.binary("Div", scores, cap)), cap);
}

/// From 0 on, each plus `offset`, along dim `dim` of the scores' last two.
std::string AttentionWriter::places(int64_t count, int64_t dim, int64_t offset) {
  Type positions = IntegerType::get(op.getContext(), 64);
  std::string list = out.node("Range", {out.number(offset), out.number(offset + count), out.number(1)},
                              RankedTensorType::get({count}, positions));
  return dim == 0 ? out.reshape(list, {count, 1}) : list;
}

/// A bool mask excludes, a number is added, minus infinity for instance. Places are compared, for a table of them grows with the square
/// of the sequence.
std::string AttentionWriter::exclude(const std::string &scores) {
  std::string nothing = out.scalar(-std::numeric_limits<double>::infinity(), wide), seen = scores;
  if (Value mask = op.getMask()) {
    bool isBool = cast<RankedTensorType>(mask.getType()).getElementType().isInteger(1);
    seen = isBool ? out.where(out(mask), seen, nothing) : out.binary("Add", seen, out.cast(out(mask), wide));
  }
  if (band.isEmpty())
    return seen;
  if (band.low)
    seen = out.where(out.compare("GreaterOrEqual", places(keyLength, 1), places(length, 0, *band.low)), seen, nothing);
  if (band.high)
    seen = out.where(out.compare("LessOrEqual", places(keyLength, 1), places(length, 0, *band.high)), seen, nothing);
  return seen;
}

/// A row of nothing but excluded scores has a maximum of minus infinity, and NaN for weights. `isSeeing`: there is none.
std::string AttentionWriter::attend(const std::string &scores, bool isSeeing) {
  std::string weights = out.node("Softmax", {scores}, out.typeOf(scores), {{"axis", 3}});
  if (!isSeeing) {
    std::string largest = out.reduce("ReduceMax", scores, {3}, /*keepDims=*/true);
    std::string isBlind = out.compare("Equal", largest, out.scalar(-std::numeric_limits<double>::infinity(), wide));
    weights = out.where(isBlind, out.scalar(0, wide), weights);
  }
  std::string value = group(out.cast(out(op.getValue()), wide), 1);
  int64_t shared = heads / kvHeads, size = type.getDimSize(3);
  weights = out.reshape(weights, {batches, kvHeads, shared, length, keyLength});
  auto grouped = RankedTensorType::get({batches, kvHeads, shared, length, size}, wide);
  return out.reshape(out.node("MatMul", {weights, value}, grouped), type.getShape());
}

std::string AttentionWriter::write() {
  if (isPlain())
    return writePlain();
  return out.cast(attend(exclude(makeScores()), seesAlways()), type.getElementType());
}

/// The logarithm of 0 is minus infinity, and so is that of a query that sees nothing.
Names AttentionWriter::writeStep() {
  std::string scores = exclude(makeScores()), lowest = out.scalar(-std::numeric_limits<double>::infinity(), wide);
  std::string largest = out.reduce("ReduceMax", scores, {3}, /*keepDims=*/true);
  std::string shift = out.where(out.compare("Equal", largest, lowest), out.scalar(0, wide), largest);
  std::string sum = out.reduce("ReduceSum", out.unary("Exp", out.binary("Sub", scores, shift)), {3}, /*keepDims=*/true);
  std::string logs = out.binary("Add", out.unary("Log", sum), shift);
  return {attend(scores, /*isSeeing=*/false), logs};
}

static FailureOr<Names> writePartial(exec::PartialAttentionOp op, GraphBuilder &out) {
  RankedTensorType sums = getResultType(op);
  if (sums.getDimSize(3) != 1)
    return op.emitOpError("cannot be exported: it has no form in ONNX");
  OpBuilder nowhere(op.getContext());
  nn::AttentionOp whole = op.createFull(nowhere);
  Names made = AttentionWriter(whole, out).writeStep();
  whole->erase();
  if (Value seen = op.getSeen()) {
    Type element = sums.getElementType();
    made[0] = out.where(out(seen), made[0], out.scalar(0, element));
    made[1] = out.where(out(seen), made[1], out.scalar(-std::numeric_limits<double>::infinity(), element));
  }
  return Names{out.reshape(made[0], sums.getShape()), made[1]};
}

/// Tables by batch and place, as ONNX has them where it is given no places.
static std::string writeRotary(nn::RotaryEmbeddingOp op, GraphBuilder &out) {
  std::string x = out(op.getInput());
  RankedTensorType type = getResultType(op);
  if (op.getRotated() == 0)
    return x;
  auto table = [&](Value value) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
    shape[0] = type.getDimSize(0);
    return out.expand(out(value), shape);
  };
  bool isFull = int64_t(op.getRotated()) == type.getDimSize(3);
  return out.node(
      "RotaryEmbedding", {x, table(op.getCos()), table(op.getSin())}, type,
      {{"interleaved", op.getInterleaved()}, {"rotary_embedding_dim", isFull ? 0 : int64_t(op.getRotated())}});
}

void cleave::onnx::registerAttention(WriterTable &table) {
  table.add<nn::AttentionOp>([](nn::AttentionOp op, GraphBuilder &out) { return AttentionWriter(op, out).write(); });
  table.addMany<exec::PartialAttentionOp>(writePartial);
  table.add<nn::RotaryEmbeddingOp>(writeRotary);
}
