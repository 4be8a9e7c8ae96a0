// What attention and rotary embedding refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C1: heads are a dim of their own.
func.func @a_query_has_four_dims(%q: tensor<2x16x64xf32>, %k: tensor<2x2x24x64xf32>, %v: tensor<2x2x24x32xf32>) {
  // expected-error @below {{'nn.attention' op query is 'tensor<2x16x64xf32>', expected [batch, heads, sequence, size] (C1)}}
  %0 = nn.attention %q, %k, %v scale 1.0 : (tensor<2x16x64xf32>, tensor<2x2x24x64xf32>, tensor<2x2x24x32xf32>) -> tensor<2x8x16x32xf32>
  return
}

// -----

// C1: of keys too.
func.func @a_key_has_four_dims(%q: tensor<2x8x16x64xf32>, %k: tensor<24x64xf32>, %v: tensor<2x2x24x32xf32>) {
  // expected-error @below {{'nn.attention' op key is 'tensor<24x64xf32>', expected [batch, heads, sequence, size] (C1)}}
  %0 = nn.attention %q, %k, %v scale 1.0 : (tensor<2x8x16x64xf32>, tensor<24x64xf32>, tensor<2x2x24x32xf32>) -> tensor<2x8x16x32xf32>
  return
}

// -----

// C1: and of values.
func.func @a_value_has_four_dims(%q: tensor<2x8x16x64xf32>, %k: tensor<2x2x24x64xf32>, %v: tensor<f32>) {
  // expected-error @below {{'nn.attention' op value is 'tensor<f32>', expected [batch, heads, sequence, size] (C1)}}
  %0 = nn.attention %q, %k, %v scale 1.0 : (tensor<2x8x16x64xf32>, tensor<2x2x24x64xf32>, tensor<f32>) -> tensor<2x8x16x32xf32>
  return
}

// -----

// C1: one batch.
func.func @batches_agree(%q: tensor<2x8x16x64xf32>, %k: tensor<1x2x24x64xf32>, %v: tensor<2x2x24x32xf32>) {
  // expected-error @below {{'nn.attention' op query, key and value have batch sizes 2, 1 and 2 (C1)}}
  %0 = nn.attention %q, %k, %v scale 1.0 : (tensor<2x8x16x64xf32>, tensor<1x2x24x64xf32>, tensor<2x2x24x32xf32>) -> tensor<2x8x16x32xf32>
  return
}

// -----

// C1: queries meet keys.
func.func @head_sizes_agree(%q: tensor<2x8x16x64xf32>, %k: tensor<2x2x24x32xf32>, %v: tensor<2x2x24x32xf32>) {
  // expected-error @below {{'nn.attention' op query has head size 64 but key 32 (C1)}}
  %0 = nn.attention %q, %k, %v scale 1.0 : (tensor<2x8x16x64xf32>, tensor<2x2x24x32xf32>, tensor<2x2x24x32xf32>) -> tensor<2x8x16x32xf32>
  return
}

// -----

// C1: each key has a value.
func.func @each_key_has_a_value(%q: tensor<2x8x16x64xf32>, %k: tensor<2x2x24x64xf32>, %v: tensor<2x2x23x32xf32>) {
  // expected-error @below {{'nn.attention' op key 'tensor<2x2x24x64xf32>' and value 'tensor<2x2x23x32xf32>' differ in heads or sequence (C1)}}
  %0 = nn.attention %q, %k, %v scale 1.0 : (tensor<2x8x16x64xf32>, tensor<2x2x24x64xf32>, tensor<2x2x23x32xf32>) -> tensor<2x8x16x32xf32>
  return
}

// -----

// C2: groups of query heads are of one size.
func.func @key_heads_divide_query_heads(%q: tensor<2x8x16x64xf32>, %k: tensor<2x3x24x64xf32>, %v: tensor<2x3x24x32xf32>) {
  // expected-error @below {{'nn.attention' op 3 key heads do not divide 8 query heads (C2)}}
  %0 = nn.attention %q, %k, %v scale 1.0 : (tensor<2x8x16x64xf32>, tensor<2x3x24x64xf32>, tensor<2x3x24x32xf32>) -> tensor<2x8x16x32xf32>
  return
}

// -----

// C2: there is a key head.
func.func @there_is_a_key_head(%q: tensor<2x8x16x64xf32>, %k: tensor<2x0x24x64xf32>, %v: tensor<2x0x24x32xf32>) {
  // expected-error @below {{'nn.attention' op 0 key heads do not divide 8 query heads (C2)}}
  %0 = nn.attention %q, %k, %v scale 1.0 : (tensor<2x8x16x64xf32>, tensor<2x0x24x64xf32>, tensor<2x0x24x32xf32>) -> tensor<2x8x16x32xf32>
  return
}

// -----

// C3: a mask is over queries and keys.
func.func @a_mask_broadcasts(%q: tensor<2x8x16x64xf32>, %k: tensor<2x2x24x64xf32>, %v: tensor<2x2x24x32xf32>, %m: tensor<16x16xi1>) {
  // expected-error @below {{'nn.attention' op mask 'tensor<16x16xi1>' does not broadcast to [2, 8, 16, 24] (C3)}}
  %0 = nn.attention %q, %k, %v mask %m scale 1.0 : (tensor<2x8x16x64xf32>, tensor<2x2x24x64xf32>, tensor<2x2x24x32xf32>, tensor<16x16xi1>) -> tensor<2x8x16x32xf32>
  return
}

