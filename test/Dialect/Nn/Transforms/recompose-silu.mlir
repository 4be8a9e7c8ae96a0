// RUN: cleave-opt %s --nn-recompose | FileCheck %s

// CHECK-LABEL: @silu_of_a_product_with_its_sigmoid
// CHECK-NEXT: nn.silu
// CHECK-NEXT: return
func.func @silu_of_a_product_with_its_sigmoid(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = nn.sigmoid %x : (tensor<8xf32>) -> tensor<8xf32>
  %y = nn.mul %s, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
