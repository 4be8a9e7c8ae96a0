// Rules of attention: i batch, then key/value heads, query heads of a group, query sequence, key sequence, value size,
// query size, as far as they are larger than 1.
//
// RUN: cleave-opt %s --spmd-print-rules --verify-diagnostics

func.func @grouped_heads_are_two_factors(%q: tensor<2x8x16x64xf32>, %k: tensor<2x2x32x64xf32>, %v: tensor<2x2x32x48xf32>) {
  // expected-remark-re @below {{([i,jk,l,o],[i,j,m,o],[i,j,m,n])->([i,jk,l,n]) {i=2,j=2,k=4,l=16,m=32,n=48,o=64} replicate={o} ordered={m}{{$}}}}
  %0 = nn.attention %q, %k, %v scale 0.125 : (tensor<2x8x16x64xf32>, tensor<2x2x32x64xf32>, tensor<2x2x32x48xf32>) -> tensor<2x8x16x48xf32>
  return
}

func.func @equal_heads_are_one_factor(%q: tensor<2x8x16x64xf32>, %k: tensor<2x8x32x64xf32>, %m: tensor<16x32xi1>) {
  // expected-remark @below {{([i,j,k,n],[i,j,l,n],[i,j,l,m],[k,l])->([i,j,k,m]) {i=2,j=8,k=16,l=32,m=64,n=64}}}
  %0 = nn.attention %q, %k, %k mask %m scale 0.125 causal : (tensor<2x8x16x64xf32>, tensor<2x8x32x64xf32>, tensor<2x8x32x64xf32>, tensor<16x32xi1>) -> tensor<2x8x16x64xf32>
  return
}

func.func @one_key_head_serves_all_query_heads(%q: tensor<2x8x16x64xf32>, %k: tensor<2x1x32x64xf32>, %m: tensor<1x8x1x32xf32>) {
  // expected-remark @below {{([i,j,k,n],[i,1,l,n],[i,1,l,m],[1,j,1,l])->([i,j,k,m]) {i=2,j=8,k=16,l=32,m=64,n=64}}}
  %0 = nn.attention %q, %k, %k mask %m scale 0.125 : (tensor<2x8x16x64xf32>, tensor<2x1x32x64xf32>, tensor<2x1x32x64xf32>, tensor<1x8x1x32xf32>) -> tensor<2x8x16x64xf32>
  return
}

// Queries and keys may be split together where each query sees a window: windows reach 3 keys to the left.
func.func @windows_are_an_exchange(%q: tensor<2x8x16x64xf32>, %k: tensor<2x8x32x64xf32>) {
  // expected-remark-re @below {{([i,j,k,n],[i,j,l,n],[i,j,l,m])->([i,j,k,m]) {i=2,j=8,k=16,l=32,m=64,n=64} replicate={n} ordered={l} exchange={l>k}{{$}}}}
  %0 = nn.attention %q, %k, %k scale 0.125 causal {left = 3} : (tensor<2x8x16x64xf32>, tensor<2x8x32x64xf32>, tensor<2x8x32x64xf32>) -> tensor<2x8x16x64xf32>
  return
}

// A mask of queries by keys cannot be split by both.
func.func @whole_masks_leave_no_exchange(%q: tensor<2x8x16x64xf32>, %k: tensor<2x8x32x64xf32>, %m: tensor<16x32xi1>) {
  // expected-remark-re @below {{([i,j,k,n],[i,j,l,n],[i,j,l,m],[k,l])->([i,j,k,m]) {i=2,j=8,k=16,l=32,m=64,n=64} replicate={n} ordered={l}{{$}}}}
  %0 = nn.attention %q, %k, %k mask %m scale 0.125 causal {left = 3} : (tensor<2x8x16x64xf32>, tensor<2x8x32x64xf32>, tensor<2x8x32x64xf32>, tensor<16x32xi1>) -> tensor<2x8x16x64xf32>
  return
}

func.func @a_rotation_needs_the_last_dim(%x: tensor<2x8x16x64xf32>, %c: tensor<1x16x32xf32>) {
  // expected-remark-re @below {{([i,j,k,l],[1,k,m],[1,k,m])->([i,j,k,l]) {i=2,j=8,k=16,l=64,m=32} replicate={l,m}{{$}}}}
  %0 = nn.rotary_embedding %x, %c, %c rotated 64 : (tensor<2x8x16x64xf32>, tensor<1x16x32xf32>, tensor<1x16x32xf32>) -> tensor<2x8x16x64xf32>
  return
}
