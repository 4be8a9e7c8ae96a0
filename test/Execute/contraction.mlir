// An einsum runs on its shards; what is contracted over a cut dim is summed once, after the last linear op.
//
// RUN: cleave-opt %s --spmd-partition | FileCheck %s
// RUN: cleave run %s --check | FileCheck %s --check-prefix=EQUAL
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir && cleave run %t.mlir --check | FileCheck %s --check-prefix=EQUAL

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#xo = #spmd.sharding<#mesh, [{"x"}, {}]>
#oy = #spmd.sharding<#mesh, [{}, {"y"}]>
#yo = #spmd.sharding<#mesh, [{"y"}, {}]>
#xyo = #spmd.sharding<#mesh, [{"x"}, {"y"}, {}]>
#xoo = #spmd.sharding<#mesh, [{"x"}, {}, {}]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#xo_sum_y = #spmd.sharding<#mesh, [{"x"}, {}], partial = {"y": sum}>

// CHECK-LABEL: @column_then_row
func.func @column_then_row(%x: tensor<8x16xf32, #xo>, %a: tensor<16x32xf32, #oy>, %b: tensor<32x16xf32, #yo>, %k: tensor<4x4x6xf32, #xyo>, %l: tensor<4x6x8xf32, #xoo>) -> (tensor<8x16xf32, #xo>, tensor<4x4x8xf32, #xyo>) {
  // CHECK: nn.einsum {{.*}} -> tensor<4x16xf32>
  // CHECK-NEXT: %[[PARTIAL:.*]] = nn.einsum {{.*}} -> tensor<4x16xf32>
  // CHECK-NEXT: spmd.all_reduce sum %[[PARTIAL]] over {"y"} : tensor<4x16xf32>
  // CHECK-NEXT: nn.einsum {{.*}} : (tensor<2x2x6xf32>, tensor<2x6x8xf32>) -> tensor<2x2x8xf32>
  // CHECK-NEXT: return
  %0 = nn.einsum %x, %a "ik,kj->ij" : (tensor<8x16xf32, #xo>, tensor<16x32xf32, #oy>) -> tensor<8x32xf32, #xy>
  %1 = nn.einsum %0, %b "ik,kj->ij" : (tensor<8x32xf32, #xy>, tensor<32x16xf32, #yo>) -> tensor<8x16xf32, #xo_sum_y>
  %2 = spmd.reshard %1 : tensor<8x16xf32, #xo_sum_y> to tensor<8x16xf32, #xo>
  %3 = nn.einsum %k, %l "bik,bkj->bij" : (tensor<4x4x6xf32, #xyo>, tensor<4x6x8xf32, #xoo>) -> tensor<4x4x8xf32, #xyo>
  return %2, %3 : tensor<8x16xf32, #xo>, tensor<4x4x8xf32, #xyo>
}
