// RUN: cleave-opt --spmd-propagate --split-input-file %s 2>&1 >/dev/null | grep remark: | FileCheck %s
// RUN: cleave-opt --spmd-propagate=optimize=bytes --split-input-file %s 2>&1 >/dev/null | FileCheck %s --check-prefix=BYTES

// Three tensors and a result of n = 32 kB change places by all_to_all, 7 / 64 of each, instead of a gather of two of them.
// CHECK: propagate-detours.mlir:[[#@LINE+5]]:8: remark: 'nn.attention' op departs from the plan: 14336 bytes a rank instead of 57344
#mesh = #spmd.mesh<["x"=8]>
#s = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}]>
module attributes {spmd.mesh = #mesh} {
func.func @by_heads(%q: tensor<1x8x64x16xf32, #s>, %k: tensor<1x8x64x16xf32, #s>, %v: tensor<1x8x64x16xf32, #s>) -> tensor<1x8x64x16xf32, #s> {
  %0 = nn.attention %q, %k, %v scale 0.25 : (tensor<1x8x64x16xf32, #s>, tensor<1x8x64x16xf32, #s>, tensor<1x8x64x16xf32, #s>) -> tensor<1x8x64x16xf32, #s>
  return %0 : tensor<1x8x64x16xf32, #s>
}
}

// -----

// The result is four times as large as the rows: gathering these, and computing all of it everywhere, would send a quarter.
// CHECK: remark: 'nn.einsum' op sends 196608 bytes a rank where 49152 would do: that saves 25165824 flops
// BYTES-NOT: where
#mesh = #spmd.mesh<["x"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
module attributes {spmd.mesh = #mesh} {
func.func @gathers_the_result(%x: tensor<64x256xf32, #rows>, %w: tensor<256x1024xf32> {nn.parameter}) -> tensor<64x1024xf32, #replicated> {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<64x256xf32, #rows>, tensor<256x1024xf32>) -> tensor<64x1024xf32, #replicated>
  return %0 : tensor<64x1024xf32, #replicated>
}
}
