//===- NetworkOpsTest.cpp - norms, attention, convolution, pooling, resize ===//
//
// Expected values come from the definitions, written here as plain loops on doubles or worked out by hand.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace cleave::reference;
using Doubles = std::vector<double>;

namespace {

class NetworkOpsTest : public EvaluatorTest {
protected:
  void expectNear(const Doubles &got, const Doubles &want, double tolerance) {
    ASSERT_EQ(got.size(), want.size()) << errors;
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], tolerance) << "element " << i;
  }
  static Doubles random(int64_t count, unsigned seed) {
    std::mt19937 generator(seed);
    Doubles values(count);
    for (double &value : values)
      value = int(generator() % 9) - 4;
    return values;
  }
};

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

// Rows (1, 3) and (2, 2): mean 2, variance 1 and 0.
TEST_F(NetworkOpsTest, LayerNorm) {
  Doubles got =
      run(R"(func.func @main(%x: tensor<2x2xf64>, %s: tensor<2xf64>, %b: tensor<1xf64>) -> tensor<2x2xf64> {
      %y = nn.layer_norm %x, %s bias %b dim 1 epsilon 0.0 : (tensor<2x2xf64>, tensor<2xf64>, tensor<1xf64>) -> tensor<2x2xf64>
      return %y : tensor<2x2xf64> })",
          {make("tensor<2x2xf64>", {1, 3, 2, 2.5}), make("tensor<2xf64>", {10, 100}), make("tensor<1xf64>", {5})});
  expectNear(got, {-5, 105, -5, 105}, 1e-12);
}

TEST_F(NetworkOpsTest, LayerNormWithBiasAlone) {
  Doubles got = run(R"(func.func @main(%x: tensor<1x2xf16>, %b: tensor<2xf16>) -> tensor<1x2xf16> {
      %y = nn.layer_norm %x bias %b dim 0 epsilon 0.0 : (tensor<1x2xf16>, tensor<2xf16>) -> tensor<1x2xf16>
      return %y : tensor<1x2xf16> })",
                    {make("tensor<1x2xf16>", {-8, 8}), make("tensor<2xf16>", {1, 2})});
  expectNear(got, {0, 3}, 0);
}

// sqrt(mean(3^2, 4^2)) = sqrt(12.5).
TEST_F(NetworkOpsTest, RmsNorm) {
  Doubles got = eval(R"(%x = nn.constant dense<[3.0, 4.0]> : tensor<2xf64> -> tensor<2xf64>
                        %y = nn.rms_norm %x dim 0 epsilon 0.0 : (tensor<2xf64>) -> tensor<2xf64>)",
                     "tensor<2xf64>");
  expectNear(got, {3 / std::sqrt(12.5), 4 / std::sqrt(12.5)}, 1e-15);
}

// Two channels a group, one spatial element: as layer_norm of (1, 3) and (5, 9).
TEST_F(NetworkOpsTest, GroupNorm) {
  Doubles got =
      run(R"(func.func @main(%x: tensor<1x4x1xf64>, %s: tensor<4xf64>, %b: tensor<4xf64>) -> tensor<1x4x1xf64> {
      %y = nn.group_norm %x, %s, %b groups 2 epsilon 0.0 : (tensor<1x4x1xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<1x4x1xf64>
      return %y : tensor<1x4x1xf64> })",
          {make("tensor<1x4x1xf64>", {1, 3, 5, 9}), make("tensor<4xf64>", {1, 2, 3, 4}),
           make("tensor<4xf64>", {0, 0, 0, 10})});
  expectNear(got, {-1, 2, -3, 14}, 1e-12);
}

// size 2: channel c and the one after it; alpha / size = 1, beta 1, k 1.
TEST_F(NetworkOpsTest, LrnLooksAtTheChannelsAround) {
  Doubles got = eval(R"(%x = nn.constant dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf64> -> tensor<1x3xf64>
      %y = nn.lrn %x size 2 alpha 2.0 beta 1.0 k 1.0 : (tensor<1x3xf64>) -> tensor<1x3xf64>)",
                     "tensor<1x3xf64>");
  expectNear(got, {1.0 / 6, 2.0 / 14, 3.0 / 10}, 1e-15);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

