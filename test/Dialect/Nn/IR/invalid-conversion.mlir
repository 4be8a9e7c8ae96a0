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

// C3 of quantize.
func.func @quantizing_keeps_the_shape(%x: tensor<8x4xf32>, %s: tensor<f32>) {
  // expected-error @below {{'nn.quantize' op operand 'tensor<8x4xf32>' and result 'tensor<4x8xi8>' have different shapes (C3)}}
  %0 = nn.quantize %x, %s dim 0 : (tensor<8x4xf32>, tensor<f32>) -> tensor<4x8xi8>
  return
}

// -----

// C1: a scale per element is not a thing.
func.func @a_scale_has_at_most_one_dim(%x: tensor<8x4xf32>, %s: tensor<8x4xf32>) {
  // expected-error @below {{'nn.quantize' op scale is 'tensor<8x4xf32>', expected a scalar or a vector (C1)}}
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

// C2: and is a quantised number.
func.func @a_zero_point_has_the_quantised_type(%q: tensor<8x4xi8>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error @below {{'nn.dequantize' op zero point is 'tensor<ui8>', expected the shape of the scale 'tensor<f32>' and element type 'i8' (C2)}}
  %0 = nn.dequantize %q, %s, %z dim 1 : (tensor<8x4xi8>, tensor<f32>, tensor<ui8>) -> tensor<8x4xf32>
  return
}
