// An einsum runs on its shards; what is contracted over a split dim is summed once, after the last linear op.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-partition | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir
// RUN: %{each} %t.mlir %t.4 "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#xo = #spmd.sharding<#mesh, [{"x"}, {}]>
#oy = #spmd.sharding<#mesh, [{}, {"y"}]>
#yo = #spmd.sharding<#mesh, [{"y"}, {}]>
#xyo = #spmd.sharding<#mesh, [{"x"}, {"y"}, {}]>
#xoo = #spmd.sharding<#mesh, [{"x"}, {}, {}]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#xo_sum_y = #spmd.sharding<#mesh, [{"x"}, {}], partial = {"y": sum}>

//--- layers.mlir
// A layer split by columns and one by rows: the sum over the hidden dim is reduced once, after the second.
// CHECK-LABEL: @column_then_row_needs_one_all_reduce
func.func @column_then_row_needs_one_all_reduce(%x: tensor<8x16xf32, #xo>, %a: tensor<16x32xf32, #oy>, %b: tensor<32x16xf32, #yo>) -> tensor<8x16xf32, #xo> {
  // CHECK-NEXT: nn.einsum {{.*}} -> tensor<4x16xf32>
  // CHECK-NEXT: %[[PARTIAL:.*]] = nn.einsum {{.*}} -> tensor<4x16xf32>
  // CHECK-NEXT: spmd.all_reduce sum %[[PARTIAL]] over {"y"} : tensor<4x16xf32>
  // CHECK-NEXT: return
  %0 = nn.einsum %x, %a "ik,kj->ij" : (tensor<8x16xf32, #xo>, tensor<16x32xf32, #oy>) -> tensor<8x32xf32, #xy>
  %1 = nn.einsum %0, %b "ik,kj->ij" : (tensor<8x32xf32, #xy>, tensor<32x16xf32, #yo>) -> tensor<8x16xf32, #xo_sum_y>
  %2 = spmd.reshard %1 : tensor<8x16xf32, #xo_sum_y> to tensor<8x16xf32, #xo>
  return %2 : tensor<8x16xf32, #xo>
}

//--- batch.mlir
// A batched product, split along its batch and along its rows.
// CHECK-LABEL: @cut_batches_and_rows_stay_on_their_ranks
func.func @cut_batches_and_rows_stay_on_their_ranks(%a: tensor<4x4x6xf32, #xyo>, %b: tensor<4x6x8xf32, #xoo>) -> tensor<4x4x8xf32, #xyo> {
  // CHECK-NEXT: nn.einsum {{.*}} : (tensor<2x2x6xf32>, tensor<2x6x8xf32>) -> tensor<2x2x8xf32>
  // CHECK-NEXT: return
  %0 = nn.einsum %a, %b "bik,bkj->bij" : (tensor<4x4x6xf32, #xyo>, tensor<4x6x8xf32, #xoo>) -> tensor<4x4x8xf32, #xyo>
  return %0 : tensor<4x4x8xf32, #xyo>
}