// Four query heads share two key heads; scores by definition.
TEST_F(NetworkOpsTest, GroupedCausalAttention) {
  const int heads = 4, kvHeads = 2, length = 3, keys = 4, size = 2, valueSize = 3, offset = 1;
  Doubles q = random(heads * length * size, 1), k = random(kvHeads * keys * size, 2),
          v = random(kvHeads * keys * valueSize, 3), want;
  for (int h = 0; h < heads; ++h)
    for (int i = 0; i < length; ++i) {
      int kv = h / 2;
      Doubles weights(keys, 0), row(valueSize, 0);
      double sum = 0;
      for (int j = 0; j < keys && j <= i + offset; ++j) {
        double score = 0;
        for (int d = 0; d < size; ++d)
          score += q[(h * length + i) * size + d] * k[(kv * keys + j) * size + d];
        sum += weights[j] = std::exp(5 * std::tanh(score * 0.5 / 5));
      }
      for (int j = 0; j < keys; ++j)
        for (int d = 0; d < valueSize; ++d)
          row[d] += weights[j] / sum * v[(kv * keys + j) * valueSize + d];
      want.insert(want.end(), row.begin(), row.end());
    }
  Doubles got = run(
      R"(func.func @main(%q: tensor<1x4x3x2xf64>, %k: tensor<1x2x4x2xf64>, %v: tensor<1x2x4x3xf64>) -> tensor<1x4x3x3xf64> {
      %y = nn.attention %q, %k, %v scale 0.5 causal {causalOffset = 1 : i64, softcap = 5.0 : f64}
         : (tensor<1x4x3x2xf64>, tensor<1x2x4x2xf64>, tensor<1x2x4x3xf64>) -> tensor<1x4x3x3xf64>
      return %y : tensor<1x4x3x3xf64> })",
      {make("tensor<1x4x3x2xf64>", q), make("tensor<1x2x4x2xf64>", k), make("tensor<1x2x4x3xf64>", v)});
  expectNear(got, want, 1e-12);
}

// Each query sees keys from `left` before its place up to `right` behind it, places being counted from `offset` on. Scores are all
// equal, so the result is the mean of the values that are seen.
TEST_F(NetworkOpsTest, WindowsOfAttention) {
  const int length = 5, keys = 7;
  Doubles values = random(keys, 4);
  auto expectWindow = [&](const std::string &attributes, int64_t offset, int64_t left, int64_t right) {
    Doubles want;
    for (int64_t i = 0; i < length; ++i) {
      double sum = 0, count = 0;
      for (int64_t j = 0; j < keys; ++j)
        if (j >= i + offset - left && j <= i + offset + right)
          sum += values[j], ++count;
      want.push_back(count ? sum / count : 0);
    }
    Doubles got = run("func.func @main(%q: tensor<1x1x5x1xf64>, %k: tensor<1x1x7x1xf64>, %v: tensor<1x1x7x1xf64>) -> "
                      "tensor<1x1x5x1xf64> { %y = nn.attention %q, %k, %v scale 0.0 " +
                          attributes +
                          " : (tensor<1x1x5x1xf64>, tensor<1x1x7x1xf64>, tensor<1x1x7x1xf64>) -> tensor<1x1x5x1xf64> "
                          "return %y : tensor<1x1x5x1xf64> }",
                      {make("tensor<1x1x5x1xf64>", Doubles(length, 1)), make("tensor<1x1x7x1xf64>", Doubles(keys, 1)),
                       make("tensor<1x1x7x1xf64>", values)});
    expectNear(got, want, 1e-12);
  };
  expectWindow("causal {left = 2}", 0, 2, 0);
  expectWindow("causal {left = 0}", 0, 0, 0);
  expectWindow("causal {causalOffset = 2, left = 1}", 2, 1, 0);
  expectWindow("{left = 1, right = 3}", 0, 1, 3);
  expectWindow("{left = 2}", 0, 2, 7);
  expectWindow("{right = 1}", 0, 7, 1);
  expectWindow("{causalOffset = -3, left = 1, right = 1}", -3, 1, 1);
  expectWindow("{causalOffset = 9, left = 1}", 9, 1, 7);
  expectWindow("{causalOffset = 4, left = 9223372036854775807, right = 9223372036854775807}", 4, 99, 99);
}

