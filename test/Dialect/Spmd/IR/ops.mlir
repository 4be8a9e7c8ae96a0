// Every op of the spmd dialect, read and printed in custom form, in generic form and as bytecode.
//
// RUN: cleave-opt %s | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --mlir-print-op-generic | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --emit-bytecode | cleave-opt | FileCheck %s

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
#cols = #spmd.sharding<#mesh, [{}, {"x"}]>
#sums = #spmd.sharding<#mesh, [{}, {"x"}], partial = {"y": sum}>

module attributes {spmd.mesh = #mesh} {

// Before partitioning: global types, whose shardings differ.
// CHECK-LABEL: @global_types_change_sharding
func.func @global_types_change_sharding(%a: tensor<8x4xf32>, %b: tensor<8x4xf32, #rows>, %c: tensor<8x4xf32, #sums>) {
  // CHECK: spmd.constrain %{{.*}} : tensor<8x4xf32> to tensor<8x4xf32, #[[ROWS:.*]]>
  %0 = spmd.constrain %a : tensor<8x4xf32> to tensor<8x4xf32, #rows>
  // CHECK: spmd.reshard %{{.*}} : tensor<8x4xf32, #[[ROWS]]> to tensor<8x4xf32, #[[COLS:.*]]>
  %1 = spmd.reshard %b : tensor<8x4xf32, #rows> to tensor<8x4xf32, #cols>
  // CHECK: spmd.reshard %{{.*}} : tensor<8x4xf32, #replicated_x_sum_y> to tensor<8x4xf32, #[[COLS]]>
  %2 = spmd.reshard %c : tensor<8x4xf32, #sums> to tensor<8x4xf32, #cols>
  return
}

// Reductions over whole axes, digits of axes, several of them, and none.
// CHECK-LABEL: @all_reduces
func.func @all_reduces(%x: tensor<8x8xf32>, %b: tensor<8xi1>) {
  // CHECK: spmd.all_reduce sum %{{.*}} over {"x"} : tensor<8x8xf32>
  %0 = spmd.all_reduce sum %x over {"x"} : tensor<8x8xf32>
  // CHECK: spmd.all_reduce prod %{{.*}} over {"x", "y":(2)2} : tensor<8x8xf32>
  %1 = spmd.all_reduce prod %x over {"x", "y":(2)2} : tensor<8x8xf32>
  // CHECK: spmd.all_reduce max %{{.*}} over {"y":(1)2, "y":(2)2} : tensor<8xi1>
  %2 = spmd.all_reduce max %b over {"y":(1)2, "y":(2)2} : tensor<8xi1>
  // CHECK: spmd.all_reduce min %{{.*}} over {} : tensor<8x8xf32>
  %3 = spmd.all_reduce min %x over {} : tensor<8x8xf32>
  return
}

// Gathered dims grow by the extents of their axes, scattered and sliced ones shrink.
// CHECK-LABEL: @gathers_and_scatters
func.func @gathers_and_scatters(%x: tensor<8x8xf32>) {
  // CHECK: spmd.all_gather %{{.*}} dims [{"y"}, {}] : (tensor<8x8xf32>) -> tensor<32x8xf32>
  %0 = spmd.all_gather %x dims [{"y"}, {}] : (tensor<8x8xf32>) -> tensor<32x8xf32>
  // CHECK: spmd.all_gather %{{.*}} dims [{"y":(1)2}, {"x", "y":(2)2}] : (tensor<8x8xf32>) -> tensor<16x32xf32>
  %1 = spmd.all_gather %x dims [{"y":(1)2}, {"x", "y":(2)2}] : (tensor<8x8xf32>) -> tensor<16x32xf32>
  // CHECK: spmd.reduce_scatter sum %{{.*}} dims [{}, {"y", "x"}] : (tensor<8x8xf32>) -> tensor<8x1xf32>
  %2 = spmd.reduce_scatter sum %x dims [{}, {"y", "x"}] : (tensor<8x8xf32>) -> tensor<8x1xf32>
  // CHECK: spmd.local_slice %{{.*}} dims [{"x"}, {"y"}] : (tensor<8x8xf32>) -> tensor<4x2xf32>
  %3 = spmd.local_slice %x dims [{"x"}, {"y"}] : (tensor<8x8xf32>) -> tensor<4x2xf32>
  // CHECK: spmd.all_to_all %{{.*}} gather [{"y"}, {}] slice [{}, {"y"}] : (tensor<8x8xf32>) -> tensor<32x2xf32>
  %4 = spmd.all_to_all %x gather [{"y"}, {}] slice [{}, {"y"}] : (tensor<8x8xf32>) -> tensor<32x2xf32>
  return
}

// Each rank holds 4 x 4 of 8 x 4 before, 8 x 2 after.
// CHECK-LABEL: @a_permute_goes_from_one_sharding_to_another
func.func @a_permute_goes_from_one_sharding_to_another(%x: tensor<4x4xf32>) {
  // CHECK: spmd.permute %{{.*}} from #[[ROWS:.*]] to #[[COLS:.*]] of tensor<8x4xf32> : (tensor<4x4xf32>) -> tensor<8x2xf32>
  %0 = spmd.permute %x from #rows to #cols of tensor<8x4xf32> : (tensor<4x4xf32>) -> tensor<8x2xf32>
  return
}

// Rows 4r - 1 to 4r + 4 on rank r along x; beyond the ends a number, or the nearest row.
// CHECK-LABEL: @windows_have_edges_of_neighbors
func.func @windows_have_edges_of_neighbors(%x: tensor<4x8xf32>) {
  // CHECK: spmd.window %{{.*}} dims [{"x"}, {}] steps [4, 0] lows [-1, 0] highs [5, 8] fill 0.000000e+00 : f32 : (tensor<4x8xf32>) -> tensor<6x8xf32>
  %0 = spmd.window %x dims [{"x"}, {}] steps [4, 0] lows [-1, 0] highs [5, 8] fill 0.0 : f32 : (tensor<4x8xf32>) -> tensor<6x8xf32>
  // CHECK: spmd.window %{{.*}} dims [{"x"}, {"y"}] steps [4, 2] lows [0, -3] highs [6, 9] : (tensor<4x8xf32>) -> tensor<6x12xf32> cause "why"
  %1 = spmd.window %x dims [{"x"}, {"y"}] steps [4, 2] lows [0, -3] highs [6, 9] : (tensor<4x8xf32>) -> tensor<6x12xf32> cause "why"
  // CHECK: spmd.window %{{.*}} dims [{"x"}, {}] steps [-4, 0] lows [3, 0] highs [9, 8] wraps : (tensor<4x8xf32>) -> tensor<6x8xf32>
  %2 = spmd.window %x dims [{"x"}, {}] steps [-4, 0] lows [3, 0] highs [9, 8] wraps : (tensor<4x8xf32>) -> tensor<6x8xf32>
  // CHECK: spmd.window %{{.*}} dims [{"x"}, {}] steps [4, 0] lows [-1, 0] highs [5, 8] reflects : (tensor<4x8xf32>) -> tensor<6x8xf32>
  %3 = spmd.window %x dims [{"x"}, {}] steps [4, 0] lows [-1, 0] highs [5, 8] reflects : (tensor<4x8xf32>) -> tensor<6x8xf32>
  // CHECK: spmd.window %{{.*}} dims [{"x"}, {}] steps [4, 0] lows [-1, 0] highs [5, 8] missing [1, 0] from [-1, 0] to [8, 8] on [2, 1] : (tensor<4x8xf32>) -> tensor<6x8xf32>
  %4 = spmd.window %x dims [{"x"}, {}] steps [4, 0] lows [-1, 0] highs [5, 8] missing [1, 0] from [-1, 0] to [8, 8] on [2, 1] : (tensor<4x8xf32>) -> tensor<6x8xf32>
  return
}

// Shards of 1 and 3 rows of two parts; on four ranks one of 7 rows has 2 of them on a rank, and the last one has padding.
// CHECK-LABEL: @a_join_puts_parts_one_behind_the_other
func.func @a_join_puts_parts_one_behind_the_other(%x: tensor<4x8xf32>) {
  // CHECK: spmd.join %{{.*}} dim 0 parts [2, 6] over {"x"} : (tensor<4x8xf32>) -> tensor<4x8xf32> cause "why"
  %0 = spmd.join %x dim 0 parts [2, 6] over {"x"} : (tensor<4x8xf32>) -> tensor<4x8xf32> cause "why"
  // CHECK: spmd.join %{{.*}} dim 1 parts [7, 7, 13] over {"y"} : (tensor<4x8xf32>) -> tensor<4x7xf32>
  %1 = spmd.join %x dim 1 parts [7, 7, 13] over {"y"} : (tensor<4x8xf32>) -> tensor<4x7xf32>
  return
}

// The other way round: of a shard of 4 of 8 rows, 1 row of the first part and 3 of the second.
// CHECK-LABEL: @a_split_takes_parts_apart
func.func @a_split_takes_parts_apart(%x: tensor<4x8xf32>) {
  // CHECK: spmd.split %{{.*}} dim 0 parts [2, 6] over {"x"} : (tensor<4x8xf32>) -> tensor<4x8xf32> cause "why"
  %0 = spmd.split %x dim 0 parts [2, 6] over {"x"} : (tensor<4x8xf32>) -> tensor<4x8xf32> cause "why"
  // CHECK: spmd.split %{{.*}} dim 1 parts [7, 7, 15] over {"y"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = spmd.split %x dim 1 parts [7, 7, 15] over {"y"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// The first rank of each group keeps the value, the others nothing of it.
// CHECK-LABEL: @a_value_stays_on_first_ranks
func.func @a_value_stays_on_first_ranks(%x: tensor<8x8xf32>) {
  // CHECK: spmd.keep_on_first sum %{{.*}} over {"x"} : tensor<8x8xf32>
  %0 = spmd.keep_on_first sum %x over {"x"} : tensor<8x8xf32>
  // CHECK: spmd.keep_on_first max %{{.*}} over {"x", "y":(1)2} : tensor<8x8xf32>
  %1 = spmd.keep_on_first max %x over {"x", "y":(1)2} : tensor<8x8xf32>
  return
}

// What a collective is for stands behind it.
// CHECK-LABEL: @collectives_have_causes
func.func @collectives_have_causes(%x: tensor<8x8xf32>, %y: tensor<4x4xf32>) {
  // CHECK: spmd.all_reduce sum %{{.*}} over {"x"} : tensor<8x8xf32> cause "one"
  %0 = spmd.all_reduce sum %x over {"x"} : tensor<8x8xf32> cause "one"
  // CHECK: spmd.all_gather %{{.*}} dims [{"x"}, {}] : (tensor<8x8xf32>) -> tensor<16x8xf32> cause "two"
  %1 = spmd.all_gather %x dims [{"x"}, {}] : (tensor<8x8xf32>) -> tensor<16x8xf32> cause "two"
  // CHECK: spmd.reduce_scatter sum %{{.*}} dims [{"x"}, {}] : (tensor<8x8xf32>) -> tensor<4x8xf32> cause "three"
  %2 = spmd.reduce_scatter sum %x dims [{"x"}, {}] : (tensor<8x8xf32>) -> tensor<4x8xf32> cause "three"
  // CHECK: spmd.all_to_all %{{.*}} gather [{"x"}, {}] slice [{}, {"x"}] : (tensor<8x8xf32>) -> tensor<16x4xf32> cause "four"
  %3 = spmd.all_to_all %x gather [{"x"}, {}] slice [{}, {"x"}] : (tensor<8x8xf32>) -> tensor<16x4xf32> cause "four"
  // CHECK: spmd.permute %{{.*}} : (tensor<4x4xf32>) -> tensor<8x2xf32> cause "five"
  %4 = spmd.permute %y from #rows to #cols of tensor<8x4xf32> : (tensor<4x4xf32>) -> tensor<8x2xf32> cause "five"
  return
}

// CHECK-LABEL: @a_rank_knows_its_index_along_axes
func.func @a_rank_knows_its_index_along_axes() {
  // CHECK: spmd.axis_index {"x", "y"} : tensor<i64>
  %0 = spmd.axis_index {"x", "y"} : tensor<i64>
  // CHECK: spmd.axis_index {} : tensor<i64>
  %1 = spmd.axis_index {} : tensor<i64>
  return
}

}
