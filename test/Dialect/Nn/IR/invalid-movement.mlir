// What movement ops refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C1 of reshape: no element is lost.
func.func @a_reshape_keeps_the_elements(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.reshape' op operand 'tensor<8x4xf32>' and result 'tensor<31xf32>' have different numbers of elements (C1)}}
  %0 = nn.reshape %x : (tensor<8x4xf32>) -> tensor<31xf32>
  return
}

// -----

// C1: nor changed.
func.func @a_reshape_keeps_the_element_type(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.reshape' op operand 'tensor<8x4xf32>' and result 'tensor<32xi32>' have different element types (C1)}}
  %0 = nn.reshape %x : (tensor<8x4xf32>) -> tensor<32xi32>
  return
}

// -----

// C1: 2^32 * 2^32 wraps to 0, which is not the same as none.
func.func @counting_elements_does_not_wrap(%x: tensor<4294967296x4294967296xi8>) {
  // expected-error @below {{have different numbers of elements (C1)}}
  %0 = nn.reshape %x : (tensor<4294967296x4294967296xi8>) -> tensor<0xi8>
  return
}

// -----

// C1 of transpose: a dim twice.
func.func @a_permutation_has_each_dim_once(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.transpose' op permutation is not one of the 2 dims of the operand (C1)}}
  %0 = nn.transpose %x [0, 0] : (tensor<8x4xf32>) -> tensor<8x8xf32>
  return
}

// -----

