// Attention with nothing split but the sequence: heads instead of the sequence where they divide (Ulysses), as far as they divide;
// keys and values gathered where few heads have them; a maximum and two sums where a query meets a long cache (flash
// decoding). The price decides between them, masks are those of global positions.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-shard 2>&1 | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=4]>
#s = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}]>
#r = #spmd.sharding<#mesh, [{}, {}, {}, {}]>

//--- heads.mlir
// Of a tensor of n bytes each of q, k, v and the result sends 3 n / 16: 3072 of 4096 bytes; keys and values gathered are 6144.
// CHECK: remark: 'nn.attention' op departs from the plan: 3072 bytes a rank instead of 6144
// CHECK-LABEL: @heads_instead_of_the_sequence
func.func @heads_instead_of_the_sequence(%q: tensor<1x4x16x16xf32, #s>, %k: tensor<1x4x16x16xf32, #s>, %v: tensor<1x4x16x16xf32, #s>) -> tensor<1x4x16x16xf32, #s> {
  // CHECK-COUNT-3: spmd.all_to_all {{.*}} (tensor<1x4x4x16xf32>) -> tensor<1x1x16x16xf32>
  // CHECK: nn.attention {{.*}} causal : (tensor<1x1x16x16xf32>
  // CHECK: spmd.all_to_all {{.*}} (tensor<1x1x16x16xf32>) -> tensor<1x4x4x16xf32>
  // CHECK-NOT: = spmd.
  %0 = nn.attention %q, %k, %v scale 0.25 causal : (tensor<1x4x16x16xf32, #s>, tensor<1x4x16x16xf32, #s>, tensor<1x4x16x16xf32, #s>) -> tensor<1x4x16x16xf32, #s>
  return %0 : tensor<1x4x16x16xf32, #s>
}

//--- few-heads.mlir
// Two heads on four ranks: heads over two of them, and pairs gather the halves of keys and values. 4 n / 16 + 2 n / 4.
// CHECK-LABEL: @heads_over_a_part_of_the_axis
func.func @heads_over_a_part_of_the_axis(%q: tensor<1x2x16x16xf32, #s>, %k: tensor<1x2x16x16xf32, #s>, %v: tensor<1x2x16x16xf32, #s>) -> tensor<1x2x16x16xf32, #s> {
  // CHECK: spmd.all_to_all {{.*}} slice [{}, {"x":(2)2}, {}, {}]
  // CHECK-DAG: spmd.all_gather {{.*}} dims [{}, {}, {"x":(1)2}, {}]
  // CHECK: nn.attention {{.*}} mask {{.*}} (tensor<1x1x8x16xf32>, tensor<1x1x16x16xf32>
  // CHECK: spmd.all_to_all
  // CHECK-NOT: = spmd.
  %0 = nn.attention %q, %k, %v scale 0.25 causal : (tensor<1x2x16x16xf32, #s>, tensor<1x2x16x16xf32, #s>, tensor<1x2x16x16xf32, #s>) -> tensor<1x2x16x16xf32, #s>
  return %0 : tensor<1x2x16x16xf32, #s>
}

//--- grouped.mlir
// One head of keys and values for eight of queries: gathering them is 2 * 3 / 4 of 1024 bytes, moving queries and the result
// 2 * 3 / 16 of 8192.
// CHECK-LABEL: @few_keys_are_gathered
func.func @few_keys_are_gathered(%q: tensor<1x8x16x16xf32, #s>, %k: tensor<1x1x16x16xf32, #s>, %v: tensor<1x1x16x16xf32, #s>) -> tensor<1x8x16x16xf32, #s> {
  // CHECK-COUNT-2: spmd.all_gather {{.*}} (tensor<1x1x4x16xf32>) -> tensor<1x1x16x16xf32>
  // CHECK: nn.attention {{.*}} mask {{.*}} (tensor<1x8x4x16xf32>, tensor<1x1x16x16xf32>
  // CHECK-NOT: = spmd.
  %0 = nn.attention %q, %k, %v scale 0.25 causal : (tensor<1x8x16x16xf32, #s>, tensor<1x1x16x16xf32, #s>, tensor<1x1x16x16xf32, #s>) -> tensor<1x8x16x16xf32, #s>
  return %0 : tensor<1x8x16x16xf32, #s>
}

//--- decode.mlir
// One query, four query heads for each of keys: three reductions of 8, 8 and 128 numbers, keys stay.
// CHECK-LABEL: @one_query_meets_cut_keys
func.func @one_query_meets_cut_keys(%q: tensor<1x8x1x16xf32, #r>, %k: tensor<1x2x64x16xf32, #s>, %v: tensor<1x2x64x16xf32, #s>) -> tensor<1x8x1x16xf32, #r> {
  // CHECK-NOT: spmd.all_gather
  // CHECK: spmd.all_reduce max {{.*}} tensor<1x2x4x1x1xf32>
  // CHECK: spmd.all_reduce sum {{.*}} tensor<1x2x4x1x1xf32>
  // CHECK: spmd.all_reduce sum {{.*}} tensor<1x2x4x1x16xf32>
  // CHECK-NOT: = spmd.
  %0 = nn.attention %q, %k, %v scale 0.25 : (tensor<1x8x1x16xf32, #r>, tensor<1x2x64x16xf32, #s>, tensor<1x2x64x16xf32, #s>) -> tensor<1x8x1x16xf32, #r>
  return %0 : tensor<1x8x1x16xf32, #r>
}
