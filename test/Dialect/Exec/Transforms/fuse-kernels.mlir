// Which ops become one kernel.
//
// RUN: cleave-opt %s --exec-fuse-kernels | FileCheck %s

// The sum is read again later, so the kernel gives it, too: both have the rows of the sum.
// CHECK-LABEL: @a_norm_takes_what_stands_before_and_behind
func.func @a_norm_takes_what_stands_before_and_behind(%x: tensor<8x64xf32>, %r: tensor<8x64xf32>, %s: tensor<64xf32>, %w: tensor<64x16xf16>) -> (tensor<8x64xf32>, tensor<8x16xf16>) {
  // CHECK: %[[K:.*]]:2 = exec.fused
  // CHECK-NEXT: nn.add
  // CHECK-NEXT: nn.rms_norm
  // CHECK-NEXT: nn.cast
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[K]]#1, %{{.*}} = %arg3)
  // CHECK-NEXT: nn.einsum
  // CHECK: return %[[K]]#0
  %0 = nn.add %x, %r : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = nn.rms_norm %0, %s dim 1 epsilon 1.0e-5 : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  %2 = nn.cast %1 : (tensor<8x64xf32>) -> tensor<8x64xf16>
  %3 = nn.einsum %2, %w "ik,kj->ij" : (tensor<8x64xf16>, tensor<64x16xf16>) -> tensor<8x16xf16>
  return %0, %3 : tensor<8x64xf32>, tensor<8x16xf16>
}

// The way to a product's heads: the reshape inside is read through, the transpose moves what the kernel stores.
// CHECK-LABEL: @bias_and_movement_join
func.func @bias_and_movement_join(%x: tensor<8x64xf32>, %b: tensor<64xf32>) -> tensor<4x8x16xf32> {
  // CHECK: %[[K:.*]] = exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg1)
  // CHECK: nn.add
  // CHECK-NEXT: nn.reshape
  // CHECK-NEXT: nn.transpose
  // CHECK-NEXT: exec.yield
  // CHECK: return %[[K]]
  %0 = nn.add %x, %b : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  %1 = nn.reshape %0 : (tensor<8x64xf32>) -> tensor<8x4x16xf32>
  %2 = nn.transpose %1 [1, 0, 2] : (tensor<8x4x16xf32>) -> tensor<4x8x16xf32>
  return %2 : tensor<4x8x16xf32>
}

// An alias needs no kernel, at neither end; a slice of rows is one, a slice of columns moves.
// CHECK-LABEL: @aliases_stay_outside
func.func @aliases_stay_outside(%x: tensor<8x64xf32>) -> (tensor<8x4x16xf32>, tensor<2x64xf32>, tensor<8x2xf32>) {
  // CHECK-NEXT: %[[K:.*]] = exec.fused
  // CHECK-NEXT: nn.exp
  // CHECK-NEXT: exec.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: nn.reshape %[[K]]
  // CHECK-NEXT: nn.slice %arg0 starts [4, 0]
  // CHECK-NEXT: exec.fused
  // CHECK-NEXT: nn.slice
  %0 = nn.exp %x : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = nn.reshape %0 : (tensor<8x64xf32>) -> tensor<8x4x16xf32>
  %2 = nn.slice %x starts [4, 0] sizes [2, 64] steps [1, 1] : (tensor<8x64xf32>) -> tensor<2x64xf32>
  %3 = nn.slice %x starts [0, 4] sizes [8, 2] steps [1, 1] : (tensor<8x64xf32>) -> tensor<8x2xf32>
  return %1, %2, %3 : tensor<8x4x16xf32>, tensor<2x64xf32>, tensor<8x2xf32>
}

// Statistics of rows, and what pairs them with the rows again; other rows are another kernel.
// CHECK-LABEL: @one_kind_of_rows
func.func @one_kind_of_rows(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // CHECK: %[[K:.*]] = exec.fused
  // CHECK-NEXT: nn.reduce max
  // CHECK-NEXT: nn.sub
  // CHECK-NEXT: nn.exp
  // CHECK-NEXT: nn.reduce sum
  // CHECK-NEXT: nn.div
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[K]])
  // CHECK-NEXT: nn.softmax %{{.*}} dim 0
  %0 = nn.reduce max %x dims [1] keep_dims : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %1 = nn.sub %x, %0 : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  %2 = nn.exp %1 : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %3 = nn.reduce sum %2 dims [1] keep_dims : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %4 = nn.div %2, %3 : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  %5 = nn.softmax %4 dim 0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
  return %5 : tensor<8x64xf32>
}

