// Reductions, softmax, searches and scans along cut dims: only statistics travel.
//
// RUN: cleave-opt %s --spmd-partition | FileCheck %s
// RUN: cleave run %s --check | FileCheck %s --check-prefix=EQUAL
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir && cleave run %t.mlir --check | FileCheck %s --check-prefix=EQUAL

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#x = #spmd.sharding<#mesh, [{"x"}]>
#y = #spmd.sharding<#mesh, [{"y"}]>
#xo = #spmd.sharding<#mesh, [{"x"}, {}]>
#x_sum_y = #spmd.sharding<#mesh, [{"x"}], partial = {"y": sum}>
#y_max_x = #spmd.sharding<#mesh, [{"y"}], partial = {"x": max}>

// CHECK-LABEL: @along_cut_dims
func.func @along_cut_dims(%x: tensor<8x16xf32, #xy>) -> (tensor<8xf32, #x>, tensor<16xf32, #y>, tensor<8x16xf32, #xy>, tensor<8x16xf32, #xy>, tensor<8xi64, #x>, tensor<8x16xf32, #xy>, tensor<8x3xf32, #xo>, tensor<8x3xi64, #xo>) {
  // CHECK: nn.reduce mean
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<4xf32>
  %0 = nn.reduce mean %x dims [1] : (tensor<8x16xf32, #xy>) -> tensor<8xf32, #x_sum_y>
  %1 = spmd.reshard %0 : tensor<8xf32, #x_sum_y> to tensor<8xf32, #x>
  // CHECK: nn.reduce max
  // CHECK-NEXT: spmd.all_reduce max {{.*}} over {"x"} : tensor<8xf32>
  %2 = nn.reduce max %x dims [0] : (tensor<8x16xf32, #xy>) -> tensor<16xf32, #y_max_x>
  %3 = spmd.reshard %2 : tensor<16xf32, #y_max_x> to tensor<16xf32, #y>
  // The maximum and the sum of each row.
  // CHECK: spmd.all_reduce max {{.*}} over {"y"} : tensor<4x1xf32>
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<4x1xf32>
  // CHECK-NOT: = spmd.
  // CHECK: nn.div
  %4 = nn.softmax %x dim 1 : (tensor<8x16xf32, #xy>) -> tensor<8x16xf32, #xy>
  // CHECK: spmd.all_reduce max {{.*}} over {"x"} : tensor<1x8xf32>
  // CHECK: spmd.all_reduce sum {{.*}} over {"x"} : tensor<1x8xf32>
  // CHECK-NOT: = spmd.
  // CHECK: nn.log
  %5 = nn.log_softmax %x dim 0 : (tensor<8x16xf32, #xy>) -> tensor<8x16xf32, #xy>
  // The value, then the index of whoever has it.
  // CHECK: spmd.all_reduce max {{.*}} over {"y"} : tensor<4x1xf32>
  // CHECK: nn.arg_reduce
  // CHECK: spmd.all_reduce min {{.*}} over {"y"} : tensor<4x1xi32>
  %6 = nn.arg_reduce max %x dim 1 : (tensor<8x16xf32, #xy>) -> tensor<8xi64, #x>
  // CHECK: nn.cumsum
  // CHECK: spmd.all_gather {{.*}} : (tensor<4x1xf32>) -> tensor<4x2xf32>
  %7 = nn.cumsum %x dim 1 : (tensor<8x16xf32, #xy>) -> tensor<8x16xf32, #xy>
  // Three candidates of each rank, and where they stand.
  // CHECK: nn.top_k
  // CHECK: spmd.all_gather {{.*}} : (tensor<4x3xf32>) -> tensor<4x6xf32>
  // CHECK: spmd.all_gather {{.*}} : (tensor<4x3xi32>) -> tensor<4x6xi32>
  // CHECK: nn.top_k
  %8:2 = nn.top_k %x k 3 dim 1 : (tensor<8x16xf32, #xy>) -> (tensor<8x3xf32, #xo>, tensor<8x3xi64, #xo>)
  // CHECK-NOT: = spmd.
  return %1, %3, %4, %5, %6, %7, %8#0, %8#1 : tensor<8xf32, #x>, tensor<16xf32, #y>, tensor<8x16xf32, #xy>, tensor<8x16xf32, #xy>, tensor<8xi64, #x>, tensor<8x16xf32, #xy>, tensor<8x3xf32, #xo>, tensor<8x3xi64, #xo>
}
