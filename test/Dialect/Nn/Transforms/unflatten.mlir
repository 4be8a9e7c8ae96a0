// RUN: cleave-opt %s --nn-unflatten | FileCheck %s

// Gemm is exported over [batch * sequence, hidden].
// CHECK-LABEL: @a_merge_sinks_below_dot_and_bias
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x64xf32>
// CHECK: %[[D:.*]] = nn.einsum %[[X]], %{{.*}} : (tensor<2x8x64xf32>, tensor<64x32xf32>) -> tensor<2x8x32xf32>
// CHECK-NEXT: %[[A:.*]] = nn.add %[[D]], %{{.*}} -> tensor<2x8x32xf32>
// CHECK-NEXT: nn.reshape %[[A]] : (tensor<2x8x32xf32>) -> tensor<16x32xf32>
// CHECK-NEXT: return
func.func @a_merge_sinks_below_dot_and_bias(%x: tensor<2x8x64xf32>, %w: tensor<64x32xf32>, %b: tensor<32xf32>) -> tensor<16x32xf32> {
  %f = nn.reshape %x : (tensor<2x8x64xf32>) -> tensor<16x64xf32>
  %d = nn.einsum %f, %w "ab,bc->ac" : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %y = nn.add %d, %b : (tensor<16x32xf32>, tensor<32xf32>) -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}

// Both operands are merged alike: batch and heads of attention scores.
// CHECK-LABEL: @both_operands_merged_alike
// CHECK-NEXT: %[[D:.*]] = nn.einsum %{{.*}}, %{{.*}} : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
// CHECK-NEXT: nn.reshape %[[D]]
func.func @both_operands_merged_alike(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x16x8xf32>) -> tensor<8x8x8xf32> {
  %a = nn.reshape %q : (tensor<2x4x8x16xf32>) -> tensor<8x8x16xf32>
  %b = nn.reshape %k : (tensor<2x4x16x8xf32>) -> tensor<8x16x8xf32>
  %y = nn.einsum %a, %b "bij,bjk->bik" : (tensor<8x8x16xf32>, tensor<8x16x8xf32>) -> tensor<8x8x8xf32>
  return %y : tensor<8x8x8xf32>
}

// The merged dim is contracted with a plain weight: the merge is needed.
// CHECK-LABEL: @a_contracted_merge_stays
// CHECK: nn.reshape
// CHECK-NEXT: nn.einsum
func.func @a_contracted_merge_stays(%x: tensor<2x4x16xf32>, %w: tensor<64x32xf32>) -> tensor<2x32xf32> {
  %f = nn.reshape %x : (tensor<2x4x16xf32>) -> tensor<2x64xf32>
  %y = nn.einsum %f, %w "ab,bc->ac" : (tensor<2x64xf32>, tensor<64x32xf32>) -> tensor<2x32xf32>
  return %y : tensor<2x32xf32>
}

