// RUN: cleave-opt %s --nn-canonicalize | FileCheck %s

// Calls become bodies first, so that what the two calls compute alike is found; then Gemm's flattened batch comes apart.
// CHECK-LABEL: @calls_then_equal_ops_then_flattened_dims
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x64xf32>, %[[W:.*]]: tensor<64x32xf32>)
// CHECK-NEXT: %[[D:.*]] = nn.einsum %[[X]], %[[W]] {{.*}} -> tensor<2x8x32xf32>
// CHECK-NEXT: %[[S:.*]] = nn.add %[[D]], %[[D]]
// CHECK-NEXT: return %[[S]]
func.func @calls_then_equal_ops_then_flattened_dims(%x: tensor<2x8x64xf32>, %w: tensor<64x32xf32>) -> tensor<2x8x32xf32> {
  %a = func.call @dense(%x, %w) : (tensor<2x8x64xf32>, tensor<64x32xf32>) -> tensor<2x8x32xf32>
  %b = func.call @dense(%x, %w) : (tensor<2x8x64xf32>, tensor<64x32xf32>) -> tensor<2x8x32xf32>
  %y = nn.add %a, %b : (tensor<2x8x32xf32>, tensor<2x8x32xf32>) -> tensor<2x8x32xf32>
  return %y : tensor<2x8x32xf32>
}

// CHECK-NOT: @dense
func.func private @dense(%x: tensor<2x8x64xf32>, %w: tensor<64x32xf32>) -> tensor<2x8x32xf32> {
  %f = nn.reshape %x : (tensor<2x8x64xf32>) -> tensor<16x64xf32>
  %d = nn.einsum %f, %w "ab,bc->ac" : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %y = nn.reshape %d : (tensor<16x32xf32>) -> tensor<2x8x32xf32>
  return %y : tensor<2x8x32xf32>
}
