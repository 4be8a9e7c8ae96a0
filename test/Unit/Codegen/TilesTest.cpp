//===- TilesTest.cpp - convolutions and attention in blocks ---------------===//
//
// Sizes on both sides of blocks, bands and vectors; every stride, padding, dilation and group; masks and shared heads. Then
// what is computed of them, and operands that are views.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {

class TilesTest : public KernelTest {
protected:
  void expectRight(llvm::StringRef body, llvm::ArrayRef<std::string> types, llvm::StringRef result) {
    errors.clear();
    EXPECT_EQ(checkBody(body, types, result), "") << body.str();
  }

  struct Convolution {
    int64_t channels, height, width, out, kernel, stride, low, high, dilation, groups;
  };
  void expectConvolution(const Convolution &c, llvm::StringRef element, int64_t panel = 0, bool isLast = false);
};

/// \param isLast channels are last on both sides, and an activation in between.
void TilesTest::expectConvolution(const Convolution &c, llvm::StringRef element, int64_t panel, bool isLast) {
  auto count = [&](int64_t size) { return (size + c.low + c.high - c.dilation * (c.kernel - 1) - 1) / c.stride + 1; };
  std::string x = llvm::formatv("tensor<2x{0}x{1}x{2}x{3}>", c.channels, c.height, c.width, element);
  std::string w = llvm::formatv("tensor<{0}x{1}x{2}x{2}x{3}>", c.out, c.channels / c.groups, c.kernel, element);
  std::string y = llvm::formatv("tensor<2x{0}x{1}x{2}x{3}>", c.out, count(c.height), count(c.width), element);
  std::string b = llvm::formatv("tensor<{0}x{1}>", c.out, element), given = w, unpack, weight = "%a1";
  if (panel) {
    given = llvm::formatv("tensor<{0}x{0}x{1}x{2}x{3}>", c.kernel, c.channels / c.groups, c.out, element);
    if (panel > 0)
      given = llvm::formatv("tensor<{0}x{1}x{1}x{2}x{3}x1x{4}>", llvm::divideCeil(c.out, panel), c.kernel,
                            c.channels / c.groups, panel, element);
    unpack = llvm::formatv("%w = exec.unpack %a1 order [2, 3, 1, 0] batch 0 width {0} interleave 1 : ({1}) -> {2}\n",
                           std::max<int64_t>(panel, 0), given, w);
    weight = "%w";
  }
  std::string first =
      isLast ? std::string(llvm::formatv("tensor<2x{0}x{1}x{2}x{3}>", c.height, c.width, c.channels, element)) : x;
  std::string result =
      isLast ? std::string(llvm::formatv("tensor<2x{0}x{1}x{2}x{3}>", count(c.height), count(c.width), c.out, element))
             : y;
  if (isLast)
    unpack += llvm::formatv("%t = nn.transpose %a0 [0, 3, 1, 2] : ({0}) -> {1}\n", first, x);
  std::string body =
      llvm::formatv("{0}%{11} = nn.conv %{12}, {1}, %a2 strides [{2}, {2}] pads_low [{3}, {3}] pads_high [{4}, {4}] "
                    "dilations [{5}, {5}] groups {6} : ({7}, {8}, {9}) -> {10}",
                    unpack, weight, c.stride, c.low, c.high, c.dilation, c.groups, x, w, b, y, isLast ? "c" : "y",
                    isLast ? "t" : "a0");
  if (isLast)
    body += llvm::formatv("\n%s = nn.{2} %c : ({0}) -> {0}\n%y = nn.transpose %s [0, 2, 3, 1] : ({0}) -> {1}", y,
                          result, c.stride == 1 ? "silu" : "relu");
  expectRight(body, {first, given, b}, result);
}

