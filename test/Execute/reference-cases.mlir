// What layers, vocabularies, heads and experts must send, and nothing else. Each case is sharded, and runs on all ranks.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-shard | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["m"=4]>
#col = #spmd.sharding<#mesh, [{}, {"m"}]>
#row = #spmd.sharding<#mesh, [{"m"}, {}]>
#heads = #spmd.sharding<#mesh, [{}, {"m"}, {}, {}]>
#tokens = #spmd.sharding<#mesh, [{"m"}, {}, {}]>
#route = #spmd.sharding<#mesh, [{"m"}, {}, {}, {}]>

//--- mlp.mlir
// Two layers, column then row: one all-reduce of the activation, 2(p-1)/p of it sent.
// CHECK-LABEL: @column_then_row_needs_one_all_reduce
func.func @column_then_row_needs_one_all_reduce(%x: tensor<2x8x16xf32>, %a: tensor<16x64xf32, #col>, %b: tensor<64x16xf32, #row>) -> tensor<2x8x16xf32> {
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  // CHECK: spmd.all_reduce sum {{.*}} over {"m"} : tensor<2x8x16xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  %0 = nn.einsum %x, %a "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x64xf32, #col>) -> tensor<2x8x64xf32>
  %1 = nn.tanh %0 : (tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %2 = nn.einsum %1, %b "bsi,ij->bsj" : (tensor<2x8x64xf32>, tensor<64x16xf32, #row>) -> tensor<2x8x16xf32>
  return %2 : tensor<2x8x16xf32>
}

//--- embedding.mlir
// An embedding split along the vocabulary: masked lookup and one all-reduce; the table is never gathered.
// CHECK-LABEL: @a_cut_vocabulary_costs_one_all_reduce
func.func @a_cut_vocabulary_costs_one_all_reduce(%w: tensor<64x16xf32, #row>, %i: tensor<2x8xi64>) -> tensor<2x8x16xf32> {
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  // CHECK: spmd.all_reduce sum {{.*}} over {"m"} : tensor<2x8x16xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  %0 = nn.gather %w, %i dim 0 : (tensor<64x16xf32, #row>, tensor<2x8xi64>) -> tensor<2x8x16xf32>
  return %0 : tensor<2x8x16xf32>
}

//--- head.mlir
// The head, split along the vocabulary too: the logits stay where they are.
// CHECK-LABEL: @a_cut_head_is_local
func.func @a_cut_head_is_local(%x: tensor<2x8x16xf32>, %w: tensor<16x64xf32, #col>) -> tensor<2x8x64xf32> {
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  %0 = nn.einsum %x, %w "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x64xf32, #col>) -> tensor<2x8x64xf32>
  return %0 : tensor<2x8x64xf32>
}

//--- loss.mlir
// Cross entropy over logits split along the vocabulary: maximum, sum and target logit are all-reduced, one number per
// token each; the logits are never gathered.
// CHECK-LABEL: @a_loss_never_gathers_the_logits
func.func @a_loss_never_gathers_the_logits(%x: tensor<2x8x16xf32>, %w: tensor<16x64xf32, #col>, %t: tensor<2x8xi64>) -> tensor<2x8xf32> {
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  // CHECK: spmd.all_reduce max {{.*}} over {"m"} : tensor<2x8x1xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  // CHECK: spmd.all_reduce sum {{.*}} over {"m"} : tensor<2x8x1xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  // CHECK: spmd.all_reduce sum {{.*}} over {"m"} : tensor<2x8{{(x1)?}}xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  %l = nn.einsum %x, %w "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x64xf32, #col>) -> tensor<2x8x64xf32>
  %p = nn.log_softmax %l dim 2 : (tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %i = nn.reshape %t : (tensor<2x8xi64>) -> tensor<2x8x1xi64>
  %0 = nn.gather_elements %p, %i dim 2 : (tensor<2x8x64xf32>, tensor<2x8x1xi64>) -> tensor<2x8x1xf32>
  %1 = nn.reshape %0 : (tensor<2x8x1xf32>) -> tensor<2x8xf32>
  %2 = nn.neg %1 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %2 : tensor<2x8xf32>
}

//--- gqa.mlir
// Grouped-query attention with as many key/value heads as ranks: each rank has its heads and what they read.
// CHECK-LABEL: @grouped_heads_need_nothing_more
func.func @grouped_heads_need_nothing_more(%q: tensor<2x8x8x4xf32, #heads>, %k: tensor<2x4x8x4xf32, #heads>, %v: tensor<2x4x8x4xf32, #heads>) -> tensor<2x8x8x4xf32> {
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  %0 = nn.attention %q, %k, %v scale 0.5 : (tensor<2x8x8x4xf32, #heads>, tensor<2x4x8x4xf32, #heads>, tensor<2x4x8x4xf32, #heads>) -> tensor<2x8x8x4xf32>
  return %0 : tensor<2x8x8x4xf32>
}

//--- gqa-few.mlir
// Fewer key/value heads than ranks: two ranks hold the same one, split over a sub-axis, and nothing is sent.
// CHECK-LABEL: @few_key_heads_are_held_by_several_ranks
func.func @few_key_heads_are_held_by_several_ranks(%q: tensor<2x8x8x4xf32, #heads>, %k: tensor<2x2x8x4xf32>, %v: tensor<2x2x8x4xf32>) -> tensor<2x8x8x4xf32> {
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  %0 = nn.attention %q, %k, %v scale 0.5 : (tensor<2x8x8x4xf32, #heads>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>) -> tensor<2x8x8x4xf32>
  return %0 : tensor<2x8x8x4xf32>
}

//--- moe.mlir
// A mixture of experts, one a rank: tokens go to their experts and come back, an all-to-all each way.
// CHECK-LABEL: @experts_exchange_their_tokens
func.func @experts_exchange_their_tokens(%x: tensor<4x8x16xf32, #tokens>, %p: tensor<4x8x4x2xf32, #route>, %w: tensor<4x16x16xf32, #tokens>) -> tensor<4x8x16xf32, #tokens> {
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  // CHECK: spmd.all_to_all {{.*}}
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  // CHECK: spmd.all_to_all {{.*}}
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  %s = nn.einsum %x, %p "gth,gtec->gech" : (tensor<4x8x16xf32, #tokens>, tensor<4x8x4x2xf32, #route>) -> tensor<4x4x2x16xf32>
  %e = nn.einsum %s, %w "gech,ehf->gecf" : (tensor<4x4x2x16xf32>, tensor<4x16x16xf32, #tokens>) -> tensor<4x4x2x16xf32>
  %y = nn.einsum %e, %p "gecf,gtec->gtf" : (tensor<4x4x2x16xf32>, tensor<4x8x4x2xf32, #route>) -> tensor<4x8x16xf32, #tokens>
  return %y : tensor<4x8x16xf32, #tokens>
}
