// Rules of ops of exec that stages and their splits ask: the step of a ring is attention to a block, of which a part of the keys is a result.
// Batch i, key/value heads j, query heads of a group k, queries l, values n may be split; keys m and the size of queries o may not.
//
// RUN: cleave-opt %s --spmd-print-rules --verify-diagnostics

func.func @keys_stay_whole(%q: tensor<2x8x16x64xf32>, %k: tensor<2x2x32x64xf32>, %v: tensor<2x2x32x48xf32>) {
  // expected-remark-re @below {{([i,jk,l,o],[i,j,m,o],[i,j,m,n])->([i,jk,l,1,n],[i,jk,l,1]) {i=2,j=2,k=4,l=16,m=32,n=48,o=64} replicate={m,o} ordered={m}{{$}}}}
  %s, %l = exec.partial_attention %q, %k, %v part 32 scale 0.125 : (tensor<2x8x16x64xf32>, tensor<2x2x32x64xf32>, tensor<2x2x32x48xf32>) -> (tensor<2x8x16x1x48xf32>, tensor<2x8x16x1xf32>)
  return
}

// A window would let attention be split along queries and keys at once, which parts of keys cannot be. Whether anything is seen is one number.
func.func @windows_are_no_exchange(%q: tensor<2x8x16x64xf32>, %k: tensor<2x8x32x64xf32>, %m: tensor<16x32xf32>, %any: tensor<i1>) {
  // expected-remark-re @below {{([i,j,k,n],[i,j,l,n],[i,j,l,m],[k,l],[])->([i,j,k,1,m],[i,j,k,1]) {i=2,j=8,k=16,l=32,m=64,n=64} replicate={l,n} ordered={l}{{$}}}}
  %s, %l = exec.partial_attention %q, %k, %k mask %m seen %any part 16 scale 0.125 causal {left = 3} : (tensor<2x8x16x64xf32>, tensor<2x8x32x64xf32>, tensor<2x8x32x64xf32>, tensor<16x32xf32>, tensor<i1>) -> (tensor<2x8x16x2x64xf32>, tensor<2x8x16x2xf32>)
  return
}

// Gradients of attention: what batch and key heads split, splits all three results alike.
func.func @gradients_by_heads(%q: tensor<2x8x16x64xf32>, %k: tensor<2x2x32x64xf32>, %v: tensor<2x2x32x48xf32>, %d: tensor<2x8x16x48xf32>) {
  // expected-remark-re @below {{([i,jk,l,o],[i,j,m,o],[i,j,m,n],[i,jk,l,n])->([i,jk,l,o],[i,j,m,o],[i,j,m,n]) {i=2,j=2,k=4,l=16,m=32,n=48,o=64} replicate={k,l,m,n,o} ordered={m}{{$}}}}
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %d scale 0.125 : (tensor<2x8x16x64xf32>, tensor<2x2x32x64xf32>, tensor<2x2x32x48xf32>, tensor<2x8x16x48xf32>) -> (tensor<2x8x16x64xf32>, tensor<2x2x32x64xf32>, tensor<2x2x32x48xf32>)
  return
}
