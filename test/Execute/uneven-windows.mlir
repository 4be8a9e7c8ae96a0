// Windows over dims that do not divide: neighbors exchange edges as ever, and nothing of the padding.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-partition | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL" "cleave run {} --check --executor=program | FileCheck {} --check-prefix=EQUAL"
// The same on four ranks of one axis: 2, 2, 2 and 1 rows, or 1, 1, 1 and none.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir
// RUN: %{each} %t.mlir %t.4 "cleave run {} --check | FileCheck {} --check-prefix=EQUAL" "cleave run {} --check --executor=program | FileCheck {} --check-prefix=EQUAL"
// And over both axes of one dim.
// RUN: sed 's/{"x"}/{"y", "x"}/' %s > %t.both.mlir
// RUN: %{each} %t.both.mlir %t.both "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#oooo = #spmd.sharding<#mesh, [{}, {}, {}, {}]>
#ooxo = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}], uneven>
#xo = #spmd.sharding<#mesh, [{"x"}, {}], uneven>
#ox = #spmd.sharding<#mesh, [{}, {"x"}]>
#oxo = #spmd.sharding<#mesh, [{}, {"x"}, {}], uneven>
#oo = #spmd.sharding<#mesh, [{}, {}]>
#x = #spmd.sharding<#mesh, [{"x"}], uneven>

//--- windows.mlir
// 7 rows: the second rank has three, and what would be row 7 is what padding means to the op. Position 8 is needed for row 7 of the
// result alone, which there is not.
// CHECK-LABEL: @a_convolution_over_seven_rows
func.func @a_convolution_over_seven_rows(%x: tensor<1x2x7x5xf32, #ooxo>, %w: tensor<3x2x3x3xf32, #oooo>) -> tensor<1x3x7x5xf32, #ooxo> {
  // CHECK-NEXT: spmd.window %arg0 dims [{}, {}, {"x"}, {}] steps [0, 0, 4, 0] lows [0, 0, -1, 0] highs [1, 2, 5, 5] fill 0.000000e+00 : f32 missing [0, 0, 1, 0] from [0, 0, -1, 0] to [0, 0, 8, 0] on [0, 0, 2, 0] : (tensor<1x2x4x5xf32>) -> tensor<1x2x6x5xf32>
  // CHECK-NEXT: nn.conv {{.*}} pads_low [0, 1] pads_high [0, 1] {{.*}} : (tensor<1x2x6x5xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x4x5xf32>
  // CHECK-NEXT: return
  %0 = nn.conv %x, %w strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<1x2x7x5xf32, #ooxo>, tensor<3x2x3x3xf32, #oooo>) -> tensor<1x3x7x5xf32, #ooxo>
  return %0 : tensor<1x3x7x5xf32, #ooxo>
}

