// On devices the forward tells statistics of rows, of which gradients are made by tiles. Kernels are run by the suite `training-attention`.
//
// RUN: cleave-opt %s --split-input-file --nn-differentiate "--exec-recognize-attention=few-bytes=0 for-devices=true" | FileCheck %s

// CHECK-LABEL: @main(
// CHECK-SAME: %[[Q:.*]]: tensor<1x2x16x8xf32> {{.*}}, %[[K:.*]]: tensor<1x2x16x8xf32> {{.*}}, %[[V:.*]]: tensor<1x2x16x8xf32>
// CHECK-NOT: nn.softmax
// CHECK: %[[S:.*]], %[[L:.*]] = exec.partial_attention %[[Q]], %[[K]], %[[V]] part 16 scale 5.000000e-01 causal
// CHECK: %[[Y:.*]] = nn.reshape %[[S]]
// CHECK: %[[LOGS:.*]] = nn.reshape %[[L]] {{.*}} -> tensor<1x2x16xf32>
// CHECK: %[[MEANS:.*]] = nn.reduce sum %{{.*}} dims [3] : {{.*}} -> tensor<1x2x16xf32>
// CHECK: exec.attention_grad %[[Q]], %[[K]], %[[V]] of %{{.*}} logs %[[LOGS]] means %[[MEANS]] scale 5.000000e-01 causal
// CHECK-NOT: nn.attention
// CHECK-NOT: exec.partial_attention
// CHECK: return
func.func @main(%q: tensor<1x2x16x8xf32> {nn.name = "q", nn.role = "parameter"}, %k: tensor<1x2x16x8xf32> {nn.name = "k", nn.role = "parameter"}, %v: tensor<1x2x16x8xf32> {nn.name = "v", nn.role = "parameter"}) -> (tensor<f32> {nn.name = "loss"}) {
  %0 = nn.attention %q, %k, %v scale 0.5 causal : (tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>) -> tensor<1x2x16x8xf32>
  %1 = nn.mul %0, %0 : (tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>) -> tensor<1x2x16x8xf32>
  %2 = nn.reduce sum %1 dims [0, 1, 2, 3] : (tensor<1x2x16x8xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// Tiles are of f32.
// CHECK-LABEL: @main(
// CHECK-NOT: exec.attention_grad
// CHECK: return
func.func @main(%q: tensor<1x2x16x8xf64> {nn.name = "q", nn.role = "parameter"}, %k: tensor<1x2x16x8xf64> {nn.name = "k", nn.role = "parameter"}, %v: tensor<1x2x16x8xf64> {nn.name = "v", nn.role = "parameter"}) -> (tensor<f64> {nn.name = "loss"}) {
  %0 = nn.attention %q, %k, %v scale 0.5 causal : (tensor<1x2x16x8xf64>, tensor<1x2x16x8xf64>, tensor<1x2x16x8xf64>) -> tensor<1x2x16x8xf64>
  %1 = nn.mul %0, %0 : (tensor<1x2x16x8xf64>, tensor<1x2x16x8xf64>) -> tensor<1x2x16x8xf64>
  %2 = nn.reduce sum %1 dims [0, 1, 2, 3] : (tensor<1x2x16x8xf64>) -> tensor<f64>
  return %2 : tensor<f64>
}