// The other operand varies along the merged dim in its own way.
// CHECK-LABEL: @an_operand_along_the_merged_dim_keeps_it
// CHECK: nn.reshape
// CHECK-NEXT: nn.add
func.func @an_operand_along_the_merged_dim_keeps_it(%x: tensor<2x8x64xf32>, %b: tensor<16x1xf32>) -> tensor<16x64xf32> {
  %f = nn.reshape %x : (tensor<2x8x64xf32>) -> tensor<16x64xf32>
  %y = nn.add %f, %b : (tensor<16x64xf32>, tensor<16x1xf32>) -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

// CHECK-LABEL: @a_norm_over_the_last_dim_lets_it_pass
// CHECK-NEXT: nn.rms_norm %{{.*}} dim 2 epsilon
// CHECK-NEXT: nn.softmax %{{.*}} dim 2
// CHECK-NEXT: nn.reshape
func.func @a_norm_over_the_last_dim_lets_it_pass(%x: tensor<2x8x64xf32>) -> tensor<16x64xf32> {
  %f = nn.reshape %x : (tensor<2x8x64xf32>) -> tensor<16x64xf32>
  %n = nn.rms_norm %f dim 1 epsilon 1.0e-6 : (tensor<16x64xf32>) -> tensor<16x64xf32>
  %y = nn.softmax %n dim 1 : (tensor<16x64xf32>) -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

// What torch exports GroupNorm as: the channels of a group stand in one dim with the rows and columns, behind which these could
// not be split.
// CHECK-LABEL: @groups_flattened_for_a_norm_stay_channels
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x6x8x8xf32>, %[[S:[a-z0-9]+]]: tensor<3xf32>
// CHECK: %[[C:.*]] = nn.reshape %[[S]] : (tensor<3xf32>) -> tensor<3x1xf32>
// CHECK-NEXT: %[[W:.*]] = nn.broadcast %[[C]] {{.*}}-> tensor<3x2xf32>
// CHECK-NEXT: %[[R:.*]] = nn.reshape %[[W]] : (tensor<3x2xf32>) -> tensor<6xf32>
// CHECK: nn.group_norm %[[X]], %[[R]], %{{.*}} groups 3 epsilon {{.*}} -> tensor<2x6x8x8xf32>
// CHECK-NEXT: nn.reshape %{{.*}} -> tensor<2x3x128xf32>
func.func @groups_flattened_for_a_norm_stay_channels(%x: tensor<2x6x8x8xf32>, %s: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<2x3x128xf32> {
  %f = nn.reshape %x : (tensor<2x6x8x8xf32>) -> tensor<2x3x128xf32>
  %y = nn.group_norm %f, %s, %b groups 3 epsilon 1.0e-5 : (tensor<2x3x128xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x128xf32>
  return %y : tensor<2x3x128xf32>
}

// Two channels of the flattened tensor make a group: they are not the groups of what was flattened.
// CHECK-LABEL: @groups_of_flattened_channels_stay_flat
// CHECK: nn.reshape
// CHECK-NEXT: nn.group_norm
func.func @groups_of_flattened_channels_stay_flat(%x: tensor<2x8x8x8xf32>, %s: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<2x4x128xf32> {
  %f = nn.reshape %x : (tensor<2x8x8x8xf32>) -> tensor<2x4x128xf32>
  %y = nn.group_norm %f, %s, %b groups 2 epsilon 1.0e-5 : (tensor<2x4x128xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x128xf32>
  return %y : tensor<2x4x128xf32>
}

// A constant that varies along the merged dim, as the mask of Swin's shifted windows, is taken apart with it.
// CHECK-LABEL: @a_constant_along_the_merged_dim_is_taken_apart
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x4x64xf32>)
// CHECK: %[[C:.*]] = nn.reshape %{{.*}} : (tensor<8x1xf32>) -> tensor<2x4x1xf32>
// CHECK-NEXT: %[[A:.*]] = nn.add %[[X]], %[[C]] {{.*}}-> tensor<2x4x64xf32>
// CHECK-NEXT: nn.reshape %[[A]]
func.func @a_constant_along_the_merged_dim_is_taken_apart(%x: tensor<2x4x64xf32>) -> tensor<8x64xf32> {
  %c = nn.constant dense<[[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0]]> : tensor<8x1xf32> -> tensor<8x1xf32>
  %f = nn.reshape %x : (tensor<2x4x64xf32>) -> tensor<8x64xf32>
  %y = nn.add %f, %c : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// Keys of a window are rows and columns; windows are taken apart, keys stay one dim.
// CHECK-LABEL: @a_softmax_over_a_merged_dim_lets_the_others_pass
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x4x3x5x7xf32>)
// CHECK-NEXT: %[[K:.*]] = nn.reshape %[[X]] : (tensor<2x4x3x5x7xf32>) -> tensor<2x4x3x35xf32>
// CHECK-NEXT: %[[S:.*]] = nn.softmax %[[K]] dim 3
// CHECK-NEXT: nn.reshape %[[S]] : (tensor<2x4x3x35xf32>) -> tensor<8x3x35xf32>
func.func @a_softmax_over_a_merged_dim_lets_the_others_pass(%x: tensor<2x4x3x5x7xf32>) -> tensor<8x3x35xf32> {
  %f = nn.reshape %x : (tensor<2x4x3x5x7xf32>) -> tensor<8x3x35xf32>
  %y = nn.softmax %f dim 2 : (tensor<8x3x35xf32>) -> tensor<8x3x35xf32>
  return %y : tensor<8x3x35xf32>
}

// Both operands merge windows alike, only one its keys.
// CHECK-LABEL: @a_product_takes_apart_what_both_merge
// CHECK-SAME: (%[[P:[a-z0-9]+]]: tensor<2x4x3x35xf32>, %[[V:[a-z0-9]+]]: tensor<2x4x5x7x6xf32>)
// CHECK-NEXT: %[[K:.*]] = nn.reshape %[[V]] : (tensor<2x4x5x7x6xf32>) -> tensor<2x4x35x6xf32>
// CHECK-NEXT: %[[D:.*]] = nn.einsum %[[P]], %[[K]] {{.*}}-> tensor<2x4x3x6xf32>
// CHECK-NEXT: nn.reshape %[[D]] : (tensor<2x4x3x6xf32>) -> tensor<8x3x6xf32>
func.func @a_product_takes_apart_what_both_merge(%p: tensor<2x4x3x35xf32>, %v: tensor<2x4x5x7x6xf32>) -> tensor<8x3x6xf32> {
  %a = nn.reshape %p : (tensor<2x4x3x35xf32>) -> tensor<8x3x35xf32>
  %b = nn.reshape %v : (tensor<2x4x5x7x6xf32>) -> tensor<8x35x6xf32>
  %y = nn.einsum %a, %b "wqk,wkd->wqd" : (tensor<8x3x35xf32>, tensor<8x35x6xf32>) -> tensor<8x3x6xf32>
  return %y : tensor<8x3x6xf32>
}