// Behind rows nothing moves: each element would compute its row again.
// CHECK-LABEL: @no_reduction_is_repeated
func.func @no_reduction_is_repeated(%x: tensor<8x64xf32>, %y: tensor<64x8xf32>) -> tensor<64x8xf32> {
  // CHECK: %[[K:.*]] = exec.fused
  // CHECK-NEXT: nn.reduce
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[K]], %{{.*}} = %arg1)
  // CHECK-NEXT: nn.add
  %0 = nn.reduce sum %x dims [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  %1 = nn.add %0, %y : (tensor<8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
  return %1 : tensor<64x8xf32>
}

// Nor where the rows are as many as they are long: a sum a row, read along the row, is every sum for each element.
// CHECK-LABEL: @rows_are_not_columns
func.func @rows_are_not_columns(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: %[[K:.*]] = exec.fused
  // CHECK-NEXT: nn.reduce
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[K]], %{{.*}} = %arg1)
  %0 = nn.reduce sum %x dims [1] : (tensor<8x8xf32>) -> tensor<8xf32>
  %1 = nn.add %0, %y : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// What has other readers keeps its space: the columns are another kernel's.
// CHECK-LABEL: @one_space
func.func @one_space(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x2xf32>) {
  // CHECK: %[[K:.*]] = exec.fused
  // CHECK-NEXT: nn.mul
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[K]])
  // CHECK-NEXT: nn.slice
  %0 = nn.mul %x, %y : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = nn.slice %0 starts [0, 4] sizes [8, 2] steps [1, 1] : (tensor<8x64xf32>) -> tensor<8x2xf32>
  return %0, %1 : tensor<8x64xf32>, tensor<8x2xf32>
}

