// RUN: cleave-opt %s --nn-recompose | FileCheck %s

// The root of another value does not normalise x.
// CHECK-LABEL: @division_by_another_deviation_stays
// CHECK-NOT: nn.layer_norm
// CHECK-NOT: nn.rms_norm
func.func @division_by_another_deviation_stays(%x: tensor<8x64xf32>, %z: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %eps = nn.constant dense<1.0e-5> : tensor<f32> -> tensor<f32>
  %p = nn.mul %z, %z : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %v = nn.reduce mean %p dims [1] keep_dims : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %e = nn.add %v, %eps : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x1xf32>
  %r = nn.sqrt %e : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %n = nn.div %x, %r : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  return %n : tensor<8x64xf32>
}

// Llama multiplies by the reciprocal root.
// CHECK-LABEL: @rms_norm_by_reciprocal
// CHECK-SAME: (%[[X:.*]]: tensor<8x64xf32>, %[[S:.*]]: tensor<64xf32>)
// CHECK-NEXT: nn.rms_norm %[[X]], %[[S]] dim 1 epsilon
// CHECK-NEXT: return
func.func @rms_norm_by_reciprocal(%x: tensor<8x64xf32>, %s: tensor<64xf32>) -> tensor<8x64xf32> {
  %two = nn.constant dense<2.0> : tensor<f32> -> tensor<f32>
  %eps = nn.constant dense<1.0e-6> : tensor<f32> -> tensor<f32>
  %p = nn.pow %x, %two : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %v = nn.reduce mean %p dims [1] keep_dims : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %e = nn.add %v, %eps : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x1xf32>
  %r = nn.sqrt %e : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %i = nn.reciprocal %r : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %n = nn.mul %x, %i : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  %y = nn.mul %s, %n : (tensor<64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
