//===- Attention.cpp - result types of attention and rotary embedding -----===//
//
// Heads are grouped: g key heads serve h query heads, so g divides h, and head i of the query looks at key head i / (h
// / g). The mask broadcasts to the scores [batch, heads, queries, keys], which exist in no type. What places alone decide is a band
// along the diagonal of the scores:
//
//   keys      0 1 2 3 4 5 6
//   query 0   x x x . . . .      causalOffset 2, left 2, causal: a query sees itself and two before it
//   query 1   . x x x . . .      low = 0, high = 2
//   query 2   . . x x x . .
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "TypeInference.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// C1: query [b, h, s, d], key [b, g, t, d], value [b, g, t, v].
static LogicalResult checkSizes(Value query, Value key, Value value, TypeInference &infer) {
  for (auto [tensor, name] : {std::pair(query, "query"), std::pair(key, "key"), std::pair(value, "value")})
    if (getShape(tensor).size() != 4)
      return infer.reject(name, " is ", tensor.getType(), ", expected [batch, heads, sequence, size] (C1)");
  auto q = getShape(query), k = getShape(key), v = getShape(value);
  if (q[0] != k[0] || k[0] != v[0])
    return infer.reject("query, key and value have batch sizes ", q[0], ", ", k[0], " and ", v[0], " (C1)");
  if (q[3] != k[3])
    return infer.reject("query has head size ", q[3], " but key ", k[3], " (C1)");
  if (k[1] != v[1] || k[2] != v[2])
    return infer.reject("key ", key.getType(), " and value ", value.getType(), " differ in heads or sequence (C1)");
  return success();
}

LogicalResult AttentionOp::inferTypes(Adaptor op, TypeInference &infer) {
  Value query = op.getQuery(), key = op.getKey(), value = op.getValue();
  if (failed(checkSizes(query, key, value, infer)) || failed(infer.checkElementTypes({query, key, value}, "C4")))
    return failure();
  auto q = getShape(query), k = getShape(key), v = getShape(value);
  if (k[1] < 1 || q[1] % k[1] != 0)
    return infer.reject(k[1], " key heads do not divide ", q[1], " query heads (C2)");
  if (Value mask = op.getMask())
    if (!broadcastsTo(getShape(mask), {q[0], q[1], q[2], k[2]}))
      return infer.reject("mask ", mask.getType(), " does not broadcast to [", q[0], ", ", q[1], ", ", q[2], ", ", k[2],
                          "] (C3)");
  for (auto [bound, name] : {std::pair(op.getLeft(), "left"), std::pair(op.getRight(), "right")})
    if (bound && static_cast<int64_t>(*bound) < 0)
      return infer.reject(name, " is ", static_cast<int64_t>(*bound), ", expected at least 0 (C5)");
  if (op.getCausal() && op.getRight())
    return infer.reject("right is ", static_cast<int64_t>(*op.getRight()),
                        " together with causal, which means right = 0 (C5)");
  return infer.give({q[0], q[1], q[2], v[3]}, getElementType(query));
}

//===----------------------------------------------------------------------===//
// Which keys are seen
//===----------------------------------------------------------------------===//

/// Bounds beyond all places are brought near: they hide as much from everyone, and sums with them cannot overflow.
KeyBand KeyBand::get(int64_t queries, int64_t keys, bool isCausal, int64_t offset, std::optional<int64_t> left,
                     std::optional<int64_t> right) {
  constexpr int64_t far = int64_t(1) << 61;
  offset = std::clamp(offset, -far, far);
  auto near = [&](int64_t bound) { return std::min(std::max(bound, -queries - 1), keys); };
  KeyBand band;
  if (isCausal || right)
    band.high = near(offset + (isCausal ? 0 : std::min(*right, far)));
  // The last query sees the first key still: then all do.
  if (left && offset - std::min(*left, far) > 1 - queries)
    band.low = near(offset - std::min(*left, far));
  return band;
}

KeyBand AttentionOp::getBand() {
  return KeyBand::get(getShape(getQuery())[2], getShape(getKey())[2], getCausal(), getCausalOffset(), getLeft(),
                      getRight());
}

LogicalResult RotaryEmbeddingOp::inferTypes(Adaptor op, TypeInference &infer) {
  auto input = getShape(op.getInput());
  if (input.size() != 4)
    return infer.reject("input is ", op.getInput().getType(), ", expected [batch, heads, sequence, size] (C1)");
  int64_t rotated = op.getRotated();
  if (rotated < 0 || rotated % 2 != 0 || rotated > input[3])
    return infer.reject("rotates ", rotated, " elements, expected an even number up to ", input[3], " (C2)");
  for (auto [table, name] : {std::pair<Value, StringRef>(op.getCos(), "cos"), {op.getSin(), "sin"}}) {
    auto shape = getShape(table);
    if (shape.size() != 3 || (shape[0] != 1 && shape[0] != input[0]) || shape[1] != input[2] || shape[2] != rotated / 2)
      return infer.reject(name, " is ", table.getType(), ", expected [1 or ", input[0], ", ", input[2], ", ",
                          rotated / 2, "] (C1)");
  }
  return infer.giveLike(op.getInput());
}

// What is turned is read for the gradient of angles alone, which nobody learns.
bool RotaryEmbeddingOp::isReadForGradient(unsigned operand, ArrayRef<bool>) { return operand != 0; }
