// Beside a result in bf16, a bias is in bf16, too.
//
// RUN: cleave-opt %s --exec-fuse-kernels --exec-split-kernels --exec-narrow-floats --exec-use-libraries --exec-verify-form | FileCheck %s

nn.param @w : tensor<64x64xf32> = dense<1.0> : tensor<64x64xf32>
nn.param @b : tensor<64xf32> = dense<1.0> : tensor<64xf32>
nn.param @c : tensor<64xf32> = dense<2.0> : tensor<64xf32>

// The second product reads and writes bf16: its bias is rounded on its way into memory. The first, which rounds what the caller gives, is no
// call, and what the third returns is f32: their biases stay.
// CHECK-LABEL: @three_products
func.func @three_products(%x: tensor<16x64xf32>) -> tensor<16x64xf32> {
  // CHECK: %[[B:.*]] = nn.load @b : tensor<64xf32>
  // CHECK: %[[C:.*]] = nn.load @c : tensor<64xf32>
  // CHECK: %[[P:.*]] = exec.pack %[[C]] order [0] batch 0 width 0 interleave 1 : (tensor<64xf32>) -> tensor<64xbf16>
  // CHECK: %[[F:.*]] = exec.fused ({{.*}}, %{{.*}} = %[[B]])
  // CHECK: %[[S:.*]] = exec.fused (%{{.*}} = %[[F]], {{.*}}, %{{.*}} = %[[P]]) : ({{.*}}, tensor<64xbf16>) -> tensor<16x64xbf16>
  // CHECK: exec.fused (%{{.*}} = %[[S]], {{.*}}, %{{.*}} = %[[B]]) : ({{.*}}, tensor<64xf32>) -> tensor<16x64xf32>
  %w = nn.load @w : tensor<64x64xf32>
  %b = nn.load @b : tensor<64xf32>
  %c = nn.load @c : tensor<64xf32>
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %1 = nn.add %0, %b : (tensor<16x64xf32>, tensor<64xf32>) -> tensor<16x64xf32>
  %2 = nn.einsum %1, %w "ik,kj->ij" : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %3 = nn.add %2, %c : (tensor<16x64xf32>, tensor<64xf32>) -> tensor<16x64xf32>
  %4 = nn.relu %3 : (tensor<16x64xf32>) -> tensor<16x64xf32>
  %5 = nn.einsum %4, %w "ik,kj->ij" : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %6 = nn.add %5, %b : (tensor<16x64xf32>, tensor<64xf32>) -> tensor<16x64xf32>
  return %6 : tensor<16x64xf32>
}
