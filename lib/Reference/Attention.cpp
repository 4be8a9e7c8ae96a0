//===- Attention.cpp - attention and rotary embedding ---------------------===//
//
// Per batch and head, with all scores of the head at hand:
//
//   scores = softcap(q k^T * scale) + mask;   result = softmax(scores) v
//
// An excluded score is -inf, so its weight is 0; a row of nothing else gives zeros, not NaN.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "Kernels.h"
#include "MatrixProduct.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

namespace {

template <typename C> class Attention {
public:
  Attention(nn::AttentionOp op, Operands in);
  Tensor run();

private:
  /// Head `number` of batch * heads; heads share nothing, so they run on any thread.
  void runHead(int64_t number);
  /// Adds the mask, or excludes where a bool mask is false, and what lies outside a query's band.
  void maskScores(int64_t batch, int64_t head, C *scores) const;
  /// A row of nothing but excluded keys gives zeros.
  void softmaxRow(C *row) const;

  Elements<C> query, key, value;
  std::optional<Elements<C>> mask;
  bool isBoolMask = false;
  nn::KeyBand band;
  SmallVector<int64_t> maskStrides;
  int64_t batches, heads, kvHeads, length, keyLength, size, valueSize;
  C scale, softcap;
  ResultBuffer<C> result;
};

} // namespace

template <typename C>
Attention<C>::Attention(nn::AttentionOp op, Operands in)
    : query(in[0]), key(in[1]), value(in[2]), band(op.getBand()), batches(in[0].getShape()[0]),
      heads(in[0].getShape()[1]), kvHeads(in[1].getShape()[1]), length(in[0].getShape()[2]),
      keyLength(in[1].getShape()[2]), size(in[0].getShape()[3]), valueSize(in[2].getShape()[3]),
      scale(C(op.getScale().convertToDouble())), softcap(C(op.getSoftcap().convertToDouble())),
      result(getResultType(op)) {
  if (in.size() < 4)
    return;
  mask.emplace(in[3]);
  isBoolMask = in[3].getElementType().isInteger(1);
  maskStrides = getBroadcastStrides(in[3].getShape(), {batches, heads, length, keyLength});
}

template <typename C> void Attention<C>::maskScores(int64_t batch, int64_t head, C *scores) const {
  const C excluded = -std::numeric_limits<C>::infinity();
  for (int64_t i = 0; i < length; ++i) {
    C *row = scores + i * keyLength;
    if (mask) {
      int64_t start = batch * maskStrides[0] + head * maskStrides[1] + i * maskStrides[2];
      for (int64_t j = 0; j < keyLength; ++j) {
        C element = (*mask)[start + j * maskStrides[3]];
        row[j] = !isBoolMask ? row[j] + element : element != 0 ? row[j] : excluded;
      }
    }
    for (int64_t j = 0; j < keyLength; ++j)
      if (!band.sees(i, j))
        row[j] = excluded;
  }
}

template <typename C> void Attention<C>::softmaxRow(C *row) const {
  C maximum = -std::numeric_limits<C>::infinity();
  for (int64_t j = 0; j < keyLength; ++j)
    if (!(row[j] <= maximum))
      maximum = std::isnan(maximum) ? maximum : row[j];
  if (maximum == -std::numeric_limits<C>::infinity()) {
    std::fill(row, row + keyLength, C(0));
    return;
  }
  double sum = 0;
  for (int64_t j = 0; j < keyLength; ++j)
    sum += row[j] = std::exp(row[j] - maximum);
  for (int64_t j = 0; j < keyLength; ++j)
    row[j] = C(row[j] / sum);
}

template <typename C> void Attention<C>::runHead(int64_t number) {
  int64_t batch = number / heads, head = number % heads;
  int64_t kvNumber = batch * kvHeads + head / (heads / kvHeads);
  std::vector<C> scores(length * keyLength);
  std::vector<C> keyTransposed(size * keyLength);
  for (int64_t j = 0; j < keyLength; ++j)
    for (int64_t d = 0; d < size; ++d)
      keyTransposed[d * keyLength + j] = key[(kvNumber * keyLength + j) * size + d];
  multiply<C>(length, keyLength, size, {query.data() + number * length * size, size}, {keyTransposed.data(), keyLength},
              {scores.data(), keyLength});
  for (C &score : scores) {
    score *= scale;
    if (softcap > 0)
      score = softcap * std::tanh(score / softcap);
  }
  maskScores(batch, head, scores.data());
  for (int64_t i = 0; i < length; ++i)
    softmaxRow(scores.data() + i * keyLength);
  multiply<C>(length, valueSize, keyLength, {scores.data(), keyLength},
              {value.data() + kvNumber * keyLength * valueSize, valueSize},
              {result.data() + number * length * valueSize, valueSize});
}

template <typename C> Tensor Attention<C>::run() {
  int64_t count = batches * heads;
  forEachTask(count, double(count) * length * keyLength * (size + valueSize), [&](int64_t number) { runHead(number); });
  return result.finish();
}

/// Rotates pairs of elements by an angle per position: neighbors where interleaved, else elements i and i + half. What
/// is behind the rotated part is copied.
template <typename C> static Tensor rotatePairs(nn::RotaryEmbeddingOp op, Operands in) {
  Elements<C> x(in[0]), cosines(in[1]), sines(in[2]);
  ResultBuffer<C> result(getResultType(op));
  ArrayRef<int64_t> shape = in[0].getShape();
  int64_t heads = shape[1], length = shape[2], size = shape[3], half = op.getRotated() / 2;
  bool isBatched = in[1].getShape()[0] != 1, interleaved = op.getInterleaved();
  for (int64_t row = 0, count = product(shape.drop_back()); row < count; ++row) {
    int64_t angles = ((isBatched ? row / (heads * length) : 0) * length + row % length) * half;
    const C *from = x.data() + row * size;
    C *to = result.data() + row * size;
    std::copy(from + 2 * half, from + size, to + 2 * half);
    for (int64_t i = 0; i < half; ++i) {
      int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
      C cosine = cosines[angles + i], sine = sines[angles + i];
      to[first] = from[first] * cosine - from[second] * sine;
      to[second] = from[first] * sine + from[second] * cosine;
    }
  }
  return result.finish();
}

void cleave::reference::registerAttention(KernelTable &table) {
  table.add<nn::AttentionOp>([](nn::AttentionOp op, Operands in) {
    return dispatchFloat(in[0].getElementType(),
                         [&](auto tag) { return Attention<typename decltype(tag)::type>(op, in).run(); });
  });
  table.add<nn::RotaryEmbeddingOp>([](nn::RotaryEmbeddingOp op, Operands in) {
    return dispatchFloat(in[0].getElementType(),
                         [&](auto tag) { return rotatePairs<typename decltype(tag)::type>(op, in); });
  });
}
