// What ops along dims refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C1: dims exist.
func.func @a_reduced_dim_exists(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.reduce' op dim 2 is not in [0, 2) (C1)}}
  %0 = nn.reduce sum %x dims [2] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C1: dims do not count from the end.
func.func @a_reduced_dim_is_not_negative(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.reduce' op dim -1 is not in [0, 2) (C1)}}
  %0 = nn.reduce sum %x dims [-1] : (tensor<8x4xf32>) -> tensor<8xf32>
  return
}

// -----

// C1: dims ascend.
func.func @reduced_dims_ascend(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.reduce' op dims are not distinct and ascending: 0 follows 1 (C1)}}
  %0 = nn.reduce sum %x dims [1, 0] : (tensor<8x4xf32>) -> tensor<f32>
  return
}

// -----

// C1: a dim is reduced once.
func.func @reduced_dims_are_distinct(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.reduce' op dims are not distinct and ascending: 1 follows 1 (C1)}}
  %0 = nn.reduce sum %x dims [1, 1] : (tensor<8x4xf32>) -> tensor<8xf32>
  return
}

// -----

// C2: what is the mean of true and false?
func.func @bools_have_no_mean(%x: tensor<8xi1>) {
  // expected-error @below {{'nn.reduce' op cannot compute the mean of bool (C2)}}
  %0 = nn.reduce mean %x dims [0] : (tensor<8xi1>) -> tensor<i1>
  return
}

// -----

// Without `keep_dims` the reduced dim goes.
func.func @a_reduced_dim_goes(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.reduce' op result is 'tensor<8x1xf32>' but operands and attributes give 'tensor<8xf32>'}}
  %0 = nn.reduce max %x dims [1] : (tensor<8x4xf32>) -> tensor<8x1xf32>
  return
}

// -----

// C1 of arg_reduce.
func.func @an_index_is_along_a_dim(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.arg_reduce' op dim 2 is not in [0, 2) (C1)}}
  %0 = nn.arg_reduce max %x dim 2 : (tensor<8x4xf32>) -> tensor<8xi64>
  return
}

// -----

// C1: nothing has no maximum.
func.func @an_empty_dim_has_no_index(%x: tensor<8x0xf32>) {
  // expected-error @below {{'nn.arg_reduce' op dim 1 is empty (C1)}}
  %0 = nn.arg_reduce max %x dim 1 : (tensor<8x0xf32>) -> tensor<8xi64>
  return
}

// -----

// C2: a sum stands nowhere.
func.func @an_index_is_of_an_extremum(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.arg_reduce' op kind is sum, expected max or min (C2)}}
  %0 = nn.arg_reduce sum %x dim 1 : (tensor<8x4xf32>) -> tensor<8xi64>
  return
}

// -----

// Indices are i64.
func.func @an_index_is_i64(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.arg_reduce' op result is 'tensor<8xi32>' but operands and attributes give 'tensor<8xi64>'}}
  %0 = nn.arg_reduce max %x dim 1 : (tensor<8x4xf32>) -> tensor<8xi32>
  return
}

// -----

// C1 of softmax.
func.func @a_softmax_is_along_a_dim(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.softmax' op dim 2 is not in [0, 2) (C1)}}
  %0 = nn.softmax %x dim 2 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C1 of log_softmax, with the largest dim there is.
func.func @a_log_softmax_is_along_a_dim(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.log_softmax' op dim 9223372036854775807 is not in [0, 2) (C1)}}
  %0 = nn.log_softmax %x dim 9223372036854775807 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C1 of cumsum.
func.func @a_cumsum_is_along_a_dim(%x: tensor<f32>) {
  // expected-error @below {{'nn.cumsum' op dim 0 is not in [0, 0) (C1)}}
  %0 = nn.cumsum %x dim 0 : (tensor<f32>) -> tensor<f32>
  return
}

// -----

// C1 of top_k.
func.func @a_top_k_is_along_a_dim(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.top_k' op dim -1 is not in [0, 2) (C1)}}
  %v, %i = nn.top_k %x k 1 dim -1 : (tensor<8x4xf32>) -> (tensor<8x1xf32>, tensor<8x1xi64>)
  return
}

// -----

// C2: there are just 4.
func.func @a_top_k_takes_what_is_there(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.top_k' op k is 5, expected 0 to 4, the size of dim 1 (C2)}}
  %v, %i = nn.top_k %x k 5 dim 1 : (tensor<8x4xf32>) -> (tensor<8x5xf32>, tensor<8x5xi64>)
  return
}

// -----

// Each result is checked.
func.func @both_results_have_k_elements(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.top_k' op result is 'tensor<8x2xi64>' but operands and attributes give 'tensor<8x3xi64>'}}
  %v, %i = nn.top_k %x k 3 dim 1 : (tensor<8x4xf32>) -> (tensor<8x3xf32>, tensor<8x2xi64>)
  return
}