// The first query sees nothing; the second sees the second key only; a mask is added for the third.
TEST_F(NetworkOpsTest, QueriesThatSeeNothingGiveZeros) {
  std::string text =
      R"(func.func @main(%q: tensor<1x1x2x1xf32>, %k: tensor<1x1x2x1xf32>, %m: tensor<2x2xi1>) -> tensor<1x1x2x1xf32> {
      %y = nn.attention %q, %k, %k mask %m scale 1.0
         : (tensor<1x1x2x1xf32>, tensor<1x1x2x1xf32>, tensor<1x1x2x1xf32>, tensor<2x2xi1>) -> tensor<1x1x2x1xf32>
      return %y : tensor<1x1x2x1xf32> })";
  Tensor x = make("tensor<1x1x2x1xf32>", {3, 4});
  expectNear(run(text, {x, x, make("tensor<2x2xi1>", {0, 0, 0, 1})}), {0, 4}, 0);
}

TEST_F(NetworkOpsTest, NumericMasksAreAdded) {
  Doubles got = run(
      R"(func.func @main(%q: tensor<1x1x1x1xf64>, %k: tensor<1x1x2x1xf64>, %m: tensor<2xf64>) -> tensor<1x1x1x1xf64> {
      %y = nn.attention %q, %k, %k mask %m scale 1.0
         : (tensor<1x1x1x1xf64>, tensor<1x1x2x1xf64>, tensor<1x1x2x1xf64>, tensor<2xf64>) -> tensor<1x1x1x1xf64>
      return %y : tensor<1x1x1x1xf64> })",
      {make("tensor<1x1x1x1xf64>", {0}), make("tensor<1x1x2x1xf64>", {1, 2}),
       make("tensor<2xf64>", {std::log(3.0), 0})});
  expectNear(got, {1.25}, 1e-15); // weights 3/4 and 1/4
}

