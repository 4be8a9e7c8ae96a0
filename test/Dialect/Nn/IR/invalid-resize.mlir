// What resampling refuses.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C1: dims are neither added nor dropped.
func.func @resizing_keeps_the_rank(%x: tensor<1x4x9x9xf32>) {
  // expected-error @below {{'nn.resize' op operand 'tensor<1x4x9x9xf32>' and result 'tensor<4x18x18xf32>' differ in rank or element type (C1)}}
  %0 = nn.resize nearest %x coordinates asymmetric rounding floor scales [1.0, 1.0, 2.0, 2.0] : (tensor<1x4x9x9xf32>) -> tensor<4x18x18xf32>
  return
}

// -----

// C1: nor is the type changed.
func.func @resizing_keeps_the_element_type(%x: tensor<1x4x9x9xf32>) {
  // expected-error @below {{'nn.resize' op operand 'tensor<1x4x9x9xf32>' and result 'tensor<1x4x18x18xf16>' differ in rank or element type (C1)}}
  %0 = nn.resize nearest %x coordinates asymmetric rounding floor scales [1.0, 1.0, 2.0, 2.0] : (tensor<1x4x9x9xf32>) -> tensor<1x4x18x18xf16>
  return
}

// -----

// C2: one scale per dim.
func.func @there_is_a_scale_per_dim(%x: tensor<1x4x9x9xf32>) {
  // expected-error @below {{'nn.resize' op has 2 scales for 4 dims (C2)}}
  %0 = nn.resize nearest %x coordinates asymmetric rounding floor scales [2.0, 2.0] : (tensor<1x4x9x9xf32>) -> tensor<1x4x18x18xf32>
  return
}

// -----

// C2: a scale is positive.
func.func @scales_are_positive(%x: tensor<1x4x9x9xf32>) {
  // expected-error @below {{'nn.resize' op scale of dim 2 is not positive (C2)}}
  %0 = nn.resize nearest %x coordinates asymmetric rounding floor scales [1.0, 1.0, -2.0, 2.0] : (tensor<1x4x9x9xf32>) -> tensor<1x4x18x18xf32>
  return
}

// -----

// C2: and a number (these bits are NaN).
func.func @scales_are_numbers(%x: tensor<1x4x9x9xf32>) {
  // expected-error @below {{'nn.resize' op scale of dim 3 is not positive (C2)}}
  %0 = nn.resize nearest %x coordinates asymmetric rounding floor scales [1.0, 1.0, 2.0, 0x7FF8000000000000] : (tensor<1x4x9x9xf32>) -> tensor<1x4x18x18xf32>
  return
}

// -----

// C3: scale 1 changes nothing.
func.func @scale_one_keeps_the_extent(%x: tensor<1x4x9x9xf32>) {
  // expected-error @below {{'nn.resize' op dim 2 has scale 1 but goes from 9 to 18 (C3)}}
  %0 = nn.resize nearest %x coordinates asymmetric rounding floor scales [1.0, 1.0, 1.0, 2.0] : (tensor<1x4x9x9xf32>) -> tensor<1x4x18x18xf32>
  return
}
