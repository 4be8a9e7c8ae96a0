// Movement that keeps elements on their ranks, and a slice that its holders fill in.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-partition | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir
// RUN: %{each} %t.mlir %t.4 "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#yx = #spmd.sharding<#mesh, [{"y"}, {"x"}]>
#X = #spmd.sharding<#mesh, [{"x", "y"}]>
#xyo = #spmd.sharding<#mesh, [{"x"}, {"y"}, {}]>
#xo = #spmd.sharding<#mesh, [{"x"}, {}]>
#Xo = #spmd.sharding<#mesh, [{"x", "y"}, {}]>
#xo_sum_y = #spmd.sharding<#mesh, [{"x"}, {}], partial = {"y": sum}>

//--- transpose.mlir
// Axes go along with their dims.
// CHECK-LABEL: @a_transpose_is_local
func.func @a_transpose_is_local(%x: tensor<8x16xf32, #xy>) -> tensor<16x8xf32, #yx> {
  // CHECK-NEXT: nn.transpose {{.*}} -> tensor<8x4xf32>
  // CHECK-NEXT: return
  %0 = nn.transpose %x [1, 0] : (tensor<8x16xf32, #xy>) -> tensor<16x8xf32, #yx>
  return %0 : tensor<16x8xf32, #yx>
}

//--- merge.mlir
// Dims merge locally where only the outer one is split.
// CHECK-LABEL: @a_merge_needs_the_outer_dim_cut
func.func @a_merge_needs_the_outer_dim_cut(%x: tensor<8x16xf32, #xy>) -> tensor<128xf32, #X> {
  // CHECK: nn.reshape {{.*}} -> tensor<32xf32>
  // CHECK-NEXT: return
  %0 = spmd.reshard %x : tensor<8x16xf32, #xy> to tensor<8x16xf32, #Xo>
  %1 = nn.reshape %0 : (tensor<8x16xf32, #Xo>) -> tensor<128xf32, #X>
  return %1 : tensor<128xf32, #X>
}

//--- split.mlir
// Where a sharded dim is split, its outer part stays sharded.
// CHECK-LABEL: @a_split_is_local
func.func @a_split_is_local(%x: tensor<8x16xf32, #xy>) -> tensor<8x4x4xf32, #xyo> {
  // CHECK-NEXT: nn.reshape {{.*}} -> tensor<4x2x4xf32>
  // CHECK-NEXT: return
  %0 = nn.reshape %x : (tensor<8x16xf32, #xy>) -> tensor<8x4x4xf32, #xyo>
  return %0 : tensor<8x4x4xf32, #xyo>
}

//--- strided.mlir
// Every second element of each shard.
// CHECK-LABEL: @a_strided_slice_is_local
func.func @a_strided_slice_is_local(%x: tensor<8x16xf32, #xy>) -> tensor<8x8xf32, #xy> {
  // CHECK-NEXT: nn.slice {{.*}} starts [0, 1] sizes [4, 4] steps [1, 2]
  // CHECK-NEXT: return
  %0 = nn.slice %x starts [0, 1] sizes [8, 8] steps [1, 2] : (tensor<8x16xf32, #xy>) -> tensor<8x8xf32, #xy>
  return %0 : tensor<8x8xf32, #xy>
}

//--- triangle.mlir
// The triangle is that of global positions.
// CHECK-LABEL: @a_triangle_knows_where_its_shard_lies
func.func @a_triangle_knows_where_its_shard_lies(%x: tensor<8x8xf32, #xy>) -> tensor<8x8xf32, #xy> {
  // CHECK: spmd.axis_index {"x"}
  // CHECK: spmd.axis_index {"y"}
  // CHECK: nn.select
  // CHECK-NOT: = spmd.
  %0 = nn.trilu %x offset 1 : (tensor<8x8xf32, #xy>) -> tensor<8x8xf32, #xy>
  return %0 : tensor<8x8xf32, #xy>
}

//--- slice.mlir
// A slice out of the middle: those who hold it fill it in, the others have zeros.
// CHECK-LABEL: @holders_fill_a_slice_in
func.func @holders_fill_a_slice_in(%x: tensor<8x16xf32, #xy>) -> tensor<8x3xf32, #xo> {
  // CHECK: spmd.axis_index {"y"}
  // CHECK: %[[HELD:.*]] = nn.select {{.*}} -> tensor<4x3xf32>
  // CHECK-NEXT: spmd.all_reduce sum %[[HELD]] over {"y"} : tensor<4x3xf32>
  // CHECK-NEXT: return
  %0 = nn.slice %x starts [0, 6] sizes [8, 3] steps [1, 1] : (tensor<8x16xf32, #xy>) -> tensor<8x3xf32, #xo_sum_y>
  %1 = spmd.reshard %0 : tensor<8x3xf32, #xo_sum_y> to tensor<8x3xf32, #xo>
  return %1 : tensor<8x3xf32, #xo>
}
