// Rows that are added up in a table: an anchor, on whose rows the table's update goes on.
//
// RUN: cleave-opt %s --exec-fuse-kernels --exec-verify-form | FileCheck %s
module attributes {spmd.mesh = #spmd.mesh<["data"=2]>} {

// Each kernel has the number of its own, although it is also returned.
// CHECK-LABEL: @two_tables
func.func @two_tables(%i: tensor<5x1xi64>, %u: tensor<5x8xf32>, %v: tensor<5x8xf32>, %w: tensor<9x8xf32>) -> (tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>) {
  // CHECK: %[[FIRST:.*]] = exec.fused (%[[AT:.*]] = %arg0, %[[ROWS:.*]] = %arg1, %[[W:.*]] = %arg3)
  // CHECK: %[[ZEROS:.*]] = nn.broadcast
  // CHECK-NEXT: %[[SUM:.*]] = nn.scatter_nd add %[[ZEROS]], %[[AT]], %[[ROWS]]
  // CHECK-NEXT: %[[NEXT:.*]] = nn.sub %[[W]], %[[SUM]]
  // CHECK-NEXT: exec.yield %[[NEXT]]
  // CHECK: exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg2)
  // CHECK: %[[MORE:.*]] = nn.broadcast
  // CHECK-NEXT: nn.scatter_nd add %[[MORE]]
  %0 = nn.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %1 = nn.broadcast %0 : (tensor<f32>) -> tensor<9x8xf32>
  %2 = nn.scatter_nd add %1, %i, %u : (tensor<9x8xf32>, tensor<5x1xi64>, tensor<5x8xf32>) -> tensor<9x8xf32>
  %3 = nn.sub %w, %2 : (tensor<9x8xf32>, tensor<9x8xf32>) -> tensor<9x8xf32>
  %4 = nn.scatter_nd add %1, %i, %v : (tensor<9x8xf32>, tensor<5x1xi64>, tensor<5x8xf32>) -> tensor<9x8xf32>
  return %3, %4, %1 : tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>
}

// Zeros are a term on each rank; a table that something is in is one on the first rank.
// CHECK-LABEL: @terms
func.func @terms(%i: tensor<5x1xi64>, %u: tensor<5x8xf32>, %t: tensor<9x8xf32>) -> (tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>) {
  // CHECK: %[[KEPT:.*]] = spmd.keep_on_first sum %arg2
  // CHECK-NOT: keep_on_first
  // CHECK: nn.scatter_nd add
  // CHECK: nn.scatter_nd add
  // CHECK: spmd.keep_on_first sum
  // CHECK-NOT: keep_on_first
  %0 = nn.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %1 = nn.broadcast %0 : (tensor<f32>) -> tensor<9x8xf32>
  %2 = spmd.keep_on_first sum %t over {"data"} : tensor<9x8xf32>
  %3 = spmd.keep_on_first sum %1 over {"data"} : tensor<9x8xf32>
  %4 = nn.scatter_nd add %3, %i, %u : (tensor<9x8xf32>, tensor<5x1xi64>, tensor<5x8xf32>) -> tensor<9x8xf32>
  %5 = nn.scatter_nd add %2, %i, %u : (tensor<9x8xf32>, tensor<5x1xi64>, tensor<5x8xf32>) -> tensor<9x8xf32>
  %6 = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %7 = nn.broadcast %6 : (tensor<f32>) -> tensor<9x8xf32>
  %8 = spmd.keep_on_first sum %7 over {"data"} : tensor<9x8xf32>
  return %4, %5, %8 : tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>
}
}
