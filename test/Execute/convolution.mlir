// Windows over batch, channels, groups, and patches.
//
// RUN: cleave-opt %s --spmd-partition | FileCheck %s
// RUN: cleave run %s --check | FileCheck %s --check-prefix=EQUAL
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir && cleave run %t.mlir --check | FileCheck %s --check-prefix=EQUAL

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

// CHECK-LABEL: @windows
func.func @windows(%x: tensor<4x8x8x8xf32, #xyoo>, %w: tensor<4x8x3x3xf32, #oyoo>, %b: tensor<4xf32, #o>, %g: tensor<8x4x3x3xf32, #yooo>, %p: tensor<4x8x2x2xf32, #oooo>, %i: tensor<4x8x8x8xf32, #ooxy>) -> (tensor<4x4x8x8xf32, #xooo>, tensor<4x8x6x6xf32, #xyoo>, tensor<4x4x4x4xf32, #ooxy>, tensor<4x8x4x4xf32, #ooxy>, tensor<4x8x16x8xf32, #ooxy>) {
  // Channels in are cut: the bias counts on one rank only.
  // CHECK: %[[BIAS:.*]] = nn.select
  // CHECK-NEXT: %[[PARTIAL:.*]] = nn.conv {{.*}}, %[[BIAS]] {{.*}} (tensor<2x4x8x8xf32>, tensor<4x4x3x3xf32>, tensor<4xf32>)
  // CHECK-NEXT: spmd.all_reduce sum %[[PARTIAL]] over {"y"}
  %0 = spmd.reshard %b : tensor<4xf32, #o> to tensor<4xf32, #o_sum_y>
  %1 = nn.conv %x, %w, %0 strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<4x8x8x8xf32, #xyoo>, tensor<4x8x3x3xf32, #oyoo>, tensor<4xf32, #o_sum_y>) -> tensor<4x4x8x8xf32, #xooo_sum_y>
  %2 = spmd.reshard %1 : tensor<4x4x8x8xf32, #xooo_sum_y> to tensor<4x4x8x8xf32, #xooo>
  // Groups are cut: half of them on each rank.
  // CHECK-NEXT: nn.conv {{.*}} groups 1
  %3 = nn.conv %x, %g strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 2 : (tensor<4x8x8x8xf32, #xyoo>, tensor<8x4x3x3xf32, #yooo>) -> tensor<4x8x6x6xf32, #xyoo>
  // Patches are cut along both spatial dims.
  // CHECK-NEXT: nn.conv {{.*}} -> tensor<4x4x2x2xf32>
  // CHECK-NEXT: nn.pool max {{.*}} -> tensor<4x8x2x2xf32>
  // CHECK-NEXT: nn.resize {{.*}} -> tensor<4x8x8x4xf32>
  // CHECK-NEXT: return
  %4 = nn.conv %i, %p strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<4x8x8x8xf32, #ooxy>, tensor<4x8x2x2xf32, #oooo>) -> tensor<4x4x4x4xf32, #ooxy>
  %5 = nn.pool max %i kernel [2, 2] strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] : (tensor<4x8x8x8xf32, #ooxy>) -> tensor<4x8x4x4xf32, #ooxy>
  %6 = nn.resize nearest %i coordinates asymmetric rounding floor scales [1.0, 1.0, 2.0, 1.0] : (tensor<4x8x8x8xf32, #ooxy>) -> tensor<4x8x16x8xf32, #ooxy>
  return %2, %3, %4, %5, %6 : tensor<4x4x8x8xf32, #xooo>, tensor<4x8x6x6xf32, #xyoo>, tensor<4x4x4x4xf32, #ooxy>, tensor<4x8x4x4xf32, #ooxy>, tensor<4x8x16x8xf32, #ooxy>
}
