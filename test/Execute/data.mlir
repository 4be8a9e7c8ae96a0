// Constants, parameters and iotas: each rank makes its own piece.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-partition | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir
// RUN: %{each} %t.mlir %t.4 "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#oo = #spmd.sharding<#mesh, [{}, {}]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#x = #spmd.sharding<#mesh, [{"x"}]>
#X = #spmd.sharding<#mesh, [{"x", "y"}]>

//--- splat.mlir
// A constant of one number is written down in the size of a shard.
// CHECK-LABEL: @a_splat_is_made_small
func.func @a_splat_is_made_small() -> tensor<4x8xi32, #xy> {
  // CHECK-NEXT: nn.constant dense<3> : tensor<2x4xi32>
  // CHECK-NEXT: return
  %0 = nn.constant dense<3> : tensor<4x8xi32> -> tensor<4x8xi32, #xy>
  return %0 : tensor<4x8xi32, #xy>
}

//--- constant.mlir
// Any other is written down whole, and each rank takes its slice.
// CHECK-LABEL: @a_constant_is_sliced
func.func @a_constant_is_sliced() -> tensor<4xi64, #x> {
  // CHECK-NEXT: %[[WHOLE:.*]] = nn.constant dense<[4, 3, 2, 1]> : tensor<4xi64>
  // CHECK-NEXT: spmd.local_slice %[[WHOLE]]
  // CHECK-NEXT: return
  %0 = nn.constant dense<[4, 3, 2, 1]> : tensor<4xi64> -> tensor<4xi64, #x>
  return %0 : tensor<4xi64, #x>
}

//--- parameter.mlir
// A parameter is read shard by shard.
// CHECK-LABEL: @a_parameter_is_loaded_in_shards
nn.param @w : tensor<4x8xi32> = dense<[[1, 2, 3, 4, 5, 6, 7, 8], [9, 10, 11, 12, 13, 14, 15, 16],
                                       [17, 18, 19, 20, 21, 22, 23, 24], [25, 26, 27, 28, 29, 30, 31, 32]]> : tensor<4x8xi32>
func.func @a_parameter_is_loaded_in_shards(%x: tensor<4x8xi32, #oo>) -> tensor<4x8xi32, #xy> {
  // CHECK: nn.load @w shard(
  // CHECK-SAME: : tensor<2x4xi32>
  // CHECK-NOT: = spmd.all
  %0 = nn.load @w : tensor<4x8xi32, #xy>
  %1 = spmd.reshard %x : tensor<4x8xi32, #oo> to tensor<4x8xi32, #xy>
  %2 = nn.add %0, %1 : (tensor<4x8xi32, #xy>, tensor<4x8xi32, #xy>) -> tensor<4x8xi32, #xy>
  return %2 : tensor<4x8xi32, #xy>
}

//--- iota.mlir
// A rank counts from where its shard begins.
// CHECK-LABEL: @an_iota_starts_at_its_shard
func.func @an_iota_starts_at_its_shard() -> tensor<16xf32, #X> {
  // CHECK: spmd.axis_index {"x", "y"}
  // CHECK-NOT: = spmd.all
  %0 = nn.iota dim 0 start -3 step 2 : tensor<16xf32, #X>
  return %0 : tensor<16xf32, #X>
}
