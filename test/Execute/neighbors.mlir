// What a rank needs of its neighbors, and not more: edges in the mirror, samples by tables, parts of a concatenation, elements of
// steps, channels.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-partition | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"
// The same on two ranks, and lowered to commands.
// RUN: sed 's/"x"=4/"x"=2/' %s > %t.mlir
// RUN: %{each} %t.mlir %t.2 "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"
// RUN: %{each} %s %t.4 "cleave run {} --check --emit ordered | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=4]>
#x = #spmd.sharding<#mesh, [{"x"}]>
#xo = #spmd.sharding<#mesh, [{"x"}, {}]>
#ox = #spmd.sharding<#mesh, [{}, {"x"}]>

//--- mirror.mlir
// 16 rows become 24, six on each rank: rank 0 wants rows 4 to 1 and then 0 and 1, in the mirror of its own and of its neighbor's.
// CHECK-LABEL: @a_mirror_on_cut_rows
func.func @a_mirror_on_cut_rows(%a: tensor<16x3xf32, #xo>) -> tensor<24x7xf32, #xo> {
  // CHECK-NEXT: %[[WINDOW:.*]] = spmd.window %arg0 dims [{"x"}, {}] steps [6, 0] lows [-4, 0] highs [2, 3] reflects : (tensor<4x3xf32>) -> tensor<6x3xf32> cause "a dim that nn.pad works along is sharded over x"
  // CHECK-NEXT: nn.pad reflect %[[WINDOW]] low [0, 2] high [0, 2] : (tensor<6x3xf32>) -> tensor<6x7xf32>
  // CHECK-NEXT: return
  %0 = nn.pad reflect %a low [4, 2] high [4, 2] : (tensor<16x3xf32, #xo>) -> tensor<24x7xf32, #xo>
  return %0 : tensor<24x7xf32, #xo>
}

//--- corners.mlir
// Of 8 rows 16, row o at 7/15 o. A rank wants one row more on each side; entries of the tables say which two of its four.
// CHECK-LABEL: @aligned_corners_over_cut_rows
func.func @aligned_corners_over_cut_rows(%a: tensor<8x3xf32, #xo>) -> tensor<16x3xf32, #xo> {
  // CHECK: %[[WINDOW:.*]] = spmd.window %arg0 dims [{"x"}, {}] steps [2, 0] lows [-1, 0] highs [3, 3] : (tensor<2x3xf32>) -> tensor<4x3xf32>
  // CHECK: nn.constant dense<[1, 1, 1, 2, 0, 1, 1, 2, 0, 1, 1, 2, 0, 1, 1, 2]> : tensor<16xi64>
  // CHECK: spmd.local_slice {{.*}} : (tensor<16xi64>) -> tensor<4xi64>
  // CHECK: nn.gather %[[WINDOW]], {{.*}} dim 0 : (tensor<4x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
  // CHECK-NOT: nn.resize
  %0 = nn.resize linear %a coordinates align_corners rounding floor scales [2.0, 1.0] : (tensor<8x3xf32, #xo>) -> tensor<16x3xf32, #xo>
  return %0 : tensor<16x3xf32, #xo>
}

//--- nearest.mlir
// Of two rows three: a rank has what its own are made of, and nothing is sent.
// CHECK-LABEL: @two_rows_become_three
func.func @two_rows_become_three(%a: tensor<8x3xi32, #xo>) -> tensor<12x3xi32, #xo> {
  // CHECK-NOT: spmd.window
  // CHECK: nn.gather %arg0
  %0 = nn.resize nearest %a coordinates asymmetric rounding floor scales [1.5, 1.0] : (tensor<8x3xi32, #xo>) -> tensor<12x3xi32, #xo>
  return %0 : tensor<12x3xi32, #xo>
}

//--- half.mlir
// A row of each neighbor, where the op's own coordinates would take two.
// CHECK-LABEL: @half_as_many_rows_by_a_cubic
func.func @half_as_many_rows_by_a_cubic(%a: tensor<16x4xf16, #xo>) -> tensor<8x2xf16, #xo> {
  // CHECK-NEXT: spmd.window %arg0 dims [{"x"}, {}] steps [4, 0] lows [-1, 0] highs [5, 4]
  // CHECK: nn.resize cubic {{.*}} scales [1.000000e+00, 5.000000e-01] : (tensor<2x4xf32>) -> tensor<2x2xf32>
  // CHECK-NEXT: nn.cast
  // CHECK-NEXT: return
  %0 = nn.resize cubic %a coordinates half_pixel rounding floor scales [0.5, 0.5] : (tensor<16x4xf16, #xo>) -> tensor<8x2xf16, #xo>
  return %0 : tensor<8x2xf16, #xo>
}

//--- parts.mlir
// Nine parts of four rows, a row of each on every rank.
// CHECK-LABEL: @parts_change_places_at_once
func.func @parts_change_places_at_once(%a: tensor<4x3xf32, #xo>, %b: tensor<4x3xf32, #xo>, %c: tensor<4x3xf32, #xo>) -> tensor<36x3xf32, #xo> {
  // CHECK-NEXT: %[[OWN:.*]] = nn.concat %arg0, %arg1, %arg2, %arg0, %arg1, %arg2, %arg0, %arg1, %arg2 dim 0
  // CHECK-NEXT: spmd.join %[[OWN]] dim 0 parts [4, 4, 4, 4, 4, 4, 4, 4, 4] over {"x"} : (tensor<9x3xf32>) -> tensor<9x3xf32> cause "a dim that nn.concat works along is sharded over x"
  // CHECK-NEXT: return
  %0 = nn.concat %a, %b, %c, %a, %b, %c, %a, %b, %c dim 0 : (tensor<4x3xf32, #xo>, tensor<4x3xf32, #xo>, tensor<4x3xf32, #xo>, tensor<4x3xf32, #xo>, tensor<4x3xf32, #xo>, tensor<4x3xf32, #xo>, tensor<4x3xf32, #xo>, tensor<4x3xf32, #xo>, tensor<4x3xf32, #xo>) -> tensor<36x3xf32, #xo>
  return %0 : tensor<36x3xf32, #xo>
}

//--- steps.mlir
// Rows 15, 13, .. 1, without the rows between them, and two of three columns: a rank wants two rows of four.
// CHECK-LABEL: @only_what_is_wanted_travels
func.func @only_what_is_wanted_travels(%a: tensor<16x3xf32, #xo>) -> tensor<8x2xf32, #xo> {
  // CHECK-NEXT: %[[WANTED:.*]] = nn.slice %arg0 starts [1, 1] sizes [2, 2] steps [2, 1] : (tensor<4x3xf32>) -> tensor<2x2xf32>
  // CHECK-NEXT: %[[MOVED:.*]] = spmd.window %[[WANTED]] dims [{"x"}, {}] steps [-2, 0] lows [6, 0] highs [8, 2]
  // CHECK-NEXT: nn.slice %[[MOVED]] starts [1, 0] sizes [2, 2] steps [-1, 1]
  // CHECK-NEXT: return
  %0 = nn.slice %a starts [15, 1] sizes [8, 2] steps [-2, 1] : (tensor<16x3xf32, #xo>) -> tensor<8x2xf32, #xo>
  return %0 : tensor<8x2xf32, #xo>
}

//--- channels.mlir
// Two channels in front of a rank's four, two behind, and zeros where there are none.
// CHECK-LABEL: @channels_of_neighbors
func.func @channels_of_neighbors(%a: tensor<2x16xf32, #ox>) -> tensor<2x16xf32, #ox> {
  // CHECK-NEXT: %[[WINDOW:.*]] = spmd.window %arg0 dims [{}, {"x"}] steps [0, 4] lows [0, -2] highs [2, 6] fill 0.000000e+00 : f32 : (tensor<2x4xf32>) -> tensor<2x8xf32> cause "a dim that nn.lrn works along is sharded over x"
  // CHECK-NEXT: %[[ALL:.*]] = nn.lrn %[[WINDOW]] size 5
  // CHECK-NEXT: nn.slice %[[ALL]] starts [0, 2] sizes [2, 4]
  // CHECK-NEXT: return
  %0 = nn.lrn %a size 5 alpha 1.0e-1 beta 0.75 k 1.0 : (tensor<2x16xf32, #ox>) -> tensor<2x16xf32, #ox>
  return %0 : tensor<2x16xf32, #ox>
}

//--- apart.mlir
// Queries, keys and values of 8 columns in one value: 6 columns a rank, of which 2 are its own. 3 rows of 4 columns are sent.
// CHECK-LABEL: @parts_are_taken_apart_at_once
func.func @parts_are_taken_apart_at_once(%a: tensor<3x24xf32, #ox>) -> (tensor<3x8xf32, #ox>, tensor<3x8xf32, #ox>, tensor<3x8xf32, #ox>) {
  // CHECK-NEXT: %[[OWN:.*]] = spmd.split %arg0 dim 1 parts [8, 8, 8] over {"x"} : (tensor<3x6xf32>) -> tensor<3x6xf32> cause "a dim that nn.split works along is sharded over x"
  // CHECK-NEXT: nn.slice %[[OWN]] starts [0, 0] sizes [3, 2]
  // CHECK-NEXT: nn.slice %[[OWN]] starts [0, 2] sizes [3, 2]
  // CHECK-NEXT: nn.slice %[[OWN]] starts [0, 4] sizes [3, 2]
  // CHECK-NEXT: return
  %0:3 = nn.split %a dim 1 parts [8, 8, 8] : (tensor<3x24xf32, #ox>) -> (tensor<3x8xf32, #ox>, tensor<3x8xf32, #ox>, tensor<3x8xf32, #ox>)
  return %0#0, %0#1, %0#2 : tensor<3x8xf32, #ox>, tensor<3x8xf32, #ox>, tensor<3x8xf32, #ox>
}
