// RUN: cleave-opt %s --nn-fuse-movement | FileCheck %s

// K^T goes through a [batch * heads] flatten: one transpose is left.
// CHECK-LABEL: @transpose_through_a_flatten
// CHECK-NEXT: nn.transpose %{{.*}} [0, 1, 3, 2]
// CHECK-NEXT: return
func.func @transpose_through_a_flatten(%x: tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32> {
  %f = nn.reshape %x : (tensor<2x4x8x16xf32>) -> tensor<8x8x16xf32>
  %t = nn.transpose %f [0, 2, 1] : (tensor<8x8x16xf32>) -> tensor<8x16x8xf32>
  %y = nn.reshape %t : (tensor<8x16x8xf32>) -> tensor<2x4x16x8xf32>
  return %y : tensor<2x4x16x8xf32>
}

// Splitting heads: the reshape and both transposes become one of each.
// CHECK-LABEL: @split_and_two_transposes
// CHECK-NEXT: %[[R:.*]] = nn.reshape %{{.*}} : (tensor<2x8x64xf32>) -> tensor<2x8x4x16xf32>
// CHECK-NEXT: nn.transpose %[[R]] [0, 2, 3, 1]
// CHECK-NEXT: return
func.func @split_and_two_transposes(%x: tensor<2x8x64xf32>) -> tensor<2x4x16x8xf32> {
  %r = nn.reshape %x : (tensor<2x8x64xf32>) -> tensor<2x8x4x16xf32>
  %t = nn.transpose %r [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %y = nn.transpose %t [0, 1, 3, 2] : (tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32>
  return %y : tensor<2x4x16x8xf32>
}

// CHECK-LABEL: @a_pair_that_undoes_itself_vanishes
// CHECK-NEXT: return %arg0
func.func @a_pair_that_undoes_itself_vanishes(%arg0: tensor<2x8x64xf32>) -> tensor<2x8x64xf32> {
  %f = nn.reshape %arg0 : (tensor<2x8x64xf32>) -> tensor<16x64xf32>
  %y = nn.reshape %f : (tensor<16x64xf32>) -> tensor<2x8x64xf32>
  return %y : tensor<2x8x64xf32>
}

// 6 and 4 have no common refinement: both reshapes stay.
// CHECK-LABEL: @uneven_regrouping_stays
// CHECK-COUNT-2: nn.{{reshape|transpose}}
func.func @uneven_regrouping_stays(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %t = nn.transpose %x [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %y = nn.reshape %t : (tensor<6x4xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// Two users need the middle value.
// CHECK-LABEL: @a_value_with_two_uses_stays
// CHECK: nn.reshape
// CHECK: nn.transpose
func.func @a_value_with_two_uses_stays(%x: tensor<2x8x64xf32>) -> (tensor<16x64xf32>, tensor<64x16xf32>) {
  %f = nn.reshape %x : (tensor<2x8x64xf32>) -> tensor<16x64xf32>
  %y = nn.transpose %f [1, 0] : (tensor<16x64xf32>) -> tensor<64x16xf32>
  return %f, %y : tensor<16x64xf32>, tensor<64x16xf32>
}

// A reshape that nothing uses any more is no second use: heads joined and taken apart again.
// CHECK-LABEL: @a_dead_user_does_not_count
// CHECK-NEXT: return %arg0
func.func @a_dead_user_does_not_count(%arg0: tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32> {
  %t = nn.transpose %arg0 [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  %dead = nn.reshape %t : (tensor<2x8x4x16xf32>) -> tensor<2x8x64xf32>
  %y = nn.transpose %t [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  return %y : tensor<2x4x8x16xf32>
}
