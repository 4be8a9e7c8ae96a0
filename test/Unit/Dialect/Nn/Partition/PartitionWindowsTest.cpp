//===- PartitionWindowsTest.cpp - windows that slide over split dims ------===//
//
// In every way that the rules allow, as PartitionTest.cpp: convolution, pooling, resizing. Windows reach over the edges of shards, over
// several of them, and into padding.
//
//===----------------------------------------------------------------------===//
#include "EveryChoice.h"

#include "llvm/ADT/Twine.h"
#include "gtest/gtest.h"

using namespace cleave;

TEST(PartitionWindows, Convolution) {
  check("%x: tensor<4x8x6x8xf32>, %w: tensor<4x8x3x3xf32>, %b: tensor<4xf32>",
        "%0 = nn.conv %x, %w, %b strides [1, 2] pads_low [1, 0] pads_high [1, 1] dilations [1, 1] groups 1 : "
        "(tensor<4x8x6x8xf32>, tensor<4x8x3x3xf32>, tensor<4xf32>) -> tensor<4x4x6x4xf32>");
  check("%x: tensor<2x8x7xf32>, %w: tensor<8x2x3xf32>, %b: tensor<8xf32>",
        "%0 = nn.conv %x, %w, %b strides [1] pads_low [0] pads_high [0] dilations [2] groups 4 : "
        "(tensor<2x8x7xf32>, tensor<8x2x3xf32>, tensor<8xf32>) -> tensor<2x8x3xf32>");
  check("%x: tensor<2x4x8xf32>, %w: tensor<4x1x3xf32>",
        "%0 = nn.conv %x, %w strides [1] pads_low [1] pads_high [1] dilations [1] groups 4 : "
        "(tensor<2x4x8xf32>, tensor<4x1x3xf32>) -> tensor<2x4x8xf32>");
}

TEST(PartitionWindows, PatchwiseConvolution) {
  check("%x: tensor<2x2x12x8xf32>, %w: tensor<4x2x1x2xf32>",
        "%0 = nn.conv %x, %w strides [1, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : "
        "(tensor<2x2x12x8xf32>, tensor<4x2x1x2xf32>) -> tensor<2x4x12x4xf32>");
  check("%x: tensor<2x4x12xf32>, %w: tensor<4x2x2xf32>",
        "%0 = nn.conv_transpose %x, %w strides [3] pads_low [0] pads_high [0] dilations [1] output_pads [1] groups 2 : "
        "(tensor<2x4x12xf32>, tensor<4x2x2xf32>) -> tensor<2x4x36xf32>");
}

// Windows that overlap: with edges of neighbors, also over several of them (12 rows on 12 ranks).
TEST(PartitionWindows, ConvolutionOverSplitRows) {
  check("%x: tensor<1x2x12x8xf32>, %w: tensor<4x2x3x3xf32>, %b: tensor<4xf32>",
        "%0 = nn.conv %x, %w, %b strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : "
        "(tensor<1x2x12x8xf32>, tensor<4x2x3x3xf32>, tensor<4xf32>) -> tensor<1x4x12x8xf32>");
  // Strides: input and result have different extents; the last window does not reach the end.
  check("%x: tensor<1x2x24x8xf32>, %w: tensor<2x1x5x3xf32>",
        "%0 = nn.conv %x, %w strides [2, 2] pads_low [2, 0] pads_high [1, 1] dilations [1, 1] groups 2 : "
        "(tensor<1x2x24x8xf32>, tensor<2x1x5x3xf32>) -> tensor<1x2x12x4xf32>");
  // No padding: a rank's rows of the result lie further and further behind its rows of the input.
  check("%x: tensor<1x1x12xf32>, %w: tensor<2x1x3xf32>",
        "%0 = nn.conv %x, %w strides [1] pads_low [0] pads_high [0] dilations [2] groups 1 : "
        "(tensor<1x1x12xf32>, tensor<2x1x3xf32>) -> tensor<1x2x8xf32>");
  // A window of more than all there is.
  check("%x: tensor<1x1x4xf32>, %w: tensor<1x1x3xf32>",
        "%0 = nn.conv %x, %w strides [1] pads_low [4] pads_high [4] dilations [4] groups 1 : "
        "(tensor<1x1x4xf32>, tensor<1x1x3xf32>) -> tensor<1x1x4xf32>");
  // Steps wider than the window: rows that nobody reads.
  check("%x: tensor<1x1x12xf32>, %w: tensor<1x1x2xf32>",
        "%0 = nn.conv %x, %w strides [3] pads_low [1] pads_high [0] dilations [1] groups 1 : "
        "(tensor<1x1x12xf32>, tensor<1x1x2xf32>) -> tensor<1x1x4xf32>");
}

