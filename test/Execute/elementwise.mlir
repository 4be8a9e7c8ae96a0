// Elementwise ops never communicate; linear ones hand partial sums on.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-partition | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir
// RUN: %{each} %t.mlir %t.4 "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#yo = #spmd.sharding<#mesh, [{"y"}, {}]>
#xo = #spmd.sharding<#mesh, [{"x"}, {}]>
#o = #spmd.sharding<#mesh, [{}]>
#xo_sum_y = #spmd.sharding<#mesh, [{"x"}, {}], partial = {"y": sum}>

//--- linear.mlir
// Terms of a sum pass through what is linear; the one reduction stands before the relu.
// CHECK-LABEL: @one_all_reduce_behind_linear_ops
func.func @one_all_reduce_behind_linear_ops(%a: tensor<8x4xf32, #xy>, %b: tensor<4x8xf32, #yo>, %c: tensor<8x1xi1, #xo>, %s: tensor<8xf32, #o>) -> tensor<8x8xf32, #xo> {
  // CHECK: nn.einsum
  // CHECK-NOT: = spmd.
  // CHECK: nn.mul
  // CHECK: nn.neg
  // CHECK: nn.select
  // CHECK: nn.div
  // CHECK-NEXT: %[[SUM:.*]] = spmd.all_reduce sum {{.*}} over {"y"} : tensor<4x8xf32>
  // CHECK-NEXT: nn.relu %[[SUM]]
  // CHECK-NEXT: return
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<8x4xf32, #xy>, tensor<4x8xf32, #yo>) -> tensor<8x8xf32, #xo_sum_y>
  %1 = nn.mul %0, %s : (tensor<8x8xf32, #xo_sum_y>, tensor<8xf32, #o>) -> tensor<8x8xf32, #xo_sum_y>
  %2 = nn.neg %1 : (tensor<8x8xf32, #xo_sum_y>) -> tensor<8x8xf32, #xo_sum_y>
  %3 = nn.select %c, %2, %1 : (tensor<8x1xi1, #xo>, tensor<8x8xf32, #xo_sum_y>, tensor<8x8xf32, #xo_sum_y>) -> tensor<8x8xf32, #xo_sum_y>
  %4 = nn.div %3, %s : (tensor<8x8xf32, #xo_sum_y>, tensor<8xf32, #o>) -> tensor<8x8xf32, #xo_sum_y>
  %5 = spmd.reshard %4 : tensor<8x8xf32, #xo_sum_y> to tensor<8x8xf32, #xo>
  %6 = nn.relu %5 : (tensor<8x8xf32, #xo>) -> tensor<8x8xf32, #xo>
  return %6 : tensor<8x8xf32, #xo>
}

//--- local.mlir
// What is not linear works on shards as well.
// CHECK-LABEL: @an_exponential_is_local
func.func @an_exponential_is_local(%a: tensor<8x4xf32, #xy>) -> tensor<8x4xf32, #xy> {
  // CHECK-NEXT: nn.exp {{.*}} -> tensor<4x2xf32>
  // CHECK-NEXT: return
  %0 = nn.exp %a : (tensor<8x4xf32, #xy>) -> tensor<8x4xf32, #xy>
  return %0 : tensor<8x4xf32, #xy>
}
