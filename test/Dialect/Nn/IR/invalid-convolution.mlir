// What windows over spatial dims refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C1: batch, channels and something to slide over.
func.func @a_convolution_is_spatial(%x: tensor<1x4xf32>, %w: tensor<6x4xf32>) {
  // expected-error @below {{'nn.conv' op input 'tensor<1x4xf32>' and weight 'tensor<6x4xf32>' do not have one rank of at least 3 (C1)}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x4xf32>, tensor<6x4xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C1: one rank.
func.func @a_weight_has_the_rank_of_the_input(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error @below {{'nn.conv' op input 'tensor<1x4x9x9xf32>' and weight 'tensor<6x4x3xf32>' do not have one rank of at least 3 (C1)}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C2: groups divide the channels on both sides.
func.func @groups_divide_channels(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{'nn.conv' op 4 groups do not divide 4 channels in and 6 out (C2)}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 4 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C2: there is a group.
func.func @there_is_a_group(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{'nn.conv' op 0 groups do not divide 4 channels in and 6 out (C2)}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 0 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C2: a weight sees the channels of its group.
func.func @a_weight_sees_its_group(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{'nn.conv' op weight takes 4 channels a group but the input has 2 (C2)}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 2 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C3: one entry per spatial dim.
func.func @there_is_a_stride_per_dim(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{'nn.conv' op has 1 strides for 2 spatial dims (C3)}}
  %0 = nn.conv %x, %w strides [1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C3: a window moves on.
func.func @strides_are_positive(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{'nn.conv' op strides contain 0, expected at least 1 (C3)}}
  %0 = nn.conv %x, %w strides [1, 0] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C3: low paddings, one per dim.
func.func @there_is_a_low_padding_per_dim(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{'nn.conv' op has 3 low paddings for 2 spatial dims (C3)}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C3: high paddings do not crop.
func.func @high_paddings_do_not_crop(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{'nn.conv' op high paddings contain -1, expected at least 0 (C3)}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [-1, 0] dilations [1, 1] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C3: taps are apart.
func.func @dilations_are_positive(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{'nn.conv' op dilations contain -2, expected at least 1 (C3)}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [-2, 1] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C3: a window has taps.
func.func @a_kernel_is_not_empty(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x0x3xf32>) {
  // expected-error @below {{'nn.conv' op kernel extents contain 0, expected at least 1 (C3)}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x0x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C4: 1 + 2 * 5 = 11 > 9.
func.func @a_window_fits_the_input(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{'nn.conv' op window does not fit into the padded input along spatial dim 1 (C4)}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 5] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C4: a span that overflows fits nowhere.
func.func @an_endless_window_fits_nowhere(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{'nn.conv' op window does not fit into the padded input along spatial dim 0 (C4)}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [9223372036854775807, 1] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C4: nor does a padding that overflows.
func.func @endless_padding_is_refused(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{'nn.conv' op window does not fit into the padded input along spatial dim 0 (C4)}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [9223372036854775807, 0] pads_high [9223372036854775807, 0] dilations [1, 1] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C5: a bias per channel out.
func.func @a_bias_is_per_channel_out(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{'nn.conv' op bias is 'tensor<4xf32>', expected a vector of 6 elements (C5)}}
  %0 = nn.conv %x, %w, %b strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>, tensor<4xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C6: one element type.
func.func @a_weight_has_the_type_of_the_input(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf16>) {
  // expected-error @below {{'nn.conv' op operands have different element types 'f32' and 'f16' (C6)}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf16>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// C6: of the bias too.
func.func @a_bias_has_the_type_of_the_input(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>, %b: tensor<6xf64>) {
  // expected-error @below {{'nn.conv' op operands have different element types 'f32' and 'f64' (C6)}}
  %0 = nn.conv %x, %w, %b strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>, tensor<6xf64>) -> tensor<1x6x7x7xf32>
  return
}

// -----

// The result has the channels of the weight.
func.func @a_result_has_the_channels_of_the_weight(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{'nn.conv' op result is 'tensor<1x4x7x7xf32>' but operands and attributes give 'tensor<1x6x7x7xf32>'}}
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x4x7x7xf32>
  return
}

// -----

// C1 of conv_transpose.
func.func @a_transposed_convolution_is_spatial(%x: tensor<1x4xf32>, %w: tensor<4x6xf32>) {
  // expected-error @below {{'nn.conv_transpose' op input 'tensor<1x4xf32>' and weight 'tensor<4x6xf32>' do not have one rank of at least 3 (C1)}}
  %0 = nn.conv_transpose %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] output_pads [0, 0] groups 1 : (tensor<1x4xf32>, tensor<4x6xf32>) -> tensor<1x6x11x11xf32>
  return
}

// -----

// C2: groups divide the channels in.
func.func @groups_divide_channels_in(%x: tensor<1x4x9x9xf32>, %w: tensor<4x6x3x3xf32>) {
  // expected-error @below {{'nn.conv_transpose' op 3 groups do not divide 4 channels in (C2)}}
  %0 = nn.conv_transpose %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] output_pads [0, 0] groups 3 : (tensor<1x4x9x9xf32>, tensor<4x6x3x3xf32>) -> tensor<1x6x11x11xf32>
  return
}

// -----

// C2: the weight's dim 0 is the channels in.
func.func @a_transposed_weight_starts_with_channels_in(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{'nn.conv_transpose' op weight takes 6 channels but the input has 4 (C2)}}
  %0 = nn.conv_transpose %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] output_pads [0, 0] groups 1 : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x11x11xf32>
  return
}

// -----

// C2: too many channels out to count.
func.func @channels_out_can_be_counted(%x: tensor<1x4x9x9xf32>, %w: tensor<4x9223372036854775807x3x3xf32>) {
  // expected-error @below {{'nn.conv_transpose' op 2 groups of 9223372036854775807 channels are too many (C2)}}
  %0 = nn.conv_transpose %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] output_pads [0, 0] groups 2 : (tensor<1x4x9x9xf32>, tensor<4x9223372036854775807x3x3xf32>) -> tensor<1x6x11x11xf32>
  return
}

// -----

// C3: as nn.conv, and an output padding per dim.
func.func @there_is_an_output_padding_per_dim(%x: tensor<1x4x9x9xf32>, %w: tensor<4x6x3x3xf32>) {
  // expected-error @below {{'nn.conv_transpose' op has 1 output paddings for 2 spatial dims (C3)}}
  %0 = nn.conv_transpose %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] output_pads [1] groups 1 : (tensor<1x4x9x9xf32>, tensor<4x6x3x3xf32>) -> tensor<1x6x11x11xf32>
  return
}

// -----

// C3: output paddings do not crop.
func.func @output_paddings_do_not_crop(%x: tensor<1x4x9x9xf32>, %w: tensor<4x6x3x3xf32>) {
  // expected-error @below {{'nn.conv_transpose' op output paddings contain -1, expected at least 0 (C3)}}
  %0 = nn.conv_transpose %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] output_pads [0, -1] groups 1 : (tensor<1x4x9x9xf32>, tensor<4x6x3x3xf32>) -> tensor<1x6x11x11xf32>
  return
}

// -----

// C4: 8 + 3 - 11 = 0.
func.func @something_is_left_after_cropping(%x: tensor<1x4x9x9xf32>, %w: tensor<4x6x3x3xf32>) {
  // expected-error @below {{'nn.conv_transpose' op result has no positive extent along spatial dim 1 (C4)}}
  %0 = nn.conv_transpose %x, %w strides [1, 1] pads_low [0, 5] pads_high [0, 6] dilations [1, 1] output_pads [0, 0] groups 1 : (tensor<1x4x9x9xf32>, tensor<4x6x3x3xf32>) -> tensor<1x6x11x11xf32>
  return
}

// -----

// C4: an extent that overflows is none.
func.func @a_transposed_extent_can_be_counted(%x: tensor<1x4x9x9xf32>, %w: tensor<4x6x3x3xf32>) {
  // expected-error @below {{'nn.conv_transpose' op result has no positive extent along spatial dim 0 (C4)}}
  %0 = nn.conv_transpose %x, %w strides [9223372036854775807, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] output_pads [0, 0] groups 1 : (tensor<1x4x9x9xf32>, tensor<4x6x3x3xf32>) -> tensor<1x6x11x11xf32>
  return
}

// -----

// C5: a bias per channel out, over all groups.
func.func @a_transposed_bias_is_per_channel_out(%x: tensor<1x4x9x9xf32>, %w: tensor<4x6x3x3xf32>, %b: tensor<6xf32>) {
  // expected-error @below {{'nn.conv_transpose' op bias is 'tensor<6xf32>', expected a vector of 12 elements (C5)}}
  %0 = nn.conv_transpose %x, %w, %b strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] output_pads [0, 0] groups 2 : (tensor<1x4x9x9xf32>, tensor<4x6x3x3xf32>, tensor<6xf32>) -> tensor<1x6x11x11xf32>
  return
}

// -----

// C1 of pool.
func.func @a_pool_is_spatial(%x: tensor<4x9xf32>) {
  // expected-error @below {{'nn.pool' op input is 'tensor<4x9xf32>', expected at least 3 dims (C1)}}
  %0 = nn.pool max %x kernel [2, 2] strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] : (tensor<4x9xf32>) -> tensor<1x4x8x8xf32>
  return
}

// -----

// C2: as nn.conv.
func.func @a_pool_has_an_extent_per_dim(%x: tensor<1x4x9x9xf32>) {
  // expected-error @below {{'nn.pool' op has 1 kernel extents for 2 spatial dims (C2)}}
  %0 = nn.pool max %x kernel [2] strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] : (tensor<1x4x9x9xf32>) -> tensor<1x4x8x8xf32>
  return
}

// -----

// C3 of pool.
func.func @a_pool_fits_the_input(%x: tensor<1x4x9x9xf32>) {
  // expected-error @below {{'nn.pool' op window does not fit into the padded input along spatial dim 0 (C3)}}
  %0 = nn.pool max %x kernel [10, 2] strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] : (tensor<1x4x9x9xf32>) -> tensor<1x4x8x8xf32>
  return
}

// -----

// C4: a norm has a positive order.
func.func @a_norm_has_a_positive_order(%x: tensor<1x4x9x9xf32>) {
  // expected-error @below {{'nn.pool' op p is 0, expected at least 1 (C4)}}
  %0 = nn.pool max %x kernel [2, 2] strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] {p = 0 : i64} : (tensor<1x4x9x9xf32>) -> tensor<1x4x8x8xf32>
  return
}
