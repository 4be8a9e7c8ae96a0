// Windows over batch, channels, groups, patches, and split pictures.
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
#ooxo = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}]>
#oyxo = #spmd.sharding<#mesh, [{}, {"y"}, {"x"}, {}]>
#ooxo_sum_y = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}], partial = {"y": sum}>
#o_sum_y = #spmd.sharding<#mesh, [{}], partial = {"y": sum}>
#xooo_sum_y = #spmd.sharding<#mesh, [{"x"}, {}, {}, {}], partial = {"y": sum}>

//--- channels.mlir
// Channels in are split, so a rank has terms of the sum: the bias counts on one of them only.
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
// Windows that tile the picture may be split along both spatial dims.
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

//--- windows.mlir
// Windows that overlap: a rank gets the edges of its neighbors, corners included, and zeros beyond the picture.
// CHECK-LABEL: @windows_over_a_cut_picture
func.func @windows_over_a_cut_picture(%x: tensor<4x8x8x8xf32, #ooxy>, %w: tensor<4x8x3x3xf32, #oooo>) -> tensor<4x4x8x8xf32, #ooxy> {
  // CHECK-NEXT: %[[WINDOW:.*]] = spmd.window %arg0 dims [{}, {}, {"x"}, {"y"}] steps [0, 0, 4, 4] lows [0, 0, -1, -1] highs [4, 8, 5, 5] fill 0.000000e+00 : f32 : (tensor<4x8x4x4xf32>) -> tensor<4x8x6x6xf32> cause "a dim that nn.conv works along is sharded over x, y"
  // CHECK-NEXT: nn.conv %[[WINDOW]], %arg1 strides [1, 1] pads_low [0, 0] pads_high [0, 0] {{.*}} -> tensor<4x4x4x4xf32>
  // CHECK-NEXT: return
  %0 = nn.conv %x, %w strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<4x8x8x8xf32, #ooxy>, tensor<4x8x3x3xf32, #oooo>) -> tensor<4x4x8x8xf32, #ooxy>
  return %0 : tensor<4x4x8x8xf32, #ooxy>
}

//--- strides.mlir
// Every second window, one row more in front: nothing of the rank behind is needed. Columns are padded as ever.
// CHECK-LABEL: @half_of_the_windows
func.func @half_of_the_windows(%x: tensor<4x8x8x8xf32, #ooxo>, %w: tensor<4x8x3x3xf32, #oooo>) -> tensor<4x4x4x4xf32, #ooxo> {
  // CHECK-NEXT: spmd.window %arg0 dims [{}, {}, {"x"}, {}] steps [0, 0, 4, 0] lows [0, 0, -1, 0] highs [4, 8, 4, 8]
  // CHECK-NEXT: nn.conv {{.*}} strides [2, 2] pads_low [0, 1] pads_high [0, 1]
  // CHECK-NEXT: return
  %0 = nn.conv %x, %w strides [2, 2] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<4x8x8x8xf32, #ooxo>, tensor<4x8x3x3xf32, #oooo>) -> tensor<4x4x4x4xf32, #ooxo>
  return %0 : tensor<4x4x4x4xf32, #ooxo>
}

//--- terms.mlir
// Rows over x, terms of the sum over y.
// CHECK-LABEL: @windows_of_terms
func.func @windows_of_terms(%x: tensor<4x8x8x8xf32, #oyxo>, %w: tensor<4x8x3x3xf32, #oyoo>) -> tensor<4x4x8x8xf32, #ooxo> {
  // CHECK-NEXT: spmd.window %arg0 dims [{}, {}, {"x"}, {}]
  // CHECK-NEXT: %[[TERM:.*]] = nn.conv
  // CHECK-NEXT: spmd.all_reduce sum %[[TERM]] over {"y"}
  // CHECK-NEXT: return
  %0 = nn.conv %x, %w strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<4x8x8x8xf32, #oyxo>, tensor<4x8x3x3xf32, #oyoo>) -> tensor<4x4x8x8xf32, #ooxo_sum_y>
  %1 = spmd.reshard %0 : tensor<4x4x8x8xf32, #ooxo_sum_y> to tensor<4x4x8x8xf32, #ooxo>
  return %1 : tensor<4x4x8x8xf32, #ooxo>
}

