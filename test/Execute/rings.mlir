// Attention over a split sequence, in a ring where that is asked for: each of keys and values is passed on p - 1 times, and nothing else is sent.
// Evaluated, and as programs on the host and on a CUDA device as this machine plays it. test/Models/Parallel/rings.py tries random shapes.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-shard=attention=ring | FileCheck {}" "cleave run {} --attention=ring --check | FileCheck {} --check-prefix=EQUAL"
// RUN: %{each} %s %t.program "cleave run {} --attention=ring --executor=program --check | FileCheck {} --check-prefix=EQUAL" "cleave run {} --attention=ring --device=cuda-emulated --check | FileCheck {} --check-prefix=EQUAL"
// Floats of two bytes in memory: operands are rounded in the kernel of each step, its results are not.
// RUN: %{each} %s %t.narrow "cleave run {} --attention=ring --executor=program --precision bf16 --check | FileCheck {} --check-prefix=NARROW"

// Bytes do not depend on who runs it: passes x tensors x what a rank has of one.
// NARROW: check result0: ok

#mesh = #spmd.mesh<["x"=4]>
#s = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}]>
#u = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}], uneven>
#w = #spmd.sharding<#mesh, [{}, {}, {}, {}]>
#grid = #spmd.mesh<["a"=2, "b"=2]>
#g = #spmd.sharding<#grid, [{}, {}, {"a", "b"}, {}]>
#h = #spmd.sharding<#grid, [{}, {"a"}, {"b"}, {}]>

