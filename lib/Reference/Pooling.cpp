//===- Pooling.cpp - maximum, average and p-norm over windows -------------===//
//
// Per window and dim, only the kernel elements that lie inside the input are visited; an average divides by these, or
// by those that lie inside the padded input too.
//
//===----------------------------------------------------------------------===//
#include "Arithmetic.h"
#include "Kernels.h"
#include "Loops.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

namespace {

/// The part of a window that lies inside the input.
struct Window {
  SmallVector<int64_t> shape; ///< kernel elements inside, per dim
  int64_t start = 0;          ///< offset of the first one
  double counted = 1;         ///< elements an average divides by
};

/// Finds the kernel elements of windows.
class WindowFinder {
public:
  WindowFinder(nn::PoolOp op, ArrayRef<int64_t> spatial)
      : op(op), spatial(spatial), steps(getRowMajorStrides(spatial)) {
    for (auto [step, dilation] : llvm::zip_equal(steps, op.getDilations()))
      kernelSteps.push_back(int64_t(uint64_t(step) * uint64_t(dilation))); // wraps where only one element fits
  }
  Window find(ArrayRef<int64_t> position);
  /// What a step to the next kernel element of a dim adds to the offset.
  const SmallVector<int64_t> &getKernelSteps() const { return kernelSteps; }

private:
  nn::PoolOp op;
  ArrayRef<int64_t> spatial;
  SmallVector<int64_t> steps, kernelSteps;
};

} // namespace

/// Smallest k >= 0 with `first + k * step >= bound`.
static int64_t countBelow(int64_t first, int64_t step, int64_t bound) {
  return first >= bound ? 0 : (bound - first - 1) / step + 1;
}

Window WindowFinder::find(ArrayRef<int64_t> position) {
  Window window;
  for (size_t dim = 0; dim < spatial.size(); ++dim) {
    int64_t dilation = op.getDilations()[dim], kernel = op.getKernel()[dim];
    int64_t first = position[dim] * op.getStrides()[dim] - op.getPadsLow()[dim];
    int64_t begin = std::min(countBelow(first, dilation, 0), kernel);
    int64_t end = std::min(countBelow(first, dilation, spatial[dim]), kernel);
    int64_t padded = std::min(countBelow(first, dilation, spatial[dim] + op.getPadsHigh()[dim]), kernel);
    window.shape.push_back(std::max<int64_t>(end - begin, 0));
    if (begin < end)
      window.start += (first + begin * dilation) * steps[dim];
    window.counted *= double(op.getCountPads() ? padded : window.shape.back());
  }
  return window;
}

/// Calls `fn` on the elements of a window in `plane`.
template <typename C, typename Fn>
static void forEachElement(const Window &window, const WindowFinder &finder, const C *plane, Fn fn) {
  Odometer odometer(window.shape, {finder.getKernelSteps()});
  for (int64_t count = product(window.shape); count > 0; --count, odometer.next())
    fn(plane[window.start + odometer.getOffsets()[0]]);
}

/// The result of one window.
template <typename C>
static C poolWindow(nn::PoolOp op, const Window &window, const WindowFinder &finder, const C *x, C worst) {
  if (op.getKind() == nn::PoolKind::Max) {
    C maximum = worst;
    forEachElement(window, finder, x, [&](C element) { maximum = larger(maximum, element); });
    return maximum;
  }
  double sum = 0, p = op.getP();
  if (op.getKind() == nn::PoolKind::Average) {
    forEachElement(window, finder, x, [&](C element) { sum += double(element); });
    return storeElement<C>(sum / window.counted);
  }
  forEachElement(window, finder, x, [&](C element) { sum += std::pow(std::abs(double(element)), p); });
  return storeElement<C>(std::pow(sum, 1 / p));
}

/// The value that padding counts as in a maximum.
template <typename C> static C getLowest(Type elementType) {
  if constexpr (std::is_floating_point_v<C>)
    return -std::numeric_limits<C>::infinity();
  else if constexpr (std::is_same_v<C, uint64_t>)
    return 0;
  else
    return -(int64_t(1) << (elementType.getIntOrFloatBitWidth() - 2)) * 2;
}

template <typename C> static Tensor pool(nn::PoolOp op, const Tensor &input) {
  Elements<C> x(input);
  ResultBuffer<C> result(getResultType(op));
  ArrayRef<int64_t> spatial = input.getShape().drop_front(2), windows = getResultType(op).getShape().drop_front(2);
  int64_t planeSize = product(spatial), numWindows = product(windows);
  int64_t planes = input.getShape()[0] * input.getShape()[1];
  WindowFinder finder(op, spatial);
  C worst = getLowest<C>(input.getElementType());
  Odometer odometer(windows, {});
  for (int64_t i = 0; i < numWindows; ++i, odometer.next()) {
    Window window = finder.find(odometer.getPosition());
    for (int64_t plane = 0; plane < planes; ++plane)
      result[plane * numWindows + i] = poolWindow(op, window, finder, x.data() + plane * planeSize, worst);
  }
  return result.finish();
}

void cleave::reference::registerPooling(KernelTable &table) {
  table.add<nn::PoolOp>([](nn::PoolOp op, Operands in) {
    return dispatchCompute(in[0].getElementType(),
                           [&](auto tag) { return pool<typename decltype(tag)::type>(op, in[0]); });
  });
}
