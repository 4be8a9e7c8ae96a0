// RUN: cleave-opt %s --nn-recompose | FileCheck %s

// The plan names the sigmoid's result, so it must stay.
// CHECK-LABEL: @a_pinned_tensor_stays
// CHECK: nn.sigmoid
// CHECK: nn.mul
func.func @a_pinned_tensor_stays(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = nn.sigmoid %x : (tensor<8xf32>) -> tensor<8xf32>
  %p = spmd.pin %s "gate" : tensor<8xf32>
  %y = nn.mul %p, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