TEST(PartitionWindows, TransposedConvolutionOverSplitRows) {
  check("%x: tensor<1x2x12x4xf32>, %w: tensor<2x1x4x3xf32>, %b: tensor<2xf32>",
        "%0 = nn.conv_transpose %x, %w, %b strides [2, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] "
        "output_pads [0, 0] groups 2 : (tensor<1x2x12x4xf32>, tensor<2x1x4x3xf32>, tensor<2xf32>) -> "
        "tensor<1x2x24x4xf32>");
  check("%x: tensor<1x1x12xf32>, %w: tensor<1x2x3xf32>",
        "%0 = nn.conv_transpose %x, %w strides [2] pads_low [1] pads_high [0] dilations [1] output_pads [0] groups 1 : "
        "(tensor<1x1x12xf32>, tensor<1x2x3xf32>) -> tensor<1x2x24xf32>");
  // Rows without any input, but for the bias.
  check("%x: tensor<1x1x4xf32>, %w: tensor<1x1x2xf32>, %b: tensor<1xf32>",
        "%0 = nn.conv_transpose %x, %w, %b strides [3] pads_low [0] pads_high [0] dilations [1] output_pads [1] groups "
        "1 : "
        "(tensor<1x1x4xf32>, tensor<1x1x2xf32>, tensor<1xf32>) -> tensor<1x1x12xf32>");
  check("%x: tensor<1x1x6xf32>, %w: tensor<1x1x3xf32>",
        "%0 = nn.conv_transpose %x, %w strides [2] pads_low [0] pads_high [1] dilations [2] output_pads [2] groups 1 : "
        "(tensor<1x1x6xf32>, tensor<1x1x3xf32>) -> tensor<1x1x16xf32>");
}

TEST(PartitionWindows, PoolingOverSplitRows) {
  check("%x: tensor<1x2x12x8xf32>",
        "%0 = nn.pool max %x kernel [3, 3] strides [2, 2] pads_low [1, 0] pads_high [0, 1] dilations [1, 1] : "
        "(tensor<1x2x12x8xf32>) -> tensor<1x2x6x4xf32>");
  check("%x: tensor<1x1x12xi32>",
        "%0 = nn.pool max %x kernel [3] strides [1] pads_low [1] pads_high [1] dilations [1] : "
        "(tensor<1x1x12xi32>) -> tensor<1x1x12xi32>");
  // The true count, with and without padding, and with windows that hang over the end.
  for (const char *counts : {"", "count_pads "})
    for (const char *ceil : {"", "ceil "}) {
      check(
          "%x: tensor<1x2x12x8xf32>",
          llvm::Twine("%0 = nn.pool average %x kernel [3, 3] strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations "
                      "[1, 1] ") +
              counts + ceil + ": (tensor<1x2x12x8xf32>) -> tensor<1x2x12x8xf32>");
      check("%x: tensor<1x2x12xf32>",
            llvm::Twine("%0 = nn.pool average %x kernel [3] strides [2] pads_low [1] pads_high [1] dilations [2] ") +
                counts + ceil + ": (tensor<1x2x12xf32>) -> tensor<1x2x" + (*ceil ? "6" : "5") + "xf32>");
    }
  check("%x: tensor<1x2x8xf32>",
        "%0 = nn.pool average %x kernel [3] strides [2] pads_low [0] pads_high [0] dilations [1] ceil : "
        "(tensor<1x2x8xf32>) -> tensor<1x2x4xf32>");
  check("%x: tensor<1x2x12xf32>",
        "%0 = nn.pool average %x kernel [4] strides [2] pads_low [0] pads_high [1] dilations [1] ceil : "
        "(tensor<1x2x12xf32>) -> tensor<1x2x6xf32>");
  check("%x: tensor<1x2x12xf32>",
        "%0 = nn.pool lp %x kernel [3] strides [1] pads_low [1] pads_high [1] dilations [1] {p = 3} : "
        "(tensor<1x2x12xf32>) -> tensor<1x2x12xf32>");
}

