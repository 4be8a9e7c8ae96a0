// Rules of elementwise ops: one parallel factor per dim of the result; some ops may take operands partial.
// Where an op must not be linear, the end of the remark is pinned too.
//
// RUN: cleave-opt %s --spmd-print-rules --verify-diagnostics

func.func @operands_broadcast_from_the_minor_dim(%x: tensor<8x4xf32>, %b: tensor<4xf32>, %s: tensor<f32>) {
  // expected-remark @below {{([i,j],[j])->([i,j]) {i=8,j=4} linear(sum)={0,1}}}
  %0 = nn.add %x, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // expected-remark @below {{([],[i,j])->([i,j]) {i=8,j=4} linear(sum)={0,1}}}
  %1 = nn.sub %s, %x : (tensor<f32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

func.func @a_dim_of_size_1_repeats(%x: tensor<8x1xf32>, %y: tensor<1x4xf32>) {
  // expected-remark @below {{([i,1],[1,j])->([i,j]) {i=8,j=4} linear(sum)={0} linear(sum)={1}}}
  %0 = nn.mul %x, %y : (tensor<8x1xf32>, tensor<1x4xf32>) -> tensor<8x4xf32>
  return
}

func.func @a_quotient_is_linear_in_the_numerator_of_floats(%x: tensor<8xf32>, %n: tensor<8xi32>) {
  // expected-remark-re @below {{([i],[i])->([i]) {i=8} linear(sum)={0}{{$}}}}
  %0 = nn.div %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  // expected-remark-re @below {{([i],[i])->([i]) {i=8}{{$}}}}
  %1 = nn.div %n, %n : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
  return
}

func.func @a_select_is_linear_in_both_values_together(%c: tensor<8x1xi1>, %x: tensor<8x4xf32>, %y: tensor<f32>, %p: tensor<4xi1>) {
  // expected-remark-re @below {{([i,1],[i,j],[])->([i,j]) {i=8,j=4} linear(sum)={1,2}{{$}}}}
  %0 = nn.select %c, %x, %y : (tensor<8x1xi1>, tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  // Bool has no sums, but "or" is a maximum.
  // expected-remark-re @below {{([i,1],[j],[j])->([i,j]) {i=8,j=4} linear(max)={1,2}{{$}}}}
  %1 = nn.select %c, %p, %p : (tensor<8x1xi1>, tensor<4xi1>, tensor<4xi1>) -> tensor<8x4xi1>
  return
}

func.func @maxima_of_maxima(%x: tensor<8xf32>) {
  // expected-remark-re @below {{([i],[i])->([i]) {i=8} linear(max)={0,1}{{$}}}}
  %0 = nn.max %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  // expected-remark-re @below {{([i],[i])->([i]) {i=8} linear(min)={0,1}{{$}}}}
  %1 = nn.min %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}

func.func @nonlinear_ops_take_no_partial_operand(%x: tensor<8xf32>) {
  // expected-remark-re @below {{([i])->([i]) {i=8} linear(sum)={0}{{$}}}}
  %0 = nn.neg %x : (tensor<8xf32>) -> tensor<8xf32>
  // expected-remark-re @below {{([i])->([i]) {i=8}{{$}}}}
  %1 = nn.relu %x : (tensor<8xf32>) -> tensor<8xf32>
  // expected-remark-re @below {{([i])->([i]) {i=8}{{$}}}}
  %2 = nn.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  // expected-remark-re @below {{([i],[i])->([i]) {i=8}{{$}}}}
  %3 = nn.pow %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  // expected-remark-re @below {{([i],[i])->([i]) {i=8}{{$}}}}
  %4 = nn.lt %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  return
}
