// Norms over cut dims all-reduce their moments, and nothing else.
//
// RUN: cleave-opt %s --spmd-partition | FileCheck %s
// RUN: cleave run %s --check | FileCheck %s --check-prefix=EQUAL
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir && cleave run %t.mlir --check | FileCheck %s --check-prefix=EQUAL

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#y = #spmd.sharding<#mesh, [{"y"}]>
#xoy = #spmd.sharding<#mesh, [{"x"}, {}, {"y"}]>
#o = #spmd.sharding<#mesh, [{}]>
#oXo = #spmd.sharding<#mesh, [{}, {"x", "y"}, {}]>
#X = #spmd.sharding<#mesh, [{"x", "y"}]>

// CHECK-LABEL: @moments_travel
func.func @moments_travel(%x: tensor<8x16xf32, #xy>, %s: tensor<16xf32, #y>, %h: tensor<4x8x16xf32, #xoy>, %c: tensor<8xf32, #o>, %w: tensor<8xf32, #o>) -> (tensor<8x16xf32, #xy>, tensor<8x16xf32, #xy>, tensor<4x8x16xf32, #xoy>, tensor<4x8x16xf32, #oXo>) {
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<4x1xf32>
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<4x1xf32>
  // CHECK-NOT: = spmd.
  // CHECK: nn.sqrt
  %0 = nn.layer_norm %x, %s bias %s dim 1 epsilon 1.0e-5 : (tensor<8x16xf32, #xy>, tensor<16xf32, #y>, tensor<16xf32, #y>) -> tensor<8x16xf32, #xy>
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<4x1xf32>
  // CHECK-NOT: = spmd.
  // CHECK: nn.sqrt
  %1 = nn.rms_norm %x, %s dim 1 epsilon 1.0e-5 : (tensor<8x16xf32, #xy>, tensor<16xf32, #y>) -> tensor<8x16xf32, #xy>
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<2x2x1x1xf32>
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<2x2x1x1xf32>
  // CHECK-NOT: = spmd.all
  // CHECK: nn.sqrt
  %2 = nn.group_norm %h, %c, %c groups 2 epsilon 1.0e-5 : (tensor<4x8x16xf32, #xoy>, tensor<8xf32, #o>, tensor<8xf32, #o>) -> tensor<4x8x16xf32, #xoy>
  // Whole groups stay on their ranks.
  // CHECK: nn.group_norm {{.*}} groups 1
  // CHECK-NEXT: return
  %3 = spmd.reshard %h : tensor<4x8x16xf32, #xoy> to tensor<4x8x16xf32, #oXo>
  %4 = spmd.reshard %c : tensor<8xf32, #o> to tensor<8xf32, #X>
  %5 = nn.group_norm %3, %4, %4 groups 4 epsilon 1.0e-5 : (tensor<4x8x16xf32, #oXo>, tensor<8xf32, #X>, tensor<8xf32, #X>) -> tensor<4x8x16xf32, #oXo>
  return %0, %1, %2, %5 : tensor<8x16xf32, #xy>, tensor<8x16xf32, #xy>, tensor<4x8x16xf32, #xoy>, tensor<4x8x16xf32, #oXo>
}
