// Attention by heads is local; over a cut key sequence the maximum, the sum and the weighted values travel.
//
// RUN: cleave-opt %s --spmd-partition | FileCheck %s
// RUN: cleave run %s --check | FileCheck %s --check-prefix=EQUAL
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir && cleave run %t.mlir --check | FileCheck %s --check-prefix=EQUAL

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#oXoo = #spmd.sharding<#mesh, [{}, {"x", "y"}, {}, {}]>
#ooxo = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}]>
#ooyo = #spmd.sharding<#mesh, [{}, {}, {"y"}, {}]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#oooo = #spmd.sharding<#mesh, [{}, {}, {}, {}]>

// CHECK-LABEL: @heads_and_sequences
func.func @heads_and_sequences(%q: tensor<2x8x8x4xf32, #oXoo>, %k: tensor<2x4x8x4xf32, #oXoo>, %r: tensor<2x8x8x4xf32, #ooxo>, %l: tensor<2x4x8x4xf32, #ooyo>, %m: tensor<8x8xf32, #xy>) -> (tensor<2x8x8x4xf32, #oXoo>, tensor<2x8x8x4xf32, #ooxo>, tensor<2x8x8x4xf32, #ooxo>) {
  // CHECK: nn.attention {{.*}} (tensor<2x2x8x4xf32>, tensor<2x1x8x4xf32>, tensor<2x1x8x4xf32>)
  // CHECK-NOT: = spmd.
  %0 = nn.attention %q, %k, %k scale 0.5 causal : (tensor<2x8x8x4xf32, #oXoo>, tensor<2x4x8x4xf32, #oXoo>, tensor<2x4x8x4xf32, #oXoo>) -> tensor<2x8x8x4xf32, #oXoo>
  // CHECK: nn.einsum
  // CHECK: spmd.axis_index {"x"}
  // CHECK: spmd.axis_index {"y"}
  // CHECK: spmd.all_reduce max {{.*}} over {"y"} : tensor<2x4x2x4x1xf32>
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<2x4x2x4x1xf32>
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<2x4x2x4x4xf32>
  // CHECK-NOT: = spmd.
  %1 = nn.attention %r, %l, %l mask %m scale 0.5 causal : (tensor<2x8x8x4xf32, #ooxo>, tensor<2x4x8x4xf32, #ooyo>, tensor<2x4x8x4xf32, #ooyo>, tensor<8x8xf32, #xy>) -> tensor<2x8x8x4xf32, #ooxo>
  // A causal mask over a cut query sequence needs the rank's offset, and no communication.
  // CHECK: spmd.all_gather
  // CHECK: spmd.axis_index {"x"}
  // CHECK-NOT: = spmd.
  // CHECK: nn.attention {{.*}} mask
  // CHECK-NOT: = spmd.
  %2 = spmd.reshard %l : tensor<2x4x8x4xf32, #ooyo> to tensor<2x4x8x4xf32, #oooo>
  %3 = nn.attention %r, %2, %2 scale 0.5 causal : (tensor<2x8x8x4xf32, #ooxo>, tensor<2x4x8x4xf32, #oooo>, tensor<2x4x8x4xf32, #oooo>) -> tensor<2x8x8x4xf32, #ooxo>
  return %0, %1, %3 : tensor<2x8x8x4xf32, #oXoo>, tensor<2x8x8x4xf32, #ooxo>, tensor<2x8x8x4xf32, #ooxo>
}
