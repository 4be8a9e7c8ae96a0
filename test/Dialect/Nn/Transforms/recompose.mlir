// RUN: cleave-opt %s --nn-recompose | FileCheck %s

// The plan names the sigmoid's result, so it must stay.
// CHECK-LABEL: @a_tensor_that_the_plan_names_stays
// CHECK: nn.sigmoid
// CHECK: nn.mul
module attributes {nn.keep = {gate}} {
  func.func @a_tensor_that_the_plan_names_stays(%x: tensor<8xf32>) -> tensor<8xf32> {
    %s = nn.sigmoid %x : (tensor<8xf32>) -> tensor<8xf32> loc(#gate)
    %y = nn.mul %s, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    return %y : tensor<8xf32>
  }
}
#gate = loc(#nn.node<"n", "Sigmoid", [], [["gate"]]>)
