// Rules of conversions: one parallel factor per dim; what rounds takes no partial operand.
//
// RUN: cleave-opt %s --spmd-print-rules --verify-diagnostics

func.func @casts_are_linear_between_floats_only(%x: tensor<8xf32>, %n: tensor<8xi32>) {
  // expected-remark-re @below {{([i])->([i]) {i=8} linear(sum)={0}{{$}}}}
  %0 = nn.cast %x : (tensor<8xf32>) -> tensor<8xbf16>
  // expected-remark-re @below {{([i])->([i]) {i=8}{{$}}}}
  %1 = nn.cast %n : (tensor<8xi32>) -> tensor<8xf32>
  // expected-remark-re @below {{([i])->([i]) {i=8}{{$}}}}
  %2 = nn.cast %x : (tensor<8xf32>) -> tensor<8xi32>
  // expected-remark-re @below {{([i])->([i]) {i=8}{{$}}}}
  %3 = nn.bitcast %x : (tensor<8xf32>) -> tensor<8xi32>
  return
}

func.func @scales_stand_along_one_dim(%x: tensor<8x4xf32>, %q: tensor<8x4xi8>, %s: tensor<4xf32>, %z: tensor<4xi8>, %one: tensor<f32>) {
  // expected-remark-re @below {{([i,j],[j],[j])->([i,j]) {i=8,j=4}{{$}}}}
  %0 = nn.quantize %x, %s, %z dim 1 : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<8x4xi8>
  // expected-remark-re @below {{([i,j],[])->([i,j]) {i=8,j=4}{{$}}}}
  %1 = nn.dequantize %q, %one dim 1 : (tensor<8x4xi8>, tensor<f32>) -> tensor<8x4xf32>
  return
}

// Blocks are split with their scales, and not inside; where the last one is short, not at all.
func.func @blocks_stay_with_their_scales(%q: tensor<8x12xi4>, %s: tensor<8x3xf32>, %r: tensor<8x2xf32>) {
  // expected-remark-re @below {{([i,jk],[i,j])->([i,jk]) {i=8,j=3,k=4} replicate={k}{{$}}}}
  %0 = nn.dequantize %q, %s dim 1 block 4 : (tensor<8x12xi4>, tensor<8x3xf32>) -> tensor<8x12xf32>
  // expected-remark-re @below {{([i,j],[i,k])->([i,j]) {i=8,j=12,k=2} replicate={j,k}{{$}}}}
  %1 = nn.dequantize %q, %r dim 1 block 7 : (tensor<8x12xi4>, tensor<8x2xf32>) -> tensor<8x12xf32>
  return
}

// Floats of 8 bits round each term by itself.
func.func @small_floats_add_nothing_up(%x: tensor<8xf32>) {
  // expected-remark-re @below {{([i])->([i]) {i=8}{{$}}}}
  %0 = nn.cast %x : (tensor<8xf32>) -> tensor<8xf8E5M2>
  return
}