// -----

// C4: no mixed precision.
func.func @attention_has_one_element_type(%q: tensor<2x8x16x64xf32>, %k: tensor<2x2x24x64xf16>, %v: tensor<2x2x24x32xf32>) {
  // expected-error @below {{'nn.attention' op operands have different element types 'f32' and 'f16' (C4)}}
  %0 = nn.attention %q, %k, %v scale 1.0 : (tensor<2x8x16x64xf32>, tensor<2x2x24x64xf16>, tensor<2x2x24x32xf32>) -> tensor<2x8x16x32xf32>
  return
}

// -----

// The last dim is the value's.
func.func @the_result_has_the_size_of_values(%q: tensor<2x8x16x64xf32>, %k: tensor<2x2x24x64xf32>, %v: tensor<2x2x24x32xf32>) {
  // expected-error @below {{'nn.attention' op result is 'tensor<2x8x16x64xf32>' but operands and attributes give 'tensor<2x8x16x32xf32>'}}
  %0 = nn.attention %q, %k, %v scale 1.0 : (tensor<2x8x16x64xf32>, tensor<2x2x24x64xf32>, tensor<2x2x24x32xf32>) -> tensor<2x8x16x64xf32>
  return
}

// -----

// C1 of rotary_embedding.
func.func @a_rotated_tensor_has_four_dims(%x: tensor<2x16x64xf32>, %c: tensor<1x16x16xf32>, %s: tensor<1x16x16xf32>) {
  // expected-error @below {{'nn.rotary_embedding' op input is 'tensor<2x16x64xf32>', expected [batch, heads, sequence, size] (C1)}}
  %0 = nn.rotary_embedding %x, %c, %s rotated 32 : (tensor<2x16x64xf32>, tensor<1x16x16xf32>, tensor<1x16x16xf32>) -> tensor<2x16x64xf32>
  return
}

// -----

// C2: pairs.
func.func @an_even_number_is_rotated(%x: tensor<2x8x16x64xf32>, %c: tensor<1x16x16xf32>, %s: tensor<1x16x16xf32>) {
  // expected-error @below {{'nn.rotary_embedding' op rotates 33 elements, expected an even number up to 64 (C2)}}
  %0 = nn.rotary_embedding %x, %c, %s rotated 33 : (tensor<2x8x16x64xf32>, tensor<1x16x16xf32>, tensor<1x16x16xf32>) -> tensor<2x8x16x64xf32>
  return
}

// -----

// C2: of what is there.
func.func @what_is_there_is_rotated(%x: tensor<2x8x16x64xf32>, %c: tensor<1x16x16xf32>, %s: tensor<1x16x16xf32>) {
  // expected-error @below {{'nn.rotary_embedding' op rotates 66 elements, expected an even number up to 64 (C2)}}
  %0 = nn.rotary_embedding %x, %c, %s rotated 66 : (tensor<2x8x16x64xf32>, tensor<1x16x16xf32>, tensor<1x16x16xf32>) -> tensor<2x8x16x64xf32>
  return
}

// -----

// C1: 32 rotated elements are 16 pairs.
func.func @there_is_a_cosine_per_pair(%x: tensor<2x8x16x64xf32>, %c: tensor<1x16x32xf32>, %s: tensor<1x16x16xf32>) {
  // expected-error @below {{'nn.rotary_embedding' op cos is 'tensor<1x16x32xf32>', expected [1 or 2, 16, 16] (C1)}}
  %0 = nn.rotary_embedding %x, %c, %s rotated 32 : (tensor<2x8x16x64xf32>, tensor<1x16x32xf32>, tensor<1x16x16xf32>) -> tensor<2x8x16x64xf32>
  return
}

// -----

// C1: the sine table likewise.
func.func @there_is_a_sine_per_pair(%x: tensor<2x8x16x64xf32>, %c: tensor<1x16x16xf32>, %s: tensor<3x16x16xf32>) {
  // expected-error @below {{'nn.rotary_embedding' op sin is 'tensor<3x16x16xf32>', expected [1 or 2, 16, 16] (C1)}}
  %0 = nn.rotary_embedding %x, %c, %s rotated 32 : (tensor<2x8x16x64xf32>, tensor<1x16x16xf32>, tensor<3x16x16xf32>) -> tensor<2x8x16x64xf32>
  return
}

// -----

// C5: a window has at least the place of the query.
func.func @a_window_is_not_negative(%q: tensor<1x1x4x8xf32>) {
  // expected-error @below {{'nn.attention' op left is -1, expected at least 0 (C5)}}
  %0 = nn.attention %q, %q, %q scale 1.0 causal {left = -1} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

// C5: what is causal sees nothing on its right.
func.func @causal_has_no_right(%q: tensor<1x1x4x8xf32>) {
  // expected-error @below {{'nn.attention' op right is 2 together with causal, which means right = 0 (C5)}}
  %0 = nn.attention %q, %q, %q scale 1.0 causal {right = 2} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}
