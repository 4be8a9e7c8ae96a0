// An axis whose halves split two dims moves as a whole to a third dim, and back: one all_to_all over 4 ranks each way, of
// 2x4x8 f32 = 256 bytes a rank, 3/4 of which are sent.
//
// RUN: cleave run %s --check | FileCheck %s

// CHECK-LABEL: mesh a=4 (4 ranks)
// CHECK-NEXT: 1 x all_to_all over a:(1)2, a:(2)2 2x4x8xf32 192 B
// CHECK-NEXT: 1 x all_to_all over a 4x8x2xf32 192 B
// CHECK-NEXT: sent by a rank: 384 B
// CHECK: check result0: ok
// CHECK: check result1: ok
#mesh = #spmd.mesh<["a"=4]>
#torn = #spmd.sharding<#mesh, [{"a":(1)2}, {"a":(2)2}, {}]>
#replicated = #spmd.sharding<#mesh, [{}, {}, {"a"}]>
func.func @main(%x: tensor<4x8x8xf32, #torn>, %y: tensor<4x8x8xf32, #replicated>)
    -> (tensor<4x8x8xf32, #replicated>, tensor<4x8x8xf32, #torn>) {
  %0 = spmd.reshard %x : tensor<4x8x8xf32, #torn> to tensor<4x8x8xf32, #replicated>
  %1 = spmd.reshard %y : tensor<4x8x8xf32, #replicated> to tensor<4x8x8xf32, #torn>
  return %0, %1 : tensor<4x8x8xf32, #replicated>, tensor<4x8x8xf32, #torn>
}