TEST_F(TilesTest, Convolutions) {
  for (const Convolution &c : std::vector<Convolution>{{3, 9, 11, 5, 3, 1, 1, 1, 1, 1},
                                                       {4, 7, 7, 16, 3, 1, 0, 0, 1, 1},
                                                       {4, 13, 20, 8, 3, 2, 1, 1, 1, 1},
                                                       {4, 13, 20, 8, 3, 2, 0, 1, 1, 1},
                                                       {3, 23, 19, 9, 5, 3, 2, 2, 1, 1},
                                                       {6, 17, 16, 4, 3, 1, 2, 2, 2, 2},
                                                       {6, 17, 16, 6, 3, 2, 2, 1, 3, 6},
                                                       {8, 40, 40, 8, 3, 1, 1, 1, 1, 8},
                                                       {8, 14, 14, 20, 1, 1, 0, 0, 1, 1},
                                                       {8, 14, 15, 20, 1, 2, 0, 0, 1, 1},
                                                       {3, 32, 32, 24, 16, 16, 0, 0, 1, 1},
                                                       {2, 5, 70, 1, 3, 1, 1, 1, 1, 1},
                                                       {40, 37, 61, 10, 3, 1, 1, 1, 1, 1},
                                                       {6, 9, 7, 88, 3, 1, 1, 1, 1, 1},
                                                       {6, 9, 7, 88, 1, 1, 0, 0, 1, 1},
                                                       {8, 17, 40, 40, 3, 2, 1, 1, 1, 2},
                                                       {64, 9, 5, 64, 3, 1, 1, 1, 1, 1},
                                                       {40, 9, 30, 40, 5, 2, 2, 2, 1, 40},
                                                       {19, 7, 9, 19, 3, 1, 0, 2, 2, 19}}) {
    expectConvolution(c, "f32");
    for (bool isLast : {false, true}) {
      expectConvolution(c, "f32", -1, isLast); // channels side by side, in no panels
      if (c.groups == 1)
        expectConvolution(c, "f32", 16, isLast);
    }
  }
  for (const char *element : {"f64", "bf16", "f16"})
    for (int64_t panel : {0, 16})
      for (bool isLast : {false, true})
        expectConvolution({3, 9, 11, 20, 3, 2, 1, 1, 1, 1}, element, panel, isLast);
  for (int64_t panel : {8, 16, 48})
    expectConvolution({5, 9, 11, 50, 3, 1, 1, 1, 1, 1}, "f32", panel);
}

/// Maxima and averages; the last window hangs over with `ceil`.
TEST_F(TilesTest, Pools) {
  for (const char *element : {"f32", "bf16"})
    for (const char *kind : {"max", "average"})
      for (const char *rest : {"kernel [2, 2] strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1]:9x35",
                               "kernel [3, 3] strides [2, 2] pads_low [1, 1] pads_high [1, 1] dilations [1, 1]:10x35",
                               "kernel [5, 5] strides [1, 1] pads_low [2, 2] pads_high [2, 2] dilations [1, 1]:19x70",
                               "kernel [5, 5] strides [1, 1] pads_low [2, 2] pads_high [2, 2] dilations [1, 1] "
                               "count_pads:19x70",
                               "kernel [3, 2] strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [2, 1]:15x69",
                               "kernel [3, 3] strides [2, 3] pads_low [0, 1] pads_high [0, 0] dilations [1, 1] "
                               "count_pads ceil:9x24"}) {
        auto [attributes, result] = llvm::StringRef(rest).split(':');
        std::string x = llvm::formatv("tensor<2x3x19x70x{0}>", element);
        std::string y = llvm::formatv("tensor<2x3x{0}x{1}>", result, element);
        expectRight(llvm::formatv("%p = nn.pool {0} %a0 {1} : ({2}) -> {3}\n%y = nn.relu %p : ({3}) -> {3}", kind,
                                  attributes, x, y)
                        .str(),
                    {x}, y);
        // Twenty channels, last.
        std::string last = llvm::formatv("tensor<2x19x70x20x{0}>", element),
                    first = llvm::formatv("tensor<2x20x19x70x{0}>", element);
        std::string pooled = llvm::formatv("tensor<2x20x{0}x{1}>", result, element),
                    to = llvm::formatv("tensor<2x{0}x20x{1}>", result, element);
        expectRight(
            llvm::formatv("%x = nn.transpose %a0 [0, 3, 1, 2] : ({4}) -> {5}\n%p = nn.pool {0} %x {1} : ({5}) -> {2}\n"
                          "%y = nn.transpose %p [0, 2, 3, 1] : ({2}) -> {3}",
                          kind, attributes, pooled, to, last, first)
                .str(),
            {last}, to);
      }
  expectRight("%y = nn.pool max %a0 kernel [3] strides [2] pads_low [1] pads_high [0] dilations [1] : "
              "(tensor<2x3x37xf32>) -> tensor<2x3x18xf32>",
              {"tensor<2x3x37xf32>"}, "tensor<2x3x18xf32>");
}

TEST_F(TilesTest, ConvolutionsOverOneDim) {
  expectRight("%y = nn.conv %a0, %a1 strides [2] pads_low [1] pads_high [2] dilations [1] groups 1 : "
              "(tensor<2x6x37xf32>, tensor<10x6x4xf32>) -> tensor<2x10x19xf32>",
              {"tensor<2x6x37xf32>", "tensor<10x6x4xf32>"}, "tensor<2x10x19xf32>");
  expectRight("%y = nn.conv %a0, %a1 strides [1] pads_low [0] pads_high [0] dilations [1] groups 1 : "
              "(tensor<2x6x37xf32>, tensor<10x6x3xf32>) -> tensor<2x10x35xf32>",
              {"tensor<2x6x37xf32>", "tensor<10x6x3xf32>"}, "tensor<2x10x35xf32>");
}