// C1: a dim that is none.
func.func @a_permutation_has_dims_only(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.transpose' op permutation is not one of the 2 dims of the operand (C1)}}
  %0 = nn.transpose %x [2, 0] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C1: a dim too few.
func.func @a_permutation_has_all_dims(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.transpose' op permutation is not one of the 2 dims of the operand (C1)}}
  %0 = nn.transpose %x [1] : (tensor<8x4xf32>) -> tensor<4xf32>
  return
}

// -----

// C1 of broadcast.
func.func @a_broadcast_keeps_the_element_type(%x: tensor<4xf32>) {
  // expected-error @below {{'nn.broadcast' op operand 'tensor<4xf32>' and result 'tensor<8x4xf16>' have different element types (C1)}}
  %0 = nn.broadcast %x : (tensor<4xf32>) -> tensor<8x4xf16>
  return
}

// -----

// C2: aligned at the minor dim.
func.func @a_broadcast_adds_major_dims(%x: tensor<8xf32>) {
  // expected-error @below {{'nn.broadcast' op operand 'tensor<8xf32>' does not broadcast to result 'tensor<8x4xf32>' (C2)}}
  %0 = nn.broadcast %x : (tensor<8xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C2: and never smaller.
func.func @a_broadcast_drops_no_dim(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.broadcast' op operand 'tensor<8x4xf32>' does not broadcast to result 'tensor<4xf32>' (C2)}}
  %0 = nn.broadcast %x : (tensor<8x4xf32>) -> tensor<4xf32>
  return
}

// -----

// C1 of concat.
func.func @a_concat_has_operands() {
  // expected-error @below {{'nn.concat' op has no operands (C1)}}
  %0 = "nn.concat"() <{dim = 0 : i64}> : () -> tensor<0xf32>
  return
}

// -----

// C2: one element type.
func.func @joined_tensors_have_one_type(%x: tensor<8x4xf32>, %y: tensor<8x4xi32>) {
  // expected-error @below {{'nn.concat' op operands have different element types 'f32' and 'i32' (C2)}}
  %0 = nn.concat %x, %y dim 0 : (tensor<8x4xf32>, tensor<8x4xi32>) -> tensor<16x4xf32>
  return
}

// -----

// C2: one rank.
func.func @joined_tensors_have_one_rank(%x: tensor<8x4xf32>, %y: tensor<4xf32>) {
  // expected-error @below {{'nn.concat' op operands 'tensor<8x4xf32>' and 'tensor<4xf32>' have different ranks (C2)}}
  %0 = nn.concat %x, %y dim 0 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<9x4xf32>
  return
}

// -----

// C3 of concat.
func.func @tensors_are_joined_along_a_dim(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.concat' op dim 2 is not in [0, 2) (C3)}}
  %0 = nn.concat %x, %x dim 2 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C4: other dims agree.
func.func @joined_tensors_agree_elsewhere(%x: tensor<8x4xf32>, %y: tensor<8x5xf32>) {
  // expected-error @below {{'nn.concat' op operands 'tensor<8x4xf32>' and 'tensor<8x5xf32>' differ in a dim other than 0 (C4)}}
  %0 = nn.concat %x, %y dim 0 : (tensor<8x4xf32>, tensor<8x5xf32>) -> tensor<16x4xf32>
  return
}

// -----

// C4: the sum can be counted.
func.func @a_joined_dim_can_be_counted(%x: tensor<9223372036854775807xi8>) {
  // expected-error @below {{'nn.concat' op result is too large along dim 0 (C4)}}
  %0 = nn.concat %x, %x dim 0 : (tensor<9223372036854775807xi8>, tensor<9223372036854775807xi8>) -> tensor<9223372036854775807xi8>
  return
}

// -----

// C1: one start per dim.
func.func @a_slice_says_everything_per_dim(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.slice' op has 1 starts, 2 sizes and 3 steps for 2 dims (C1)}}
  %0 = nn.slice %x starts [0] sizes [8, 4] steps [1, 1, 1] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C2: a step leads somewhere.
func.func @a_step_is_not_zero(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.slice' op step of dim 1 is 0 (C2)}}
  %0 = nn.slice %x starts [0, 0] sizes [8, 4] steps [1, 0] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C2: a size is a size.
func.func @a_size_is_not_negative(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.slice' op size of dim 0 is -1 (C2)}}
  %0 = nn.slice %x starts [0, 0] sizes [-1, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C3: the last element is 1 + 7 = 8.
func.func @a_slice_ends_inside(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.slice' op dim 0 of size 8 has no 8 elements from 1 by step 1 (C3)}}
  %0 = nn.slice %x starts [1, 0] sizes [8, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C3: a start does not count from the end.
func.func @a_slice_starts_inside(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.slice' op dim 1 of size 4 has no 1 elements from -1 by step 1 (C3)}}
  %0 = nn.slice %x starts [0, -1] sizes [8, 1] steps [1, 1] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C3: a negative step runs out at the front: 2 - 3 = -1.
func.func @a_backward_slice_ends_inside(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.slice' op dim 1 of size 4 has no 4 elements from 2 by step -1 (C3)}}
  %0 = nn.slice %x starts [0, 2] sizes [8, 4] steps [1, -1] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C3: steps that overflow lead outside.
func.func @an_endless_step_leads_outside(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.slice' op dim 0 of size 8 has no 8 elements from 0 by step 9223372036854775807 (C3)}}
  %0 = nn.slice %x starts [0, 0] sizes [8, 4] steps [9223372036854775807, 1] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C1: one amount per dim.
func.func @there_is_an_amount_per_dim(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.pad' op has 1 low and 2 high amounts for 2 dims (C1)}}
  %0 = nn.pad constant %x low [1] high [0, 1] : (tensor<8x4xf32>) -> tensor<8x6xf32>
  return
}

// -----

// C1: cropping is nn.slice.
func.func @padding_does_not_crop(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.pad' op amounts of dim 1 are -1 and 1, expected none below 0 (C1)}}
  %0 = nn.pad constant %x low [0, -1] high [0, 1] : (tensor<8x4xf32>) -> tensor<8x6xf32>
  return
}

// -----

// C1: the sum can be counted.
func.func @a_padded_dim_can_be_counted(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.pad' op result is too large along dim 1 (C1)}}
  %0 = nn.pad constant %x low [0, 9223372036854775807] high [0, 1] : (tensor<8x4xf32>) -> tensor<8x6xf32>
  return
}

// -----

// C2: a mirror shows what is there, without the border.
func.func @a_mirror_shows_what_is_there(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.pad' op mode reflect cannot pad dim 1 of size 4 by 4 and 0 (C2)}}
  %0 = nn.pad reflect %x low [0, 4] high [0, 0] : (tensor<8x4xf32>) -> tensor<8x8xf32>
  return
}

// -----

// C2: nothing has no border.
func.func @nothing_has_no_border(%x: tensor<8x0xf32>) {
  // expected-error @below {{'nn.pad' op mode edge cannot pad dim 1 of size 0 by 1 and 1 (C2)}}
  %0 = nn.pad edge %x low [0, 1] high [0, 1] : (tensor<8x0xf32>) -> tensor<8x2xf32>
  return
}

// -----

// C3: a scalar.
func.func @padding_is_one_value(%x: tensor<8x4xf32>, %v: tensor<1xf32>) {
  // expected-error @below {{'nn.pad' op value is 'tensor<1xf32>', expected a scalar of 'f32' (C3)}}
  %0 = nn.pad constant %x value %v low [0, 1] high [0, 1] : (tensor<8x4xf32>, tensor<1xf32>) -> tensor<8x6xf32>
  return
}

// -----

// C3: of the input's type.
func.func @padding_has_the_type_of_the_input(%x: tensor<8x4xf32>, %v: tensor<f64>) {
  // expected-error @below {{'nn.pad' op value is 'tensor<f64>', expected a scalar of 'f32' (C3)}}
  %0 = nn.pad constant %x value %v low [0, 1] high [0, 1] : (tensor<8x4xf32>, tensor<f64>) -> tensor<8x6xf32>
  return
}

// -----

// C1 of rotate.
func.func @a_rotation_is_along_a_dim(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.rotate' op dim 2 is not in [0, 2) (C1)}}
  %0 = nn.rotate %x dim 2 by 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C2: all the way round is no way.
func.func @a_rotation_is_less_than_a_turn(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.rotate' op amount 4 is not in [0, 4) (C2)}}
  %0 = nn.rotate %x dim 1 by 4 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C2: backward is forward by the rest.
func.func @a_rotation_is_forward(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.rotate' op amount -1 is not in [0, 4) (C2)}}
  %0 = nn.rotate %x dim 1 by -1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C1 of trilu.
func.func @a_triangle_has_two_dims(%x: tensor<4xf32>) {
  // expected-error @below {{'nn.trilu' op input is 'tensor<4xf32>', expected at least 2 dims (C1)}}
  %0 = nn.trilu %x offset 0 upper : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// C1: a value is split along a dim that it has.
func.func @a_split_is_along_a_dim(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.split' op dim 2 is not in [0, 2) (C1)}}
  %0 = nn.split %x dim 2 parts [4] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C2: 3 of 4 columns are left for the second part.
func.func @parts_are_not_more_than_there_is(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.split' op part of 4 positions, expected 0 to 3, what is left of dim 1 (C2)}}
  %0:2 = nn.split %x dim 1 parts [1, 4] : (tensor<8x4xf32>) -> (tensor<8x1xf32>, tensor<8x4xf32>)
  return
}

// -----

// C2: parts are all of the dim.
func.func @parts_leave_nothing(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.split' op parts leave 1 positions of dim 1 (C2)}}
  %0:2 = nn.split %x dim 1 parts [1, 2] : (tensor<8x4xf32>) -> (tensor<8x1xf32>, tensor<8x2xf32>)
  return
}
