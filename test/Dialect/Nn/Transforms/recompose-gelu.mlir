// RUN: cleave-opt %s --nn-recompose | FileCheck %s

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

// Bloom takes x out of the sum under tanh.
// CHECK-LABEL: @tanh_gelu_with_x_in_front
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>)
// CHECK-NEXT: nn.gelu %[[X]]
// CHECK-NEXT: return
func.func @tanh_gelu_with_x_in_front(%x: tensor<8xf32>) -> tensor<8xf32> {
  %half = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %c = nn.constant dense<0.044715> : tensor<f32> -> tensor<f32>
  %k = nn.constant dense<0.79788456> : tensor<f32> -> tensor<f32>
  %cx = nn.mul %c, %x : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  %cxx = nn.mul %cx, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s = nn.add %cxx, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %kx = nn.mul %x, %k : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %a = nn.mul %kx, %s : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %t = nn.tanh %a : (tensor<8xf32>) -> tensor<8xf32>
  %g = nn.add %t, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %h = nn.mul %x, %half : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %y = nn.mul %h, %g : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// Halved in the end.
// CHECK-LABEL: @gelu_divided_by_two
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>)
// CHECK-NEXT: nn.gelu %[[X]]
// CHECK-NEXT: return
func.func @gelu_divided_by_two(%x: tensor<8xf32>) -> tensor<8xf32> {
  %two = nn.constant dense<2.0> : tensor<f32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %k = nn.constant dense<0.70710678> : tensor<f32> -> tensor<f32>
  %kx = nn.mul %x, %k : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %e = nn.erf %kx : (tensor<8xf32>) -> tensor<8xf32>
  %g = nn.add %e, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %m = nn.mul %x, %g : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %y = nn.div %m, %two : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// x squared in front is no gelu.
// CHECK-LABEL: @tanh_of_another_polynomial_stays
// CHECK-NOT: nn.gelu
// CHECK: return
func.func @tanh_of_another_polynomial_stays(%x: tensor<8xf32>) -> tensor<8xf32> {
  %half = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %c = nn.constant dense<0.044715> : tensor<f32> -> tensor<f32>
  %k = nn.constant dense<0.79788456> : tensor<f32> -> tensor<f32>
  %cx = nn.mul %c, %x : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  %s = nn.add %cx, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %kx = nn.mul %x, %k : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %a = nn.mul %kx, %s : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %t = nn.tanh %a : (tensor<8xf32>) -> tensor<8xf32>
  %g = nn.add %t, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %h = nn.mul %x, %half : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %y = nn.mul %h, %g : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
