// RUN: cleave-opt %s --nn-fold-iota-gathers | FileCheck %s

// CHECK-LABEL: @even_steps_are_a_slice
// CHECK: nn.slice %{{.*}} starts [1, 0] sizes [3, 4] steps [2, 1]
// CHECK-NEXT: return
func.func @even_steps_are_a_slice(%x: tensor<8x4xf32>) -> tensor<3x4xf32> {
  %i = nn.constant dense<[1, 3, 5]> : tensor<3xi64> -> tensor<3xi64>
  %y = nn.gather %x, %i dim 0 : (tensor<8x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// The pairs (batch, position) over [2, 1, 1, 3] read the whole mask.
// CHECK-LABEL: @pairs_over_a_grid_are_a_broadcast
// CHECK-SAME: (%[[M:.*]]: tensor<2x3xi1>)
// CHECK: %[[R:.*]] = nn.reshape %[[M]] : (tensor<2x3xi1>) -> tensor<2x1x1x3xi1>
// CHECK-NEXT: return %[[R]]
func.func @pairs_over_a_grid_are_a_broadcast(%m: tensor<2x3xi1>) -> tensor<2x1x1x3xi1> {
  %i = nn.constant dense<[[[[[0, 0], [0, 1], [0, 2]]]], [[[[1, 0], [1, 1], [1, 2]]]]]> : tensor<2x1x1x3x2xi64> -> tensor<2x1x1x3x2xi64>
  %y = nn.gather_nd %m, %i batch_dims 0 : (tensor<2x3xi1>, tensor<2x1x1x3x2xi64>) -> tensor<2x1x1x3xi1>
  return %y : tensor<2x1x1x3xi1>
}

// Looked up in the other order, the table is transposed.
// CHECK-LABEL: @swapped_order_is_a_transpose
// CHECK: nn.transpose %{{.*}} [1, 0]
// CHECK-NEXT: return
func.func @swapped_order_is_a_transpose(%m: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %i = nn.constant dense<[[[0, 0], [1, 0]], [[0, 1], [1, 1]], [[0, 2], [1, 2]]]> : tensor<3x2x2xi64> -> tensor<3x2x2xi64>
  %y = nn.gather_nd %m, %i batch_dims 0 : (tensor<2x3xf32>, tensor<3x2x2xi64>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// The last row, negative: a slice of one, without its dim.
// CHECK-LABEL: @one_row_from_the_end_is_a_slice
// CHECK: nn.slice %{{.*}} starts [7, 0] sizes [1, 4] steps [1, 1]
// CHECK-NEXT: nn.reshape
// CHECK-NEXT: return
func.func @one_row_from_the_end_is_a_slice(%x: tensor<8x4xf32>) -> tensor<4xf32> {
  %i = nn.constant dense<-1> : tensor<i64> -> tensor<i64>
  %y = nn.gather %x, %i dim 0 : (tensor<8x4xf32>, tensor<i64>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// A diagonal runs along one position twice: it stays a lookup.
// CHECK-LABEL: @a_diagonal_stays
// CHECK: nn.gather_nd
func.func @a_diagonal_stays(%x: tensor<3x3xf32>) -> tensor<3xf32> {
  %i = nn.constant dense<[[0, 0], [1, 1], [2, 2]]> : tensor<3x2xi64> -> tensor<3x2xi64>
  %y = nn.gather_nd %x, %i batch_dims 0 : (tensor<3x3xf32>, tensor<3x2xi64>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// CHECK-LABEL: @uneven_steps_stay
// CHECK: nn.gather
func.func @uneven_steps_stay(%x: tensor<8x4xf32>) -> tensor<3x4xf32> {
  %i = nn.constant dense<[1, 3, 4]> : tensor<3xi64> -> tensor<3xi64>
  %y = nn.gather %x, %i dim 0 : (tensor<8x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// Out of range: the run-time error must not be folded away.
// CHECK-LABEL: @an_index_out_of_range_stays
// CHECK: nn.gather
func.func @an_index_out_of_range_stays(%x: tensor<8x4xf32>) -> tensor<2x4xf32> {
  %i = nn.constant dense<[7, 8]> : tensor<2xi64> -> tensor<2xi64>
  %y = nn.gather %x, %i dim 0 : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// TorchScript looks masks up in a flattened table: batch * 3 + position. The table is taken apart instead.
// CHECK-LABEL: @a_flattened_table_is_taken_apart
// CHECK-SAME: (%[[M:.*]]: tensor<6xi1>)
// CHECK: nn.reshape %[[M]] : (tensor<6xi1>) -> tensor<2x1x3xi1>
// CHECK-NOT: nn.gather
func.func @a_flattened_table_is_taken_apart(%m: tensor<6xi1>) -> tensor<2x1x3xi1> {
  %i = nn.constant dense<[[[0, 1, 2]], [[3, 4, 5]]]> : tensor<2x1x3xi64> -> tensor<2x1x3xi64>
  %y = nn.gather %m, %i dim 0 : (tensor<6xi1>, tensor<2x1x3xi64>) -> tensor<2x1x3xi1>
  return %y : tensor<2x1x3xi1>
}

// Row 2 is never read: these are not all rows.
// CHECK-LABEL: @rows_left_out_are_no_flattened_table
// CHECK: nn.gather
func.func @rows_left_out_are_no_flattened_table(%m: tensor<6xi1>) -> tensor<2x2xi1> {
  %i = nn.constant dense<[[0, 1], [3, 4]]> : tensor<2x2xi64> -> tensor<2x2xi64>
  %y = nn.gather %m, %i dim 0 : (tensor<6xi1>, tensor<2x2xi64>) -> tensor<2x2xi1>
  return %y : tensor<2x2xi1>
}

// x[arange(batch), i]: the first index is the position itself, so the batch is no looked-up dim.
// CHECK-LABEL: @a_tuple_that_starts_with_its_position_is_a_batch
// CHECK-SAME: %[[X:.*]]: tensor<4x8x16xf32>, %[[I:.*]]: tensor<4x1xi64>
// CHECK: nn.gather_nd %[[X]], %[[I]] batch_dims 1 : (tensor<4x8x16xf32>, tensor<4x1xi64>) -> tensor<4x16xf32>
func.func @a_tuple_that_starts_with_its_position_is_a_batch(%x: tensor<4x8x16xf32>, %i: tensor<4x1xi64>) -> tensor<4x16xf32> {
  %a = nn.constant dense<[[0], [1], [2], [3]]> : tensor<4x1xi64> -> tensor<4x1xi64>
  %t = nn.concat %a, %i dim 1 : (tensor<4x1xi64>, tensor<4x1xi64>) -> tensor<4x2xi64>
  %y = nn.gather_nd %x, %t batch_dims 0 : (tensor<4x8x16xf32>, tensor<4x2xi64>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Two positions first: two batch dims; the last component is looked up.
// CHECK-LABEL: @two_positions_are_two_batch_dims
// CHECK-SAME: %[[X:.*]]: tensor<2x3x8xf32>, %[[I:.*]]: tensor<2x3x1xi64>
// CHECK: nn.gather_nd %[[X]], %[[I]] batch_dims 2
func.func @two_positions_are_two_batch_dims(%x: tensor<2x3x8xf32>, %i: tensor<2x3x1xi64>) -> tensor<2x3xf32> {
  %a = nn.constant dense<[[[0], [0], [0]], [[1], [1], [1]]]> : tensor<2x3x1xi64> -> tensor<2x3x1xi64>
  %b = nn.constant dense<[[[0], [1], [2]], [[0], [1], [2]]]> : tensor<2x3x1xi64> -> tensor<2x3x1xi64>
  %t = nn.concat %a, %b, %i dim 2 : (tensor<2x3x1xi64>, tensor<2x3x1xi64>, tensor<2x3x1xi64>) -> tensor<2x3x3xi64>
  %y = nn.gather_nd %x, %t batch_dims 0 : (tensor<2x3x8xf32>, tensor<2x3x3xi64>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// The table has more rows than there are positions: these are the first of them, no batch.
// CHECK-LABEL: @a_part_of_the_rows_is_no_batch
// CHECK: batch_dims 0
func.func @a_part_of_the_rows_is_no_batch(%x: tensor<4x8xf32>, %i: tensor<2x1xi64>) -> tensor<2xf32> {
  %a = nn.constant dense<[[0], [1]]> : tensor<2x1xi64> -> tensor<2x1xi64>
  %t = nn.concat %a, %i dim 1 : (tensor<2x1xi64>, tensor<2x1xi64>) -> tensor<2x2xi64>
  %y = nn.gather_nd %x, %t batch_dims 0 : (tensor<4x8xf32>, tensor<2x2xi64>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// The position is looked up in another dim than its own: a real lookup.
// CHECK-LABEL: @a_position_of_another_dim_is_no_batch
// CHECK: batch_dims 0
func.func @a_position_of_another_dim_is_no_batch(%x: tensor<3x8xf32>, %i: tensor<3x3x1xi64>) -> tensor<3x3xf32> {
  %a = nn.constant dense<[[[0], [1], [2]], [[0], [1], [2]], [[0], [1], [2]]]> : tensor<3x3x1xi64> -> tensor<3x3x1xi64>
  %t = nn.concat %a, %i dim 2 : (tensor<3x3x1xi64>, tensor<3x3x1xi64>) -> tensor<3x3x2xi64>
  %y = nn.gather_nd %x, %t batch_dims 0 : (tensor<3x8xf32>, tensor<3x3x2xi64>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}

// Positions that importing left as arithmetic: rows of 4 by counts of 8 sum to all positions of the flattened table.
// CHECK-LABEL: @sums_of_counts
// CHECK: %[[R:.*]] = nn.reshape %arg0 : (tensor<32x3xf32>) -> tensor<4x8x3xf32>
// CHECK-NEXT: return %[[R]]
func.func @sums_of_counts(%x: tensor<32x3xf32>) -> tensor<4x8x3xf32> {
  %rows = nn.constant dense<[[0], [8], [16], [24]]> : tensor<4x1xi64> -> tensor<4x1xi64>
  %count = nn.iota dim 0 start 0 step 1 : tensor<8xi64>
  %columns = nn.reshape %count : (tensor<8xi64>) -> tensor<1x8xi64>
  %indices = nn.add %rows, %columns : (tensor<4x1xi64>, tensor<1x8xi64>) -> tensor<4x8xi64>
  %y = nn.gather %x, %indices dim 0 : (tensor<32x3xf32>, tensor<4x8xi64>) -> tensor<4x8x3xf32>
  return %y : tensor<4x8x3xf32>
}
