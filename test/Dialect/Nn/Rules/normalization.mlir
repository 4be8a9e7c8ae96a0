// Rules of norms: statistics are paid for where normalized dims are split.
//
// RUN: cleave-opt %s --spmd-print-rules --verify-diagnostics

func.func @a_layer_norm_is_ordered_from_its_dim_on(%x: tensor<2x8x4xf32>, %s: tensor<4xf32>, %sb: tensor<8x1xf32>) {
  // expected-remark-re @below {{([i,j,k],[k],[k])->([i,j,k]) {i=2,j=8,k=4} ordered={k}{{$}}}}
  %0 = nn.layer_norm %x, %s bias %s dim 2 epsilon 1.0e-5 : (tensor<2x8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x8x4xf32>
  // expected-remark-re @below {{([i,j,k],[j,1])->([i,j,k]) {i=2,j=8,k=4} ordered={j,k}{{$}}}}
  %1 = nn.layer_norm %x, %sb dim 1 epsilon 1.0e-5 : (tensor<2x8x4xf32>, tensor<8x1xf32>) -> tensor<2x8x4xf32>
  return
}

func.func @an_rms_norm_likewise(%x: tensor<2x8x4xf32>, %s: tensor<4xf32>) {
  // expected-remark-re @below {{([i,j,k],[k])->([i,j,k]) {i=2,j=8,k=4} ordered={k}{{$}}}}
  %0 = nn.rms_norm %x, %s dim 2 epsilon 1.0e-5 : (tensor<2x8x4xf32>, tensor<4xf32>) -> tensor<2x8x4xf32>
  return
}

func.func @given_statistics_stand_along_the_channels(%x: tensor<2x3x8xf32>, %c: tensor<3xf32>) {
  // expected-remark-re @below {{([i,j,k],[j],[j],[j],[j])->([i,j,k]) {i=2,j=3,k=8}{{$}}}}
  %0 = nn.batch_norm %x, %c, %c, %c, %c epsilon 1.0e-5 : (tensor<2x3x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x8xf32>
  return
}

func.func @channels_are_groups_and_channels_of_a_group(%x: tensor<2x6x8xf32>, %c: tensor<6xf32>) {
  // expected-remark-re @below {{([i,jk,l],[jk],[jk])->([i,jk,l]) {i=2,j=2,k=3,l=8} ordered={l,k}{{$}}}}
  %0 = nn.group_norm %x, %c, %c groups 2 epsilon 1.0e-5 : (tensor<2x6x8xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x6x8xf32>
  // Instance normalization: every channel is a group.
  // expected-remark-re @below {{([i,j,k],[j],[j])->([i,j,k]) {i=2,j=6,k=8} ordered={k}{{$}}}}
  %1 = nn.group_norm %x, %c, %c groups 6 epsilon 1.0e-5 : (tensor<2x6x8xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x6x8xf32>
  return
}

func.func @channels_are_normalized_by_neighbors(%x: tensor<2x8x4x4xf32>) {
  // Of one channel there is no neighbor.
  // expected-remark-re @below {{([i,j,k,l])->([i,j,k,l]) {i=2,j=8,k=4,l=4}{{$}}}}
  %1 = nn.lrn %x size 1 alpha 1.0e-4 beta 0.75 k 1.0 : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  // expected-remark-re @below {{([i,k,l,m])->([i,j,l,m]) {i=2,j=8,k=8,l=4,m=4} exchange={k>j}{{$}}}}
  %0 = nn.lrn %x size 5 alpha 1.0e-4 beta 0.75 k 1.0 : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  return
}
