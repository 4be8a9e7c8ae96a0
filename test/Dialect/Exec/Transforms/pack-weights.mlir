// Weights as contractions and convolutions read them.
//
// RUN: cleave-opt %s --exec-pack-weights=width=8 --exec-verify-form | FileCheck %s
// RUN: cleave-opt %s --exec-pack-weights=width=8 --exec-outline -o %t.mlir
// RUN: cleave run %t.mlir --against %s | FileCheck %s --check-prefix=RAN
// RAN-COUNT-6: ok

nn.param @w : tensor<4x20xf32> = dense<[[0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 8.5, 9.0, 9.5, 10.0],
  [1.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 8.5, 9.0, 9.5, 11.0],
  [2.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 8.5, 9.0, 9.5, 12.0],
  [3.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 8.5, 9.0, 9.5, 13.0]]> : tensor<4x20xf32>
nn.param @f : tensor<6x2x3xf32> = dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[7.0, 8.0, 9.0], [10.0, 11.0, 12.0]], [[13.0, 14.0, 15.0], [16.0, 17.0, 18.0]],
  [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[7.0, 8.0, 9.0], [10.0, 11.0, 12.0]], [[13.0, 14.0, 15.0], [16.0, 17.0, 18.0]]]> : tensor<6x2x3xf32>

// Two kernels want one weight alike, a third one transposed; a lookup reads it as it is.
// CHECK-LABEL: @main
// CHECK: %[[W:.*]] = nn.load @w
// CHECK-DAG: %[[ROWS:.*]] = exec.pack %[[W]] order [1, 0] batch 0 width 8 interleave 1 : (tensor<4x20xf32>) -> tensor<1x20x8x1xf32>
// CHECK-DAG: %[[COLUMNS:.*]] = exec.pack %[[W]] order [0, 1] batch 0 width 8 interleave 1 : (tensor<4x20xf32>) -> tensor<3x4x8x1xf32>
// CHECK-DAG: %[[FILTER:.*]] = exec.pack %{{.*}} order [2, 1, 0] batch 0 width 8 interleave 1 : (tensor<6x2x3xf32>) -> tensor<1x3x2x8x1xf32>
// CHECK-DAG: %[[GROUPED:.*]] = exec.pack %{{.*}} order [2, 1, 0] batch 0 width 0 interleave 1 : (tensor<6x2x3xf32>) -> tensor<3x2x6xf32>
// CHECK: exec.fused (%{{.*}} = %arg0, %[[A:.*]] = %[[COLUMNS]])
// CHECK-NEXT: %[[U:.*]] = exec.unpack %[[A]] order [0, 1] batch 0 width 8 interleave 1 : (tensor<3x4x8x1xf32>) -> tensor<4x20xf32>
// CHECK-NEXT: nn.einsum %{{.*}}, %[[U]]
// CHECK: exec.fused (%{{.*}} = %arg0, %{{.*}} = %[[COLUMNS]])
// CHECK: exec.fused (%{{.*}} = %arg1, %{{.*}} = %[[ROWS]])
// CHECK: exec.fused (%{{.*}} = %[[W]], %{{.*}} = %arg2)
// CHECK-NEXT: nn.gather
// CHECK: exec.fused (%{{.*}} = %arg3, %{{.*}} = %[[FILTER]])
// CHECK: exec.fused (%{{.*}} = %arg4, %{{.*}} = %[[GROUPED]])
// CHECK-NOT: exec.pack
func.func @main(%x: tensor<5x4xf32>, %y: tensor<5x20xf32>, %i: tensor<2xi64>, %p: tensor<1x2x8xf32>, %q: tensor<1x4x8xf32>)
    -> (tensor<5x20xf32>, tensor<5x20xf32>, tensor<5x4xf32>, tensor<2x20xf32>, tensor<1x6x6xf32>, tensor<1x6x6xf32>) {
  %w = nn.load @w : tensor<4x20xf32>
  %f = nn.load @f : tensor<6x2x3xf32>
  %0 = exec.fused (%a = %x, %b = %w) : (tensor<5x4xf32>, tensor<4x20xf32>) -> tensor<5x20xf32> {
    %r = nn.einsum %a, %b "ik,kj->ij" : (tensor<5x4xf32>, tensor<4x20xf32>) -> tensor<5x20xf32>
    exec.yield %r : tensor<5x20xf32>
  }
  %1 = exec.fused (%a = %x, %b = %w) : (tensor<5x4xf32>, tensor<4x20xf32>) -> tensor<5x20xf32> {
    %r = nn.einsum %a, %b "ik,kj->ij" : (tensor<5x4xf32>, tensor<4x20xf32>) -> tensor<5x20xf32>
    exec.yield %r : tensor<5x20xf32>
  }
  %2 = exec.fused (%a = %y, %b = %w) : (tensor<5x20xf32>, tensor<4x20xf32>) -> tensor<5x4xf32> {
    %r = nn.einsum %a, %b "ij,kj->ik" : (tensor<5x20xf32>, tensor<4x20xf32>) -> tensor<5x4xf32>
    exec.yield %r : tensor<5x4xf32>
  }
  %3 = exec.fused (%a = %w, %b = %i) : (tensor<4x20xf32>, tensor<2xi64>) -> tensor<2x20xf32> {
    %r = nn.gather %a, %b dim 0 : (tensor<4x20xf32>, tensor<2xi64>) -> tensor<2x20xf32>
    exec.yield %r : tensor<2x20xf32>
  }
  %4 = exec.fused (%a = %p, %b = %f) : (tensor<1x2x8xf32>, tensor<6x2x3xf32>) -> tensor<1x6x6xf32> {
    %r = nn.conv %a, %b strides [1] pads_low [0] pads_high [0] dilations [1] groups 1 : (tensor<1x2x8xf32>, tensor<6x2x3xf32>) -> tensor<1x6x6xf32>
    exec.yield %r : tensor<1x6x6xf32>
  }
  %5 = exec.fused (%a = %q, %b = %f) : (tensor<1x4x8xf32>, tensor<6x2x3xf32>) -> tensor<1x6x6xf32> {
    %r = nn.conv %a, %b strides [1] pads_low [0] pads_high [0] dilations [1] groups 2 : (tensor<1x4x8xf32>, tensor<6x2x3xf32>) -> tensor<1x6x6xf32>
    exec.yield %r : tensor<1x6x6xf32>
  }
  return %0, %1, %2, %3, %4, %5 : tensor<5x20xf32>, tensor<5x20xf32>, tensor<5x4xf32>, tensor<2x20xf32>, tensor<1x6x6xf32>, tensor<1x6x6xf32>
}

