// Rules of movement: every kind of partial result passes through.
//
// RUN: cleave-opt %s --spmd-print-rules --verify-diagnostics

func.func @partial_results_pass_through(%x: tensor<8x4xf32>, %p: tensor<8x4xi1>) {
  // expected-remark-re @below {{([i,j])->([j,i]) {i=8,j=4} linear(sum)={0} linear(prod)={0} linear(max)={0} linear(min)={0}{{$}}}}
  %0 = nn.transpose %x [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  // Bool has no sums and products.
  // expected-remark-re @below {{([i,j])->([j,i]) {i=8,j=4} linear(max)={0} linear(min)={0}{{$}}}}
  %1 = nn.transpose %p [1, 0] : (tensor<8x4xi1>) -> tensor<4x8xi1>
  return
}

func.func @reshape_merges_and_splits(%x: tensor<8x4xf32>, %y: tensor<24xf32>, %z: tensor<12x5xf32>) {
  // expected-remark @below {{([i,j])->([ij]) {i=8,j=4} linear}}
  %0 = nn.reshape %x : (tensor<8x4xf32>) -> tensor<32xf32>
  // expected-remark @below {{([ij])->([i,j]) {i=4,j=6} linear}}
  %1 = nn.reshape %y : (tensor<24xf32>) -> tensor<4x6xf32>
  // 12 = 4 x 3 and 15 = 3 x 5.
  // expected-remark @below {{([ij,k])->([i,jk]) {i=4,j=3,k=5} linear}}
  %2 = nn.reshape %z : (tensor<12x5xf32>) -> tensor<4x15xf32>
  return
}

func.func @reshape_skips_dims_of_size_1(%x: tensor<1x8x1x4xf32>, %s: tensor<1x1xf32>) {
  // expected-remark @below {{([1,i,1,j])->([i,j,1]) {i=8,j=4} linear}}
  %0 = nn.reshape %x : (tensor<1x8x1x4xf32>) -> tensor<8x4x1xf32>
  // expected-remark @below {{([1,1])->([]) {} linear}}
  %1 = nn.reshape %s : (tensor<1x1xf32>) -> tensor<f32>
  return
}

func.func @reshape_shares_what_it_can(%x: tensor<4x6xf32>, %y: tensor<2x3x8xf32>) {
  // 4 and 6 share 2, then 2 x 6 and 3 x 4 do not nest.
  // expected-remark @below {{([ij,l])->([ik,m]) {i=2,j=2,k=3,l=6,m=4} replicate={j,k,l,m} linear}}
  %0 = nn.reshape %x : (tensor<4x6xf32>) -> tensor<6x4xf32>
  // 2 x 3 and 3 x 2 do not nest, but the dim after them is its own.
  // expected-remark @below {{([i,k,m])->([j,l,m]) {i=2,j=3,k=3,l=2,m=8} replicate={i,j,k,l} linear}}
  %1 = nn.reshape %y : (tensor<2x3x8xf32>) -> tensor<3x2x8xf32>
  return
}

func.func @broadcast_adds_parallel_dims(%x: tensor<4x1xf32>) {
  // expected-remark @below {{([j,1])->([i,j,k]) {i=8,j=4,k=2} linear}}
  %0 = nn.broadcast %x : (tensor<4x1xf32>) -> tensor<8x4x2xf32>
  return
}

func.func @concat_cuts_its_parts_together(%x: tensor<8x4xf32>, %y: tensor<2x4xf32>) {
  // Factors of the dim: result i, operands j and k.
  // expected-remark-re @below {{([j,l],[k,l])->([i,l]) {i=10,j=8,k=2,l=4} exchange={jk>i} linear(sum)={0,1} linear(prod)={0,1} linear(max)={0,1} linear(min)={0,1}{{$}}}}
  %0 = nn.concat %x, %y dim 0 : (tensor<8x4xf32>, tensor<2x4xf32>) -> tensor<10x4xf32>
  return
}

func.func @any_number_of_parts_is_cut_together(%x: tensor<8xf32>) {
  // expected-remark @below {{([j],[k],[l],[m],[n],[o],[p],[q],[r],[s])->([i]) {i=80,j=8,k=8,l=8,m=8,n=8,o=8,p=8,q=8,r=8,s=8} exchange={jklmnopqrs>i} linear}}
  %0 = nn.concat %x, %x, %x, %x, %x, %x, %x, %x, %x, %x dim 0 : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<80xf32>
  return
}

func.func @split_cuts_its_parts_together(%x: tensor<8x12xf32>) {
  // Factors of the dim: operand j, results k and l.
  // expected-remark-re @below {{([i,j])->([i,k],[i,l]) {i=8,j=12,k=4,l=8} exchange={j>kl} linear(sum)={0} linear(prod)={0} linear(max)={0} linear(min)={0}{{$}}}}
  %0:2 = nn.split %x dim 1 parts [4, 8] : (tensor<8x12xf32>) -> (tensor<8x4xf32>, tensor<8x8xf32>)
  // A part of one position cannot be split.
  // expected-remark @below {{([i,j])->([i,1],[i,k]) {i=8,j=12,k=11} replicate={j,k} linear}}
  %1:2 = nn.split %x dim 1 parts [1, 11] : (tensor<8x12xf32>) -> (tensor<8x1xf32>, tensor<8x11xf32>)
  return
}

func.func @slices_are_filled_in_by_their_holders_or_cut(%x: tensor<8x6xf32>, %p: tensor<8x6xi1>) {
  // expected-remark @below {{([i,j])->([i,k]) {i=8,j=6,k=2} reduce={j} exchange={j>k} linear}}
  %0 = nn.slice %x starts [0, 2] sizes [8, 2] steps [1, 1] : (tensor<8x6xf32>) -> tensor<8x2xf32>
  // expected-remark @below {{([i,j])->([1,j]) {i=8,j=6} reduce={i} linear}}
  %1 = nn.slice %x starts [7, 0] sizes [1, 6] steps [1, 1] : (tensor<8x6xf32>) -> tensor<1x6xf32>
  // expected-remark @below {{([i,j])->([i,k]) {i=8,j=6,k=6} reduce={j} exchange={j>k} linear}}
  %2 = nn.slice %x starts [0, 5] sizes [8, 6] steps [1, -1] : (tensor<8x6xf32>) -> tensor<8x6xf32>
  return
}

func.func @aligned_strides_stay_in_their_shards(%x: tensor<8x6xf32>) {
  // Elements 1, 3, 5 of 0..5: one of every pair.
  // expected-remark @below {{([i,jk])->([i,j]) {i=8,j=3,k=2} replicate={k} linear}}
  %0 = nn.slice %x starts [0, 1] sizes [8, 3] steps [1, 2] : (tensor<8x6xf32>) -> tensor<8x3xf32>
  // Elements 0, 3 of 0..7: 8 is not a number of steps, so a shard may hold none of them.
  // expected-remark @below {{([i,k])->([j,k]) {i=8,j=2,k=6} reduce={i} exchange={i>j} linear}}
  %1 = nn.slice %x starts [0, 0] sizes [2, 6] steps [3, 1] : (tensor<8x6xf32>) -> tensor<2x6xf32>
  return
}

func.func @padding_moves_only_padded_dims(%x: tensor<8x4xf32>, %v: tensor<f32>) {
  // expected-remark @below {{([i,k])->([i,j]) {i=8,j=6,k=4} exchange={k>j} linear(sum)={0}}}
  %0 = nn.pad constant %x low [0, 1] high [0, 1] : (tensor<8x4xf32>) -> tensor<8x6xf32>
  // expected-remark @below {{([i,k],[])->([i,j]) {i=8,j=6,k=4} exchange={k>j} linear(sum)={0,1}}}
  %1 = nn.pad constant %x value %v low [0, 1] high [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x6xf32>
  // Padding on one side only moves the dim, too.
  // expected-remark @below {{([i,k])->([i,j]) {i=8,j=8,k=4} exchange={k>j} linear(sum)={0}}}
  %2 = nn.pad constant %x low [0, 0] high [0, 4] : (tensor<8x4xf32>) -> tensor<8x8xf32>
  // expected-remark @below {{([j,k])->([i,k]) {i=16,j=8,k=4} exchange={j>i} linear(sum)={0}}}
  %3 = nn.pad constant %x low [8, 0] high [0, 0] : (tensor<8x4xf32>) -> tensor<16x4xf32>
  return
}

func.func @mirrors_move_like_other_edges(%x: tensor<8x4xf32>) {
  // expected-remark-re @below {{([i,k])->([i,j]) {i=8,j=6,k=4} exchange={k>j} linear(sum)={0} linear(prod)={0} linear(max)={0} linear(min)={0}{{$}}}}
  %0 = nn.pad reflect %x low [0, 1] high [0, 1] : (tensor<8x4xf32>) -> tensor<8x6xf32>
  // Nothing divides 4 and 7: only axes that may be uneven split them.
  // expected-remark @below {{([i,k])->([i,j]) {i=8,j=7,k=4} exchange={k>j} linear}}
  %1 = nn.pad reflect %x low [0, 1] high [0, 2] : (tensor<8x4xf32>) -> tensor<8x7xf32>
  return
}

func.func @rotation_cuts_both_ends(%x: tensor<8x4xf32>) {
  // expected-remark @below {{([i,k])->([i,j]) {i=8,j=4,k=4} exchange={k>j} linear}}
  %0 = nn.rotate %x dim 1 by 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

func.func @triangles_are_parallel_everywhere(%x: tensor<2x8x4xf32>) {
  // expected-remark @below {{([i,j,k])->([i,j,k]) {i=2,j=8,k=4} linear}}
  %0 = nn.trilu %x offset 0 upper : (tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return
}