// A quarter turn of (1, 2), by halves and interleaved; the fifth element stays.
TEST_F(NetworkOpsTest, RotaryEmbeddingTurnsPairs) {
  for (bool interleaved : {false, true}) {
    std::string flag = interleaved ? " interleaved" : "";
    Doubles got = run("func.func @main(%x: tensor<1x1x1x5xf32>, %c: tensor<1x1x2xf32>, %s: tensor<1x1x2xf32>) -> "
                      "tensor<1x1x1x5xf32> {\n"
                      "%y = nn.rotary_embedding %x, %c, %s rotated 4" +
                          flag +
                          " : (tensor<1x1x1x5xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) -> tensor<1x1x1x5xf32>\n"
                          "return %y : tensor<1x1x1x5xf32> }",
                      {make("tensor<1x1x1x5xf32>", {1, 2, 3, 4, 5}), make("tensor<1x1x2xf32>", {0, 1}),
                       make("tensor<1x1x2xf32>", {1, 0})});
    // Pair 0 turns, pair 1 does not: pairs are (1, 3), (2, 4) or (1, 2), (3, 4).
    expectNear(got, interleaved ? Doubles{-2, 1, 3, 4, 5} : Doubles{-3, 2, 1, 4, 5}, 0);
  }
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Extents of a two-dimensional convolution with one stride, padding and dilation for each dim.
struct Windows2d {
  int batch, channels, outputs, groups, height, width, kernelHeight, kernelWidth;
  int strides[2], low[2], dilations[2], outHeight, outWidth;
};

/// Calls `fn(x index, weight index in [channels out, channels in / groups, kernel], y index)` for each product.
template <typename Fn> void forEachProduct(const Windows2d &w, Fn fn) {
  int perGroup = w.channels / w.groups, outputsPerGroup = w.outputs / w.groups;
  for (int n = 0; n < w.batch; ++n)
    for (int o = 0; o < w.outputs; ++o)
      for (int c = 0; c < perGroup; ++c)
        for (int i = 0; i < w.outHeight * w.outWidth; ++i)
          for (int k = 0; k < w.kernelHeight * w.kernelWidth; ++k) {
            int row = i / w.outWidth * w.strides[0] + k / w.kernelWidth * w.dilations[0] - w.low[0];
            int column = i % w.outWidth * w.strides[1] + k % w.kernelWidth * w.dilations[1] - w.low[1];
            if (row < 0 || row >= w.height || column < 0 || column >= w.width)
              continue;
            int channel = o / outputsPerGroup * perGroup + c;
            fn(((n * w.channels + channel) * w.height + row) * w.width + column,
               (o * perGroup + c) * w.kernelHeight * w.kernelWidth + k,
               (n * w.outputs + o) * w.outHeight * w.outWidth + i);
          }
}

const Windows2d kWindows = {2, 4, 6, 2, 7, 9, 3, 2, {2, 1}, {1, 2}, {1, 3}, 4, 9};

TEST_F(NetworkOpsTest, ConvolutionOfGroups) {
  Doubles x = random(2 * 4 * 7 * 9, 1), weight = random(6 * 2 * 6, 2), want(2 * 6 * 4 * 9, 0);
  for (size_t i = 0; i < want.size(); ++i)
    want[i] = double(i / 36 % 6);
  forEachProduct(kWindows, [&](int from, int with, int to) { want[to] += x[from] * weight[with]; });
  for (std::string element : {"f32", "bf16", "i32"}) {
    if (element == "bf16") // sums beyond 256 would be rounded
      for (double &value : want)
        ASSERT_LT(std::abs(value), 256);
    std::string xType = "tensor<2x4x7x9x" + element + ">", wType = "tensor<6x2x3x2x" + element + ">",
                bType = "tensor<6x" + element + ">", yType = "tensor<2x6x4x9x" + element + ">";
    expectNear(run("func.func @main(%x: " + xType + ", %w: " + wType + ", %b: " + bType + ") -> " + yType +
                       " { %y = nn.conv %x, %w, %b strides [2, 1] pads_low [1, 2] pads_high [1, 1] dilations [1, 3] "
                       "groups 2 : (" +
                       xType + ", " + wType + ", " + bType + ") -> " + yType + " return %y : " + yType + " }",
                   {make(xType, x), make(wType, weight), make(bType, {0, 1, 2, 3, 4, 5})}),
               want, 0);
  }
}

// The transpose of the convolution above: products flow from results to operands.
TEST_F(NetworkOpsTest, TransposedConvolutionOfGroups) {
  Doubles x = random(2 * 6 * 4 * 9, 1), weight = random(6 * 2 * 6, 2), want(2 * 4 * 7 * 9, 0);
  forEachProduct(kWindows, [&](int to, int with, int from) { want[to] += x[from] * weight[with]; });
  // Height: 2 * 3 + 1 * 2 + 1 - (1 + 1) = 7; width: 8 + 3 + 1 - (2 + 1) = 9.
  expectNear(run(R"(func.func @main(%x: tensor<2x6x4x9xf32>, %w: tensor<6x2x3x2xf32>) -> tensor<2x4x7x9xf32> {
      %y = nn.conv_transpose %x, %w strides [2, 1] pads_low [1, 2] pads_high [1, 1] dilations [1, 3] output_pads [0, 0] groups 2
         : (tensor<2x6x4x9xf32>, tensor<6x2x3x2xf32>) -> tensor<2x4x7x9xf32>
      return %y : tensor<2x4x7x9xf32> })",
                 {make("tensor<2x6x4x9xf32>", x), make("tensor<6x2x3x2xf32>", weight)}),
             want, 0);
}