TEST(PartitionWindows, TransposedConvolution) {
  check("%x: tensor<2x8x6xf32>, %w: tensor<8x2x3xf32>, %b: tensor<4xf32>",
        "%0 = nn.conv_transpose %x, %w, %b strides [2] pads_low [1] pads_high [0] dilations [1] output_pads [0] "
        "groups 2 : (tensor<2x8x6xf32>, tensor<8x2x3xf32>, tensor<4xf32>) -> tensor<2x4x12xf32>");
}

TEST(PartitionWindows, Pooling) {
  check("%x: tensor<2x4x12x4xf32>",
        "%0 = nn.pool max %x kernel [2, 3] strides [2, 1] pads_low [0, 1] pads_high [0, 1] dilations [1, 1] : "
        "(tensor<2x4x12x4xf32>) -> tensor<2x4x6x4xf32>");
  check("%x: tensor<2x4x12xf32>",
        "%0 = nn.pool average %x kernel [2] strides [3] pads_low [0] pads_high [0] dilations [1] count_pads ceil : "
        "(tensor<2x4x12xf32>) -> tensor<2x4x4xf32>");
}

// Samples across the borders of shards.
TEST(PartitionWindows, ResizeOverSplitRows) {
  for (const char *mode : {"linear", "cubic"})
    for (const char *coordinates : {"half_pixel", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"}) {
      check("%x: tensor<2x8x4xf32>", llvm::Twine("%0 = nn.resize ") + mode + " %x coordinates " + coordinates +
                                         " rounding floor scales [1.0, 2.0, 3.0] : (tensor<2x8x4xf32>) -> "
                                         "tensor<2x16x12xf32>");
      // Two of three, and one of two.
      check("%x: tensor<12xf32>", llvm::Twine("%0 = nn.resize ") + mode + " %x coordinates " + coordinates +
                                      " rounding floor scales [1.5] : (tensor<12xf32>) -> tensor<18xf32>");
      check("%x: tensor<24xf32>", llvm::Twine("%0 = nn.resize ") + mode + " %x coordinates " + coordinates +
                                      " rounding floor scales [0.5] : (tensor<24xf32>) -> tensor<12xf32>");
    }
  for (const char *rounding : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"})
    for (const char *coordinates : {"half_pixel", "asymmetric"}) {
      check("%x: tensor<12xf32>", llvm::Twine("%0 = nn.resize nearest %x coordinates ") + coordinates + " rounding " +
                                      rounding + " scales [3.0] : (tensor<12xf32>) -> tensor<36xf32>");
      check("%x: tensor<24xf32>", llvm::Twine("%0 = nn.resize nearest %x coordinates ") + coordinates + " rounding " +
                                      rounding + " scales [0.5] : (tensor<24xf32>) -> tensor<12xf32>");
    }
}

TEST(PartitionWindows, Resize) {
  check("%x: tensor<2x4x12x4xf32>",
        "%0 = nn.resize nearest %x coordinates asymmetric rounding floor scales [1.0, 1.0, 2.0, 3.0] : "
        "(tensor<2x4x12x4xf32>) -> tensor<2x4x24x12xf32>");
  for (const char *coordinates : {"half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"})
    check("%x: tensor<2x12xf32>", llvm::Twine("%0 = nn.resize nearest %x coordinates ") + coordinates +
                                      " rounding round_prefer_ceil scales [1.0, 4.0] : (tensor<2x12xf32>) -> "
                                      "tensor<2x48xf32>");
  check("%x: tensor<2x12xf32>", "%0 = nn.resize linear %x coordinates half_pixel rounding floor scales [1.0, 2.0] : "
                                "(tensor<2x12xf32>) -> tensor<2x24xf32>");
}
