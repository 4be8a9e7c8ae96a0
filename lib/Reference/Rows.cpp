//===- Rows.cpp - ops along one dim ---------------------------------------===//
//
// Softmax, running sums, positions of extrema, the k largest. The dim is walked as lines: an operand is
// [outer, size, inner], and a line starts at `outer * size * inner + inner`, with steps of `inner`.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

namespace {
/// The lines of a shape along a dim.
struct Lines {
  int64_t outer, size, inner;

  Lines(ArrayRef<int64_t> shape, int64_t dim)
      : outer(product(shape.take_front(dim))), size(shape[dim]), inner(product(shape.drop_front(dim + 1))) {}
  /// Calls `fn(start, number)` for each line, where another tensor with `otherSize` has its line at `otherStart`.
  template <typename Fn> void forEach(int64_t otherSize, Fn fn) const {
    for (int64_t i = 0; i < outer; ++i)
      for (int64_t j = 0; j < inner; ++j)
        fn(i * size * inner + j, i * otherSize * inner + j);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// The largest element of a line; NaN if there is one.
template <typename C> static C getMaximum(const C *line, int64_t size, int64_t step) {
  C maximum = -std::numeric_limits<C>::infinity();
  for (int64_t i = 0; i < size; ++i)
    if (!(line[i * step] <= maximum))
      maximum = std::isnan(maximum) ? maximum : line[i * step];
  return maximum;
}

template <typename C> static void softmaxLine(const C *from, C *to, int64_t size, int64_t step) {
  C maximum = getMaximum(from, size, step);
  double sum = 0;
  for (int64_t i = 0; i < size; ++i)
    sum += to[i * step] = std::exp(from[i * step] - maximum);
  for (int64_t i = 0; i < size; ++i)
    to[i * step] = C(to[i * step] / sum);
}

template <typename C> static void logSoftmaxLine(const C *from, C *to, int64_t size, int64_t step) {
  C maximum = getMaximum(from, size, step);
  double sum = 0;
  for (int64_t i = 0; i < size; ++i)
    sum += std::exp(from[i * step] - maximum);
  for (int64_t i = 0; i < size; ++i)
    to[i * step] = C(from[i * step] - maximum - std::log(sum));
}

/// Adds an op that maps lines of floats to lines.
template <typename OpT, typename MakeFn> static void addLines(KernelTable &table, MakeFn makeFn) {
  table.add<OpT>([makeFn](OpT op, Operands in) {
    return dispatchFloat(in[0].getElementType(), [&](auto tag) {
      using C = typename decltype(tag)::type;
      Elements<C> x(in[0]);
      ResultBuffer<C> result(getResultType(op));
      Lines lines(in[0].getShape(), op.getDim());
      auto fn = makeFn(tag);
      const C *from = x.data();
      C *to = result.data();
      lines.forEach(lines.size, [&](int64_t start, int64_t) { fn(from + start, to + start, lines.size, lines.inner); });
      return result.finish();
    });
  });
}

//===----------------------------------------------------------------------===//
// Running sums, positions
//===----------------------------------------------------------------------===//

template <typename C> static Tensor cumsum(nn::CumsumOp op, const Tensor &input) {
  using Sum = std::conditional_t<std::is_floating_point_v<C>, double, uint64_t>;
  Elements<C> x(input);
  ResultBuffer<C> result(getResultType(op));
  Lines lines(input.getShape(), op.getDim());
  lines.forEach(lines.size, [&](int64_t start, int64_t) {
    Sum sum = 0;
    for (int64_t i = 0; i < lines.size; ++i) {
      int64_t at = start + (op.getReverse() ? lines.size - 1 - i : i) * lines.inner;
      Sum before = sum;
      sum += Sum(x[at]);
      result[at] = C(op.getExclusive() ? before : sum);
    }
  });
  return result.finish();
}

/// True if `a` is to stand before `b`; NaN counts as the largest of all.
template <typename C> static bool isBetter(C a, C b, bool smallest) {
  if (a != a || b != b)
    return smallest ? a == a && b != b : a != a && b == b;
  return smallest ? a < b : a > b;
}

template <typename C> static Tensor argReduce(nn::ArgReduceOp op, const Tensor &input) {
  Elements<C> x(input);
  ResultBuffer<int64_t> result(getResultType(op));
  Lines lines(input.getShape(), op.getDim());
  bool isMin = op.getKind() == nn::ReduceKind::Min;
  // NaN wins for both kinds, as in numpy.
  auto beats = [isMin](C a, C b) { return a != a ? b == b : b == b && (isMin ? a < b : a > b); };
  lines.forEach(1, [&](int64_t start, int64_t to) {
    int64_t best = 0;
    for (int64_t i = 1; i < lines.size; ++i) {
      C candidate = x[start + i * lines.inner], champion = x[start + best * lines.inner];
      if (beats(candidate, champion) || (op.getLast() && !beats(champion, candidate)))
        best = i;
    }
    result[to] = best;
  });
  return result.finish();
}

template <typename C> static void topK(nn::TopKOp op, const Tensor &input, SmallVectorImpl<Tensor> &results) {
  Elements<C> x(input);
  ResultBuffer<C> values(getResultType(op));
  ResultBuffer<int64_t> indices(getResultType(op, 1));
  Lines lines(input.getShape(), op.getDim());
  bool smallest = op.getSmallest();
  int64_t k = op.getK();
  std::vector<int64_t> order(lines.size);
  lines.forEach(k, [&](int64_t start, int64_t to) {
    auto at = [&](int64_t i) { return x[start + i * lines.inner]; };
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
      C first = at(a), second = at(b);
      return isBetter(first, second, smallest) || (!isBetter(second, first, smallest) && a < b);
    });
    for (int64_t i = 0; i < k; ++i) {
      values[to + i * lines.inner] = at(order[i]);
      indices[to + i * lines.inner] = order[i];
    }
  });
  results.push_back(values.finish());
  results.push_back(indices.finish());
}

void cleave::reference::registerRows(KernelTable &table) {
  addLines<nn::SoftmaxOp>(table, [](auto tag) { return softmaxLine<typename decltype(tag)::type>; });
  addLines<nn::LogSoftmaxOp>(table, [](auto tag) { return logSoftmaxLine<typename decltype(tag)::type>; });
  table.add<nn::CumsumOp>([](nn::CumsumOp op, Operands in) {
    return dispatchCompute(in[0].getElementType(),
                           [&](auto tag) { return cumsum<typename decltype(tag)::type>(op, in[0]); });
  });
  table.add<nn::ArgReduceOp>([](nn::ArgReduceOp op, Operands in) {
    return dispatchCompute(in[0].getElementType(),
                           [&](auto tag) { return argReduce<typename decltype(tag)::type>(op, in[0]); });
  });
  table.addMany<nn::TopKOp>([](nn::TopKOp op, Operands in, SmallVectorImpl<Tensor> &results) {
    dispatchCompute(in[0].getElementType(), [&](auto tag) { topK<typename decltype(tag)::type>(op, in[0], results); });
    return success();
  });
}