// Windows of 3 with stride 2 over (1..5), padded by one before: [_ 1 2], [2 3 4], [4 5 .] where the last hangs over.
TEST_F(NetworkOpsTest, PoolsOverWindows) {
  auto pool = [&](std::string kind, std::string how, std::string windows) {
    return eval("%x = nn.constant dense<[[[1.0, 2.0, 3.0, 4.0, 5.0]]]> : tensor<1x1x5xf32> -> tensor<1x1x5xf32>\n%y = "
                "nn.pool " +
                    kind + " %x kernel [3] strides [2] pads_low [1] pads_high [0] dilations [1] " + how +
                    " : (tensor<1x1x5xf32>) -> tensor<1x1x" + windows + "xf32>",
                "tensor<1x1x" + windows + "xf32>");
  };
  EXPECT_EQ(pool("max", "", "2"), (Doubles{2, 4}));
  EXPECT_EQ(pool("max", "ceil", "3"), (Doubles{2, 4, 5}));
  EXPECT_EQ(pool("average", "ceil", "3"), (Doubles{1.5, 3, 4.5}));
  EXPECT_EQ(pool("average", "count_pads ceil", "3"), (Doubles{1, 3, 4.5}));
  EXPECT_EQ(pool("lp", "", "2"), (Doubles{float(std::sqrt(5.0)), float(std::sqrt(29.0))}));
}

TEST_F(NetworkOpsTest, PoolsOfIntegers) {
  EXPECT_EQ(eval(R"(%x = nn.constant dense<[[[-5, -7], [200, 3]]]> : tensor<1x2x2xi16> -> tensor<1x2x2xi16>
      %y = nn.pool max %x kernel [2] strides [1] pads_low [1] pads_high [0] dilations [1] : (tensor<1x2x2xi16>) -> tensor<1x2x2xi16>)",
                 "tensor<1x2x2xi16>"),
            (Doubles{-5, -5, 200, 200}));
}

// One window of one element: nothing is multiplied by the largest stride and dilation.
TEST_F(NetworkOpsTest, WindowsAtTheEndOf64Bits) {
  std::string x = "%x = nn.constant dense<[[[3.0, 5.0], [7.0, 9.0]]]> : tensor<1x2x2xf32> -> tensor<1x2x2xf32>\n";
  std::string w = "%w = nn.constant dense<[[[1.0], [10.0]]]> : tensor<1x2x1xf32> -> tensor<1x2x1xf32>\n";
  std::string most = "strides [9223372036854775807] pads_low [2] pads_high [0] dilations [9223372036854775807]";
  EXPECT_EQ(eval(x + "%y = nn.pool average %x kernel [1] " + most + " count_pads : (tensor<1x2x2xf32>) -> " +
                     "tensor<1x2x1xf32>",
                 "tensor<1x2x1xf32>"),
            (Doubles{0, 0}));
  EXPECT_EQ(eval(x + w + "%y = nn.conv %x, %w " + most + " groups 1 : (tensor<1x2x2xf32>, tensor<1x2x1xf32>) -> " +
                     "tensor<1x1x1xf32>",
                 "tensor<1x1x1xf32>"),
            (Doubles{0}));
}

//===----------------------------------------------------------------------===//
// Resize
//===----------------------------------------------------------------------===//

class ResizeTest : public NetworkOpsTest {
protected:
  Doubles resize(StringRef mode, StringRef how, ArrayRef<double> x, StringRef scale, int64_t size) {
    std::string from = "tensor<" + std::to_string(x.size()) + "xf64>", to = "tensor<" + std::to_string(size) + "xf64>";
    return run("func.func @main(%x: " + from + ") -> " + to + " { %y = nn.resize " + mode.str() + " %x coordinates " +
                   how.str() + " scales [" + scale.str() + "] : (" + from + ") -> " + to + " return %y : " + to + " }",
               make(from, x));
  }
};

