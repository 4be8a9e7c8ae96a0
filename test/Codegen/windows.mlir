// Windows that hang over the picture's edge where the row of windows is a known number: taps above and below are not walked.
// RUN: cleave-kernels %s --isa x86-64-v4 | FileCheck %s
// RUN: cleave-kernels %s --check | FileCheck %s --check-prefix=CHECKED
// CHECKED: 4 kernels with 11 operands and 0 temporaries ran between guards
// CHECKED-NEXT: 4 passed, 0 failed

// Of the nine taps of the only window one lies on the picture.
// CHECK-LABEL: func.func @maxima_of_one_pixel
// CHECK-COUNT-1: vector.load
// CHECK-NOT: vector.load
// CHECK: return
func.func @maxima_of_one_pixel(%x: tensor<1x1x1x16xf32>) -> tensor<1x1x1x16xf32> {
  %0 = nn.transpose %x [0, 3, 1, 2] : (tensor<1x1x1x16xf32>) -> tensor<1x16x1x1xf32>
  %1 = nn.pool max %0 kernel [3, 3] strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] : (tensor<1x16x1x1xf32>) -> tensor<1x16x1x1xf32>
  %2 = nn.transpose %1 [0, 2, 3, 1] : (tensor<1x16x1x1xf32>) -> tensor<1x1x1x16xf32>
  return %2 : tensor<1x1x1x16xf32>
}

// Padding in front alone: the second tap lies on the picture.
// CHECK-LABEL: func.func @a_convolution_of_one_pixel
// CHECK: memref.load %{{.*}} : memref<2xf32>
// CHECK: return
func.func @a_convolution_of_one_pixel(%x: tensor<1x2x1x1xf32>, %w: tensor<1x2x1x2x16x1xf32>) -> tensor<1x4x1x1xf32> {
  %0 = exec.unpack %w order [2, 3, 1, 0] batch 0 width 16 interleave 1 : (tensor<1x2x1x2x16x1xf32>) -> tensor<4x2x2x1xf32>
  %1 = nn.conv %x, %0 strides [1, 1] pads_low [1, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x2x1x1xf32>, tensor<4x2x2x1xf32>) -> tensor<1x4x1x1xf32>
  return %1 : tensor<1x4x1x1xf32>
}

// One row of five windows, each by its own channel: a line of text.
// CHECK-LABEL: func.func @a_line_by_channel
func.func @a_line_by_channel(%x: tensor<1x1x9x24xf32>, %w: tensor<3x3x1x24xf32>) -> tensor<1x1x5x24xf32> {
  %0 = exec.unpack %w order [2, 3, 1, 0] batch 0 width 0 interleave 1 : (tensor<3x3x1x24xf32>) -> tensor<24x1x3x3xf32>
  %1 = nn.transpose %x [0, 3, 1, 2] : (tensor<1x1x9x24xf32>) -> tensor<1x24x1x9xf32>
  %2 = nn.conv %1, %0 strides [2, 2] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 24 : (tensor<1x24x1x9xf32>, tensor<24x1x3x3xf32>) -> tensor<1x24x1x5xf32>
  %3 = nn.transpose %2 [0, 2, 3, 1] : (tensor<1x24x1x5xf32>) -> tensor<1x1x5x24xf32>
  return %3 : tensor<1x1x5x24xf32>
}

// Bands of four rows, as many as the second cache holds: the last one is a single row.
// CHECK-LABEL: func.func @a_row_behind_the_bands
// CHECK-DAG: %[[TWELVE:.*]] = arith.constant 12 : index
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK: scf.for %{{.*}} to %[[TWELVE]] step %[[FOUR]]
func.func @a_row_behind_the_bands(%x: tensor<1x13x64x512xf32>, %w: tensor<1x3x3x512x16x1xf32>) -> tensor<1x13x64x16xf32> {
  %0 = exec.unpack %w order [2, 3, 1, 0] batch 0 width 16 interleave 1 : (tensor<1x3x3x512x16x1xf32>) -> tensor<16x512x3x3xf32>
  %1 = nn.transpose %x [0, 3, 1, 2] : (tensor<1x13x64x512xf32>) -> tensor<1x512x13x64xf32>
  %2 = nn.conv %1, %0 strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<1x512x13x64xf32>, tensor<16x512x3x3xf32>) -> tensor<1x16x13x64xf32>
  %3 = nn.transpose %2 [0, 2, 3, 1] : (tensor<1x16x13x64xf32>) -> tensor<1x13x64x16xf32>
  return %3 : tensor<1x13x64x16xf32>
}
