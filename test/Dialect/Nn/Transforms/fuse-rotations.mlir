// RUN: cleave-opt %s --nn-fuse-rotations | FileCheck %s

// CHECK-LABEL: @tail_before_head_is_a_rotation
// CHECK-NEXT: nn.rotate %{{.*}} dim 0 by 2
// CHECK-NEXT: return
func.func @tail_before_head_is_a_rotation(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %t = nn.slice %x starts [2, 0] sizes [6, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<6x4xf32>
  %h = nn.slice %x starts [0, 0] sizes [2, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<2x4xf32>
  %y = nn.concat %t, %h dim 0 : (tensor<6x4xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// Element 2 is missing.
// CHECK-LABEL: @pieces_that_do_not_meet_stay
// CHECK-NOT: nn.rotate
func.func @pieces_that_do_not_meet_stay(%x: tensor<8x4xf32>) -> tensor<7x4xf32> {
  %t = nn.slice %x starts [3, 0] sizes [5, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<5x4xf32>
  %h = nn.slice %x starts [0, 0] sizes [2, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<2x4xf32>
  %y = nn.concat %t, %h dim 0 : (tensor<5x4xf32>, tensor<2x4xf32>) -> tensor<7x4xf32>
  return %y : tensor<7x4xf32>
}
