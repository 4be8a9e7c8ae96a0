// What nn.einsum refuses.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C1: no arrow.
func.func @an_equation_has_an_arrow(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @below {{'nn.einsum' op equation "ik,kj" is not a list of letter terms, '->' and a result term (C1)}}
  %0 = nn.einsum %a, %b "ik,kj" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

// C1: dims are letters.
func.func @letters_are_letters(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @below {{'nn.einsum' op equation "i1,1j->ij" is not a list of letter terms, '->' and a result term (C1)}}
  %0 = nn.einsum %a, %b "i1,1j->ij" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

// C1: nothing is skipped, not even spaces.
func.func @spaces_are_no_letters(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @below {{'nn.einsum' op equation "ik, kj->ij" is not a list of letter terms, '->' and a result term (C1)}}
  %0 = nn.einsum %a, %b "ik, kj->ij" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

// C1: an ellipsis is written out by the importer.
func.func @an_ellipsis_is_not_known(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @below {{'nn.einsum' op equation "...k,kj->...j" is not a list of letter terms, '->' and a result term (C1)}}
  %0 = nn.einsum %a, %b "...k,kj->...j" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

// C1: one term per operand.
func.func @there_is_a_term_per_operand(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @below {{'nn.einsum' op equation "ik->i" has 1 operand terms but there are 2 operands (C1)}}
  %0 = nn.einsum %a, %b "ik->i" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

// C1: at least one operand, for a term cannot be absent.
func.func @an_einsum_has_operands() {
  // expected-error @below {{'nn.einsum' op equation "->" has 1 operand terms but there are 0 operands (C1)}}
  %0 = "nn.einsum"() <{equation = "->"}> : () -> tensor<f32>
  return
}

// -----

// C2: one letter per dim.
func.func @there_is_a_letter_per_dim(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @below {{'nn.einsum' op term "ikl" of operand 0 has 3 letters but the operand is 'tensor<2x3xf32>' (C2)}}
  %0 = nn.einsum %a, %b "ikl,kj->ij" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

// C3: k is 3 and 4.
func.func @a_letter_has_one_size(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @below {{'nn.einsum' op letter 'k' has sizes 3 and 4 (C3)}}
  %0 = nn.einsum %a, %b "ik,jk->ij" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

// C3: only size 1 repeats.
func.func @an_empty_dim_is_not_repeated(%a: tensor<2x3xf32>, %b: tensor<0xf32>) {
  // expected-error @below {{'nn.einsum' op letter 'k' has sizes 3 and 0 (C3)}}
  %0 = nn.einsum %a, %b "ik,k->i" : (tensor<2x3xf32>, tensor<0xf32>) -> tensor<2xf32>
  return
}

// -----

// C4: nothing says how large z is.
func.func @a_result_letter_comes_from_an_operand(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @below {{'nn.einsum' op result letter 'z' occurs in no operand (C4)}}
  %0 = nn.einsum %a, %b "ik,kj->iz" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

// C4: no diagonal is written.
func.func @a_result_letter_occurs_once(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @below {{'nn.einsum' op letter 'i' occurs twice in result term "ii" (C4)}}
  %0 = nn.einsum %a, %b "ik,kj->ii" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

// C5: no diagonal is read.
func.func @an_operand_letter_occurs_once(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @below {{'nn.einsum' op letter 'k' occurs twice in term "kk" (C5)}}
  %0 = nn.einsum %a, %b "kk,kj->j" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

// C6: no mixed precision.
func.func @operands_have_one_element_type(%a: tensor<2x3xf32>, %b: tensor<3x4xf16>) {
  // expected-error @below {{'nn.einsum' op operands have different element types 'f32' and 'f16' (C6)}}
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<2x3xf32>, tensor<3x4xf16>) -> tensor<2x4xf32>
  return
}

// -----

// The equation gives the result's shape.
func.func @the_equation_gives_the_result(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @below {{'nn.einsum' op result is 'tensor<2x4xf32>' but operands and attributes give 'tensor<4x2xf32>'}}
  %0 = nn.einsum %a, %b "ik,kj->ji" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}
