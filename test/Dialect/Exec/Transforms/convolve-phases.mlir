// Transposed convolutions as convolutions of stride 1, one for each phase of the result.
//
// RUN: cleave-opt %s --exec-convolve-phases | FileCheck %s

// Places 2 i get elements 3 and 1 of the kernel, places 2 i + 1 elements 2 and 0: those of windows i - 1 and i, and of i and i + 1.
// CHECK-LABEL: @strides
// CHECK: %[[T:.*]] = nn.reshape %{{.*}} -> tensor<8x4x4xf32>
// CHECK: %[[W0:.*]] = nn.slice %[[T]] starts [0, 0, 3] sizes [8, 4, 2] steps [1, 1, -2]
// CHECK: %[[Y0:.*]] = nn.conv %arg0, %[[W0]], %arg2 strides [1] pads_low [1] pads_high [0] dilations [1]
// CHECK: %[[W1:.*]] = nn.slice %[[T]] starts [0, 0, 2] sizes [8, 4, 2] steps [1, 1, -2]
// CHECK: %[[Y1:.*]] = nn.conv %arg0, %[[W1]], %arg2 strides [1] pads_low [0] pads_high [1] dilations [1]
// CHECK: nn.concat
// CHECK-NOT: nn.conv_transpose
func.func @strides(%x: tensor<2x4x5xf32>, %w: tensor<4x8x4xf32>, %b: tensor<8xf32>) -> tensor<2x8x10xf32> {
  %y = nn.conv_transpose %x, %w, %b strides [2] pads_low [1] pads_high [1] dilations [1] output_pads [0] groups 1 : (tensor<2x4x5xf32>, tensor<4x8x4xf32>, tensor<8xf32>) -> tensor<2x8x10xf32>
  return %y : tensor<2x8x10xf32>
}

// Of a kernel that is shorter than the stride the places between get the bias alone.
// CHECK-LABEL: @short
// CHECK-COUNT-1: nn.conv %
// CHECK-NOT: nn.conv
func.func @short(%x: tensor<2x4x5xf32>, %w: tensor<4x8x1xf32>) -> tensor<2x8x9xf32> {
  %y = nn.conv_transpose %x, %w strides [2] pads_low [0] pads_high [0] dilations [1] output_pads [0] groups 1 : (tensor<2x4x5xf32>, tensor<4x8x1xf32>) -> tensor<2x8x9xf32>
  return %y : tensor<2x8x9xf32>
}

// Boxes side by side are left to those who make one product of them.
// CHECK-LABEL: @boxes
// CHECK: nn.conv_transpose
func.func @boxes(%x: tensor<2x4x5xf32>, %w: tensor<4x8x2xf32>) -> tensor<2x8x10xf32> {
  %y = nn.conv_transpose %x, %w strides [2] pads_low [0] pads_high [0] dilations [1] output_pads [0] groups 1 : (tensor<2x4x5xf32>, tensor<4x8x2xf32>) -> tensor<2x8x10xf32>
  return %y : tensor<2x8x10xf32>
}