//--- strides.mlir
// Every second window, of which there are 4: the last one reads row 7, which is padding of the op.
// CHECK-LABEL: @every_second_window
func.func @every_second_window(%x: tensor<1x2x7x5xf32, #ooxo>, %w: tensor<3x2x2x1xf32, #oooo>) -> tensor<1x3x4x5xf32, #ooxo> {
  // CHECK-NEXT: spmd.window %arg0 {{.*}} lows [0, 0, 0, 0] highs [1, 2, 4, 5] fill {{.*}} missing [0, 0, 1, 0]
  %0 = nn.conv %x, %w strides [2, 1] pads_low [0, 0] pads_high [1, 0] dilations [1, 1] groups 1 : (tensor<1x2x7x5xf32, #ooxo>, tensor<3x2x2x1xf32, #oooo>) -> tensor<1x3x4x5xf32, #ooxo>
  return %0 : tensor<1x3x4x5xf32, #ooxo>
}

//--- average.mlir
// What lies behind the seventh row counts no more than what lies before the first.
// CHECK-LABEL: @an_average_of_what_there_is
func.func @an_average_of_what_there_is(%x: tensor<1x2x7x5xf32, #ooxo>) -> tensor<1x2x4x5xf32, #ooxo> {
  // CHECK: spmd.window
  // CHECK: nn.div
  %0 = nn.pool average %x kernel [3, 3] strides [2, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] : (tensor<1x2x7x5xf32, #ooxo>) -> tensor<1x2x4x5xf32, #ooxo>
  return %0 : tensor<1x2x4x5xf32, #ooxo>
}

//--- maximum.mlir
// CHECK-LABEL: @a_maximum_of_what_there_is
func.func @a_maximum_of_what_there_is(%x: tensor<1x2x3x5xf32, #ooxo>) -> tensor<1x2x3x5xf32, #ooxo> {
  // CHECK: spmd.window {{.*}} fill 0xFF800000 : f32 missing [0, 0, 1, 0]
  %0 = nn.neg %x : (tensor<1x2x3x5xf32, #ooxo>) -> tensor<1x2x3x5xf32, #ooxo>
  %1 = nn.abs %0 : (tensor<1x2x3x5xf32, #ooxo>) -> tensor<1x2x3x5xf32, #ooxo>
  %2 = nn.neg %1 : (tensor<1x2x3x5xf32, #ooxo>) -> tensor<1x2x3x5xf32, #ooxo>
  %3 = nn.pool max %2 kernel [3, 3] strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] : (tensor<1x2x3x5xf32, #ooxo>) -> tensor<1x2x3x5xf32, #ooxo>
  return %3 : tensor<1x2x3x5xf32, #ooxo>
}

//--- slice.mlir
// 7 of 10 rows: rank 0 has rows 2 to 4 and gets row 5 of the other one, which has all of its own three.
// CHECK-LABEL: @a_slice_of_ten_rows
func.func @a_slice_of_ten_rows(%x: tensor<10x3xf32, #xo>) -> tensor<7x3xf32, #xo> {
  // CHECK-NEXT: spmd.window %arg0 dims [{"x"}, {}] steps [4, 0] lows [2, 0] highs [6, 3] missing [0, 0] from [2, 0] to [9, 0] on [2, 0] : (tensor<5x3xf32>) -> tensor<4x3xf32>
  %0 = nn.slice %x starts [2, 0] sizes [7, 3] steps [1, 1] : (tensor<10x3xf32, #xo>) -> tensor<7x3xf32, #xo>
  return %0 : tensor<7x3xf32, #xo>
}

//--- reversal.mlir
// From the end: padding of the result would be what lies in front of the first row.
// CHECK-LABEL: @a_reversal_of_seven_rows
func.func @a_reversal_of_seven_rows(%x: tensor<7x3xf32, #xo>) -> tensor<7x3xf32, #xo> {
  // CHECK-NEXT: spmd.window %arg0 dims [{"x"}, {}] steps [-4, 0] lows [3, 0] highs [7, 3] missing [1, 0] from [0, 0] to [7, 0] on [2, 0] : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %0 = nn.slice %x starts [6, 0] sizes [7, 3] steps [-1, 1] : (tensor<7x3xf32, #xo>) -> tensor<7x3xf32, #xo>
  return %0 : tensor<7x3xf32, #xo>
}

//--- rotation.mlir
// What goes on at the other end begins behind the last row, not behind padding.
// CHECK-LABEL: @a_rotation_of_seven_rows
func.func @a_rotation_of_seven_rows(%x: tensor<7x3xf32, #xo>) -> tensor<7x3xf32, #xo> {
  // CHECK-NEXT: spmd.window %arg0 {{.*}} wraps missing [1, 0]
  %0 = nn.rotate %x dim 0 by 3 : (tensor<7x3xf32, #xo>) -> tensor<7x3xf32, #xo>
  return %0 : tensor<7x3xf32, #xo>
}

//--- pad.mlir
// CHECK-LABEL: @the_last_row_goes_on
func.func @the_last_row_goes_on(%x: tensor<5x3xf32, #xo>) -> tensor<9x3xf32, #xo> {
  // CHECK-NEXT: spmd.window %arg0 dims [{"x"}, {}] steps [5, 0] lows [-1, 0] highs [4, 3] missing [1, 0] from [-1, 0] to [8, 0] on [2, 0]
  %0 = nn.pad edge %x low [1, 0] high [3, 0] : (tensor<5x3xf32, #xo>) -> tensor<9x3xf32, #xo>
  return %0 : tensor<9x3xf32, #xo>
}

//--- concat.mlir
// Of each part a rank gets what falls into its 5 rows.
// CHECK-LABEL: @parts_of_three_and_seven_rows
func.func @parts_of_three_and_seven_rows(%x: tensor<3x3xf32, #xo>, %y: tensor<7x3xf32, #xo>) -> tensor<10x3xf32, #xo> {
  // CHECK: spmd.join {{.*}} dim 0 parts [3, 7] over {"x"} : (tensor<6x3xf32>) -> tensor<5x3xf32>
  %0 = nn.concat %x, %y dim 0 : (tensor<3x3xf32, #xo>, tensor<7x3xf32, #xo>) -> tensor<10x3xf32, #xo>
  return %0 : tensor<10x3xf32, #xo>
}

//--- token.mlir
// A part of one row is on all ranks, and counts as what the first one has.
// CHECK-LABEL: @a_token_before_six_patches
func.func @a_token_before_six_patches(%t: tensor<1x3xf32, #oo>, %y: tensor<6x3xf32, #xo>) -> tensor<7x3xf32, #xo> {
  // CHECK: spmd.join {{.*}} dim 0 parts [1, 6] over {"x"} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  // CHECK-NOT: spmd.{{all|permute|window}}
  %0 = nn.concat %t, %y dim 0 : (tensor<1x3xf32, #oo>, tensor<6x3xf32, #xo>) -> tensor<7x3xf32, #xo>
  return %0 : tensor<7x3xf32, #xo>
}

//--- heads.mlir
// 5 heads of 8 are 20 positions on each of two ranks, but 3 heads, or 24 positions, on the first.
// CHECK-LABEL: @heads_do_not_line_up
func.func @heads_do_not_line_up(%x: tensor<3x40xf32, #ox>) -> tensor<3x5x8xf32, #oxo> {
  // CHECK-NEXT: spmd.window %arg0 dims [{}, {"x"}] steps [0, 24] lows [0, 0] highs [3, 24] missing [0, 0] from [0, 0] to [0, 40] on [0, 2] : (tensor<3x20xf32>) -> tensor<3x24xf32>
  // CHECK-NEXT: nn.reshape {{.*}} : (tensor<3x24xf32>) -> tensor<3x3x8xf32>
  %0 = nn.reshape %x : (tensor<3x40xf32, #ox>) -> tensor<3x5x8xf32, #oxo>
  return %0 : tensor<3x5x8xf32, #oxo>
}

//--- merged.mlir
// And back: what two ranks have of 3 and 2 heads becomes 20 positions on each.
// CHECK-LABEL: @heads_are_merged
func.func @heads_are_merged(%x: tensor<3x5x8xf32, #oxo>) -> tensor<3x40xf32, #ox> {
  // CHECK-NEXT: nn.reshape %arg0 : (tensor<3x3x8xf32>) -> tensor<3x24xf32>
  // CHECK-NEXT: spmd.window {{.*}} dims [{}, {"x"}] steps [0, 20] lows [0, 0] highs [3, 20] missing [0, 8] from [0, 0] to [0, 40] on [0, 2] : (tensor<3x24xf32>) -> tensor<3x20xf32>
  %0 = nn.reshape %x : (tensor<3x5x8xf32, #oxo>) -> tensor<3x40xf32, #ox>
  return %0 : tensor<3x40xf32, #ox>
}

//--- steps.mlir
// Every second of 14 rows: shards of 7 have them elsewhere each, of 4 alike, and then one row of each pair is sent.
// CHECK-LABEL: @every_second_row
func.func @every_second_row(%x: tensor<15x3xf32, #xo>) -> tensor<7x3xf32, #xo> {
  // CHECK-NEXT: nn.slice %arg0 starts [1, 0] sizes [4, 3] steps [2, 1] : (tensor<8x3xf32>) -> tensor<4x3xf32>
  // CHECK-NEXT: return
  %0 = nn.slice %x starts [1, 0] sizes [7, 3] steps [2, 1] : (tensor<15x3xf32, #xo>) -> tensor<7x3xf32, #xo>
  return %0 : tensor<7x3xf32, #xo>
}

//--- seven-to-fourteen.mlir
// Rows 7 to 13 of the result lie at 3.25 to 6.25, and begin between two rows of the first rank's.
// CHECK-LABEL: @seven_rows_become_fourteen
func.func @seven_rows_become_fourteen(%x: tensor<7x3xf32, #xo>) -> tensor<14x3xf32, #xo> {
  // CHECK-NEXT: spmd.window %arg0 dims [{"x"}, {}] steps [3, 0]
  // CHECK: nn.gather
  %0 = nn.resize linear %x coordinates half_pixel rounding floor scales [2.0, 1.0] : (tensor<7x3xf32, #xo>) -> tensor<14x3xf32, #xo>
  return %0 : tensor<14x3xf32, #xo>
}
