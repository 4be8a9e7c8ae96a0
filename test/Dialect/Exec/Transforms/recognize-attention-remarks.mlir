// Why a softmax between contractions is no attention; each reason is told once.
//
// RUN: cleave-opt %s --split-input-file --exec-recognize-attention --verify-diagnostics

func.func @weights_are_a_result(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6x6xf32>) {
  %0 = nn.einsum %q, %k "bhid,bhjd->bhij" : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  // What is read elsewhere is stored; no remark, since nothing would be saved.
  %1 = nn.softmax %0 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %2 = nn.einsum %1, %v "bhij,bhjd->bhid" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %2, %1 : tensor<2x4x6x8xf32>, tensor<2x4x6x6xf32>
}

// -----

func.func @scores_are_a_result(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6x6xf32>) {
  %0 = nn.einsum %q, %k "bhid,bhjd->bhij" : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  // expected-remark @below {{this attention runs in parts, its scores stored: scores have other readers}}
  %1 = nn.softmax %0 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %2 = nn.einsum %1, %v "bhij,bhjd->bhid" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  // The same reason again.
  %3 = nn.softmax %0 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %4 = nn.einsum %3, %2 "bhij,bhjd->bhid" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %4, %0 : tensor<2x4x6x8xf32>, tensor<2x4x6x6xf32>
}

// -----

func.func @along_the_queries(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %0 = nn.einsum %q, %k "bhid,bhjd->bhij" : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  // expected-remark @below {{this attention runs in parts, its scores stored: the softmax is not along the keys}}
  %1 = nn.softmax %0 dim 2 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %2 = nn.einsum %1, %v "bhij,bhjd->bhid" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %2 : tensor<2x4x6x8xf32>
}

// -----

// With -10000 a query that sees nothing would still tell its keys apart.
func.func @a_number_that_is_no_exclusion(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %m: tensor<2x4x6x6xi1>) -> tensor<2x4x6x8xf32> {
  %c = nn.constant dense<-10000.0> : tensor<f32> -> tensor<f32>
  %0 = nn.einsum %q, %k "bhid,bhjd->bhij" : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  %1 = nn.select %m, %0, %c : (tensor<2x4x6x6xi1>, tensor<2x4x6x6xf32>, tensor<f32>) -> tensor<2x4x6x6xf32>
  // expected-remark @below {{this attention runs in parts, its scores stored: excluded scores get a number that does not exclude them}}
  %2 = nn.softmax %1 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %3 = nn.einsum %2, %v "bhij,bhjd->bhid" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %3 : tensor<2x4x6x8xf32>
}

// -----

func.func @a_mask_that_is_scaled(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %m: tensor<2x4x6x6xf32>) -> tensor<2x4x6x8xf32> {
  %c = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %0 = nn.einsum %q, %k "bhid,bhjd->bhij" : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  %1 = nn.add %0, %m : (tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %2 = nn.mul %1, %c : (tensor<2x4x6x6xf32>, tensor<f32>) -> tensor<2x4x6x6xf32>
  // expected-remark @below {{this attention runs in parts, its scores stored: a mask is scaled together with the scores}}
  %3 = nn.softmax %2 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %4 = nn.einsum %3, %v "bhij,bhjd->bhid" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %4 : tensor<2x4x6x8xf32>
}

// -----

func.func @scaled_by_a_tensor(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %m: tensor<2x4x6x6xf32>) -> tensor<2x4x6x8xf32> {
  %0 = nn.einsum %q, %k "bhid,bhjd->bhij" : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  %1 = nn.mul %0, %m : (tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  // expected-remark @below {{this attention runs in parts, its scores stored: scores are scaled by more than a number}}
  %2 = nn.softmax %1 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %3 = nn.einsum %2, %v "bhij,bhjd->bhid" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %3 : tensor<2x4x6x8xf32>
}

// -----

func.func @something_else(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %0 = nn.einsum %q, %k "bhid,bhjd->bhij" : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  %1 = nn.abs %0 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  // expected-remark @below {{this attention runs in parts, its scores stored: something else is done to scores}}
  %2 = nn.softmax %1 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %3 = nn.einsum %2, %v "bhij,bhjd->bhid" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %3 : tensor<2x4x6x8xf32>
}

// -----

func.func @values_of_other_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %0 = nn.einsum %q, %k "bhid,bhjd->bhij" : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  // expected-remark @below {{this attention runs in parts, its scores stored: probabilities are not multiplied with values head by head}}
  %1 = nn.softmax %0 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %2 = nn.einsum %1, %v "bhij,bjd->bhid" : (tensor<2x4x6x6xf32>, tensor<2x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %2 : tensor<2x4x6x8xf32>
}

// -----

func.func @keys_of_all_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %0 = nn.einsum %q, %k "bhid,bjd->bhij" : (tensor<2x4x6x8xf32>, tensor<2x6x8xf32>) -> tensor<2x4x6x6xf32>
  // expected-remark @below {{this attention runs in parts, its scores stored: scores are not products of queries and keys head by head}}
  %1 = nn.softmax %0 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %2 = nn.einsum %1, %v "bhij,bhjd->bhid" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %2 : tensor<2x4x6x8xf32>
}
