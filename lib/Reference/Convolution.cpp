//===- Convolution.cpp - windows over spatial dims ------------------------===//
//
// Convolution and its transpose are matrix products with *columns*: a matrix with a row per (channel, kernel element) and a column per window.
//
//   convolution    columns <- input (gathered);     result  = weight * columns
//   transposed     columns  = weight^T * input;     result <- columns (added up)
//
//            window 0  1  2 ..
//   c0 k0      [  x  x  x ..]
//   c0 k1      [  x  x  x ..]     element of channel c0 that kernel element k1 sees in window 2
//
// Columns are made for some rows of windows at a time, so that they stay small.
//
// A pool visits, per window and dim, only the kernel elements that lie inside the input; an average divides by these,
// or by those that lie inside the padded input too.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "Arithmetic.h"
#include "Kernels.h"
#include "MatrixProduct.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

/// Elements of columns held at a time; they stay in the cache.
static constexpr int64_t kMaxColumns = 1 << 18;

namespace {

/// The windows along one row (the last spatial dim) in which a kernel element lies inside the tensor.
struct RowPart {
  int64_t begin, end; ///< windows
  int64_t start;      ///< offset in the channel of the element that window `begin` sees; the next is `stride` on
};

/// Where kernel elements of windows lie in a channel.
struct Windows {
  ArrayRef<int64_t> channel; ///< spatial extents of the tensor that windows slide over
  ArrayRef<int64_t> windows; ///< number of windows per spatial dim
  ArrayRef<int64_t> kernel, strides, pads, dilations;

  int64_t getRowLength() const { return windows.back(); }
  int64_t getNumRows() const { return product(windows.drop_back()); }
  int64_t getStride() const { return strides.back(); }
  RowPart getRowPart(int64_t kernelElement, int64_t row) const;
};

} // namespace

RowPart Windows::getRowPart(int64_t kernelElement, int64_t row) const {
  const RowPart nothing{0, 0, 0};
  int64_t last = channel.size() - 1;
  int64_t first = kernelElement % kernel[last] * dilations[last] - pads[last]; // of window 0
  kernelElement /= kernel[last];
  int64_t offset = 0, step = channel[last];
  for (int64_t dim = last - 1; dim >= 0; --dim) {
    int64_t position = row % windows[dim] * strides[dim] + kernelElement % kernel[dim] * dilations[dim] - pads[dim];
    if (position < 0 || position >= channel[dim])
      return nothing;
    offset += position * step;
    step *= channel[dim];
    row /= windows[dim];
    kernelElement /= kernel[dim];
  }
  int64_t stride = strides[last];
  int64_t begin = first < 0 ? (-first - 1) / stride + 1 : 0;
  int64_t end = channel[last] <= first ? 0 : std::min(windows[last], (channel[last] - 1 - first) / stride + 1);
  return begin < end ? RowPart{begin, end, offset + first + begin * stride} : nothing;
}

/// Columns of `channels` channels for window rows [firstRow, lastRow).
template <typename C>
static void gatherColumns(const Windows &windows, const C *x, int64_t channels, int64_t firstRow, int64_t lastRow,
                          C *columns) {
  int64_t channelSize = product(windows.channel), length = windows.getRowLength(), stride = windows.getStride();
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t element = 0, count = product(windows.kernel); element < count; ++element)
      for (int64_t row = firstRow; row < lastRow; ++row, columns += length) {
        RowPart part = windows.getRowPart(element, row);
        std::fill(columns, columns + part.begin, C(0));
        const C *from = x + channel * channelSize + part.start;
        for (int64_t i = part.begin; i < part.end; ++i)
          columns[i] = from[(i - part.begin) * stride];
        std::fill(columns + part.end, columns + length, C(0));
      }
}

/// Adds columns to the elements that their windows see.
template <typename C>
static void scatterColumns(const Windows &windows, const C *columns, int64_t channels, int64_t firstRow,
                           int64_t lastRow, C *y) {
  int64_t channelSize = product(windows.channel), length = windows.getRowLength(), stride = windows.getStride();
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t element = 0, count = product(windows.kernel); element < count; ++element)
      for (int64_t row = firstRow; row < lastRow; ++row, columns += length) {
        RowPart part = windows.getRowPart(element, row);
        C *to = y + channel * channelSize + part.start;
        for (int64_t i = part.begin; i < part.end; ++i)
          to[(i - part.begin) * stride] += columns[i];
      }
}

