// What conversions refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C1 of cast.
func.func @a_cast_keeps_the_shape(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.cast' op operand 'tensor<8x4xf32>' and result 'tensor<4x8xi32>' have different shapes (C1)}}
  %0 = nn.cast %x : (tensor<8x4xf32>) -> tensor<4x8xi32>
  return
}

// -----

// C2 of cast.
func.func @only_powers_of_two_are_rounded_up(%x: tensor<8xf32>) {
  // expected-error @below {{'nn.cast' op rounds up, which is for results of f8E8M0FNU alone, not 'f8E4M3FN' (C2)}}
  %0 = nn.cast %x rounding up : (tensor<8xf32>) -> tensor<8xf8E4M3FN>
  return
}

// -----

// C3 of cast.
func.func @bits_are_those_of_bytes(%x: tensor<8xi8>) {
  // expected-error @below {{'nn.cast' op takes the bits of 'i8' for 'i4', expected ui8 and a type of 8 bits at most (C3)}}
  %0 = nn.cast %x bits : (tensor<8xi8>) -> tensor<8xi4>
  return
}

// -----

// C1 of bitcast.
func.func @bits_stay_in_their_places(%x: tensor<8xf32>) {
  // expected-error @below {{'nn.bitcast' op operand 'tensor<8xf32>' and result 'tensor<4x2xi32>' have different shapes (C1)}}
  %0 = nn.bitcast %x : (tensor<8xf32>) -> tensor<4x2xi32>
  return
}

// -----

// C2 of bitcast.
func.func @no_bits_are_left_over(%x: tensor<8xf32>) {
  // expected-error @below {{'nn.bitcast' op elements of 'tensor<8xf32>' and 'tensor<8xi16>' take 32 and 16 bits, expected equally many whole bytes (C2)}}
  %0 = nn.bitcast %x : (tensor<8xf32>) -> tensor<8xi16>
  return
}

// -----

// Small types are stored, not computed in.
func.func @nothing_is_added_in_four_bits(%x: tensor<8xi4>) {
  // expected-error @below {{'nn.add' op operand #0 must be statically shaped tensor}}
  %0 = nn.add %x, %x : (tensor<8xi4>, tensor<8xi4>) -> tensor<8xi4>
  return
}

// -----

// C1: one scale per block, the last of which may be short.
func.func @a_block_has_one_scale(%q: tensor<8x9xi4>, %s: tensor<8x2xf32>) {
  // expected-error @below {{'nn.dequantize' op scale is 'tensor<8x2xf32>', expected 'tensor<8x3xf32>' for blocks of 4 along dim 1 of 'tensor<8x9xi4>' (C1)}}
  %0 = nn.dequantize %q, %s dim 1 block 4 : (tensor<8x9xi4>, tensor<8x2xf32>) -> tensor<8x9xf32>
  return
}

// -----

// C1: blocks lie along a dim.
func.func @blocks_lie_along_a_dim(%q: tensor<8x4xi4>, %s: tensor<8x1xf32>) {
  // expected-error @below {{'nn.dequantize' op dim 3 is not in [0, 2) (C1)}}
  %0 = nn.dequantize %q, %s dim 3 block 4 : (tensor<8x4xi4>, tensor<8x1xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C3 of quantize.
func.func @quantizing_keeps_the_shape(%x: tensor<8x4xf32>, %s: tensor<f32>) {
  // expected-error @below {{'nn.quantize' op operand 'tensor<8x4xf32>' and result 'tensor<4x8xi8>' have different shapes (C3)}}
  %0 = nn.quantize %x, %s dim 0 : (tensor<8x4xf32>, tensor<f32>) -> tensor<4x8xi8>
  return
}

// -----

// C1: a scale per element is not a thing.
func.func @a_scale_has_at_most_one_dim(%x: tensor<8x4xf32>, %s: tensor<8x4xf32>) {
  // expected-error @below {{'nn.quantize' op scale is 'tensor<8x4xf32>' and block 0, expected a scalar, a vector, or elements for blocks of at least 1 (C1)}}
  %0 = nn.quantize %x, %s dim 0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi8>
  return
}

// -----

// C1: the dim of a vector scale exists.
func.func @a_scale_lies_along_a_dim(%x: tensor<8x4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{'nn.quantize' op dim 2 is not in [0, 2) (C1)}}
  %0 = nn.quantize %x, %s dim 2 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi8>
  return
}

// -----

// C1: a negative dim does not count from the end.
func.func @a_scale_dim_is_not_negative(%x: tensor<8x4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{'nn.quantize' op dim -1 is not in [0, 2) (C1)}}
  %0 = nn.quantize %x, %s dim -1 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi8>
  return
}

// -----

// C1: one number per slice.
func.func @a_scale_is_as_long_as_its_dim(%q: tensor<8x4xi8>, %s: tensor<4xf32>) {
  // expected-error @below {{'nn.dequantize' op scale has 4 elements but dim 0 has 8 (C1)}}
  %0 = nn.dequantize %q, %s dim 0 : (tensor<8x4xi8>, tensor<4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C2: the zero point goes with the scale.
func.func @a_zero_point_has_the_shape_of_the_scale(%x: tensor<8x4xf32>, %s: tensor<4xf32>, %z: tensor<i8>) {
  // expected-error @below {{'nn.quantize' op zero point is 'tensor<i8>', expected the shape of the scale 'tensor<4xf32>' and element type 'i8' (C2)}}
  %0 = nn.quantize %x, %s, %z dim 1 : (tensor<8x4xf32>, tensor<4xf32>, tensor<i8>) -> tensor<8x4xi8>
  return
}

// -----

// C2: and is a quantized number.
func.func @a_zero_point_has_the_quantized_type(%q: tensor<8x4xi8>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error @below {{'nn.dequantize' op zero point is 'tensor<ui8>', expected the shape of the scale 'tensor<f32>' and element type 'i8' (C2)}}
  %0 = nn.dequantize %q, %s, %z dim 1 : (tensor<8x4xi8>, tensor<f32>, tensor<ui8>) -> tensor<8x4xf32>
  return
}
