//===- CheckLibrary.cpp - shapes of contractions (P19) --------------------===//
//
// What a library would take: floats of one type in, floats out, shapes that fit together.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"

#include <algorithm>
#include <cmath>

using namespace cleave::program;
using Shape = std::vector<int64_t>;

static bool isFloat(const Type &type) { return type.element <= Element::F64; }

/// The operands that are multiplied are floats of one type, and what comes of them floats.
static Status checkElements(std::initializer_list<const Type *> factors, const Type &result) {
  for (const Type *factor : factors)
    if (!isFloat(*factor) || factor->element != (*factors.begin())->element)
      return makeError("multiplies ", format(**factors.begin()), " and ", format(*factor), " (P19)");
  if (!isFloat(result))
    return makeError("results in ", format(result), ", expected floats (P19)");
  return kGood;
}

/// A bias has an element per column of the result, a residual the shape of the result.
static Status checkEpilogue(const Type *bias, const Type *residual, const Type &result) {
  if (bias && (bias->shape != Shape{result.shape.back()} || !isFloat(*bias)))
    return makeError("a bias of ", format(*bias), " for ", format(result), " (P19)");
  if (residual && (residual->shape != result.shape || !isFloat(*residual)))
    return makeError("a residual of ", format(*residual), " for ", format(result), " (P19)");
  return kGood;
}

/// The type of a view that may be missing.
static const Type *typeOf(const Program &program, const std::optional<View> &view) {
  return view ? &program.types[view->type] : nullptr;
}

/// [batch.., m, k] x [batch.., k, n] = [batch.., m, n]; b may be without the batch, the same for all of it.
Status Checker::checkAction(const Spot &spot, const Matmul &matmul) const {
  const Type &a = getType(matmul.a), &b = getType(matmul.b), &result = getType(matmul.result);
  if (Status error = checkElements({&a, &b}, result))
    return error;
  size_t rank = a.shape.size();
  bool fits = rank >= 2 && (b.shape.size() == rank || b.shape.size() == 2) && std::isfinite(matmul.scale);
  if (fits) {
    int64_t m = a.shape[rank - 2], k = a.shape[rank - 1];
    int64_t l = b.shape[b.shape.size() - 2], n = b.shape.back();
    if (matmul.transposeA)
      std::swap(m, k);
    if (matmul.transposeB)
      std::swap(l, n);
    Shape wanted(a.shape.begin(), a.shape.end() - 2);
    fits = k == l && std::equal(b.shape.begin(), b.shape.end() - 2, wanted.begin());
    wanted.insert(wanted.end(), {m, n});
    fits = fits && result.shape == wanted;
  }
  if (!fits)
    return makeError(format(a), matmul.transposeA ? " transposed" : "", " times ", format(b),
                     matmul.transposeB ? " transposed" : "", " is not ", format(result), " (P19)");
  if (Status error = checkEpilogue(typeOf(program, matmul.bias), typeOf(program, matmul.residual), result))
    return error;
  return checkFallback(spot, matmul.fallback);
}

/// The size of a window's results, or -1 where it makes no sense.
static int64_t countWindows(int64_t input, int64_t filter, int64_t stride, int64_t dilation, int64_t low,
                            int64_t high) {
  constexpr int64_t most = int64_t(1) << 31;
  for (int64_t number : {input, filter, stride, dilation, low, high})
    if (number < 0 || number > most)
      return -1;
  if (filter == 0 || stride == 0 || dilation == 0)
    return -1;
  // Below 2^62 + 2^31 each: no overflow.
  int64_t reach = (filter - 1) * dilation + 1, room = input + low + high;
  return room < reach ? 0 : (room - reach) / stride + 1;
}

/// As many results along a dim as the window has places; each group of channels has its share of the filter.
Status Checker::checkAction(const Spot &spot, const Convolution &conv) const {
  const Type &input = getType(conv.input), &filter = getType(conv.filter), &result = getType(conv.result);
  if (Status error = checkElements({&input, &filter}, result))
    return error;
  size_t rank = input.shape.size(), spatial = rank - 2;
  bool fits = rank >= 3 && filter.shape.size() == rank && result.shape.size() == rank && conv.groups != 0;
  for (const Shape *list : {&conv.strides, &conv.dilations, &conv.padsLow, &conv.padsHigh})
    fits = fits && list->size() == spatial;
  if (fits) {
    fits = input.shape.back() % conv.groups == 0 && filter.shape[0] % conv.groups == 0 &&
           filter.shape.back() == input.shape.back() / conv.groups && result.shape[0] == input.shape[0] &&
           result.shape.back() == filter.shape[0];
    for (size_t i = 0; i < spatial; ++i)
      fits = fits && result.shape[i + 1] == countWindows(input.shape[i + 1], filter.shape[i + 1], conv.strides[i],
                                                         conv.dilations[i], conv.padsLow[i], conv.padsHigh[i]);
  }
  if (!fits)
    return makeError("the convolution of ", format(input), " with ", format(filter), " in ", conv.groups,
                     " groups is not ", format(result), " (P19)");
  if (Status error = checkEpilogue(typeOf(program, conv.bias), typeOf(program, conv.residual), result))
    return error;
  return checkFallback(spot, conv.fallback);
}

/// Whether a mask is the shape of the scores, or of size 1 where it is the same for all.
static bool masks(const Shape &mask, const Shape &scores) {
  return mask.size() == 4 && std::equal(mask.begin(), mask.end(), scores.begin(),
                                        [](int64_t size, int64_t whole) { return size == 1 || size == whole; });
}

/// query [B, H, Q, S], key [B, G, K, S], value [B, G, K, V], result [B, H, Q, V], where G divides H.
Status Checker::checkAction(const Spot &spot, const Attention &attention) const {
  const Type &query = getType(attention.query), &key = getType(attention.key), &value = getType(attention.value);
  const Type &result = getType(attention.result), *mask = typeOf(program, attention.mask);
  if (Status error = checkElements({&query, &key, &value}, result))
    return error;
  bool fits = query.shape.size() == 4 && key.shape.size() == 4 && value.shape.size() == 4;
  if (fits) {
    const Shape &q = query.shape, &k = key.shape, &v = value.shape;
    fits = k[0] == q[0] && k[1] != 0 && q[1] % k[1] == 0 && k[3] == q[3] && v[0] == k[0] && v[1] == k[1] &&
           v[2] == k[2] && result.shape == Shape{q[0], q[1], q[2], v[3]} && std::isfinite(attention.scale);
    if (fits && mask &&
        (!masks(mask->shape, {q[0], q[1], q[2], k[2]}) || !(isFloat(*mask) || mask->element == Element::I1)))
      return makeError("a mask of ", format(*mask), " for ", q[2], " queries of ", k[2], " keys (P19)");
  }
  if (!fits)
    return makeError("attention of ", format(query), ", ", format(key), ", ", format(value), " is not ", format(result),
                     " (P19)");
  return checkFallback(spot, attention.fallback);
}
