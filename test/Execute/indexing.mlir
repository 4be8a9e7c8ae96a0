// A rank looks up and updates what it holds.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-partition | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir
// RUN: %{each} %t.mlir %t.4 "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#oo = #spmd.sharding<#mesh, [{}, {}]>
#ooy = #spmd.sharding<#mesh, [{}, {}, {"y"}]>
#o = #spmd.sharding<#mesh, [{}]>
#oox = #spmd.sharding<#mesh, [{}, {}, {"x"}]>
#ooy_sum_x = #spmd.sharding<#mesh, [{}, {}, {"y"}], partial = {"x": sum}>
#ooo = #spmd.sharding<#mesh, [{}, {}, {}]>

//--- lookup.mlir
// Rows are split: a rank finds what it holds, has zeros elsewhere, and the finds are added up.
// CHECK-LABEL: @what_is_found_is_summed
func.func @what_is_found_is_summed(%t: tensor<16x8xf32, #xy>, %i: tensor<4x2xi64, #oo>) -> tensor<4x2x8xf32, #ooy> {
  // CHECK: nn.gather {{.*}} -> tensor<4x2x4xf32>
  // CHECK: %[[FOUND:.*]] = nn.select
  // CHECK-NEXT: spmd.all_reduce sum %[[FOUND]] over {"x"} : tensor<4x2x4xf32>
  // CHECK-NEXT: return
  %0 = nn.gather %t, %i dim 0 : (tensor<16x8xf32, #xy>, tensor<4x2xi64, #oo>) -> tensor<4x2x8xf32, #ooy_sum_x>
  %1 = spmd.reshard %0 : tensor<4x2x8xf32, #ooy_sum_x> to tensor<4x2x8xf32, #ooy>
  return %1 : tensor<4x2x8xf32, #ooy>
}

//--- update.mlir
// Updates of rows that others hold go to one dummy row, which is cut off again; nothing is sent.
// CHECK-LABEL: @a_dummy_row_takes_the_updates_of_others
func.func @a_dummy_row_takes_the_updates_of_others(%t: tensor<16x8xf32, #xy>, %i: tensor<4x2xi64, #oo>, %u: tensor<4x2x8xf32, #ooy>) -> tensor<16x8xf32, #xy> {
  // CHECK: %[[ROOM:.*]] = nn.pad constant {{.*}} -> tensor<9x4xf32>
  // CHECK: nn.scatter_nd max %[[ROOM]]
  // CHECK: nn.slice {{.*}} -> tensor<8x4xf32>
  // CHECK-NOT: = spmd.all
  %0 = nn.reshape %i : (tensor<4x2xi64, #oo>) -> tensor<4x2x1xi64, #ooo>
  %1 = nn.scatter_nd max %t, %0, %u : (tensor<16x8xf32, #xy>, tensor<4x2x1xi64, #ooo>, tensor<4x2x8xf32, #ooy>) -> tensor<16x8xf32, #xy>
  return %1 : tensor<16x8xf32, #xy>
}

//--- one-hot.mlir
// A rank compares with the positions of its shard.
// CHECK-LABEL: @a_one_hot_is_cut_along_its_depth
func.func @a_one_hot_is_cut_along_its_depth(%i: tensor<4x2xi64, #oo>, %v: tensor<2xf32, #o>) -> tensor<4x2x16xf32, #oox> {
  // CHECK: spmd.axis_index {"x"}
  // CHECK: nn.eq {{.*}} -> tensor<4x2x8xi1>
  // CHECK-NOT: = spmd.
  %0 = nn.one_hot %i, %v depth 16 dim 2 : (tensor<4x2xi64, #oo>, tensor<2xf32, #o>) -> tensor<4x2x16xf32, #oox>
  return %0 : tensor<4x2x16xf32, #oox>
}
