// What attention must send when queries, keys and values are all split along the sequence. Each case is sharded, runs on all
// ranks, and sends the bytes of its formula: n positions, p ranks, e bytes an element, h and g the widths of all query and
// of all key/value heads.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-shard | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=SENT"

// SENT: sent by a rank: 384 B
// SENT: check result0: ok

#mesh = #spmd.mesh<["s"=4]>
#seq = #spmd.sharding<#mesh, [{}, {}, {"s"}, {}]>

//--- ring.mlir
// Few key/value heads: each rank needs all keys and values for its queries, as many bytes as go around a ring:
// 2 (p-1)/p n g e = 2 * 3/4 * 8 * 8 * 4 = 384.
// CHECK-LABEL: @keys_and_values_come_to_the_queries
func.func @keys_and_values_come_to_the_queries(%q: tensor<1x8x8x4xf32, #seq>, %k: tensor<1x2x8x4xf32, #seq>, %v: tensor<1x2x8x4xf32, #seq>) -> tensor<1x8x8x4xf32, #seq> {
  // CHECK-COUNT-2: spmd.all_gather {{.*}} : (tensor<1x2x2x4xf32>) -> tensor<1x2x8x4xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  %0 = nn.attention %q, %k, %v scale 0.5 causal : (tensor<1x8x8x4xf32, #seq>, tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #seq>) -> tensor<1x8x8x4xf32, #seq>
  return %0 : tensor<1x8x8x4xf32, #seq>
}

//--- heads.mlir
// As many key/value heads as ranks: cheaper to exchange the sequence for heads and back (Ulysses), one all-to-all each for
// q, k, v and the result: (p-1)/p^2 n e (2h + 2g) = 3/16 * 8 * 4 * 64 = 384, where a ring would send 768.
// CHECK-LABEL: @the_sequence_is_exchanged_for_heads
func.func @the_sequence_is_exchanged_for_heads(%q: tensor<1x4x8x4xf32, #seq>, %k: tensor<1x4x8x4xf32, #seq>, %v: tensor<1x4x8x4xf32, #seq>) -> tensor<1x4x8x4xf32, #seq> {
  // CHECK-COUNT-3: spmd.all_to_all {{.*}} : (tensor<1x4x2x4xf32>) -> tensor<1x1x8x4xf32>
  // CHECK: spmd.all_to_all {{.*}} : (tensor<1x1x8x4xf32>) -> tensor<1x4x2x4xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  %0 = nn.attention %q, %k, %v scale 0.5 causal : (tensor<1x4x8x4xf32, #seq>, tensor<1x4x8x4xf32, #seq>, tensor<1x4x8x4xf32, #seq>) -> tensor<1x4x8x4xf32, #seq>
  return %0 : tensor<1x4x8x4xf32, #seq>
}
