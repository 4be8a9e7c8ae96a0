// RUN: cleave-opt %s --nn-recompose | FileCheck %s

// TorchScript spells layer normalisation in nine nodes; scale and bias join in.
// CHECK-LABEL: @layer_norm_with_scale_and_bias
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x64xf32>, %[[S:.*]]: tensor<64xf32>, %[[B:.*]]: tensor<64xf32>)
// CHECK-NEXT: %[[Y:.*]] = nn.layer_norm %[[X]], %[[S]] bias %[[B]] dim 2 epsilon {{.*}}
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm_with_scale_and_bias(%x: tensor<2x8x64xf32>, %s: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<2x8x64xf32> {
  %two = nn.constant dense<2.0> : tensor<f32> -> tensor<f32>
  %eps = nn.constant dense<1.0e-5> : tensor<f32> -> tensor<f32>
  %mean = nn.reduce mean %x dims [2] keep_dims : (tensor<2x8x64xf32>) -> tensor<2x8x1xf32>
  %d = nn.sub %x, %mean : (tensor<2x8x64xf32>, tensor<2x8x1xf32>) -> tensor<2x8x64xf32>
  %p = nn.pow %d, %two : (tensor<2x8x64xf32>, tensor<f32>) -> tensor<2x8x64xf32>
  %v = nn.reduce mean %p dims [2] keep_dims : (tensor<2x8x64xf32>) -> tensor<2x8x1xf32>
  %e = nn.add %v, %eps : (tensor<2x8x1xf32>, tensor<f32>) -> tensor<2x8x1xf32>
  %r = nn.sqrt %e : (tensor<2x8x1xf32>) -> tensor<2x8x1xf32>
  %n = nn.div %d, %r : (tensor<2x8x64xf32>, tensor<2x8x1xf32>) -> tensor<2x8x64xf32>
  %m = nn.mul %n, %s : (tensor<2x8x64xf32>, tensor<64xf32>) -> tensor<2x8x64xf32>
  %y = nn.add %m, %b : (tensor<2x8x64xf32>, tensor<64xf32>) -> tensor<2x8x64xf32>
  return %y : tensor<2x8x64xf32>
}

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

// CHECK-LABEL: @gelu_of_a_quotient
// CHECK-NEXT: nn.gelu %{{.*}} : (tensor<8x64xf32>)
// CHECK-NEXT: return
func.func @gelu_of_a_quotient(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %root = nn.constant dense<1.4142135> : tensor<f32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %q = nn.div %x, %root : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %e = nn.erf %q : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %a = nn.add %e, %one : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %m = nn.mul %x, %a : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %y = nn.mul %m, %half : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// CHECK-LABEL: @gelu_in_tanh_form
// CHECK-NEXT: nn.gelu %{{.*}} {tanh = true}
// CHECK-NEXT: return
func.func @gelu_in_tanh_form(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %three = nn.constant dense<3.0> : tensor<f32> -> tensor<f32>
  %k = nn.constant dense<0.044715> : tensor<f32> -> tensor<f32>
  %c = nn.constant dense<0.797884583> : tensor<f32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %h = nn.mul %x, %half : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %p = nn.pow %x, %three : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %kp = nn.mul %p, %k : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %s = nn.add %x, %kp : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %cs = nn.mul %s, %c : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %t = nn.tanh %cs : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %a = nn.add %t, %one : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %y = nn.mul %h, %a : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// A factor of 0.6 is no Gelu.
// CHECK-LABEL: @other_constants_stay
// CHECK-NOT: nn.gelu
func.func @other_constants_stay(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %root = nn.constant dense<1.4142135> : tensor<f32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %c = nn.constant dense<0.6> : tensor<f32> -> tensor<f32>
  %q = nn.div %x, %root : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %e = nn.erf %q : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %a = nn.add %e, %one : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %m = nn.mul %x, %a : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %y = nn.mul %m, %c : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// CHECK-LABEL: @silu_of_a_product_with_its_sigmoid
// CHECK-NEXT: nn.silu
// CHECK-NEXT: return
func.func @silu_of_a_product_with_its_sigmoid(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = nn.sigmoid %x : (tensor<8xf32>) -> tensor<8xf32>
  %y = nn.mul %s, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