// Position i of 4 comes from (i + 0.5) / 2 - 0.5 = -0.25, 0.25, 0.75, 1.25.
TEST_F(ResizeTest, LinearInterpolates) {
  EXPECT_EQ(resize("linear", "half_pixel rounding floor", {0, 4}, "2.0", 4), (Doubles{0, 1, 3, 4}));
  expectNear(resize("linear", "align_corners rounding floor", {0, 6}, "2.0", 4), {0, 2, 4, 6}, 1e-14);
  EXPECT_EQ(resize("linear", "asymmetric rounding floor", {0, 4}, "2.0", 4), (Doubles{0, 2, 4, 4}));
}

// Sources 0, 0.5, 1, 1.5, 2, 2.5: halves go down, up, down, up.
TEST_F(ResizeTest, NearestRoundsAsAsked) {
  auto nearest = [&](StringRef rounding) {
    return resize("nearest", ("asymmetric rounding " + rounding).str(), {10, 20, 30}, "2.0", 6);
  };
  EXPECT_EQ(nearest("floor"), (Doubles{10, 10, 20, 20, 30, 30}));
  EXPECT_EQ(nearest("ceil"), (Doubles{10, 20, 20, 30, 30, 30}));
  EXPECT_EQ(nearest("round_prefer_floor"), (Doubles{10, 10, 20, 20, 30, 30}));
  EXPECT_EQ(nearest("round_prefer_ceil"), (Doubles{10, 20, 20, 30, 30, 30}));
}

// Cubic weights halfway between two samples, a = -0.75: -3, 19, 19, -3 of 32. The first sample is repeated before the
// border, or left out and the other weights, now of sum 35, made larger.
TEST_F(ResizeTest, CubicExcludesSamplesOutside) {
  Doubles x = {0, 32, 64};
  Doubles repeated = resize("cubic", "asymmetric rounding floor", x, "2.0", 6);
  expectNear({repeated[1], repeated[3]}, {19 - 6, 19 + 38 - 6}, 1e-12);
  Doubles excluded = run(R"(func.func @main(%x: tensor<3xf64>) -> tensor<6xf64> {
      %y = nn.resize cubic %x coordinates asymmetric rounding floor scales [2.0] exclude_outside : (tensor<3xf64>) -> tensor<6xf64>
      return %y : tensor<6xf64> })",
                         make("tensor<3xf64>", x));
  expectNear({excluded[1], excluded[3]}, {(19.0 * 32 - 3 * 64) / 35, (19.0 * 32 + 19 * 64) / 35}, 1e-12);
}

// Shrinking by 2 widens the triangle to four samples of weight 1/8, 3/8, 3/8, 1/8.
TEST_F(ResizeTest, AntialiasWidensTheFilter) {
  std::string text = R"(func.func @main(%x: tensor<6xf64>) -> tensor<3xf64> {
      %y = nn.resize linear %x coordinates half_pixel rounding floor scales [0.5] antialias : (tensor<6xf64>) -> tensor<3xf64>
      return %y : tensor<3xf64> })";
  expectNear(run(text, make("tensor<6xf64>", {0, 0, 8, 0, 0, 0})), {1, 3, 0}, 1e-12);
}

// The filter of such a scale has more taps than any memory holds.
TEST_F(ResizeTest, RefusesToWidenTheFilterBeyondTheOperand) {
  std::string text = R"(func.func @main(%x: tensor<2xf64>) -> tensor<1xf64> {
      %y = nn.resize linear %x coordinates half_pixel rounding floor scales [1.0e-300] antialias : (tensor<2xf64>) -> tensor<1xf64>
      return %y : tensor<1xf64> })";
  EXPECT_NE(fail(text, make("tensor<2xf64>", {1, 2})).find("dim 0 of size 2 has less than an element at scale"),
            std::string::npos);
}

} // namespace
