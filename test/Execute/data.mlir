// Constants, parameters and iotas: each rank makes its own piece.
//
// RUN: cleave-opt %s --spmd-partition | FileCheck %s
// RUN: cleave run %s --check | FileCheck %s --check-prefix=EQUAL
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir && cleave run %t.mlir --check | FileCheck %s --check-prefix=EQUAL

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#oo = #spmd.sharding<#mesh, [{}, {}]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#x = #spmd.sharding<#mesh, [{"x"}]>
#X = #spmd.sharding<#mesh, [{"x", "y"}]>

nn.param @w : tensor<4x8xi32> = dense<[[1, 2, 3, 4, 5, 6, 7, 8], [9, 10, 11, 12, 13, 14, 15, 16],
                                       [17, 18, 19, 20, 21, 22, 23, 24], [25, 26, 27, 28, 29, 30, 31, 32]]> : tensor<4x8xi32>

// CHECK-LABEL: @pieces
func.func @pieces(%x: tensor<4x8xi32, #oo>) -> (tensor<4x8xi32, #xy>, tensor<4xi64, #x>, tensor<4x8xi32, #xy>, tensor<16xf32, #X>) {
  // CHECK: nn.constant dense<3> : tensor<2x4xi32>
  %c = nn.constant dense<3> : tensor<4x8xi32> -> tensor<4x8xi32, #xy>
  // CHECK: %[[WHOLE:.*]] = nn.constant dense<[4, 3, 2, 1]> : tensor<4xi64>
  // CHECK-NEXT: spmd.local_slice %[[WHOLE]]
  %d = nn.constant dense<[4, 3, 2, 1]> : tensor<4xi64> -> tensor<4xi64, #x>
  // CHECK: nn.load @w shard(
  // CHECK-SAME: : tensor<2x4xi32>
  %w = nn.load @w : tensor<4x8xi32, #xy>
  // CHECK: spmd.axis_index {"x", "y"}
  // CHECK-NOT: = spmd.all
  %i = nn.iota dim 0 start -3 step 2 : tensor<16xf32, #X>
  %r = spmd.reshard %x : tensor<4x8xi32, #oo> to tensor<4x8xi32, #xy>
  %s = nn.add %c, %w : (tensor<4x8xi32, #xy>, tensor<4x8xi32, #xy>) -> tensor<4x8xi32, #xy>
  %t = nn.add %s, %r : (tensor<4x8xi32, #xy>, tensor<4x8xi32, #xy>) -> tensor<4x8xi32, #xy>
  return %s, %d, %t, %i : tensor<4x8xi32, #xy>, tensor<4xi64, #x>, tensor<4x8xi32, #xy>, tensor<16xf32, #X>
}
