// A rank looks up and updates what it holds.
//
// RUN: cleave-opt %s --spmd-partition | FileCheck %s
// RUN: cleave run %s --check | FileCheck %s --check-prefix=EQUAL
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir && cleave run %t.mlir --check | FileCheck %s --check-prefix=EQUAL

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#oo = #spmd.sharding<#mesh, [{}, {}]>
#ooy = #spmd.sharding<#mesh, [{}, {}, {"y"}]>
#o = #spmd.sharding<#mesh, [{}]>
#oox = #spmd.sharding<#mesh, [{}, {}, {"x"}]>
#ooy_sum_x = #spmd.sharding<#mesh, [{}, {}, {"y"}], partial = {"x": sum}>
#ooo = #spmd.sharding<#mesh, [{}, {}, {}]>

// CHECK-LABEL: @lookups_and_updates
func.func @lookups_and_updates(%t: tensor<16x8xf32, #xy>, %i: tensor<4x2xi64, #oo>, %u: tensor<4x2x8xf32, #ooy>, %v: tensor<2xf32, #o>) -> (tensor<4x2x8xf32, #ooy>, tensor<16x8xf32, #xy>, tensor<4x2x16xf32, #oox>) {
  // CHECK: nn.gather {{.*}} -> tensor<4x2x4xf32>
  // CHECK: %[[FOUND:.*]] = nn.select
  // CHECK-NEXT: spmd.all_reduce sum %[[FOUND]] over {"x"} : tensor<4x2x4xf32>
  %0 = nn.gather %t, %i dim 0 : (tensor<16x8xf32, #xy>, tensor<4x2xi64, #oo>) -> tensor<4x2x8xf32, #ooy_sum_x>
  %1 = spmd.reshard %0 : tensor<4x2x8xf32, #ooy_sum_x> to tensor<4x2x8xf32, #ooy>
  // One dummy row takes the updates of other ranks.
  // CHECK: %[[ROOM:.*]] = nn.pad constant {{.*}} -> tensor<9x4xf32>
  // CHECK: nn.scatter_nd max %[[ROOM]]
  // CHECK: nn.slice {{.*}} -> tensor<8x4xf32>
  // CHECK-NOT: = spmd.all
  %2 = nn.reshape %i : (tensor<4x2xi64, #oo>) -> tensor<4x2x1xi64, #ooo>
  %3 = nn.scatter_nd max %t, %2, %u : (tensor<16x8xf32, #xy>, tensor<4x2x1xi64, #ooo>, tensor<4x2x8xf32, #ooy>) -> tensor<16x8xf32, #xy>
  %4 = nn.one_hot %i, %v depth 16 dim 2 : (tensor<4x2xi64, #oo>, tensor<2xf32, #o>) -> tensor<4x2x16xf32, #oox>
  return %1, %3, %4 : tensor<4x2x8xf32, #ooy>, tensor<16x8xf32, #xy>, tensor<4x2x16xf32, #oox>
}