// A kernel runs where its last op stands: once somebody else has read from it, nothing joins any more.
// CHECK-LABEL: @a_reader_closes
func.func @a_reader_closes(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  // CHECK: exec.fused
  // CHECK-NEXT: nn.exp
  // CHECK-NEXT: exec.yield
  // CHECK: nn.einsum
  // CHECK: exec.fused
  // CHECK-NEXT: nn.neg
  // CHECK-NEXT: exec.yield
  %0 = nn.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = nn.einsum %0, %0 "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = nn.neg %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}

// A row of 64 that 8 rows repeat is read by each reader; a table of rows that both readers read as it is, is stored.
// CHECK-LABEL: @what_is_cheap_is_computed_by_each_reader
func.func @what_is_cheap_is_computed_by_each_reader(%x: tensor<64xf32>, %w: tensor<8x64xf32>, %v: tensor<8x64xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: exec.fused (%{{.*}} = %arg1, %{{.*}} = %arg0)
  // CHECK-NEXT: nn.broadcast
  // CHECK-NEXT: nn.mul
  // CHECK: exec.fused (%{{.*}} = %arg2, %{{.*}} = %arg0)
  // CHECK-NEXT: nn.broadcast
  // CHECK-NEXT: nn.mul
  %0 = nn.broadcast %x : (tensor<64xf32>) -> tensor<8x64xf32>
  %1 = nn.mul %w, %0 : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %2 = nn.reduce sum %1 dims [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  %3 = nn.mul %v, %0 : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %4 = nn.reduce sum %3 dims [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  return %2, %4 : tensor<8xf32>, tensor<8xf32>
}

// Queries, keys and values in one: each part adds its own part of the bias, and nothing is stored twice.
// CHECK-LABEL: @each_part_adds_its_bias
func.func @each_part_adds_its_bias(%x: tensor<8x128xf32>, %b: tensor<128xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>) {
  // CHECK: exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg1)
  // CHECK-NEXT: nn.add
  // CHECK-NEXT: nn.slice
  // CHECK: exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg1)
  // CHECK-NEXT: nn.add
  // CHECK-NEXT: nn.slice
  %0 = nn.add %x, %b : (tensor<8x128xf32>, tensor<128xf32>) -> tensor<8x128xf32>
  %1 = nn.slice %0 starts [0, 0] sizes [8, 64] steps [1, 1] : (tensor<8x128xf32>) -> tensor<8x64xf32>
  %2 = nn.slice %0 starts [0, 64] sizes [8, 64] steps [1, 1] : (tensor<8x128xf32>) -> tensor<8x64xf32>
  return %1, %2 : tensor<8x64xf32>, tensor<8x64xf32>
}

// CHECK-LABEL: @what_is_dear_is_stored
func.func @what_is_dear_is_stored(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>) -> (tensor<8xf32>, tensor<64xf32>) {
  // CHECK: %[[K:.*]]:2 = exec.fused
  // CHECK-NEXT: nn.mul
  // CHECK-NEXT: nn.reduce sum
  // CHECK: exec.fused (%{{.*}} = %[[K]]#0)
  // CHECK-NEXT: nn.reduce max
  %0 = nn.mul %x, %y : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = nn.reduce sum %0 dims [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  %2 = nn.reduce max %0 dims [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  return %1, %2 : tensor<8xf32>, tensor<64xf32>
}

// Constants of one number are part of each kernel; tables and parameters are not.
// CHECK-LABEL: @numbers_are_inside
func.func @numbers_are_inside(%x: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK: %[[C:.*]] = nn.constant dense<[1.{{.*}}, 2.{{.*}}]>
  // CHECK: exec.fused (%{{.*}} = %arg0, %{{.*}} = %[[C]])
  // CHECK-NEXT: nn.constant dense<3.
  // CHECK-NEXT: nn.mul
  // CHECK-NEXT: nn.add
  %0 = nn.constant dense<3.0> : tensor<f32> -> tensor<f32>
  %1 = nn.constant dense<[1.0, 2.0]> : tensor<2xf32> -> tensor<2xf32>
  %2 = nn.mul %x, %0 : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = nn.add %2, %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
}

// Lookups are read through like any movement: an embedding is one kernel.
// CHECK-LABEL: @an_embedding_is_one_kernel
func.func @an_embedding_is_one_kernel(%t: tensor<100x64xf32>, %p: tensor<8x64xf32>, %i: tensor<8xi64>, %s: tensor<64xf32>) -> tensor<8x64xf32> {
  // CHECK-COUNT-1: exec.fused
  // CHECK-NEXT: nn.gather
  // CHECK-NEXT: nn.add
  // CHECK-NEXT: nn.layer_norm
  // CHECK-NEXT: exec.yield
  %0 = nn.gather %t, %i dim 0 : (tensor<100x64xf32>, tensor<8xi64>) -> tensor<8x64xf32>
  %1 = nn.add %0, %p : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %2 = nn.layer_norm %1, %s dim 1 epsilon 1.0e-5 : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  return %2 : tensor<8x64xf32>
}

// A part of the rows that looks like one element a row is none.
// CHECK-LABEL: @a_slice_is_no_statistic
func.func @a_slice_is_no_statistic(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // CHECK: nn.softmax
  // CHECK-NEXT: exec.yield
  // CHECK: nn.slice
  // CHECK: exec.fused
  // CHECK-NEXT: nn.add
  %0 = nn.softmax %x dim 0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = nn.slice %0 starts [3, 0] sizes [1, 64] steps [1, 1] : (tensor<8x64xf32>) -> tensor<1x64xf32>
  %2 = nn.add %0, %1 : (tensor<8x64xf32>, tensor<1x64xf32>) -> tensor<8x64xf32>
  return %2 : tensor<8x64xf32>
}

// Rotary embedding as exporters write it: what all of its parts read is moved in the one kernel that they make.
// CHECK-LABEL: @a_rotation_is_one_kernel
func.func @a_rotation_is_one_kernel(%x: tensor<8x4x16xf32>, %c: tensor<8x16xf32>, %s: tensor<8x16xf32>) -> tensor<4x8x16xf32> {
  // CHECK-NEXT: %[[K:.*]] = exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg1, %{{.*}} = %arg2)
  // CHECK-COUNT-1: nn.transpose
  // CHECK-NOT: nn.transpose
  // CHECK-NOT: exec.fused
  // CHECK: return %[[K]]
  %0 = nn.transpose %x [1, 0, 2] : (tensor<8x4x16xf32>) -> tensor<4x8x16xf32>
  %1 = nn.mul %0, %c : (tensor<4x8x16xf32>, tensor<8x16xf32>) -> tensor<4x8x16xf32>
  %2 = nn.slice %0 starts [0, 0, 0] sizes [4, 8, 8] steps [1, 1, 1] : (tensor<4x8x16xf32>) -> tensor<4x8x8xf32>
  %3 = nn.slice %0 starts [0, 0, 8] sizes [4, 8, 8] steps [1, 1, 1] : (tensor<4x8x16xf32>) -> tensor<4x8x8xf32>
  %4 = nn.neg %3 : (tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  %5 = nn.concat %4, %2 dim 2 : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x16xf32>
  %6 = nn.mul %5, %s : (tensor<4x8x16xf32>, tensor<8x16xf32>) -> tensor<4x8x16xf32>
  %7 = nn.add %1, %6 : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
  return %7 : tensor<4x8x16xf32>
}

// A mean over tokens that count: the mask is read as it is, and weighting is part of the sum, since the norm is stored anyway.
// CHECK-LABEL: @weights_belong_to_the_sum
func.func @weights_belong_to_the_sum(%x: tensor<8x64xf32>, %s: tensor<64xf32>, %m: tensor<8x1xi64>) -> (tensor<8x64xf32>, tensor<64xf32>) {
  // CHECK-NEXT: %[[N:.*]] = exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg1)
  // CHECK-NEXT: nn.rms_norm
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (
  // CHECK-SAME: %arg2
  // CHECK-NEXT: nn.broadcast
  // CHECK-NEXT: nn.cast
  // CHECK-NEXT: nn.mul
  // CHECK-NEXT: nn.reduce sum
  // CHECK-NEXT: nn.reduce sum
  // CHECK-NEXT: nn.div
  // CHECK-NEXT: exec.yield
  %0 = nn.rms_norm %x, %s dim 1 epsilon 1.0e-5 : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  %1 = nn.broadcast %m : (tensor<8x1xi64>) -> tensor<8x64xi64>
  %2 = nn.cast %1 : (tensor<8x64xi64>) -> tensor<8x64xf32>
  %3 = nn.mul %0, %2 : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %4 = nn.reduce sum %3 dims [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  %5 = nn.reduce sum %2 dims [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  %6 = nn.div %4, %5 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %0, %6 : tensor<8x64xf32>, tensor<64xf32>
}