//--- transposed.mlir
// A row of the result comes from rows in front; what they add to those in front of the rank's part is cropped.
// CHECK-LABEL: @a_transposed_convolution_over_cut_rows
func.func @a_transposed_convolution_over_cut_rows(%x: tensor<4x8x8x8xf32, #ooxo>, %w: tensor<8x4x4x1xf32, #oooo>) -> tensor<4x4x16x8xf32, #ooxo> {
  // CHECK-NEXT: spmd.window %arg0 dims [{}, {}, {"x"}, {}] steps [0, 0, 4, 0] lows [0, 0, -1, 0] highs [4, 8, 5, 8] fill 0.000000e+00 : f32
  // CHECK-NEXT: nn.conv_transpose {{.*}} strides [2, 1] pads_low [3, 0] pads_high [3, 0] {{.*}} -> tensor<4x4x8x8xf32>
  // CHECK-NEXT: return
  %0 = nn.conv_transpose %x, %w strides [2, 1] pads_low [1, 0] pads_high [1, 0] dilations [1, 1] output_pads [0, 0] groups 1 : (tensor<4x8x8x8xf32, #ooxo>, tensor<8x4x4x1xf32, #oooo>) -> tensor<4x4x16x8xf32, #ooxo>
  return %0 : tensor<4x4x16x8xf32, #ooxo>
}

//--- maximum.mlir
// What lies beyond never wins.
// CHECK-LABEL: @a_maximum_over_cut_rows
func.func @a_maximum_over_cut_rows(%x: tensor<4x8x8x8xf32, #ooxy>) -> tensor<4x8x4x8xf32, #ooxy> {
  // CHECK-NEXT: spmd.window %arg0 dims [{}, {}, {"x"}, {"y"}] steps [0, 0, 4, 4] lows [0, 0, -1, -1] highs [4, 8, 4, 5] fill 0xFF800000 : f32
  // CHECK-NEXT: nn.pool max
  // CHECK-NEXT: return
  %0 = nn.pool max %x kernel [3, 3] strides [2, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] : (tensor<4x8x8x8xf32, #ooxy>) -> tensor<4x8x4x8xf32, #ooxy>
  return %0 : tensor<4x8x4x8xf32, #ooxy>
}

//--- average.mlir
// An average of what is there: the padding counts on all ranks alike, and each divides by the share that does not.
// CHECK-LABEL: @an_average_over_cut_rows
func.func @an_average_over_cut_rows(%x: tensor<4x8x8x8xf32, #ooxo>) -> tensor<4x8x8x8xf32, #ooxo> {
  // CHECK-NEXT: spmd.window %arg0 {{.*}} fill 0.000000e+00 : f32
  // CHECK-NEXT: %[[SUM:.*]] = nn.pool average %{{.*}} pads_low [0, 1] pads_high [0, 1]
  // CHECK: %[[SHARE:.*]] = nn.pool average {{.*}} -> tensor<1x1x4x1xf32>
  // CHECK-NEXT: nn.div %[[SUM]], %[[SHARE]]
  %0 = nn.pool average %x kernel [3, 3] strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] : (tensor<4x8x8x8xf32, #ooxo>) -> tensor<4x8x8x8xf32, #ooxo>
  return %0 : tensor<4x8x8x8xf32, #ooxo>
}

//--- samples.mlir
// Samples across the border, of which those that belong to the neighbors are dropped.
// CHECK-LABEL: @a_linear_resize_over_cut_rows
func.func @a_linear_resize_over_cut_rows(%x: tensor<4x8x8x8xf32, #ooxo>) -> tensor<4x8x16x8xf32, #ooxo> {
  // CHECK-NEXT: spmd.window %arg0 dims [{}, {}, {"x"}, {}] steps [0, 0, 4, 0] lows [0, 0, -1, 0] highs [4, 8, 5, 8] : (tensor<4x8x4x8xf32>)
  // CHECK-NEXT: %[[MORE:.*]] = nn.resize {{.*}} -> tensor<4x8x12x8xf32>
  // CHECK-NEXT: nn.slice %[[MORE]] starts [0, 0, 2, 0] sizes [4, 8, 8, 8] steps [1, 1, 1, 1]
  // CHECK-NEXT: return
  %0 = nn.resize linear %x coordinates half_pixel rounding floor scales [1.0, 1.0, 2.0, 1.0] : (tensor<4x8x8x8xf32, #ooxo>) -> tensor<4x8x16x8xf32, #ooxo>
  return %0 : tensor<4x8x16x8xf32, #ooxo>
}