/// Bias, residual and activation; channels last on both sides, as views.
TEST_F(TilesTest, EpiloguesOfConvolutions) {
  expectRight("%c = nn.conv %a0, %a1 strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : "
              "(tensor<1x6x9x21xf32>, tensor<10x6x3x3xf32>) -> tensor<1x10x9x21xf32>\n"
              "%r = nn.add %c, %a2 : (tensor<1x10x9x21xf32>, tensor<1x10x9x21xf32>) -> tensor<1x10x9x21xf32>\n"
              "%s = nn.silu %r : (tensor<1x10x9x21xf32>) -> tensor<1x10x9x21xf32>\n"
              "%y = nn.mul %s, %a3 : (tensor<1x10x9x21xf32>, tensor<10x1x1xf32>) -> tensor<1x10x9x21xf32>",
              {"tensor<1x6x9x21xf32>", "tensor<10x6x3x3xf32>", "tensor<1x10x9x21xf32>", "tensor<10x1x1xf32>"},
              "tensor<1x10x9x21xf32>");
  expectRight("%x = nn.transpose %a0 [0, 3, 1, 2] : (tensor<2x9x21x6xf32>) -> tensor<2x6x9x21xf32>\n"
              "%c = nn.conv %x, %a1 strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : "
              "(tensor<2x6x9x21xf32>, tensor<10x6x3x3xf32>) -> tensor<2x10x9x21xf32>\n"
              "%r = nn.relu %c : (tensor<2x10x9x21xf32>) -> tensor<2x10x9x21xf32>\n"
              "%y = nn.transpose %r [0, 2, 3, 1] : (tensor<2x10x9x21xf32>) -> tensor<2x9x21x10xf32>",
              {"tensor<2x9x21x6xf32>", "tensor<10x6x3x3xf32>"}, "tensor<2x9x21x10xf32>");
}

/// One dim, channels last.
TEST_F(TilesTest, ConvolutionsOverOneDimWithChannelsLast) {
  expectRight("%t = nn.transpose %a0 [0, 2, 1] : (tensor<2x37x6xf32>) -> tensor<2x6x37xf32>\n"
              "%w = exec.unpack %a1 order [2, 1, 0] batch 0 width 16 interleave 1 : (tensor<2x4x6x16x1xf32>) -> "
              "tensor<20x6x4xf32>\n"
              "%c = nn.conv %t, %w strides [2] pads_low [1] pads_high [2] dilations [1] groups 1 : "
              "(tensor<2x6x37xf32>, tensor<20x6x4xf32>) -> tensor<2x20x19xf32>\n"
              "%y = nn.transpose %c [0, 2, 1] : (tensor<2x20x19xf32>) -> tensor<2x19x20xf32>",
              {"tensor<2x37x6xf32>", "tensor<2x4x6x16x1xf32>"}, "tensor<2x19x20xf32>");
}

/// Gates of channels: what follows looks at the one element where it is, whatever lanes the block had.
TEST_F(TilesTest, ConvolutionsOfOnePixel) {
  expectRight("%c = nn.conv %a0, %a1 strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : "
              "(tensor<1x20x1x1xf32>, tensor<6x20x1x1xf32>) -> tensor<1x6x1x1xf32>\n"
              "%y = nn.relu %c : (tensor<1x6x1x1xf32>) -> tensor<1x6x1x1xf32>",
              {"tensor<1x20x1x1xf32>", "tensor<6x20x1x1xf32>"}, "tensor<1x6x1x1xf32>");
}

TEST_F(TilesTest, Attention) {
  struct Case {
    int64_t heads, kvHeads, queries, keys, size, valueSize;
  };
  for (const Case &c : std::vector<Case>{{2, 2, 1, 40, 16, 16},
                                         {4, 2, 5, 17, 8, 24},
                                         {3, 1, 19, 33, 20, 64},
                                         {2, 2, 33, 160, 64, 35},
                                         {1, 1, 8, 1, 4, 1},
                                         {2, 1, 20, 48, 32, 32}})
    for (const char *rest : {"scale 0.5", "scale 0.5 causal", "scale 0.5 causal {causalOffset = 7}",
                             "scale 0.5 causal {causalOffset = -3}", "scale 0.5 causal {left = 6}",
                             "scale 0.5 {causalOffset = 3, left = 4, right = 9}", "scale 0.5 {left = 2}",
                             "mask %a3 scale 0.25", "mask %a3 scale 0.25 causal {softcap = 2.0}"}) {
      std::string q = llvm::formatv("tensor<2x{0}x{1}x{2}xf32>", c.heads, c.queries, c.size);
      std::string k = llvm::formatv("tensor<2x{0}x{1}x{2}xf32>", c.kvHeads, c.keys, c.size);
      std::string v = llvm::formatv("tensor<2x{0}x{1}x{2}xf32>", c.kvHeads, c.keys, c.valueSize);
      std::string y = llvm::formatv("tensor<2x{0}x{1}x{2}xf32>", c.heads, c.queries, c.valueSize);
      std::string m = llvm::formatv("tensor<2x1x{0}x{1}xf32>", c.queries % 2 ? c.queries : 1, c.keys);
      std::vector<std::string> types = {q, k, v};
      bool hasMask = llvm::StringRef(rest).starts_with("mask");
      if (hasMask)
        types.push_back(m);
      expectRight(llvm::formatv("%y = nn.attention %a0, %a1, %a2 {0} : ({1}, {2}, {3}{4}) -> {5}", rest, q, k, v,
                                hasMask ? ", " + m : "", y)
                      .str(),
                  types, y);
    }
}

