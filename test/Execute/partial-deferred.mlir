// A product that is asked to be partial keeps its terms: its contracted dim is split, and the reduction waits until
// somebody needs the value whole. Here that is behind a second product, whose result is half as large:
// 8 x 4 x 4 bytes * 2 * (4 - 1) / 4 = 192, where the first product would take 384.
//
// RUN: cleave run %s --check | FileCheck %s --check-prefix=RAN
// RUN: cleave shard %s | FileCheck %s
// RUN: cleave explain %s a | FileCheck %s --check-prefix=WHY

// RAN: mesh x=4 (4 ranks)
// RAN-NEXT: 1 x all_reduce over x 8x4xf32 192 B
// RAN-NEXT: sent by a rank: 192 B
// RAN: check y: ok
// RAN: check terms: ok
// WHY: a: f32[8, 16] [_, x]
// WHY: dim 1 of a
// WHY-NEXT: from nn.einsum, dim 1 of operand 0
// WHY-NEXT: from asked for in {{.*}}partial-deferred.mlir:
#mesh = #spmd.mesh<["x"=4]>
#terms = #spmd.sharding<#mesh, [{}, {}], partial = {"x": sum}>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
// CHECK-LABEL: @main
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<8x4xf32> {nn.name = "a", spmd.global = tensor<8x16xf32,
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x8xf32> {spmd.global = tensor<16x8xf32,
func.func @main(%a: tensor<8x16xf32> {nn.name = "a"}, %w: tensor<16x8xf32>, %v: tensor<8x4xf32>)
    -> (tensor<8x4xf32, #replicated> {nn.name = "y"}, tensor<8x8xf32, #terms> {nn.name = "terms"}) {
  // CHECK-NEXT: %[[P:.*]] = nn.einsum %[[A]], %[[W]]
  %0 = nn.einsum %a, %w "ik,kj->ij" : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32, #terms>
  // CHECK-NEXT: %[[Q:.*]] = nn.einsum %[[P]],
  %1 = nn.einsum %0, %v "ik,kj->ij" : (tensor<8x8xf32, #terms>, tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK-NEXT: %[[Y:.*]] = spmd.all_reduce sum %[[Q]] over {"x"}
  // CHECK-NEXT: return %[[Y]], %[[P]]
  %2 = spmd.constrain %1 : tensor<8x4xf32> to tensor<8x4xf32, #replicated>
  return %2, %0 : tensor<8x4xf32, #replicated>, tensor<8x8xf32, #terms>
}
