// Movement that keeps elements on their ranks, and a slice that its holders fill in.
//
// RUN: cleave-opt %s --spmd-partition | FileCheck %s
// RUN: cleave run %s --check | FileCheck %s --check-prefix=EQUAL
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir && cleave run %t.mlir --check | FileCheck %s --check-prefix=EQUAL

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#yx = #spmd.sharding<#mesh, [{"y"}, {"x"}]>
#X = #spmd.sharding<#mesh, [{"x", "y"}]>
#xyo = #spmd.sharding<#mesh, [{"x"}, {"y"}, {}]>
#xo = #spmd.sharding<#mesh, [{"x"}, {}]>
#Xo = #spmd.sharding<#mesh, [{"x", "y"}, {}]>
#xo_sum_y = #spmd.sharding<#mesh, [{"x"}, {}], partial = {"y": sum}>

// CHECK-LABEL: @moves
func.func @moves(%x: tensor<8x16xf32, #xy>, %v: tensor<8x8xf32, #xy>) -> (tensor<16x8xf32, #yx>, tensor<128xf32, #X>, tensor<8x4x4xf32, #xyo>, tensor<8x8xf32, #xy>, tensor<8x8xf32, #xy>, tensor<8x3xf32, #xo>) {
  // CHECK: nn.transpose {{.*}} -> tensor<8x4xf32>
  %0 = nn.transpose %x [1, 0] : (tensor<8x16xf32, #xy>) -> tensor<16x8xf32, #yx>
  // CHECK: nn.reshape {{.*}} -> tensor<32xf32>
  %1 = spmd.reshard %x : tensor<8x16xf32, #xy> to tensor<8x16xf32, #Xo>
  %2 = nn.reshape %1 : (tensor<8x16xf32, #Xo>) -> tensor<128xf32, #X>
  // CHECK: nn.reshape {{.*}} -> tensor<4x2x4xf32>
  %3 = nn.reshape %x : (tensor<8x16xf32, #xy>) -> tensor<8x4x4xf32, #xyo>
  // Every second element of each shard.
  // CHECK: nn.slice {{.*}} starts [0, 1] sizes [4, 4] steps [1, 2]
  %4 = nn.slice %x starts [0, 1] sizes [8, 8] steps [1, 2] : (tensor<8x16xf32, #xy>) -> tensor<8x8xf32, #xy>
  // The triangle is that of global positions.
  // CHECK: spmd.axis_index {"x"}
  // CHECK: spmd.axis_index {"y"}
  // CHECK: nn.select
  %5 = nn.trilu %v offset 1 : (tensor<8x8xf32, #xy>) -> tensor<8x8xf32, #xy>
  // CHECK: spmd.axis_index {"y"}
  // CHECK: %[[HELD:.*]] = nn.select {{.*}} -> tensor<4x3xf32>
  // CHECK-NEXT: spmd.all_reduce sum %[[HELD]] over {"y"} : tensor<4x3xf32>
  // CHECK-NOT: = spmd.
  %6 = nn.slice %x starts [0, 6] sizes [8, 3] steps [1, 1] : (tensor<8x16xf32, #xy>) -> tensor<8x3xf32, #xo_sum_y>
  %7 = spmd.reshard %6 : tensor<8x3xf32, #xo_sum_y> to tensor<8x3xf32, #xo>
  return %0, %2, %3, %4, %5, %7 : tensor<16x8xf32, #yx>, tensor<128xf32, #X>, tensor<8x4x4xf32, #xyo>, tensor<8x8xf32, #xy>, tensor<8x8xf32, #xy>, tensor<8x3xf32, #xo>
}
