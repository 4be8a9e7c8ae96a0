// What cannot be asked for, and what fits no memory.
//
// RUN: cleave-opt %s --exec-recompute="policy=auto limit=1000" --split-input-file -verify-diagnostics

// expected-error @below {{no choice of what to compute again fits 1000 B on a rank: the least is 81924 B, of which weights, states and inputs are 49152 B}}
func.func @too_large(%x: tensor<64x64xf32> {nn.name = "x"}, %w: tensor<64x64xf32> {nn.name = "w", nn.role = "parameter"}, %m: tensor<64x64xf32> {nn.name = "m"})
    -> (tensor<f32> {nn.name = "loss"}, tensor<64x64xf32> {spmd.state = "w"}) {
  %z = nn.einsum %x, %w "ik,kj->ij" : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %h = nn.exp %z : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %loss = nn.reduce sum %h dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  %g = nn.einsum %x, %h "ki,kj->ij" : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %n = nn.sub %w, %g : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %loss, %n : tensor<f32>, tensor<64x64xf32>
}
