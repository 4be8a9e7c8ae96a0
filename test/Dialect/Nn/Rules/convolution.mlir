// Rules of windows: i batch, then groups, channels out, channels in; per spatial dim result, input and kernel positions. Where
// windows overlap, input and result are split together (exchange).
//
// RUN: cleave-opt %s --spmd-print-rules --verify-diagnostics

func.func @overlapping_windows_need_edges(%x: tensor<2x8x16x12xf32>, %w: tensor<4x8x3x3xf32>) {
  // expected-remark-re @below {{([i,k,m,p],[j,k,n,q])->([i,j,l,o]) {i=2,j=4,k=8,l=16,m=16,n=3,o=12,p=12,q=3} reduce={k} replicate={n,q} exchange={m>l,p>o} linear(sum)={0} linear(sum)={1}{{$}}}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<2x8x16x12xf32>, tensor<4x8x3x3xf32>) -> tensor<2x4x16x12xf32>
  return
}

func.func @groups_are_a_factor_of_both_channels(%x: tensor<2x8x16xf32>, %w: tensor<12x4x1xf32>, %b: tensor<12xf32>) {
  // A 1x1 window is local, and the bias joins partial sums.
  // expected-remark-re @below {{([i,jl,m],[jk,l,1],[jk])->([i,jk,m]) {i=2,j=2,k=6,l=4,m=16} reduce={l} linear(sum)={0,2} linear(sum)={1,2}{{$}}}}
  %0 = nn.conv %x, %w, %b strides [1] pads_low [0] pads_high [0] dilations [1] groups 2 : (tensor<2x8x16xf32>, tensor<12x4x1xf32>, tensor<12xf32>) -> tensor<2x12x16xf32>
  return
}

func.func @depthwise_channels_are_groups(%x: tensor<2x8x16xf32>, %w: tensor<8x1x3xf32>) {
  // expected-remark @below {{([i,j,l],[j,1,m])->([i,j,k]) {i=2,j=8,k=14,l=16,m=3} replicate={m} exchange={l>k}}}
  %0 = nn.conv %x, %w strides [1] pads_low [0] pads_high [0] dilations [1] groups 8 : (tensor<2x8x16xf32>, tensor<8x1x3xf32>) -> tensor<2x8x14xf32>
  return
}

func.func @patches_are_local(%x: tensor<2x3x32x32xf32>, %w: tensor<16x3x8x8xf32>) {
  // expected-remark @below {{([i,k,lm,op],[j,k,n,q])->([i,j,l,o]) {i=2,j=16,k=3,l=4,m=8,n=8,o=4,p=8,q=8} reduce={k} replicate={m,n,p,q}}}
  %0 = nn.conv %x, %w strides [8, 8] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<2x3x32x32xf32>, tensor<16x3x8x8xf32>) -> tensor<2x16x4x4xf32>
  return
}

func.func @padded_windows_are_no_patches(%x: tensor<2x3x8xf32>, %w: tensor<4x3x2xf32>) {
  // Four windows of two in eight positions; a padding shifts them over the borders of shards, before or behind.
  // expected-remark-re @below {{([i,k,m],[j,k,n])->([i,j,l]) {i=2,j=4,k=3,l=4,m=8,n=2} reduce={k} replicate={n} exchange={m>l} linear(sum)={0} linear(sum)={1}{{$}}}}
  %0 = nn.conv %x, %w strides [2] pads_low [1] pads_high [0] dilations [1] groups 1 : (tensor<2x3x8xf32>, tensor<4x3x2xf32>) -> tensor<2x4x4xf32>
  // expected-remark-re @below {{([i,k,m],[j,k,n])->([i,j,l]) {i=2,j=4,k=3,l=4,m=8,n=2} reduce={k} replicate={n} exchange={m>l} linear(sum)={0} linear(sum)={1}{{$}}}}
  %1 = nn.conv %x, %w strides [2] pads_low [0] pads_high [1] dilations [1] groups 1 : (tensor<2x3x8xf32>, tensor<4x3x2xf32>) -> tensor<2x4x4xf32>
  return
}

func.func @a_transposed_convolution_swaps_the_roles(%x: tensor<2x8x16xf32>, %w: tensor<8x3x3xf32>, %u: tensor<8x3x4xf32>, %v: tensor<8x6x2xf32>, %b: tensor<12xf32>) {
  // expected-remark-re @below {{([i,k,m],[k,j,n])->([i,j,l]) {i=2,j=3,k=8,l=33,m=16,n=3} reduce={k} replicate={n} exchange={m>l} linear(sum)={0} linear(sum)={1}{{$}}}}
  %0 = nn.conv_transpose %x, %w strides [2] pads_low [0] pads_high [0] dilations [1] output_pads [0] groups 1 : (tensor<2x8x16xf32>, tensor<8x3x3xf32>) -> tensor<2x3x33xf32>
  // Cropped at both ends, so that the result has the double extent.
  // expected-remark-re @below {{([i,k,m],[k,j,n])->([i,j,l]) {i=2,j=3,k=8,l=32,m=16,n=4} reduce={k} replicate={n} exchange={m>l} linear(sum)={0} linear(sum)={1}{{$}}}}
  %2 = nn.conv_transpose %x, %u strides [2] pads_low [1] pads_high [1] dilations [1] output_pads [0] groups 1 : (tensor<2x8x16xf32>, tensor<8x3x4xf32>) -> tensor<2x3x32xf32>
  // Every position of the input makes two of its own.
  // expected-remark-re @below {{([i,jl,m],[jl,k,o],[jk])->([i,jk,mn]) {i=2,j=2,k=6,l=4,m=16,n=2,o=2} reduce={l} replicate={n,o} linear(sum)={0,2} linear(sum)={1,2}{{$}}}}
  %1 = nn.conv_transpose %x, %v, %b strides [2] pads_low [0] pads_high [0] dilations [1] output_pads [0] groups 2 : (tensor<2x8x16xf32>, tensor<8x6x2xf32>, tensor<12xf32>) -> tensor<2x12x32xf32>
  return
}

func.func @pooling_keeps_batch_and_channels_apart(%x: tensor<2x3x16x15xf32>) {
  // 16 is 8 steps of 2; 15 is not a number of steps of 2, and what splits 15 and 7 does so unevenly.
  // expected-remark-re @below {{([i,j,kl,n])->([i,j,k,m]) {i=2,j=3,k=8,l=2,m=7,n=15} replicate={l} exchange={n>m}{{$}}}}
  %0 = nn.pool max %x kernel [2, 2] strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] : (tensor<2x3x16x15xf32>) -> tensor<2x3x8x7xf32>
  // expected-remark-re @below {{([i,j,l,n])->([i,j,k,m]) {i=2,j=3,k=14,l=16,m=13,n=15} exchange={l>k,n>m}{{$}}}}
  %1 = nn.pool average %x kernel [3, 3] strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] : (tensor<2x3x16x15xf32>) -> tensor<2x3x14x13xf32>
  return
}
