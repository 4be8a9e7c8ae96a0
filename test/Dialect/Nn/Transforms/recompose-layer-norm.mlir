// RUN: cleave-opt %s --nn-recompose | FileCheck %s

// TorchScript spells layer normalization in nine nodes; scale and bias join in.
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

// TensorFlow: x * r + (bias - mean * r), where r = scale / sqrt(variance + epsilon).
// CHECK-LABEL: @layer_norm_spread_by_tensorflow
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x64xf32>, %[[S:.*]]: tensor<64xf32>, %[[B:.*]]: tensor<64xf32>)
// CHECK-NEXT: %[[Y:.*]] = nn.layer_norm %[[X]], %[[S]] bias %[[B]] dim 2 epsilon {{.*}}
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm_spread_by_tensorflow(%x: tensor<2x8x64xf32>, %s: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<2x8x64xf32> {
  %eps = nn.constant dense<1.0e-5> : tensor<f32> -> tensor<f32>
  %mean = nn.reduce mean %x dims [2] keep_dims : (tensor<2x8x64xf32>) -> tensor<2x8x1xf32>
  %d = nn.sub %x, %mean : (tensor<2x8x64xf32>, tensor<2x8x1xf32>) -> tensor<2x8x64xf32>
  %p = nn.mul %d, %d : (tensor<2x8x64xf32>, tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %v = nn.reduce mean %p dims [2] keep_dims : (tensor<2x8x64xf32>) -> tensor<2x8x1xf32>
  %e = nn.add %v, %eps : (tensor<2x8x1xf32>, tensor<f32>) -> tensor<2x8x1xf32>
  %q = nn.sqrt %e : (tensor<2x8x1xf32>) -> tensor<2x8x1xf32>
  %i = nn.reciprocal %q : (tensor<2x8x1xf32>) -> tensor<2x8x1xf32>
  %r = nn.mul %i, %s : (tensor<2x8x1xf32>, tensor<64xf32>) -> tensor<2x8x64xf32>
  %m = nn.mul %x, %r : (tensor<2x8x64xf32>, tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %o = nn.mul %mean, %r : (tensor<2x8x1xf32>, tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %t = nn.sub %b, %o : (tensor<64xf32>, tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %y = nn.add %m, %t : (tensor<2x8x64xf32>, tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  return %y : tensor<2x8x64xf32>
}

// What is taken away is not the mean of x: z * r stays.
// CHECK-LABEL: @spread_with_another_mean_stays
// CHECK-NOT: nn.layer_norm
// CHECK: return
func.func @spread_with_another_mean_stays(%x: tensor<8x64xf32>, %z: tensor<8x1xf32>, %s: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<8x64xf32> {
  %eps = nn.constant dense<1.0e-5> : tensor<f32> -> tensor<f32>
  %mean = nn.reduce mean %x dims [1] keep_dims : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %d = nn.sub %x, %mean : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  %p = nn.mul %d, %d : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %v = nn.reduce mean %p dims [1] keep_dims : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %e = nn.add %v, %eps : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x1xf32>
  %q = nn.sqrt %e : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %i = nn.reciprocal %q : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %r = nn.mul %i, %s : (tensor<8x1xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  %m = nn.mul %x, %r : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %o = nn.mul %z, %r : (tensor<8x1xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %t = nn.sub %b, %o : (tensor<64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %y = nn.add %m, %t : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
