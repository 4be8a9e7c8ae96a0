//===- Reduction.cpp - over dims, and along one dim -----------------------===//
//
// A reduction (sum, mean, product, maximum, minimum) walks the operand once, in order; each result element gathers what
// falls on it. Floats up to f32 are added and multiplied as doubles and rounded once, so that the order does not show;
// integers wrap.
//
// Softmax, running sums, positions of extrema and the k largest walk a dim as lines: an operand is
// [outer, size, inner], and a line starts at `outer * size * inner + inner`, with steps of `inner`.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "Arithmetic.h"
#include "Kernels.h"
#include "Loops.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

//===----------------------------------------------------------------------===//
// Reductions over dims
//===----------------------------------------------------------------------===//

/// Type in which elements of compute type `C` are summed.
template <typename C> using SumType = std::conditional_t<std::is_floating_point_v<C>, double, uint64_t>;

/// Folds `x` into a result of shape `kept` (reduced dims have size 1) that starts as `initial`.
template <typename C, typename Acc, typename Fn>
static std::vector<Acc> fold(const Tensor &x, ArrayRef<int64_t> kept, Acc initial, Fn fn) {
  std::vector<Acc> result(product(kept), initial);
  Runs runs(x.getShape(), {x.getShape(), kept});
  RunReader<C> reader(x, runs.staysWithinRun(0));
  bool stays = runs.staysWithinRun(1);
  runs.forEach([&](int64_t, int64_t length, ArrayRef<int64_t> starts) {
    const C *from = reader.read(starts[0], length);
    Acc *to = result.data() + starts[1];
    if (stays) {
      Acc sum = *to;
      for (int64_t i = 0; i < length; ++i)
        sum = fn(sum, from[i]);
      *to = sum;
    } else {
      for (int64_t i = 0; i < length; ++i)
        to[i] = fn(to[i], from[i]);
    }
  });
  return result;
}

/// Stores accumulated values as the result's element type.
template <typename C, typename Acc> static Tensor store(const std::vector<Acc> &values, RankedTensorType type) {
  ResultBuffer<C> result(type);
  for (size_t i = 0; i < values.size(); ++i)
    result[i] = C(values[i]);
  return result.finish();
}

template <typename C> static Tensor sum(const Tensor &x, ArrayRef<int64_t> kept, RankedTensorType type) {
  using Acc = SumType<C>;
  return store<C>(fold<C, Acc>(x, kept, 0, [](Acc a, C b) { return a + Acc(b); }), type);
}

template <typename C> static Tensor mean(const Tensor &x, ArrayRef<int64_t> kept, RankedTensorType type) {
  using Acc = SumType<C>;
  std::vector<Acc> sums = fold<C, Acc>(x, kept, 0, [](Acc a, C b) { return a + Acc(b); });
  int64_t count = sums.empty() ? 1 : x.getNumElements() / int64_t(sums.size());
  ResultBuffer<C> result(type);
  for (size_t i = 0; i < sums.size(); ++i)
    if constexpr (std::is_floating_point_v<C>)
      result[i] = C(sums[i] / double(count));
    else
      result[i] = C(sums[i]) / C(count); // toward zero
  return result.finish();
}

template <typename C> static Tensor productOf(const Tensor &x, ArrayRef<int64_t> kept, RankedTensorType type) {
  using Acc = SumType<C>;
  return store<C>(fold<C, Acc>(x, kept, 1, [](Acc a, C b) { return a * Acc(b); }), type);
}

template <typename C>
static Tensor extremum(bool isMax, const Tensor &x, ArrayRef<int64_t> kept, RankedTensorType type) {
  C worst = getWorst<C>(isMax, type.getElementType());
  if (isMax)
    return store<C>(fold<C, C>(x, kept, worst, larger<C>), type);
  return store<C>(fold<C, C>(x, kept, worst, smaller<C>), type);
}

template <typename C>
static Tensor reduceAs(nn::ReduceKind kind, const Tensor &x, ArrayRef<int64_t> kept, RankedTensorType type) {
  switch (kind) {
  case nn::ReduceKind::Sum:
    return sum<C>(x, kept, type);
  case nn::ReduceKind::Mean:
    return mean<C>(x, kept, type);
  case nn::ReduceKind::Prod:
    return productOf<C>(x, kept, type);
  case nn::ReduceKind::Max:
    return extremum<C>(true, x, kept, type);
  case nn::ReduceKind::Min:
    break;
  }
  return extremum<C>(false, x, kept, type);
}

static FailureOr<Tensor> reduce(nn::ReduceOp op, Operands in) {
  RankedTensorType type = getResultType(op);
  SmallVector<int64_t> kept(in[0].getShape());
  for (int64_t dim : op.getDims())
    kept[dim] = 1;
  bool isEmptyMean = op.getKind() == nn::ReduceKind::Mean && in[0].getNumElements() == 0;
  if (isEmptyMean && type.getNumElements() != 0 && type.getElementType().isInteger())
    return op.emitOpError("cannot take the mean of no integers");
  return dispatchCompute(type.getElementType(), [&](auto tag) {
    return reduceAs<typename decltype(tag)::type>(op.getKind(), in[0], kept, type);
  });
}

//===----------------------------------------------------------------------===//
// Lines along a dim
//===----------------------------------------------------------------------===//

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

void cleave::reference::registerReduction(KernelTable &table) {
  table.add<nn::ReduceOp>(reduce);
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
