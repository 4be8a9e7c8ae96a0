// RUN: cleave-opt %s --nn-fold-pads | FileCheck %s

// More behind than in front, as for a stride of two; the window has padding of its own.
// CHECK-LABEL: @zeros_are_the_padding_of_the_window
// CHECK-NEXT: nn.conv %arg0, %arg1 strides [2, 2] pads_low [1, 0] pads_high [2, 1]
// CHECK-NEXT: return
func.func @zeros_are_the_padding_of_the_window(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>) -> tensor<1x4x5x4xf32> {
  %zero = nn.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %p = nn.pad constant %x value %zero low [0, 0, 0, 0] high [0, 0, 1, 1] : (tensor<1x2x8x8xf32>, tensor<f32>) -> tensor<1x2x9x9xf32>
  %y = nn.conv %p, %w strides [2, 2] pads_low [1, 0] pads_high [1, 0] dilations [1, 1] groups 1 : (tensor<1x2x9x9xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x5x4xf32>
  return %y : tensor<1x4x5x4xf32>
}

// Without a value they are zeros, too; who else reads the padded picture still does.
// CHECK-LABEL: @others_read_the_padded_picture
// CHECK: %[[PADDED:.*]] = nn.pad
// CHECK: nn.conv %arg0, %arg1 {{.*}} pads_low [1] pads_high [1]
// CHECK: return %{{.*}}, %[[PADDED]]
func.func @others_read_the_padded_picture(%x: tensor<1x2x8xi32>, %w: tensor<4x2x3xi32>) -> (tensor<1x4x8xi32>, tensor<1x2x10xi32>) {
  %p = nn.pad constant %x low [0, 0, 1] high [0, 0, 1] : (tensor<1x2x8xi32>) -> tensor<1x2x10xi32>
  %y = nn.conv %p, %w strides [1] pads_low [0] pads_high [0] dilations [1] groups 1 : (tensor<1x2x10xi32>, tensor<4x2x3xi32>) -> tensor<1x4x8xi32>
  return %y, %p : tensor<1x4x8xi32>, tensor<1x2x10xi32>
}

// Ones, a mirror, and zeros beside the channels are something else.
// CHECK-LABEL: @other_pads_stay
// CHECK-COUNT-3: nn.pad
func.func @other_pads_stay(%x: tensor<1x2x8xf32>, %s: tensor<1x1x8xf32>, %w: tensor<4x2x3xf32>) -> (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x6xf32>) {
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %p = nn.pad constant %x value %one low [0, 0, 1] high [0, 0, 1] : (tensor<1x2x8xf32>, tensor<f32>) -> tensor<1x2x10xf32>
  %0 = nn.conv %p, %w strides [1] pads_low [0] pads_high [0] dilations [1] groups 1 : (tensor<1x2x10xf32>, tensor<4x2x3xf32>) -> tensor<1x4x8xf32>
  %q = nn.pad reflect %x low [0, 0, 1] high [0, 0, 1] : (tensor<1x2x8xf32>) -> tensor<1x2x10xf32>
  %1 = nn.conv %q, %w strides [1] pads_low [0] pads_high [0] dilations [1] groups 1 : (tensor<1x2x10xf32>, tensor<4x2x3xf32>) -> tensor<1x4x8xf32>
  %r = nn.pad constant %s low [0, 1, 0] high [0, 0, 0] : (tensor<1x1x8xf32>) -> tensor<1x2x8xf32>
  %2 = nn.conv %r, %w strides [1] pads_low [0] pads_high [0] dilations [1] groups 1 : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  return %0, %1, %2 : tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x6xf32>
}

// The step before, of each position of a sequence: cropped behind and padded in front.
// CHECK-LABEL: @the_step_before
// CHECK-DAG: %[[THERE:.*]] = nn.constant dense<{{\[\[}}false], [true], [true], [true]]> : tensor<4x1xi1>
// CHECK-DAG: %[[ROUND:.*]] = nn.rotate %arg0 dim 1 by 3
// CHECK: nn.select %[[THERE]], %[[ROUND]], %{{.*}} : (tensor<4x1xi1>, tensor<2x4x8xf32>, tensor<f32>) -> tensor<2x4x8xf32>
// CHECK-NOT: nn.pad
func.func @the_step_before(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  %s = nn.slice %x starts [0, 0, 0] sizes [2, 3, 8] steps [1, 1, 1] : (tensor<2x4x8xf32>) -> tensor<2x3x8xf32>
  %p = nn.pad constant %s low [0, 1, 0] high [0, 0, 0] : (tensor<2x3x8xf32>) -> tensor<2x4x8xf32>
  return %p : tensor<2x4x8xf32>
}

// Blocks of keys before and after, as local attention takes them: of one padded value, of which the middle is the value.
// CHECK-LABEL: @blocks_before_and_after
// CHECK: nn.rotate %arg0 dim 0 by 5
// CHECK: %[[BEFORE:.*]] = nn.select
// CHECK: nn.rotate %arg0 dim 0 by 1
// CHECK: %[[AFTER:.*]] = nn.select
// CHECK: return %[[BEFORE]], %[[AFTER]]
func.func @blocks_before_and_after(%x: tensor<6x4xi64>, %v: tensor<i64>) -> (tensor<6x4xi64>, tensor<6x4xi64>) {
  %p = nn.pad constant %x value %v low [1, 0] high [1, 0] : (tensor<6x4xi64>, tensor<i64>) -> tensor<8x4xi64>
  %b = nn.slice %p starts [0, 0] sizes [6, 4] steps [1, 1] : (tensor<8x4xi64>) -> tensor<6x4xi64>
  %a = nn.slice %p starts [2, 0] sizes [6, 4] steps [1, 1] : (tensor<8x4xi64>) -> tensor<6x4xi64>
  return %b, %a : tensor<6x4xi64>, tensor<6x4xi64>
}

// A quarter of the value, another extent, two dims, and what wraps stay as they are.
// CHECK-LABEL: @other_crops_stay
// CHECK-NOT: nn.rotate
// CHECK-COUNT-4: nn.pad
// CHECK-NOT: nn.rotate
func.func @other_crops_stay(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<9x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %s = nn.slice %x starts [6, 0] sizes [2, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<2x4xf32>
  %0 = nn.pad constant %s low [0, 0] high [6, 0] : (tensor<2x4xf32>) -> tensor<8x4xf32>
  %t = nn.slice %x starts [0, 0] sizes [7, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<7x4xf32>
  %1 = nn.pad constant %t low [2, 0] high [0, 0] : (tensor<7x4xf32>) -> tensor<9x4xf32>
  %u = nn.slice %x starts [0, 0] sizes [7, 3] steps [1, 1] : (tensor<8x4xf32>) -> tensor<7x3xf32>
  %2 = nn.pad constant %u low [1, 1] high [0, 0] : (tensor<7x3xf32>) -> tensor<8x4xf32>
  %3 = nn.pad wrap %t low [1, 0] high [0, 0] : (tensor<7x4xf32>) -> tensor<8x4xf32>
  return %0, %1, %2, %3 : tensor<8x4xf32>, tensor<9x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}
