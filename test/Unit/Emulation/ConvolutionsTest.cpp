//===- ConvolutionsTest.cpp - convolutions on the emulated device ---------===//
//
// Random windows, groups and layouts, against sums in f64 by loops over windows and taps, as the definition of a convolution has
// them. What is multiplied is exact in f64; the bound is that of the order of sums.
//
//===----------------------------------------------------------------------===//
#include "DeviceKernels.h"
#include "llvm/Support/FormatVariadic.h"
#include <random>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using reference::Tensor;

namespace {

/// Two spatial dims: [0] rows, [1] columns.
struct Convolution {
  int64_t images, groups, in, out; ///< channels of a group
  int64_t size[2], kernel[2], stride[2], low[2], high[2], dilation[2];
  bool isLast;   ///< channels lie last, in the input and in the result
  bool isNarrow; ///< f16 in memory, f32 in the op

  int64_t getWindows(int dim) const {
    return (size[dim] + low[dim] + high[dim] - (kernel[dim] - 1) * dilation[dim] - 1) / stride[dim] + 1;
  }
  /// Where an element of an image lies.
  size_t place(int64_t image, int64_t channel, int64_t row, int64_t column, int64_t channels, int64_t rows,
               int64_t columns) const {
    return size_t(isLast ? ((image * rows + row) * columns + column) * channels + channel
                         : ((image * channels + channel) * rows + row) * columns + column);
  }
  std::string getText() const;
};

std::string makeType(ArrayRef<int64_t> shape, StringRef element) {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + element.str() + ">";
}

/// Sums of windows, a bias and relu.
std::string Convolution::getText() const {
  int64_t channelsIn = groups * in, channelsOut = groups * out;
  StringRef stored = isNarrow ? "f16" : "f32";
  SmallVector<int64_t> x{images, channelsIn, size[0], size[1]}, y{images, channelsOut, getWindows(0), getWindows(1)};
  SmallVector<int64_t> w{channelsOut, in, kernel[0], kernel[1]};
  auto turn = [&](ArrayRef<int64_t> shape) {
    return isLast ? SmallVector<int64_t>{shape[0], shape[2], shape[3], shape[1]} : SmallVector<int64_t>(shape);
  };
  std::string wide = makeType(x, "f32"), result = makeType(y, "f32"), bias = makeType({channelsOut}, "f32");
  std::string text = llvm::formatv("func.func @main(%x: {0}, %w: {1}, %c: {2}) -> {3} {{\n", makeType(turn(x), stored),
                                   makeType(w, stored), bias, makeType(turn(y), "f32"));
  std::string at = "%x", weight = "%w";
  if (isLast) {
    text += llvm::formatv("  %0 = nn.transpose %x [0, 3, 1, 2] : ({0}) -> {1}\n", makeType(turn(x), stored),
                          makeType(x, stored));
    at = "%0";
  }
  if (isNarrow) {
    text += llvm::formatv("  %1 = nn.cast {0} : ({1}) -> {2}\n", at, makeType(x, stored), wide);
    text += llvm::formatv("  %2 = nn.cast %w : ({0}) -> {1}\n", makeType(w, stored), makeType(w, "f32"));
    at = "%1";
    weight = "%2";
  }
  text += llvm::formatv("  %3 = nn.conv {0}, {1}, %c strides [{2}, {3}] pads_low [{4}, {5}] pads_high [{6}, {7}] ", at,
                        weight, stride[0], stride[1], low[0], low[1], high[0], high[1]);
  text += llvm::formatv("dilations [{0}, {1}] groups {2} : ({3}, {4}, {5}) -> {6}\n", dilation[0], dilation[1], groups,
                        wide, makeType(w, "f32"), bias, result);
  text += llvm::formatv("  %4 = nn.relu %3 : ({0}) -> {0}\n", result);
  if (isLast)
    text += llvm::formatv("  %5 = nn.transpose %4 [0, 2, 3, 1] : ({0}) -> {1}\n", result, makeType(turn(y), "f32"));
  return text + llvm::formatv("  return {0} : {1}\n}", isLast ? "%5" : "%4", makeType(turn(y), "f32")).str();
}

class DeviceConvolutionsTest : public DeviceKernelsTest {
protected:
  std::string check(const Convolution &conv, uint64_t seed);
  std::string compare(const Convolution &conv, ArrayRef<Tensor> inputs, ArrayRef<double> got);
};

/// What walks its windows is a kernel of its own, and refused.
std::string DeviceConvolutionsTest::check(const Convolution &conv, uint64_t seed) {
  auto ofInputs = [&](ArrayRef<Tensor> inputs, ArrayRef<double> got) { return compare(conv, inputs, got); };
  return runAlone(conv.getText(), "convolution", seed, ofInputs);
}

/// Window by window; a tap outside of the input adds nothing.
std::string DeviceConvolutionsTest::compare(const Convolution &conv, ArrayRef<Tensor> inputs, ArrayRef<double> got) {
  std::vector<double> x = getNumbers(inputs[0]), w = getNumbers(inputs[1]), c = getNumbers(inputs[2]);
  int64_t rows = conv.getWindows(0), columns = conv.getWindows(1), channelsOut = conv.groups * conv.out;
  for (int64_t image = 0; image < conv.images; ++image)
    for (int64_t channel = 0; channel < channelsOut; ++channel)
      for (int64_t window = 0; window < rows * columns; ++window) {
        double sum = 0, size = 0;
        for (int64_t tap = 0; tap < conv.in * conv.kernel[0] * conv.kernel[1]; ++tap) {
          int64_t in = tap / (conv.kernel[0] * conv.kernel[1]), j = tap % conv.kernel[1],
                  i = tap / conv.kernel[1] % conv.kernel[0];
          int64_t row = window / columns * conv.stride[0] + i * conv.dilation[0] - conv.low[0];
          int64_t column = window % columns * conv.stride[1] + j * conv.dilation[1] - conv.low[1];
          if (row < 0 || row >= conv.size[0] || column < 0 || column >= conv.size[1])
            continue;
          int64_t from = channel / conv.out * conv.in + in;
          double term = w[channel * conv.in * conv.kernel[0] * conv.kernel[1] + tap] *
                        x[conv.place(image, from, row, column, conv.groups * conv.in, conv.size[0], conv.size[1])];
          sum += term;
          size += std::fabs(term);
        }
        double want = std::max(0.0, sum + c[channel]);
        double have = got[conv.place(image, channel, window / columns, window % columns, channelsOut, rows, columns)];
        if (!(std::fabs(have - want) <= 4e-6 * (size + std::fabs(c[channel])) + 1e-12))
          return llvm::formatv("image {0}, channel {1}, window {2}: {3}, and should be {4}", image, channel, window,
                               have, want);
      }
  return "";
}

Convolution draw(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto pick = [&](std::initializer_list<int64_t> list) { return *(list.begin() + random() % list.size()); };
  Convolution conv{};
  conv.images = pick({1, 1, 2, 3});
  conv.groups = pick({1, 1, 1, 2, 3});
  conv.in = pick({1, 3, 8, 16, 20});
  conv.out = pick({1, 5, 8, 24, 40});
  for (int dim : {0, 1}) {
    conv.kernel[dim] = pick({1, 1, 2, 3, 5});
    conv.dilation[dim] = pick({1, 1, 2});
    conv.stride[dim] = pick({1, 1, 2, 3});
    conv.low[dim] = pick({0, 1, 2});
    conv.high[dim] = pick({0, 1, 3});
    conv.size[dim] = (conv.kernel[dim] - 1) * conv.dilation[dim] + pick({1, 2, 7, 12, 16});
  }
  conv.isLast = random() % 2;
  conv.isNarrow = random() % 2;
  return conv;
}

TEST_F(DeviceConvolutionsTest, EqualSumsOverWindows) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Convolution conv = draw(seed);
    bool isFewChannels = conv.groups > 1 && (conv.out < 8 || conv.in * conv.kernel[0] * conv.kernel[1] < 8);
    std::string fault = check(conv, seed);
    if (isFewChannels && fault == kRefused)
      continue;
    EXPECT_EQ(fault, "") << "seed " << seed << "\n" << conv.getText();
    ++compared;
  }
  EXPECT_GE(compared, 100);
}

/// As many blocks as large ones are made for.
TEST_F(DeviceConvolutionsTest, EqualSumsInLargeBlocks) {
  for (bool isLast : {false, true})
    for (bool isNarrow : {false, true}) {
      Convolution conv{2, 1, 8, 130, {64, 66}, {2, 1}, {1, 1}, {1, 0}, {0, 0}, {1, 1}, isLast, isNarrow};
      EXPECT_EQ(check(conv, 5), "") << conv.getText();
    }
}

} // namespace