//--- heads.mlir
// Four heads on four ranks: without the annotation tokens would be exchanged for heads. 3 x 2 x 4 x 4 x 8 x 4 bytes.
// EQUAL: sent by a rank: {{ *}}3.07 kB
// EQUAL: check result0: ok
// CHECK-LABEL: @causal_with_heads_to_exchange
func.func @causal_with_heads_to_exchange(%q: tensor<1x4x16x8xf32, #s>, %k: tensor<1x4x16x8xf32, #s>, %v: tensor<1x4x16x8xf32, #s>) -> tensor<1x4x16x8xf32, #s> {
  // CHECK-COUNT-6: spmd.window {{.*}} wraps : (tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  // CHECK-NOT: spmd.{{window|all|permute}}
  %0 = nn.attention %q, %k, %v scale 0.25 causal : (tensor<1x4x16x8xf32, #s>, tensor<1x4x16x8xf32, #s>, tensor<1x4x16x8xf32, #s>) -> tensor<1x4x16x8xf32, #s>
  return %0 : tensor<1x4x16x8xf32, #s>
}

//--- groups.mlir
// Two heads of keys and values for four of queries, over both axes of a mesh.
// 3 x 2 x 2 x 2 x 4 x 8 x 4 bytes.
// EQUAL: sent by a rank: {{ *}}3.07 kB
// EQUAL: check result0: ok
// CHECK-LABEL: @over_two_axes
func.func @over_two_axes(%q: tensor<2x4x16x8xf32, #g>, %k: tensor<2x2x16x8xf32, #g>, %v: tensor<2x2x16x8xf32, #g>) -> tensor<2x4x16x8xf32, #g> {
  // CHECK-COUNT-6: spmd.window {{.*}} dims [{}, {}, {"a", "b"}, {}] {{.*}} wraps
  // CHECK-NOT: spmd.{{window|all|permute}}
  %0 = nn.attention %q, %k, %v scale 0.25 causal : (tensor<2x4x16x8xf32, #g>, tensor<2x2x16x8xf32, #g>, tensor<2x2x16x8xf32, #g>) -> tensor<2x4x16x8xf32, #g>
  return %0 : tensor<2x4x16x8xf32, #g>
}

//--- megatron.mlir
// Heads are split over one axis, as asked for, and tokens go round over the other.
// 1 x 2 x 1 x 8 x 8 x 4 bytes.
// EQUAL: sent by a rank: {{ *}}512 B
// EQUAL: check result0: ok
// CHECK-LABEL: @heads_over_another_axis
func.func @heads_over_another_axis(%q: tensor<1x4x16x8xf32, #h>, %k: tensor<1x2x16x8xf32, #h>, %v: tensor<1x2x16x8xf32, #h>) -> tensor<1x4x16x8xf32, #h> {
  // CHECK-COUNT-2: spmd.window {{.*}} (tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32>
  // CHECK-NOT: spmd.{{window|all|permute}}
  %0 = nn.attention %q, %k, %v scale 0.25 : (tensor<1x4x16x8xf32, #h>, tensor<1x2x16x8xf32, #h>, tensor<1x2x16x8xf32, #h>) -> tensor<1x4x16x8xf32, #h>
  return %0 : tensor<1x4x16x8xf32, #h>
}

//--- uneven.mlir
// 14 tokens on four ranks: shards of four, the last one with padding of two, which goes round as zeros.
// 3 x 2 x 2 x 4 x 8 x 4 bytes.
// EQUAL: sent by a rank: {{ *}}1.54 kB
// EQUAL: check result0: ok
// CHECK-LABEL: @uneven_tokens
func.func @uneven_tokens(%q: tensor<1x2x14x8xf32, #u>, %k: tensor<1x2x14x8xf32, #u>, %v: tensor<1x2x14x8xf32, #u>) -> tensor<1x2x14x8xf32, #u> {
  // CHECK-COUNT-6: spmd.window
  // CHECK-NOT: spmd.{{window|all|permute}}
  %0 = nn.attention %q, %k, %v scale 0.25 : (tensor<1x2x14x8xf32, #u>, tensor<1x2x14x8xf32, #u>, tensor<1x2x14x8xf32, #u>) -> tensor<1x2x14x8xf32, #u>
  return %0 : tensor<1x2x14x8xf32, #u>
}

//--- near.mlir
// Two keys on either side, of which those of the rank before and of the rank behind are seen: 2 x 2 x 2 x 4 x 8 x 4 bytes.
// EQUAL: sent by a rank: {{ *}}1.02 kB
// EQUAL: check result0: ok
// CHECK-LABEL: @near_on_both_sides
func.func @near_on_both_sides(%q: tensor<1x2x16x8xf32, #s>, %k: tensor<1x2x16x8xf32, #s>, %v: tensor<1x2x16x8xf32, #s>) -> tensor<1x2x16x8xf32, #s> {
  // CHECK-COUNT-2: spmd.window {{.*}} lows [0, 0, -4, 0] highs [1, 2, 0, 8] wraps
  // CHECK-COUNT-2: spmd.window {{.*}} lows [0, 0, -8, 0] highs [1, 2, -4, 8] wraps
  // CHECK-NOT: spmd.{{window|all|permute}}
  %gk = spmd.reshard %k : tensor<1x2x16x8xf32, #s> to tensor<1x2x16x8xf32, #w>
  %gv = spmd.reshard %v : tensor<1x2x16x8xf32, #s> to tensor<1x2x16x8xf32, #w>
  %0 = nn.attention %q, %gk, %gv scale 0.25 {left = 2 : i64, right = 2 : i64} : (tensor<1x2x16x8xf32, #s>, tensor<1x2x16x8xf32, #w>, tensor<1x2x16x8xf32, #w>) -> tensor<1x2x16x8xf32, #s>
  return %0 : tensor<1x2x16x8xf32, #s>
}

//--- masked.mlir
// Each head has a mask of its own, of which a step takes the columns of its block. 3 x 2 x 2 x 4 x 8 x 4 bytes.
// EQUAL: sent by a rank: {{ *}}1.54 kB
// EQUAL: check result0: ok
// CHECK-LABEL: @a_mask_per_head
func.func @a_mask_per_head(%q: tensor<1x2x16x8xf32, #s>, %k: tensor<1x2x16x8xf32, #s>, %v: tensor<1x2x16x8xf32, #s>, %m: tensor<1x2x16x16xf32, #s>) -> tensor<1x2x16x8xf32, #s> {
  // CHECK-COUNT-6: spmd.window
  // CHECK-NOT: spmd.{{window|all|permute}}
  %0 = nn.attention %q, %k, %v mask %m scale 0.25 : (tensor<1x2x16x8xf32, #s>, tensor<1x2x16x8xf32, #s>, tensor<1x2x16x8xf32, #s>, tensor<1x2x16x16xf32, #s>) -> tensor<1x2x16x8xf32, #s>
  return %0 : tensor<1x2x16x8xf32, #s>
}

//--- loop.mlir
// In each of two iterations 3 x 2 x 2 x 4 x 8 x 4 bytes.
// EQUAL: sent by a rank: {{ *}}3.07 kB
// EQUAL: check result0: ok
// CHECK-LABEL: @in_a_loop
func.func @in_a_loop(%q: tensor<1x2x16x8xf32, #s>) -> tensor<1x2x16x8xf32, #s> {
  // CHECK: nn.loop
  // CHECK-COUNT-6: spmd.window
  // CHECK-NOT: spmd.{{window|all|permute}}
  %y = nn.loop count 2 carries (%q) : (tensor<1x2x16x8xf32, #s>) -> tensor<1x2x16x8xf32, #s> {
  ^bb0(%a: tensor<1x2x16x8xf32, #s>):
    %k = nn.cos %a : (tensor<1x2x16x8xf32, #s>) -> tensor<1x2x16x8xf32, #s>
    %v = nn.sin %a : (tensor<1x2x16x8xf32, #s>) -> tensor<1x2x16x8xf32, #s>
    %gk = spmd.reshard %k : tensor<1x2x16x8xf32, #s> to tensor<1x2x16x8xf32, #w>
    %gv = spmd.reshard %v : tensor<1x2x16x8xf32, #s> to tensor<1x2x16x8xf32, #w>
    %0 = nn.attention %a, %gk, %gv scale 0.25 : (tensor<1x2x16x8xf32, #s>, tensor<1x2x16x8xf32, #w>, tensor<1x2x16x8xf32, #w>) -> tensor<1x2x16x8xf32, #s>
    nn.yield next (%0) : (tensor<1x2x16x8xf32, #s>) -> ()
  }
  return %y : tensor<1x2x16x8xf32, #s>
}

//--- one.mlir
// Queries are what is gathered: nothing goes round, and the whole is there once. 3 x 2 x 4 x 8 x 4 bytes.
// EQUAL: sent by a rank: {{ *}}768 B
// EQUAL: check result0: ok
// CHECK-LABEL: @queries_are_keys_and_values
func.func @queries_are_keys_and_values(%x: tensor<1x2x16x8xf32, #s>) -> tensor<1x2x16x8xf32, #w> {
  // CHECK: spmd.all_gather
  // CHECK-NOT: spmd.{{window|all|permute}}
  %g = spmd.reshard %x : tensor<1x2x16x8xf32, #s> to tensor<1x2x16x8xf32, #w>
  %0 = nn.attention %g, %g, %g scale 0.25 : (tensor<1x2x16x8xf32, #w>, tensor<1x2x16x8xf32, #w>, tensor<1x2x16x8xf32, #w>) -> tensor<1x2x16x8xf32, #w>
  return %0 : tensor<1x2x16x8xf32, #w>
}
