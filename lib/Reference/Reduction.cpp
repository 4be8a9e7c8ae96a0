//===- Reduction.cpp - over dims: sum, mean, product, maximum, minimum ----===//
//
// The operand is walked once, in order; each result element gathers what falls on it. Floats up to f32 are added and
// multiplied as doubles and rounded once, so that the order does not show; integers wrap.
//
//===----------------------------------------------------------------------===//
#include "Arithmetic.h"
#include "Kernels.h"
#include "Loops.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

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

void cleave::reference::registerReductions(KernelTable &table) { table.add<nn::ReduceOp>(reduce); }
