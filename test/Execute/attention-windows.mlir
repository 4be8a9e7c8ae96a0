// Attention in which a query sees a window of keys, with the sequence split: neighbors give the keys and values that are missing, and the
// op is itself again. A mask says which of them lie beyond the first and the last key.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-shard | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=4]>
#s = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}]>
#u = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}], uneven>
#k = #spmd.sharding<#mesh, [{}, {}, {}, {"x"}]>

//--- causal.mlir
// A token and two before it: two rows of keys and of values from the neighbor. Four query heads share one.
// CHECK-LABEL: @two_tokens_before
func.func @two_tokens_before(%q: tensor<1x4x16x16xf32, #s>, %k: tensor<1x1x16x16xf32, #s>, %v: tensor<1x1x16x16xf32, #s>) -> tensor<1x4x16x16xf32, #s> {
  // CHECK-COUNT-2: spmd.window {{.*}} steps [0, 0, 4, 0] lows [0, 0, -2, 0] highs [1, 1, 4, 16] fill 0.{{.*}} (tensor<1x1x4x16xf32>) -> tensor<1x1x6x16xf32>
  // CHECK: nn.attention {{.*}} mask {{.*}} causal {causalOffset = 2 : i64, left = 2 : i64} : (tensor<1x4x4x16xf32>, tensor<1x1x6x16xf32>, tensor<1x1x6x16xf32>, tensor<6xi1>)
  // CHECK-NOT: = spmd.
  %0 = nn.attention %q, %k, %v scale 0.25 causal {left = 2} : (tensor<1x4x16x16xf32, #s>, tensor<1x1x16x16xf32, #s>, tensor<1x1x16x16xf32, #s>) -> tensor<1x4x16x16xf32, #s>
  return %0 : tensor<1x4x16x16xf32, #s>
}

//--- far.mlir
// Nine before it: of three neighbors.
// CHECK-LABEL: @longer_than_a_shard
func.func @longer_than_a_shard(%q: tensor<1x1x16x16xf32, #s>, %k: tensor<1x1x16x16xf32, #s>, %v: tensor<1x1x16x16xf32, #s>) -> tensor<1x1x16x16xf32, #s> {
  // CHECK-COUNT-2: spmd.window {{.*}} lows [0, 0, -9, 0] highs [1, 1, 4, 16] {{.*}} -> tensor<1x1x13x16xf32>
  // CHECK-NOT: = spmd.window
  %0 = nn.attention %q, %k, %v scale 0.25 causal {left = 9} : (tensor<1x1x16x16xf32, #s>, tensor<1x1x16x16xf32, #s>, tensor<1x1x16x16xf32, #s>) -> tensor<1x1x16x16xf32, #s>
  return %0 : tensor<1x1x16x16xf32, #s>
}

//--- both-sides.mlir
// One before and two behind; padding is hidden by a mask that is split as keys are.
// CHECK-LABEL: @both_sides_with_a_mask
func.func @both_sides_with_a_mask(%q: tensor<2x2x16x8xf32, #s>, %k: tensor<2x2x16x8xf32, #s>, %v: tensor<2x2x16x8xf32, #s>, %m: tensor<2x1x1x16xi1, #k>) -> tensor<2x2x16x8xf32, #s> {
  // CHECK-COUNT-2: spmd.window {{.*}} lows [0, 0, -1, 0] highs [2, 2, 6, 8] {{.*}} -> tensor<2x2x7x8xf32>
  // CHECK: spmd.window {{.*}} lows [0, 0, 0, -1] highs [2, 1, 1, 6] fill false {{.*}} -> tensor<2x1x1x7xi1>
  // CHECK: nn.attention {{.*}} causal {causalOffset = 3 : i64, left = 3 : i64}
  %0 = nn.attention %q, %k, %v mask %m scale 0.25 {left = 1, right = 2} : (tensor<2x2x16x8xf32, #s>, tensor<2x2x16x8xf32, #s>, tensor<2x2x16x8xf32, #s>, tensor<2x1x1x16xi1, #k>) -> tensor<2x2x16x8xf32, #s>
  return %0 : tensor<2x2x16x8xf32, #s>
}

//--- uneven.mlir
// 14 tokens on four ranks: the last one has two, and padding of two.
// CHECK-LABEL: @uneven_tokens
func.func @uneven_tokens(%q: tensor<1x2x14x8xf32, #u>, %k: tensor<1x1x14x8xf32, #u>, %v: tensor<1x1x14x8xf32, #u>) -> tensor<1x2x14x8xf32, #u> {
  // CHECK-COUNT-2: spmd.window {{.*}} lows [0, 0, -3, 0] {{.*}} missing [0, 0, 2, 0]
  // CHECK: nn.attention {{.*}} causal {causalOffset = 3 : i64, left = 3 : i64}
  %0 = nn.attention %q, %k, %v scale 0.25 causal {left = 3} : (tensor<1x2x14x8xf32, #u>, tensor<1x1x14x8xf32, #u>, tensor<1x1x14x8xf32, #u>) -> tensor<1x2x14x8xf32, #u>
  return %0 : tensor<1x2x14x8xf32, #u>
}

//--- past.mlir
// The last 8 of 24 tokens: a rank has two queries and six keys, and its queries see four keys that the last ranks have.
// CHECK-LABEL: @behind_those_of_the_past
func.func @behind_those_of_the_past(%q: tensor<1x2x8x8xf32, #s>, %k: tensor<1x2x24x8xf32, #s>, %v: tensor<1x2x24x8xf32, #s>) -> tensor<1x2x8x8xf32, #s> {
  // CHECK-COUNT-2: spmd.window {{.*}} steps [0, 0, 2, 0] lows [0, 0, 14, 0] highs [1, 2, 18, 8]
  // CHECK: nn.attention {{.*}} causal {causalOffset = 2 : i64, left = 2 : i64} : (tensor<1x2x2x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) ->
  %0 = nn.attention %q, %k, %v scale 0.25 causal {causalOffset = 16, left = 2} : (tensor<1x2x8x8xf32, #s>, tensor<1x2x24x8xf32, #s>, tensor<1x2x24x8xf32, #s>) -> tensor<1x2x8x8xf32, #s>
  return %0 : tensor<1x2x8x8xf32, #s>
}
