// What elementwise ops refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C1: sizes that differ repeat only where one of them is 1.
func.func @sizes_must_broadcast(%x: tensor<8x4xf32>, %y: tensor<3xf32>) {
  // expected-error @below {{'nn.add' op operands tensor<8x4xf32>, tensor<3xf32> do not broadcast together (C1)}}
  %0 = nn.add %x, %y : (tensor<8x4xf32>, tensor<3xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C1: an empty dim does not repeat either.
func.func @an_empty_dim_repeats_nothing(%x: tensor<8x4xf32>, %y: tensor<0xf32>) {
  // expected-error @below {{'nn.mul' op operands tensor<8x4xf32>, tensor<0xf32> do not broadcast together (C1)}}
  %0 = nn.mul %x, %y : (tensor<8x4xf32>, tensor<0xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C2: there is no conversion between operands.
func.func @element_types_must_agree(%x: tensor<8x4xf32>, %y: tensor<8x4xf16>) {
  // expected-error @below {{'nn.add' op operands have different element types 'f32' and 'f16' (C2)}}
  %0 = nn.add %x, %y : (tensor<8x4xf32>, tensor<8x4xf16>) -> tensor<8x4xf32>
  return
}

// -----

// The result has the shape that the operands broadcast to.
func.func @the_result_has_the_broadcast_shape(%x: tensor<8x4xf32>, %y: tensor<4xf32>) {
  // expected-error @below {{'nn.add' op result is 'tensor<4xf32>' but operands and attributes give 'tensor<8x4xf32>'}}
  %0 = nn.add %x, %y : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// A comparison gives bool, of nothing else.
func.func @a_comparison_gives_bool(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.lt' op result #0 must be statically shaped tensor of 1-bit signless integer values, but got 'tensor<8x4xf32>'}}
  %0 = nn.lt %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C1 of comparisons.
func.func @compared_sizes_must_broadcast(%x: tensor<8x4xf32>, %y: tensor<2xf32>) {
  // expected-error @below {{'nn.eq' op operands tensor<8x4xf32>, tensor<2xf32> do not broadcast together (C1)}}
  %0 = nn.eq %x, %y : (tensor<8x4xf32>, tensor<2xf32>) -> tensor<8x4xi1>
  return
}

// -----

// C1 of select: the condition broadcasts too.
func.func @a_condition_must_broadcast(%c: tensor<3xi1>, %x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.select' op operands tensor<3xi1>, tensor<8x4xf32>, tensor<8x4xf32> do not broadcast together (C1)}}
  %0 = nn.select %c, %x, %x : (tensor<3xi1>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C2 of select: both values have one element type, the condition has its own.
func.func @selected_values_must_have_one_type(%c: tensor<4xi1>, %x: tensor<8x4xf32>, %y: tensor<4xi32>) {
  // expected-error @below {{'nn.select' op operands have different element types 'f32' and 'i32' (C2)}}
  %0 = nn.select %c, %x, %y : (tensor<4xi1>, tensor<8x4xf32>, tensor<4xi32>) -> tensor<8x4xf32>
  return
}

// -----

// Shapes are static.
func.func @shapes_must_be_static(%x: tensor<?x4xf32>) {
  // expected-error @below {{'nn.neg' op operand #0 must be statically shaped tensor of}}
  %0 = nn.neg %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

// Functions of real numbers take floats only.
func.func @integers_have_no_exponential(%x: tensor<4xi32>) {
  // expected-error @below {{'nn.exp' op operand #0 must be statically shaped tensor of 32-bit float or 16-bit float or bfloat16 type or 64-bit float values, but got 'tensor<4xi32>'}}
  %0 = nn.exp %x : (tensor<4xi32>) -> tensor<4xi32>
  return
}
