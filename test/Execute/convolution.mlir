// Windows over batch, channels, groups, and patches.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-partition | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir
// RUN: %{each} %t.mlir %t.4 "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#xyoo = #spmd.sharding<#mesh, [{"x"}, {"y"}, {}, {}]>
#oyoo = #spmd.sharding<#mesh, [{}, {"y"}, {}, {}]>
#o = #spmd.sharding<#mesh, [{}]>
#yooo = #spmd.sharding<#mesh, [{"y"}, {}, {}, {}]>
#oooo = #spmd.sharding<#mesh, [{}, {}, {}, {}]>
#ooxy = #spmd.sharding<#mesh, [{}, {}, {"x"}, {"y"}]>
#xooo = #spmd.sharding<#mesh, [{"x"}, {}, {}, {}]>
#o_sum_y = #spmd.sharding<#mesh, [{}], partial = {"y": sum}>
#xooo_sum_y = #spmd.sharding<#mesh, [{"x"}, {}, {}, {}], partial = {"y": sum}>

//--- channels.mlir
// Channels in are cut, so a rank has terms of the sum: the bias counts on one of them only.
// CHECK-LABEL: @the_bias_counts_on_one_rank
func.func @the_bias_counts_on_one_rank(%x: tensor<4x8x8x8xf32, #xyoo>, %w: tensor<4x8x3x3xf32, #oyoo>, %b: tensor<4xf32, #o>) -> tensor<4x4x8x8xf32, #xooo> {
  // CHECK: %[[BIAS:.*]] = spmd.keep_on_first sum
  // CHECK-NEXT: %[[PARTIAL:.*]] = nn.conv {{.*}}, %[[BIAS]] {{.*}} (tensor<2x4x8x8xf32>, tensor<4x4x3x3xf32>, tensor<4xf32>)
  // CHECK-NEXT: spmd.all_reduce sum %[[PARTIAL]] over {"y"}
  // CHECK-NEXT: return
  %0 = spmd.reshard %b : tensor<4xf32, #o> to tensor<4xf32, #o_sum_y>
  %1 = nn.conv %x, %w, %0 strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<4x8x8x8xf32, #xyoo>, tensor<4x8x3x3xf32, #oyoo>, tensor<4xf32, #o_sum_y>) -> tensor<4x4x8x8xf32, #xooo_sum_y>
  %2 = spmd.reshard %1 : tensor<4x4x8x8xf32, #xooo_sum_y> to tensor<4x4x8x8xf32, #xooo>
  return %2 : tensor<4x4x8x8xf32, #xooo>
}

//--- groups.mlir
// Two groups on two ranks: each has one.
// CHECK-LABEL: @groups_are_cut_with_the_channels
func.func @groups_are_cut_with_the_channels(%x: tensor<4x8x8x8xf32, #xyoo>, %w: tensor<8x4x3x3xf32, #yooo>) -> tensor<4x8x6x6xf32, #xyoo> {
  // CHECK-NEXT: nn.conv {{.*}} groups 1
  // CHECK-NEXT: return
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 2 : (tensor<4x8x8x8xf32, #xyoo>, tensor<8x4x3x3xf32, #yooo>) -> tensor<4x8x6x6xf32, #xyoo>
  return %0 : tensor<4x8x6x6xf32, #xyoo>
}

//--- patches.mlir
// Windows that tile the picture may be cut along both spatial dims.
// CHECK-LABEL: @patches_are_cut_in_space
func.func @patches_are_cut_in_space(%x: tensor<4x8x8x8xf32, #ooxy>, %w: tensor<4x8x2x2xf32, #oooo>) -> tensor<4x4x4x4xf32, #ooxy> {
  // CHECK-NEXT: nn.conv {{.*}} -> tensor<4x4x2x2xf32>
  // CHECK-NEXT: return
  %0 = nn.conv %x, %w strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<4x8x8x8xf32, #ooxy>, tensor<4x8x2x2xf32, #oooo>) -> tensor<4x4x4x4xf32, #ooxy>
  return %0 : tensor<4x4x4x4xf32, #ooxy>
}

//--- pool.mlir
// So may a pool whose windows lie side by side.
// CHECK-LABEL: @a_pool_of_patches_is_cut_in_space
func.func @a_pool_of_patches_is_cut_in_space(%x: tensor<4x8x8x8xf32, #ooxy>) -> tensor<4x8x4x4xf32, #ooxy> {
  // CHECK-NEXT: nn.pool max {{.*}} -> tensor<4x8x2x2xf32>
  // CHECK-NEXT: return
  %0 = nn.pool max %x kernel [2, 2] strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] : (tensor<4x8x8x8xf32, #ooxy>) -> tensor<4x8x4x4xf32, #ooxy>
  return %0 : tensor<4x8x4x4xf32, #ooxy>
}

//--- resize.mlir
// Each sample is repeated where it lies.
// CHECK-LABEL: @a_resize_by_a_whole_number_is_cut_in_space
func.func @a_resize_by_a_whole_number_is_cut_in_space(%x: tensor<4x8x8x8xf32, #ooxy>) -> tensor<4x8x16x8xf32, #ooxy> {
  // CHECK-NEXT: nn.resize {{.*}} -> tensor<4x8x8x4xf32>
  // CHECK-NEXT: return
  %0 = nn.resize nearest %x coordinates asymmetric rounding floor scales [1.0, 1.0, 2.0, 1.0] : (tensor<4x8x8x8xf32, #ooxy>) -> tensor<4x8x16x8xf32, #ooxy>
  return %0 : tensor<4x8x16x8xf32, #ooxy>
}
