// RUN: cleave-opt %s --nn-add-adapters="train='{loss: {kind: mse, of: y}, optimizer: sgd, lora: {tensors: w, rank: 2, alpha: 4}}'" | FileCheck %s
// RUN: cleave-opt %s --nn-add-adapters="train='{loss: {kind: mse, of: y}, optimizer: sgd, lora: {tensors: w, rank: 2, alpha: 4}}'" --nn-outline-step="train='{loss: {kind: mse, of: y}, optimizer: sgd, lora: {tensors: w, rank: 2, alpha: 4}}'" | FileCheck %s --check-prefix=STEP
// RUN: not cleave-opt %s --nn-add-adapters="train='{loss: {kind: mse, of: y}, optimizer: sgd, lora: {tensors: b}}'" 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: error: 'lora' picks 'b', which no factor of a product is called

// Beside a product with a weight stored in 8 bits one of two thin ones, whose sum it joins; heads stay a dim of their own.
// CHECK-LABEL: @main(
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32>
// CHECK: %[[Y:.*]] = nn.einsum %[[X]], %{{.*}} "bi,ihd->bhd"
// CHECK: %[[A:.*]] = nn.load @w.lora_A : tensor<3x2xf32>
// CHECK: %[[B:.*]] = nn.load @w.lora_B : tensor<2x5x2xf32>
// CHECK: %[[T:.*]] = nn.einsum %[[X]], %[[A]] "bi,ia->ba" : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
// CHECK: %[[S:.*]] = nn.mul %[[T]], %{{.*}}
// CHECK: %[[U:.*]] = nn.einsum %[[S]], %[[B]] "ba,ahd->bhd"
// CHECK: %[[SUM:.*]] = nn.add %[[Y]], %[[U]]
// CHECK: nn.add %[[SUM]], %{{.*}}
// CHECK: nn.param @w.lora_A : tensor<3x2xf32> = dense<{{\[\[}}
// CHECK: nn.param @w.lora_B : tensor<2x5x2xf32> = dense<0.000000e+00>
// Nothing else is trained.
// STEP-LABEL: @main(
// STEP-SAME: nn.name = "w.lora_A", nn.role = "parameter"
// STEP-SAME: nn.name = "w.lora_B", nn.role = "parameter"
// STEP-NOT: nn.role = "parameter"
// STEP: nn.load @b
nn.param @w : tensor<3x5x2xi8> = dense<1> : tensor<3x5x2xi8>
nn.param @b : tensor<2xf32> = dense<1.0> : tensor<2xf32>
func.func @main(%x: tensor<4x3xf32> {nn.name = "x"}) -> (tensor<4x5x2xf32> {nn.name = "y"}) {
  %q = nn.load @w : tensor<3x5x2xi8>
  %b = nn.load @b : tensor<2xf32>
  %s = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %w = nn.dequantize %q, %s dim 0 : (tensor<3x5x2xi8>, tensor<f32>) -> tensor<3x5x2xf32>
  %y = nn.einsum %x, %w "bi,ihd->bhd" : (tensor<4x3xf32>, tensor<3x5x2xf32>) -> tensor<4x5x2xf32>
  %z = nn.add %y, %b : (tensor<4x5x2xf32>, tensor<2xf32>) -> tensor<4x5x2xf32>
  return %z : tensor<4x5x2xf32>
}
