// A result that nobody annotates otherwise costs no more than the best annotation for it would: where an op cannot go on with a split, the
// split moves to another dim and stays there, and nothing is gathered. A sum over ranks is returned replicated.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-shard 2>&1 | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=4]>
#rows = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}]>
#minor = #spmd.sharding<#mesh, [{}, {"x"}, {}]>
#ox = #spmd.sharding<#mesh, [{}, {"x"}]>
#xo = #spmd.sharding<#mesh, [{"x"}, {}]>

//--- convolution.mlir
// 30 rows do not divide into 4. They do into 2, and the batch takes the other half of the axis: half of 16,384 bytes, and a row of
// 1,024 for the edge. With a gather of the rows it was 34,816.
// CHECK: remark: 'nn.conv' op departs from the plan: 9216 bytes a rank instead of 34816
// CHECK-LABEL: @rows_that_do_not_divide
func.func @rows_that_do_not_divide(%x: tensor<2x8x32x32xf32, #rows>, %w: tensor<8x8x3x3xf32> {nn.parameter}) -> tensor<2x8x30x30xf32> {
  // CHECK: spmd.all_to_all {{.*}} slice [{"x":(2)2}, {}, {}, {}] : (tensor<2x8x8x32xf32>) -> tensor<1x8x16x32xf32>
  // CHECK-NEXT: spmd.window {{.*}} -> tensor<1x8x17x32xf32>
  // CHECK-NEXT: = nn.conv
  // CHECK-NEXT: return
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<2x8x32x32xf32, #rows>, tensor<8x8x3x3xf32>) -> tensor<2x8x30x30xf32>
  return %0 : tensor<2x8x30x30xf32>
}

//--- merged.mlir
// Four rows of each of six parts: merged, they are 24 rows of which no rank has an interval. Columns are as good.
// CHECK-LABEL: @a_merge_drops_the_minor_cut
func.func @a_merge_drops_the_minor_cut(%x: tensor<6x4x16xf32, #minor>) -> tensor<24x16xf32> {
  // CHECK: spmd.all_to_all {{.*}} (tensor<6x1x16xf32>) -> tensor<6x4x4xf32>
  // CHECK-NEXT: = nn.reshape
  // CHECK-NEXT: = nn.exp
  // CHECK-NEXT: return
  %0 = nn.reshape %x : (tensor<6x4x16xf32, #minor>) -> tensor<24x16xf32>
  %1 = nn.exp %0 : (tensor<24x16xf32>) -> tensor<24x16xf32>
  return %1 : tensor<24x16xf32>
}

//--- sum.mlir
// CHECK-LABEL: @a_sum_is_whole
func.func @a_sum_is_whole(%x: tensor<16x32xf32, #ox>, %w: tensor<32x16xf32, #xo> {nn.parameter}) -> tensor<16x16xf32> {
  // CHECK: = nn.einsum
  // CHECK-NEXT: spmd.all_reduce sum
  // CHECK-NEXT: return
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<16x32xf32, #ox>, tensor<32x16xf32, #xo>) -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}
