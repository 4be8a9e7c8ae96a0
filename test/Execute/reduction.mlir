// Reductions, softmax, searches and scans along split dims: only statistics travel.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-partition | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir
// RUN: %{each} %t.mlir %t.4 "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#x = #spmd.sharding<#mesh, [{"x"}]>
#y = #spmd.sharding<#mesh, [{"y"}]>
#xo = #spmd.sharding<#mesh, [{"x"}, {}]>
#x_sum_y = #spmd.sharding<#mesh, [{"x"}], partial = {"y": sum}>
#y_max_x = #spmd.sharding<#mesh, [{"y"}], partial = {"x": max}>

//--- mean.mlir
// Each rank has its part of the mean, already divided.
// CHECK-LABEL: @a_mean_is_summed
func.func @a_mean_is_summed(%x: tensor<8x16xf32, #xy>) -> tensor<8xf32, #x> {
  // CHECK: nn.reduce mean
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<4xf32>
  // CHECK-NEXT: return
  %0 = nn.reduce mean %x dims [1] : (tensor<8x16xf32, #xy>) -> tensor<8xf32, #x_sum_y>
  %1 = spmd.reshard %0 : tensor<8xf32, #x_sum_y> to tensor<8xf32, #x>
  return %1 : tensor<8xf32, #x>
}

//--- max.mlir
// A maximum of maxima.
// CHECK-LABEL: @a_maximum_is_reduced_by_maximum
func.func @a_maximum_is_reduced_by_maximum(%x: tensor<8x16xf32, #xy>) -> tensor<16xf32, #y> {
  // CHECK-NEXT: nn.reduce max
  // CHECK-NEXT: spmd.all_reduce max {{.*}} over {"x"} : tensor<8xf32>
  // CHECK-NEXT: return
  %0 = nn.reduce max %x dims [0] : (tensor<8x16xf32, #xy>) -> tensor<16xf32, #y_max_x>
  %1 = spmd.reshard %0 : tensor<16xf32, #y_max_x> to tensor<16xf32, #y>
  return %1 : tensor<16xf32, #y>
}

//--- softmax.mlir
// The maximum and the sum of each row.
// CHECK-LABEL: @a_softmax_reduces_two_numbers_a_row
func.func @a_softmax_reduces_two_numbers_a_row(%x: tensor<8x16xf32, #xy>) -> tensor<8x16xf32, #xy> {
  // CHECK: spmd.all_reduce max {{.*}} over {"y"} : tensor<4x1xf32>
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<4x1xf32>
  // CHECK-NOT: = spmd.
  // CHECK: nn.div
  // CHECK-NEXT: return
  %0 = nn.softmax %x dim 1 : (tensor<8x16xf32, #xy>) -> tensor<8x16xf32, #xy>
  return %0 : tensor<8x16xf32, #xy>
}

//--- log-softmax.mlir
// The same along columns.
// CHECK-LABEL: @a_log_softmax_reduces_two_numbers_a_column
func.func @a_log_softmax_reduces_two_numbers_a_column(%x: tensor<8x16xf32, #xy>) -> tensor<8x16xf32, #xy> {
  // CHECK: spmd.all_reduce max {{.*}} over {"x"} : tensor<1x8xf32>
  // CHECK: spmd.all_reduce sum {{.*}} over {"x"} : tensor<1x8xf32>
  // CHECK-NOT: = spmd.
  // CHECK: nn.log
  // CHECK-NOT: = spmd.
  %0 = nn.log_softmax %x dim 0 : (tensor<8x16xf32, #xy>) -> tensor<8x16xf32, #xy>
  return %0 : tensor<8x16xf32, #xy>
}

//--- arg-max.mlir
// The value, then the index of whoever has it.
// CHECK-LABEL: @an_index_is_that_of_the_first_holder
func.func @an_index_is_that_of_the_first_holder(%x: tensor<8x16xf32, #xy>) -> tensor<8xi64, #x> {
  // CHECK: spmd.all_reduce max {{.*}} over {"y"} : tensor<4x1xf32>
  // CHECK: nn.arg_reduce
  // CHECK: spmd.all_reduce min {{.*}} over {"y"} : tensor<4x1xi32>
  // CHECK-NOT: = spmd.
  %0 = nn.arg_reduce max %x dim 1 : (tensor<8x16xf32, #xy>) -> tensor<8xi64, #x>
  return %0 : tensor<8xi64, #x>
}

//--- cumsum.mlir
// Each rank adds the totals of those before it.
// CHECK-LABEL: @a_scan_gathers_totals
func.func @a_scan_gathers_totals(%x: tensor<8x16xf32, #xy>) -> tensor<8x16xf32, #xy> {
  // CHECK: nn.cumsum
  // CHECK: spmd.all_gather {{.*}} : (tensor<4x1xf32>) -> tensor<4x2xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  %0 = nn.cumsum %x dim 1 : (tensor<8x16xf32, #xy>) -> tensor<8x16xf32, #xy>
  return %0 : tensor<8x16xf32, #xy>
}

//--- top-k.mlir
// Three candidates of each rank, and where they stand.
// CHECK-LABEL: @the_best_of_each_rank_meet
func.func @the_best_of_each_rank_meet(%x: tensor<8x16xf32, #xy>) -> (tensor<8x3xf32, #xo>, tensor<8x3xi64, #xo>) {
  // CHECK: nn.top_k
  // CHECK: spmd.all_gather {{.*}} : (tensor<4x3xf32>) -> tensor<4x6xf32>
  // CHECK: spmd.all_gather {{.*}} : (tensor<4x3xi32>) -> tensor<4x6xi32>
  // CHECK: nn.top_k
  // CHECK-NOT: = spmd.
  // EQUAL: check result1: ok
  %0:2 = nn.top_k %x k 3 dim 1 : (tensor<8x16xf32, #xy>) -> (tensor<8x3xf32, #xo>, tensor<8x3xi64, #xo>)
  return %0#0, %0#1 : tensor<8x3xf32, #xo>, tensor<8x3xi64, #xo>
}