/// Calls `fn(first row, last row)` for pieces of the window rows whose columns are `height` high.
template <typename Fn> static void forEachPiece(const Windows &windows, int64_t height, Fn fn) {
  int64_t rowSize = std::max<int64_t>(height * windows.getRowLength(), 1);
  int64_t step = std::max<int64_t>(kMaxColumns / rowSize, 1), numRows = windows.getNumRows();
  for (int64_t row = 0; row < numRows; row += step)
    fn(row, std::min(row + step, numRows));
}

/// Adds one number per channel.
template <typename C> static void addBias(const Tensor &bias, ArrayRef<int64_t> shape, ResultBuffer<C> &result) {
  Elements<C> numbers(bias);
  int64_t inner = product(shape.drop_front(2));
  for (int64_t plane = 0, planes = shape[0] * shape[1]; plane < planes; ++plane)
    for (int64_t i = plane * inner; i < (plane + 1) * inner; ++i)
      result[i] += numbers[plane % shape[1]];
}

template <typename C> static Tensor convolve(nn::ConvOp op, Operands in) {
  ArrayRef<int64_t> xShape = in[0].getShape(), weightShape = in[1].getShape();
  RankedTensorType type = getResultType(op);
  Windows windows{xShape.drop_front(2),      type.getShape().drop_front(2),
                  weightShape.drop_front(2), op.getStrides(),
                  op.getPadsLow(),           op.getDilations()};
  int64_t groups = op.getGroups(), channels = weightShape[1], outputs = weightShape[0] / groups;
  int64_t height = channels * product(windows.kernel), length = windows.getRowLength();
  int64_t xSize = channels * product(windows.channel), numWindows = product(windows.windows);
  Elements<C> x(in[0]), weight(in[1]);
  ResultBuffer<C> result(type);
  std::vector<C> columns;
  for (int64_t piece = 0; piece < xShape[0] * groups; ++piece) // one sample, one group
    forEachPiece(windows, height, [&](int64_t first, int64_t last) {
      columns.resize(height * (last - first) * length);
      gatherColumns(windows, x.data() + piece * xSize, channels, first, last, columns.data());
      multiply<C>(outputs, (last - first) * length, height, {weight.data() + piece % groups * outputs * height, height},
                  {columns.data(), (last - first) * length},
                  {result.data() + piece * outputs * numWindows + first * length, numWindows});
    });
  if (in.size() > 2)
    addBias(in[2], type.getShape(), result);
  return result.finish();
}

template <typename C> static Tensor convolveTransposed(nn::ConvTransposeOp op, Operands in) {
  ArrayRef<int64_t> xShape = in[0].getShape(), weightShape = in[1].getShape();
  RankedTensorType type = getResultType(op);
  Windows windows{type.getShape().drop_front(2),
                  xShape.drop_front(2),
                  weightShape.drop_front(2),
                  op.getStrides(),
                  op.getPadsLow(),
                  op.getDilations()};
  int64_t groups = op.getGroups(), channels = weightShape[0] / groups, outputs = weightShape[1];
  int64_t height = outputs * product(windows.kernel), length = windows.getRowLength();
  int64_t numWindows = product(windows.windows), ySize = outputs * product(windows.channel);
  Elements<C> x(in[0]), weight(in[1]);
  ResultBuffer<C> result(type);
  std::vector<C> columns;
  for (int64_t piece = 0; piece < xShape[0] * groups; ++piece)
    forEachPiece(windows, height, [&](int64_t first, int64_t last) {
      int64_t count = (last - first) * length;
      columns.assign(height * count, C(0));
      multiply<C>(height, count, channels, {weight.data() + piece % groups * channels * height, 1, height},
                  {x.data() + piece * channels * numWindows + first * length, numWindows}, {columns.data(), count});
      scatterColumns(windows, columns.data(), outputs, first, last, result.data() + piece * ySize);
    });
  if (in.size() > 2)
    addBias(in[2], type.getShape(), result);
  return result.finish();
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

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

void cleave::reference::registerConvolution(KernelTable &table) {
  table.add<nn::ConvOp>([](nn::ConvOp op, Operands in) {
    Type elementType = getResultType(op).getElementType();
    if (elementType.isInteger())
      return convolve<uint64_t>(op, in);
    return elementType.isF64() ? convolve<double>(op, in) : convolve<float>(op, in);
  });
  table.add<nn::ConvTransposeOp>([](nn::ConvTransposeOp op, Operands in) {
    return dispatchFloat(in[0].getElementType(),
                         [&](auto tag) { return convolveTransposed<typename decltype(tag)::type>(op, in); });
  });
  table.add<nn::PoolOp>([](nn::PoolOp op, Operands in) {
    return dispatchCompute(in[0].getElementType(),
                           [&](auto tag) { return pool<typename decltype(tag)::type>(op, in[0]); });
  });
}
