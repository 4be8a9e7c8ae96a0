// What a repeated flop costs (a quarter of a byte) decides where bytes alone would not.
//
// RUN: cleave-opt %s --spmd-propagate | FileCheck %s

// Cutting the values' head size gathers the query only (2048 B), but every rank computes all scores: of 147,456 flops
// half is a fair share, a quarter more is padding, so 55,296 are repeated: 13,824 B. Moving the values to their heads is
// dearer on the wire (8192 B), and nothing is computed twice.
// CHECK-LABEL: @a_cut_head_size_repeats_the_scores
// CHECK-SAME: spmd.wire_bytes = 8192
// CHECK: nn.attention {{.*}} -> tensor<1x4x1x32xf32, #whole_x_whole_whole>
#mesh = #spmd.mesh<["x"=2]>
#heads = #spmd.sharding<#mesh, [{}, {"x"}, {}, {}]>
#width = #spmd.sharding<#mesh, [{}, {}, {}, {"x"}]>
func.func @a_cut_head_size_repeats_the_scores(%q: tensor<1x4x1x256xf32, #heads>, %k: tensor<1x4x64x256xf32>, %v: tensor<1x4x64x32xf32, #width>) -> tensor<1x4x1x32xf32> {
  %0 = nn.attention %q, %k, %v scale 1.0 : (tensor<1x4x1x256xf32, #heads>, tensor<1x4x64x256xf32>, tensor<1x4x64x32xf32, #width>) -> tensor<1x4x1x32xf32>
  return %0 : tensor<1x4x1x32xf32>
}
