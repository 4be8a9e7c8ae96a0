// What gathers and scatters refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C1 of gather.
func.func @a_gather_is_along_a_dim(%x: tensor<100x8xf32>, %i: tensor<2x3xi64>) {
  // expected-error @below {{'nn.gather' op dim 2 is not in [0, 2) (C1)}}
  %0 = nn.gather %x, %i dim 2 : (tensor<100x8xf32>, tensor<2x3xi64>) -> tensor<100x8x2x3xf32>
  return
}

// -----

// Indices stand where the dim was.
func.func @indices_stand_where_the_dim_was(%x: tensor<100x8xf32>, %i: tensor<2x3xi64>) {
  // expected-error @below {{'nn.gather' op result is 'tensor<2x3x8xf32>' but operands and attributes give 'tensor<100x2x3xf32>'}}
  %0 = nn.gather %x, %i dim 1 : (tensor<100x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  return
}

// -----

// Indices are integers.
func.func @indices_are_integers(%x: tensor<100x8xf32>) {
  // expected-error @below {{'nn.gather' op operand #1 must be statically shaped tensor of 32-bit signless integer or 64-bit signless integer values, but got 'tensor<100x8xf32>'}}
  %0 = nn.gather %x, %x dim 0 : (tensor<100x8xf32>, tensor<100x8xf32>) -> tensor<100x8x8xf32>
  return
}

// -----

// C1 of gather_elements.
func.func @element_indices_have_the_rank_of_the_input(%x: tensor<100x8xf32>, %i: tensor<8xi64>) {
  // expected-error @below {{'nn.gather_elements' op input 'tensor<100x8xf32>' and indices 'tensor<8xi64>' have different ranks (C1)}}
  %0 = nn.gather_elements %x, %i dim 0 : (tensor<100x8xf32>, tensor<8xi64>) -> tensor<8xf32>
  return
}

// -----

// C2 of gather_elements.
func.func @elements_are_gathered_along_a_dim(%x: tensor<100x8xf32>, %i: tensor<2x3xi64>) {
  // expected-error @below {{'nn.gather_elements' op dim -1 is not in [0, 2) (C2)}}
  %0 = nn.gather_elements %x, %i dim -1 : (tensor<100x8xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
  return
}

// -----

// C3: row 100 has nothing to read from.
func.func @element_indices_stay_inside_other_dims(%x: tensor<100x8xf32>, %i: tensor<101x1xi64>) {
  // expected-error @below {{'nn.gather_elements' op indices have 101 elements along dim 0 but the input has 100 (C3)}}
  %0 = nn.gather_elements %x, %i dim 1 : (tensor<100x8xf32>, tensor<101x1xi64>) -> tensor<101x1xf32>
  return
}

// -----

// C1 of gather_nd: the last dim of the indices is the tuple.
func.func @batch_dims_are_dims_of_both(%x: tensor<100x8xf32>, %i: tensor<100xi64>) {
  // expected-error @below {{'nn.gather_nd' op 1 batch dims are not in [0, 1) (C1)}}
  %0 = nn.gather_nd %x, %i batch_dims 1 : (tensor<100x8xf32>, tensor<100xi64>) -> tensor<8xf32>
  return
}

// -----

// C1: no negative number of dims.
func.func @batch_dims_are_not_negative(%x: tensor<100x8xf32>, %i: tensor<2x3xi64>) {
  // expected-error @below {{'nn.gather_nd' op -1 batch dims are not in [0, 2) (C1)}}
  %0 = nn.gather_nd %x, %i batch_dims -1 : (tensor<100x8xf32>, tensor<2x3xi64>) -> tensor<2xf32>
  return
}

// -----

// C1: a scalar is no list of tuples.
func.func @tuples_are_along_a_dim(%x: tensor<100x8xf32>, %i: tensor<i64>) {
  // expected-error @below {{'nn.gather_nd' op 0 batch dims are not in [0, 0) (C1)}}
  %0 = nn.gather_nd %x, %i batch_dims 0 : (tensor<100x8xf32>, tensor<i64>) -> tensor<8xf32>
  return
}

// -----

// C2 of gather_nd.
func.func @batch_dims_agree(%x: tensor<100x8xf32>, %i: tensor<99x1xi64>) {
  // expected-error @below {{'nn.gather_nd' op input 'tensor<100x8xf32>' and indices 'tensor<99x1xi64>' differ in their first 1 dims (C2)}}
  %0 = nn.gather_nd %x, %i batch_dims 1 : (tensor<100x8xf32>, tensor<99x1xi64>) -> tensor<99xf32>
  return
}

// -----

// C3: three indices into two dims.
func.func @tuples_are_not_longer_than_the_dims(%x: tensor<100x8xf32>, %i: tensor<2x3xi64>) {
  // expected-error @below {{'nn.gather_nd' op index tuples have 3 entries for 2 dims (C3)}}
  %0 = nn.gather_nd %x, %i batch_dims 0 : (tensor<100x8xf32>, tensor<2x3xi64>) -> tensor<2xf32>
  return
}

// -----

// C1 of scatter_elements.
func.func @scattered_indices_have_the_rank_of_the_input(%x: tensor<100x8xf32>, %i: tensor<2xi64>, %u: tensor<2xf32>) {
  // expected-error @below {{'nn.scatter_elements' op input 'tensor<100x8xf32>' and indices 'tensor<2xi64>' have different ranks (C1)}}
  %0 = nn.scatter_elements set %x, %i, %u dim 1 : (tensor<100x8xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<100x8xf32>
  return
}

// -----

// C2 of scatter_elements.
func.func @elements_are_scattered_along_a_dim(%x: tensor<100x8xf32>, %i: tensor<50x2xi64>, %u: tensor<50x2xf32>) {
  // expected-error @below {{'nn.scatter_elements' op dim 2 is not in [0, 2) (C2)}}
  %0 = nn.scatter_elements set %x, %i, %u dim 2 : (tensor<100x8xf32>, tensor<50x2xi64>, tensor<50x2xf32>) -> tensor<100x8xf32>
  return
}

// -----

// C3: one update per index.
func.func @there_is_an_update_per_index(%x: tensor<100x8xf32>, %i: tensor<50x2xi64>, %u: tensor<50x3xf32>) {
  // expected-error @below {{'nn.scatter_elements' op updates are 'tensor<50x3xf32>', expected the shape of 'tensor<50x2xi64>' and element type 'f32' (C3)}}
  %0 = nn.scatter_elements set %x, %i, %u dim 1 : (tensor<100x8xf32>, tensor<50x2xi64>, tensor<50x3xf32>) -> tensor<100x8xf32>
  return
}

// -----

// C3: of the input's type.
func.func @updates_have_the_type_of_the_input(%x: tensor<100x8xf32>, %i: tensor<50x2xi64>, %u: tensor<50x2xf16>) {
  // expected-error @below {{'nn.scatter_elements' op updates are 'tensor<50x2xf16>', expected the shape of 'tensor<50x2xi64>' and element type 'f32' (C3)}}
  %0 = nn.scatter_elements set %x, %i, %u dim 1 : (tensor<100x8xf32>, tensor<50x2xi64>, tensor<50x2xf16>) -> tensor<100x8xf32>
  return
}

// -----

// C4: column 8 does not exist.
func.func @scattered_indices_stay_inside_other_dims(%x: tensor<100x8xf32>, %i: tensor<2x9xi64>, %u: tensor<2x9xf32>) {
  // expected-error @below {{'nn.scatter_elements' op indices have 9 elements along dim 1 but the input has 8 (C4)}}
  %0 = nn.scatter_elements set %x, %i, %u dim 0 : (tensor<100x8xf32>, tensor<2x9xi64>, tensor<2x9xf32>) -> tensor<100x8xf32>
  return
}

// -----

// C1 of scatter_nd.
func.func @scattered_tuples_are_not_longer_than_the_rank(%x: tensor<100x8xf32>, %i: tensor<2x3xi64>, %u: tensor<2xf32>) {
  // expected-error @below {{'nn.scatter_nd' op indices 'tensor<2x3xi64>' are not tuples of at most 2 entries (C1)}}
  %0 = nn.scatter_nd add %x, %i, %u : (tensor<100x8xf32>, tensor<2x3xi64>, tensor<2xf32>) -> tensor<100x8xf32>
  return
}

// -----

// C1: a scalar is no tuple.
func.func @scattered_tuples_are_along_a_dim(%x: tensor<100x8xf32>, %i: tensor<i64>, %u: tensor<100x8xf32>) {
  // expected-error @below {{'nn.scatter_nd' op indices 'tensor<i64>' are not tuples of at most 2 entries (C1)}}
  %0 = nn.scatter_nd add %x, %i, %u : (tensor<100x8xf32>, tensor<i64>, tensor<100x8xf32>) -> tensor<100x8xf32>
  return
}

// -----

// C2: one row per tuple of one index.
func.func @there_is_an_update_per_tuple(%x: tensor<100x8xf32>, %i: tensor<3x1xi64>, %u: tensor<3xf32>) {
  // expected-error @below {{'nn.scatter_nd' op updates are 'tensor<3xf32>', expected 'tensor<3x8xf32>' (C2)}}
  %0 = nn.scatter_nd set %x, %i, %u : (tensor<100x8xf32>, tensor<3x1xi64>, tensor<3xf32>) -> tensor<100x8xf32>
  return
}

// -----

// C1 of one_hot: the new dim may be last, no further.
func.func @the_new_dim_is_among_the_others(%i: tensor<2x3xi64>, %v: tensor<2xf32>) {
  // expected-error @below {{'nn.one_hot' op dim 3 is not in [0, 2] (C1)}}
  %0 = nn.one_hot %i, %v depth 10 dim 3 : (tensor<2x3xi64>, tensor<2xf32>) -> tensor<2x3x10xf32>
  return
}

// -----

// C2 of one_hot.
func.func @a_depth_is_positive(%i: tensor<2x3xi64>, %v: tensor<2xf32>) {
  // expected-error @below {{'nn.one_hot' op depth is 0, expected at least 1 (C2)}}
  %0 = nn.one_hot %i, %v depth 0 dim 0 : (tensor<2x3xi64>, tensor<2xf32>) -> tensor<0x2x3xf32>
  return
}

// -----

// C3: off and on.
func.func @there_are_two_values(%i: tensor<2x3xi64>, %v: tensor<3xf32>) {
  // expected-error @below {{'nn.one_hot' op values is 'tensor<3xf32>', expected a vector of 2 elements (C3)}}
  %0 = nn.one_hot %i, %v depth 10 dim 0 : (tensor<2x3xi64>, tensor<3xf32>) -> tensor<10x2x3xf32>
  return
}
