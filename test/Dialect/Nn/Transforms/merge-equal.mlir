// RUN: cleave-opt %s --nn-merge-equal | FileCheck %s

// Whole chains merge: what reads equal values is equal itself.
// CHECK-LABEL: @equal_chains_become_one
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[E:.*]] = nn.exp %[[X]]
// CHECK-NEXT: %[[N:.*]] = nn.neg %[[E]]
// CHECK-NEXT: %[[S:.*]] = nn.add %[[N]], %[[N]]
// CHECK-NEXT: return %[[S]]
func.func @equal_chains_become_one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %c = nn.neg %a : (tensor<4xf32>) -> tensor<4xf32>
  %d = nn.neg %b : (tensor<4xf32>) -> tensor<4xf32>
  %e = nn.add %c, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %e : tensor<4xf32>
}

// Attributes, operands and result types all count.
// CHECK-LABEL: @what_differs_stays
// CHECK-COUNT-2: nn.reduce
// CHECK-COUNT-2: nn.constant
// CHECK-COUNT-2: nn.sub
// CHECK-COUNT-2: nn.reshape
func.func @what_differs_stays(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<16xf32>, tensor<2x8xf32>) {
  %a = nn.reduce sum %x dims [0] : (tensor<4x4xf32>) -> tensor<4xf32>
  %b = nn.reduce sum %x dims [1] : (tensor<4x4xf32>) -> tensor<4xf32>
  %c = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %d = nn.constant dense<2.0> : tensor<f32> -> tensor<f32>
  %e = nn.sub %x, %y : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %f = nn.sub %y, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %g = nn.reshape %x : (tensor<4x4xf32>) -> tensor<16xf32>
  %h = nn.reshape %x : (tensor<4x4xf32>) -> tensor<2x8xf32>
  return %a, %b, %c, %d, %e, %f, %g, %h
      : tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<16xf32>, tensor<2x8xf32>
}

// A chain that nobody reads goes as a whole, and each function is looked at by itself.
// CHECK-LABEL: @what_nobody_reads_goes
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: return %[[X]]
func.func @what_nobody_reads_goes(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = nn.neg %a : (tensor<4xf32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}
