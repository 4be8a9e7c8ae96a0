// What a repeated flop costs (1/64 of a byte) decides where bytes alone would not.
//
// RUN: cleave-opt %s --spmd-propagate | FileCheck %s

// Splitting the values' head size gathers the query only (16,384 B), but every rank computes all scores: of 17,039,360 flops
// half is a fair share, a quarter more is padding, so 6,389,760 are repeated: 99,840 B, beside 66,560 B for half of all at
// 1/128. Moving the values to their heads is dearer on the wire (131,072 B), and nothing is computed twice.
// CHECK-LABEL: @a_cut_head_size_repeats_the_scores
// CHECK-SAME: spmd.wire_bytes = 131072
// CHECK: nn.attention {{.*}} -> tensor<1x4x1x32xf32, #replicated_x_replicated_replicated>
#mesh = #spmd.mesh<["x"=2]>
#heads = #spmd.sharding<#mesh, [{}, {"x"}, {}, {}]>
#width = #spmd.sharding<#mesh, [{}, {}, {}, {"x"}]>
func.func @a_cut_head_size_repeats_the_scores(%q: tensor<1x4x1x2048xf32, #heads>, %k: tensor<1x4x1024x2048xf32>, %v: tensor<1x4x1024x32xf32, #width>) -> tensor<1x4x1x32xf32> {
  %0 = nn.attention %q, %k, %v scale 1.0 : (tensor<1x4x1x2048xf32, #heads>, tensor<1x4x1024x2048xf32>, tensor<1x4x1024x32xf32, #width>) -> tensor<1x4x1x32xf32>
  return %0 : tensor<1x4x1x32xf32>
}
