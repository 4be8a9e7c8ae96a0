// An annotation for a part of an axis: a layer split along its hidden dim over half of an axis needs one all_reduce over that half,
// as over a whole axis: 12 x 16 x 4 bytes * 2 * (2 - 1) / 2 = 768, less than gathering a weight (16 x 32 x 4 / 2 = 1024).
//
// RUN: cleave run %s --mesh a=4 --shard 'up=[_, "a:(1)2"]' --check | FileCheck %s --check-prefix=MAJOR
// RUN: cleave run %s --mesh a=4 --shard 'up=[_, "a:(2)2"]' --check | FileCheck %s --check-prefix=MINOR
// RUN: cleave run %s --mesh a=6 --shard 'up=[_, "a:(3)2"]' --check | FileCheck %s --check-prefix=SIX

// MAJOR-LABEL: mesh a=4 (4 ranks)
// MAJOR-NEXT: 1 x all_reduce over a:(1)2 12x16xf32 768 B
// MAJOR-NEXT: sent by a rank: 768 B
// MAJOR: compute of a rank: 12.29 kflop of 24.58 kflop
// MAJOR: check y: ok
// MINOR-LABEL: mesh a=4 (4 ranks)
// MINOR-NEXT: 1 x all_reduce over a:(2)2 12x16xf32 768 B
// MINOR-NEXT: sent by a rank: 768 B
// MINOR: compute of a rank: 12.29 kflop of 24.58 kflop
// MINOR: check y: ok
// SIX-LABEL: mesh a=6 (6 ranks)
// SIX-NEXT: 1 x all_reduce over a:(3)2 12x16xf32 768 B
// SIX-NEXT: sent by a rank: 768 B
// SIX: check y: ok
func.func @main(%x: tensor<12x16xf32> {nn.name = "x"}, %up: tensor<16x32xf32> {nn.name = "up"},
                %down: tensor<32x16xf32> {nn.name = "down"}) -> (tensor<12x16xf32> {nn.name = "y"}) {
  %0 = nn.einsum %x, %up "ik,kj->ij" : (tensor<12x16xf32>, tensor<16x32xf32>) -> tensor<12x32xf32>
  %1 = nn.relu %0 : (tensor<12x32xf32>) -> tensor<12x32xf32>
  %2 = nn.einsum %1, %down "ik,kj->ij" : (tensor<12x32xf32>, tensor<32x16xf32>) -> tensor<12x16xf32>
  return %2 : tensor<12x16xf32>
}