/// As fused projections give them: heads are parts of rows, on the way in and out.
TEST_F(TilesTest, AttentionOnViews) {
  std::string body;
  for (int64_t i = 0; i < 3; ++i)
    body +=
        llvm::formatv("%s{0} = nn.slice %a0 starts [0, 0, {1}, 0] sizes [2, 21, 2, 16] steps [1, 1, 1, 1] : "
                      "(tensor<2x21x6x16xf32>) -> tensor<2x21x2x16xf32>\n"
                      "%t{0} = nn.transpose %s{0} [0, 2, 1, 3] : (tensor<2x21x2x16xf32>) -> tensor<2x2x21x16xf32>\n",
                      i, 2 * i)
            .str();
  body += "%o = nn.attention %t0, %t1, %t2 mask %a1 scale 0.25 : (tensor<2x2x21x16xf32>, tensor<2x2x21x16xf32>, "
          "tensor<2x2x21x16xf32>, tensor<2x1x1x21xi1>) -> tensor<2x2x21x16xf32>\n"
          "%u = nn.transpose %o [0, 2, 1, 3] : (tensor<2x2x21x16xf32>) -> tensor<2x21x2x16xf32>\n"
          "%y = nn.reshape %u : (tensor<2x21x2x16xf32>) -> tensor<2x21x32xf32>";
  expectRight(body, {"tensor<2x21x6x16xf32>", "tensor<2x1x1x21xi1>"}, "tensor<2x21x32xf32>");
}

/// A reshape in between leads to another space, where the residual is read; one that lanes fall apart in is taken element by
/// element.
TEST_F(TilesTest, EpiloguesInSeveralSpaces) {
  for (int64_t size : {16, 6}) {
    std::string flat = llvm::formatv("tensor<10x{0}xf32>", 4 * size), w = llvm::formatv("tensor<21x{0}xf32>", 4 * size);
    std::string heads = llvm::formatv("tensor<2x5x4x{0}xf32>", size), bias = llvm::formatv("tensor<{0}xf32>", size);
    std::string y = llvm::formatv("tensor<2x4x5x{0}xf32>", size);
    EXPECT_EQ(
        check(llvm::formatv("func.func @main(%x: tensor<10x21xf32>, %w: {1}, %r: {2}, %b: {3}) -> ({4}, {0}, {2}) {{\n"
                            "%p = nn.einsum %x, %w \"mk,kn->mn\" : (tensor<10x21xf32>, {1}) -> {0}\n"
                            "%g = nn.gelu %p : ({0}) -> {0}\n"
                            "%h = nn.reshape %g : ({0}) -> {2}\n"
                            "%i = nn.reshape %p : ({0}) -> {2}\n"
                            "%q = nn.add %h, %r : ({2}, {2}) -> {2}\n"
                            "%s = nn.mul %q, %i : ({2}, {2}) -> {2}\n"
                            "%c = nn.add %s, %b : ({2}, {3}) -> {2}\n"
                            "%y = nn.transpose %c [0, 2, 1, 3] : ({2}) -> {4}\n"
                            "return %y, %g, %s : {4}, {0}, {2}\n}",
                            flat, w, heads, bias, y)
                  .str()),
        "");
  }
  // Two ways into one shape: no element of the product is where it was.
  EXPECT_EQ(check(R"(func.func @main(%x: tensor<16x21xf32>, %w: tensor<21x16xf32>) -> tensor<16x16xf32> {
    %p = nn.einsum %x, %w "mk,kn->mn" : (tensor<16x21xf32>, tensor<21x16xf32>) -> tensor<16x16xf32>
    %t = nn.transpose %p [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %y = nn.sub %p, %t : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    return %y : tensor<16x16xf32>
  })"),
            "");
}

} // namespace
