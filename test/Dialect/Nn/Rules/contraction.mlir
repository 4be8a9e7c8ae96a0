// Rules of einsum: one factor per letter, in the order in which operands mention them.
//
// RUN: cleave-opt %s --spmd-print-rules --verify-diagnostics

func.func @a_letter_without_result_is_reduced(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>) {
  // expected-remark @below {{([i,j],[j,k])->([i,k]) {i=8,j=16,k=4} reduce={j} linear(sum)={0} linear(sum)={1}}}
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return
}

func.func @batch_letters_are_parallel(%a: tensor<2x8x16xf32>, %b: tensor<2x16x4xf32>) {
  // expected-remark @below {{([i,j,k],[i,k,l])->([i,j,l]) {i=2,j=8,k=16,l=4} reduce={k}}}
  %0 = nn.einsum %a, %b "bik,bkj->bij" : (tensor<2x8x16xf32>, tensor<2x16x4xf32>) -> tensor<2x8x4xf32>
  return
}

func.func @a_dim_of_size_1_repeats(%a: tensor<1x8x16xf32>, %b: tensor<2x16x4xf32>) {
  // expected-remark @below {{([1,j,k],[i,k,l])->([i,j,l]) {i=2,j=8,k=16,l=4} reduce={k}}}
  %0 = nn.einsum %a, %b "bik,bkj->bij" : (tensor<1x8x16xf32>, tensor<2x16x4xf32>) -> tensor<2x8x4xf32>
  return
}

func.func @three_operands_are_linear_one_at_a_time(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>, %c: tensor<4x2xf32>) {
  // expected-remark @below {{([i,j],[j,k],[k,l])->([i,l]) {i=8,j=16,k=4,l=2} reduce={j,k} linear(sum)={0} linear(sum)={1} linear(sum)={2}}}
  %0 = nn.einsum %a, %b, %c "ij,jk,kl->il" : (tensor<8x16xf32>, tensor<16x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return
}

func.func @one_operand_is_summed_and_transposed(%a: tensor<8x16x4xf32>) {
  // expected-remark @below {{([i,j,k])->([k,i]) {i=8,j=16,k=4} reduce={j} linear(sum)={0}}}
  %0 = nn.einsum %a "ijk->ki" : (tensor<8x16x4xf32>) -> tensor<4x8xf32>
  return
}