// Outer columns are a batch; a result that does not end in a column has its weight as it is, and so has what is not a weight.
// CHECK-LABEL: @annotations
// CHECK: exec.pack %{{.*}} order [1, 0, 2] batch 1 width 8 interleave 1 : (tensor<4x2x8xf32>) -> tensor<2x1x4x8x1xf32>
// CHECK-NOT: exec.pack
func.func @annotations(%x: tensor<5x4xf32>, %y: tensor<4x8xf32>) -> (tensor<5x2x8xf32>, tensor<2x8x5xf32>, tensor<5x8xf32>) {
  %w = nn.constant dense<1.0> : tensor<4x2x8xf32> -> tensor<4x2x8xf32>
  %0 = exec.fused (%a = %x, %b = %w) : (tensor<5x4xf32>, tensor<4x2x8xf32>) -> tensor<5x2x8xf32> {
    %r = nn.einsum %a, %b "ik,khd->ihd" : (tensor<5x4xf32>, tensor<4x2x8xf32>) -> tensor<5x2x8xf32>
    exec.yield %r : tensor<5x2x8xf32>
  }
  %1 = exec.fused (%a = %x, %b = %w) : (tensor<5x4xf32>, tensor<4x2x8xf32>) -> tensor<2x8x5xf32> {
    %r = nn.einsum %a, %b "ik,khd->hdi" : (tensor<5x4xf32>, tensor<4x2x8xf32>) -> tensor<2x8x5xf32>
    exec.yield %r : tensor<2x8x5xf32>
  }
  %2 = exec.fused (%a = %x, %b = %y) : (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32> {
    %r = nn.einsum %a, %b "ik,kj->ij" : (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
    exec.yield %r : tensor<5x8xf32>
  }
  return %0, %1, %2 : tensor<5x2x8xf32>, tensor<2x8x5xf32>, tensor<5x8xf32>
}
