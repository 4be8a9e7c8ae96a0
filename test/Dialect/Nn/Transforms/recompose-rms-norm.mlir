// RUN: cleave-opt %s --nn-recompose | FileCheck %s

// The root of another value does not normalize x.
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

// TorchScript has no reciprocal root: it divides 1 by the root.
// CHECK-LABEL: @rms_norm_by_one_over_the_root
// CHECK-SAME: (%[[X:.*]]: tensor<8x64xf32>, %[[S:.*]]: tensor<64xf32>)
// CHECK-NEXT: nn.rms_norm %[[X]], %[[S]] dim 1 epsilon
// CHECK-NEXT: return
func.func @rms_norm_by_one_over_the_root(%x: tensor<8x64xf32>, %s: tensor<64xf32>) -> tensor<8x64xf32> {
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %eps = nn.constant dense<1.0e-6> : tensor<f32> -> tensor<f32>
  %p = nn.mul %x, %x : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %v = nn.reduce mean %p dims [1] keep_dims : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %e = nn.add %v, %eps : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x1xf32>
  %r = nn.sqrt %e : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %i = nn.div %one, %r : (tensor<f32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  %n = nn.mul %x, %i : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  %y = nn.mul %s, %n : (tensor<64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// A power of -1/2, times the scale before it meets x.
// CHECK-LABEL: @rms_norm_by_a_power_and_the_scale_first
// CHECK-SAME: (%[[X:.*]]: tensor<8x64xf32>, %[[S:.*]]: tensor<64xf32>)
// CHECK-NEXT: nn.rms_norm %[[X]], %[[S]] dim 1 epsilon
// CHECK-NEXT: return
func.func @rms_norm_by_a_power_and_the_scale_first(%x: tensor<8x64xf32>, %s: tensor<64xf32>) -> tensor<8x64xf32> {
  %half = nn.constant dense<-0.5> : tensor<f32> -> tensor<f32>
  %eps = nn.constant dense<1.0e-6> : tensor<f32> -> tensor<f32>
  %p = nn.mul %x, %x : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %v = nn.reduce mean %p dims [1] keep_dims : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %e = nn.add %v, %eps : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x1xf32>
  %i = nn.pow %e, %half : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x1xf32>
  %n = nn.mul %s, %i : (tensor<64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  %y = nn.mul %x, %n : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// 2 / root is no norm.
// CHECK-LABEL: @two_over_the_root_stays
// CHECK-NOT: nn.rms_norm
// CHECK: return
func.func @two_over_the_root_stays(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %two = nn.constant dense<2.0> : tensor<f32> -> tensor<f32>
  %eps = nn.constant dense<1.0e-6> : tensor<f32> -> tensor<f32>
  %p = nn.mul %x, %x : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %v = nn.reduce mean %p dims [1] keep_dims : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %e = nn.add %v, %eps : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x1xf32>
  %r = nn.sqrt %e : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %i = nn.div %two, %r : (tensor<f32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  %y = nn.mul %x, %i : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// A scale along the rows is none of the norm's.
// CHECK-LABEL: @a_scale_along_another_dim_stays_out
// CHECK-NOT: nn.rms_norm
// CHECK: return
func.func @a_scale_along_another_dim_stays_out(%x: tensor<8x64xf32>, %s: tensor<8x1xf32>) -> tensor<8x64xf32> {
  %eps = nn.constant dense<1.0e-6> : tensor<f32> -> tensor<f32>
  %p = nn.mul %x, %x : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %v = nn.reduce mean %p dims [1] keep_dims : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %e = nn.add %v, %eps : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x1xf32>
  %r = nn.sqrt %e : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %i = nn.reciprocal %r : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %n = nn.mul %s, %i : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  %y = nn.mul %x, %n : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
