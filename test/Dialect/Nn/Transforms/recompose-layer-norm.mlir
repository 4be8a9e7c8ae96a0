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
