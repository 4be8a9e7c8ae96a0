// Rules of lookups and updates.
//
// RUN: cleave-opt %s --spmd-print-rules --verify-diagnostics

func.func @a_table_is_looked_up_in_parts(%t: tensor<100x8xf32>, %p: tensor<100x8xi1>, %ids: tensor<2x4xi64>) {
  // expected-remark @below {{([l,k],[i,j])->([i,j,k]) {i=2,j=4,k=8,l=100} reduce={l} linear(sum)={0}}}
  %0 = nn.gather %t, %ids dim 0 : (tensor<100x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  // expected-remark @below {{([i,l],[j,k])->([i,j,k]) {i=100,j=2,k=4,l=8} reduce={l}}}
  %1 = nn.gather %t, %ids dim 1 : (tensor<100x8xf32>, tensor<2x4xi64>) -> tensor<100x2x4xf32>
  return
}

func.func @one_row_is_a_lookup(%t: tensor<100x8xf32>, %id: tensor<i64>) {
  // expected-remark @below {{([j,i],[])->([i]) {i=8,j=100} reduce={j}}}
  %0 = nn.gather %t, %id dim 0 : (tensor<100x8xf32>, tensor<i64>) -> tensor<8xf32>
  return
}

func.func @elements_pair_with_equal_dims_only(%x: tensor<8x100xf32>, %i: tensor<8x3xi64>, %j: tensor<4x3xi64>) {
  // expected-remark @below {{([i,k],[i,j])->([i,j]) {i=8,j=3,k=100} reduce={k} linear}}
  %0 = nn.gather_elements %x, %i dim 1 : (tensor<8x100xf32>, tensor<8x3xi64>) -> tensor<8x3xf32>
  // The first 4 of 8 rows are not the rows of each rank.
  // expected-remark @below {{([j,l],[i,k])->([i,k]) {i=4,j=8,k=3,l=100} reduce={l} replicate={i,j} linear}}
  %1 = nn.gather_elements %x, %j dim 1 : (tensor<8x100xf32>, tensor<4x3xi64>) -> tensor<4x3xf32>
  return
}

func.func @tuples_look_up_several_dims(%x: tensor<2x8x6x5xf32>, %i: tensor<2x3x2xi64>) {
  // Batch dim i is paired; 8 and 6 are looked up by tuples of 2.
  // expected-remark @below {{([i,l,m,k],[i,j,n])->([i,j,k]) {i=2,j=3,k=5,l=8,m=6,n=2} reduce={l,m} replicate={n} linear}}
  %0 = nn.gather_nd %x, %i batch_dims 1 : (tensor<2x8x6x5xf32>, tensor<2x3x2xi64>) -> tensor<2x3x5xf32>
  return
}

func.func @updates_that_add_may_be_split(%x: tensor<8x100xf32>, %i: tensor<8x3xi64>, %u: tensor<8x3xf32>) {
  // expected-remark-re @below {{([i,j],[i,k],[i,k])->([i,j]) {i=8,j=100,k=3} reduce={k} linear(sum)={0,2}{{$}}}}
  %0 = nn.scatter_elements add %x, %i, %u dim 1 : (tensor<8x100xf32>, tensor<8x3xi64>, tensor<8x3xf32>) -> tensor<8x100xf32>
  // expected-remark-re @below {{([i,j],[i,k],[i,k])->([i,j]) {i=8,j=100,k=3} replicate={k} linear(sum)={0,2}{{$}}}}
  %1 = nn.scatter_elements set %x, %i, %u dim 1 : (tensor<8x100xf32>, tensor<8x3xi64>, tensor<8x3xf32>) -> tensor<8x100xf32>
  // expected-remark-re @below {{([i,j],[i,k],[i,k])->([i,j]) {i=8,j=100,k=3} replicate={k}{{$}}}}
  %2 = nn.scatter_elements max %x, %i, %u dim 1 : (tensor<8x100xf32>, tensor<8x3xi64>, tensor<8x3xf32>) -> tensor<8x100xf32>
  return
}

func.func @scattered_slices_keep_their_window(%x: tensor<8x4xf32>, %i: tensor<3x1xi64>, %u: tensor<3x4xf32>) {
  // expected-remark-re @below {{([i,j],[k,1],[k,j])->([i,j]) {i=8,j=4,k=3} reduce={k} linear(sum)={0,2}{{$}}}}
  %0 = nn.scatter_nd add %x, %i, %u : (tensor<8x4xf32>, tensor<3x1xi64>, tensor<3x4xf32>) -> tensor<8x4xf32>
  return
}

func.func @every_rank_compares_with_its_part_of_the_depth(%i: tensor<8xi64>, %v: tensor<2xf32>) {
  // expected-remark-re @below {{([i],[k])->([i,j]) {i=8,j=10,k=2} replicate={k}{{$}}}}
  %0 = nn.one_hot %i, %v depth 10 dim 1 : (tensor<8xi64>, tensor<2xf32>) -> tensor<8x10xf32>
  return
}
