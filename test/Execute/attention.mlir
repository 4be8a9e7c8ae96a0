// Attention by heads is local; over a split key sequence the maximum, the sum and the weighted values travel.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-partition | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir
// RUN: %{each} %t.mlir %t.4 "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#oXoo = #spmd.sharding<#mesh, [{}, {"x", "y"}, {}, {}]>
#ooxo = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}]>
#ooyo = #spmd.sharding<#mesh, [{}, {}, {"y"}, {}]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#oooo = #spmd.sharding<#mesh, [{}, {}, {}, {}]>

//--- heads.mlir
// A rank has its heads of q, and those of k and v that they read.
// CHECK-LABEL: @attention_by_heads_is_local
func.func @attention_by_heads_is_local(%q: tensor<2x8x8x4xf32, #oXoo>, %k: tensor<2x4x8x4xf32, #oXoo>) -> tensor<2x8x8x4xf32, #oXoo> {
  // CHECK-NEXT: nn.attention {{.*}} (tensor<2x2x8x4xf32>, tensor<2x1x8x4xf32>, tensor<2x1x8x4xf32>)
  // CHECK-NEXT: return
  %0 = nn.attention %q, %k, %k scale 0.5 causal : (tensor<2x8x8x4xf32, #oXoo>, tensor<2x4x8x4xf32, #oXoo>, tensor<2x4x8x4xf32, #oXoo>) -> tensor<2x8x8x4xf32, #oXoo>
  return %0 : tensor<2x8x8x4xf32, #oXoo>
}

//--- keys.mlir
// Queries split over x and keys over y: three all-reduces over y, and the causal mask knows both places.
// CHECK-LABEL: @cut_keys_reduce_a_maximum_a_sum_and_the_values
func.func @cut_keys_reduce_a_maximum_a_sum_and_the_values(%q: tensor<2x8x8x4xf32, #ooxo>, %k: tensor<2x4x8x4xf32, #ooyo>, %m: tensor<8x8xf32, #xy>) -> tensor<2x8x8x4xf32, #ooxo> {
  // CHECK: nn.einsum
  // CHECK: spmd.axis_index {"x"}
  // CHECK: spmd.axis_index {"y"}
  // CHECK: spmd.all_reduce max {{.*}} over {"y"} : tensor<2x4x2x4x1xf32>
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<2x4x2x4x1xf32>
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<2x4x2x4x4xf32>
  // CHECK-NOT: = spmd.
  %0 = nn.attention %q, %k, %k mask %m scale 0.5 causal : (tensor<2x8x8x4xf32, #ooxo>, tensor<2x4x8x4xf32, #ooyo>, tensor<2x4x8x4xf32, #ooyo>, tensor<8x8xf32, #xy>) -> tensor<2x8x8x4xf32, #ooxo>
  return %0 : tensor<2x8x8x4xf32, #ooxo>
}

//--- queries.mlir
// A causal mask over a split query sequence needs the rank's offset, and no communication but that of the keys.
// CHECK-LABEL: @cut_queries_need_their_offset
func.func @cut_queries_need_their_offset(%q: tensor<2x8x8x4xf32, #ooxo>, %k: tensor<2x4x8x4xf32, #ooyo>) -> tensor<2x8x8x4xf32, #ooxo> {
  // CHECK: spmd.all_gather
  // CHECK: spmd.axis_index {"x"}
  // CHECK-NOT: = spmd.
  // CHECK: nn.attention {{.*}} mask
  // CHECK-NOT: = spmd.
  %0 = spmd.reshard %k : tensor<2x4x8x4xf32, #ooyo> to tensor<2x4x8x4xf32, #oooo>
  %1 = nn.attention %q, %0, %0 scale 0.5 causal : (tensor<2x8x8x4xf32, #ooxo>, tensor<2x4x8x4xf32, #oooo>, tensor<2x4x8x4xf32, #oooo>) -> tensor<2x8x8x4xf32, #ooxo>
  return %1 : tensor<2x8x8x4xf32, #ooxo>
}
