// Rules of reductions along dims.
//
// RUN: cleave-opt %s --spmd-print-rules --verify-diagnostics

func.func @a_reduced_dim_leaves_partial_results(%x: tensor<8x4x2xf32>) {
  // expected-remark-re @below {{([i,j,k])->([i,k]) {i=8,j=4,k=2} reduce={j} linear(sum)={0}{{$}}}}
  %0 = nn.reduce sum %x dims [1] : (tensor<8x4x2xf32>) -> tensor<8x2xf32>
  // expected-remark-re @below {{([i,j,k])->([i,1,1]) {i=8,j=4,k=2} reduce={j,k} linear(sum)={0}{{$}}}}
  %1 = nn.reduce mean %x dims [1, 2] keep_dims : (tensor<8x4x2xf32>) -> tensor<8x1x1xf32>
  return
}

func.func @each_kind_combines_in_its_own_way(%x: tensor<8x4xf32>) {
  // expected-remark-re @below {{([i,j])->([i]) {i=8,j=4} reduce={j} linear(max)={0}{{$}}}}
  %0 = nn.reduce max %x dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  // expected-remark-re @below {{([i,j])->([i]) {i=8,j=4} reduce={j} linear(min)={0}{{$}}}}
  %1 = nn.reduce min %x dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  // expected-remark-re @below {{([i,j])->([i]) {i=8,j=4} reduce={j} linear(prod)={0}{{$}}}}
  %2 = nn.reduce prod %x dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  return
}

func.func @a_mean_of_integers_needs_the_whole_dim(%x: tensor<8x4xi32>) {
  // expected-remark-re @below {{([i,j])->([i]) {i=8,j=4} replicate={j}{{$}}}}
  %0 = nn.reduce mean %x dims [1] : (tensor<8x4xi32>) -> tensor<8xi32>
  return
}

func.func @softmax_pays_for_statistics_along_its_dim(%x: tensor<8x1x4xf32>) {
  // expected-remark-re @below {{([i,1,j])->([i,1,j]) {i=8,j=4} ordered={j}{{$}}}}
  %0 = nn.softmax %x dim 2 : (tensor<8x1x4xf32>) -> tensor<8x1x4xf32>
  // expected-remark-re @below {{([i,1,j])->([i,1,j]) {i=8,j=4} ordered={i}{{$}}}}
  %1 = nn.log_softmax %x dim 0 : (tensor<8x1x4xf32>) -> tensor<8x1x4xf32>
  // Over a dim of one element there is nothing to pay.
  // expected-remark-re @below {{([i,1,j])->([i,1,j]) {i=8,j=4}{{$}}}}
  %2 = nn.softmax %x dim 1 : (tensor<8x1x4xf32>) -> tensor<8x1x4xf32>
  return
}

func.func @the_ranks_agree_on_an_index(%x: tensor<8x4x2xf32>) {
  // expected-remark-re @below {{([i,j,k])->([i,k]) {i=8,j=4,k=2} ordered={j}{{$}}}}
  %0 = nn.arg_reduce max %x dim 1 : (tensor<8x4x2xf32>) -> tensor<8x2xi64>
  // expected-remark-re @below {{([i,j,k])->([i,j,1]) {i=8,j=4,k=2} ordered={k}{{$}}}}
  %1 = nn.arg_reduce min %x dim 2 keep_dims last : (tensor<8x4x2xf32>) -> tensor<8x4x1xi64>
  return
}

func.func @running_sums_gather_totals(%x: tensor<8x4xf32>) {
  // expected-remark-re @below {{([i,j])->([i,j]) {i=8,j=4} ordered={j} linear(sum)={0}{{$}}}}
  %0 = nn.cumsum %x dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

func.func @the_largest_are_chosen_from_candidates(%x: tensor<8x10xf32>) {
  // expected-remark-re @below {{([i,j])->([i,k],[i,k]) {i=8,j=10,k=3} replicate={k} ordered={j}{{$}}}}
  %v, %i = nn.top_k %x k 3 dim 1 : (tensor<8x10xf32>) -> (tensor<8x3xf32>, tensor<8x3xi64>)
  return
}
