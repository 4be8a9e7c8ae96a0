// What several users need of a value travels once: replicated values are gathered once, cheap ops are repeated on them, and two users
// that want different layouts share what these have in common.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-shard | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok
// EQUAL: check result1: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x", "y"}, {}]>
#x = #spmd.sharding<#mesh, [{"x"}, {}]>
#oy = #spmd.sharding<#mesh, [{}, {"y"}]>
#oo = #spmd.sharding<#mesh, [{}, {}]>

//--- common.mlir
// One wants all of it, the other the rows of its half: y is gathered for both, then x for one.
// CHECK-LABEL: @the_common_part_is_gathered_once
func.func @the_common_part_is_gathered_once(%h: tensor<16x16xf32, #xy>) -> (tensor<16x16xf32, #oo>, tensor<16x16xf32, #x>) {
  // CHECK: %[[HALF:.*]] = spmd.all_gather {{.*}} dims [{"y"}, {}] : (tensor<4x16xf32>) -> tensor<8x16xf32>
  // CHECK: spmd.all_gather {{.*}} dims [{"x"}, {}] : (tensor<8x16xf32>) -> tensor<16x16xf32>
  // CHECK-NOT: = spmd.
  %0 = nn.exp %h : (tensor<16x16xf32, #xy>) -> tensor<16x16xf32>
  %1 = nn.tanh %0 : (tensor<16x16xf32>) -> tensor<16x16xf32, #oo>
  %2 = nn.neg %0 : (tensor<16x16xf32>) -> tensor<16x16xf32, #x>
  return %1, %2 : tensor<16x16xf32, #oo>, tensor<16x16xf32, #x>
}

//--- twice.mlir
// Two dots by columns, one of them of a tanh, some ops later: rows are gathered once, and the tanh is repeated.
// CHECK-LABEL: @a_cheap_op_is_repeated
func.func @a_cheap_op_is_repeated(%h: tensor<16x32xf32, #x>, %a: tensor<32x64xf32, #oy>, %b: tensor<32x64xf32, #oy>) -> (tensor<16x64xf32, #oy>, tensor<16x64xf32, #oy>) {
  // CHECK: spmd.all_gather {{.*}} (tensor<8x32xf32>) -> tensor<16x32xf32>
  // CHECK-NOT: = spmd.
  // CHECK: nn.tanh {{.*}} tensor<16x32xf32>
  // CHECK-NOT: = spmd.
  %0 = nn.einsum %h, %a "ik,kj->ij" : (tensor<16x32xf32, #x>, tensor<32x64xf32, #oy>) -> tensor<16x64xf32, #oy>
  %1 = nn.gelu %0 : (tensor<16x64xf32, #oy>) -> tensor<16x64xf32, #oy>
  %2 = nn.tanh %h : (tensor<16x32xf32, #x>) -> tensor<16x32xf32>
  %3 = nn.einsum %2, %b "ik,kj->ij" : (tensor<16x32xf32>, tensor<32x64xf32, #oy>) -> tensor<16x64xf32, #oy>
  return %1, %3 : tensor<16x64xf32, #oy>, tensor<16x64xf32, #oy>
}

//--- three.mlir
// Terms over x, wanted along three dims: they are added and scattered along one, and that copy moves for the others. A sum for
// each is 3 * n / 2 bytes, one sum on every rank n; n / 2 and twice n / 4 are no more, and nobody has the whole.
// CHECK-LABEL: @a_sum_is_made_once
#p = #spmd.sharding<#mesh, [{}, {}, {}], partial = {"x": sum}>
#p0 = #spmd.sharding<#mesh, [{"x"}, {}, {}]>
#p1 = #spmd.sharding<#mesh, [{}, {"x"}, {}]>
#p2 = #spmd.sharding<#mesh, [{}, {}, {"x"}]>
func.func @a_sum_is_made_once(%h: tensor<8x8x8xf32, #p>) -> (tensor<8x8x8xf32, #p0>, tensor<8x8x8xf32, #p1>, tensor<8x8x8xf32, #p2>) {
  // CHECK: spmd.{{reduce_scatter|all_reduce}}
  // CHECK-NOT: reduce
  %0 = spmd.constrain %h : tensor<8x8x8xf32, #p> to tensor<8x8x8xf32, #p0>
  %1 = spmd.constrain %h : tensor<8x8x8xf32, #p> to tensor<8x8x8xf32, #p1>
  %2 = spmd.constrain %h : tensor<8x8x8xf32, #p> to tensor<8x8x8xf32, #p2>
  return %0, %1, %2 : tensor<8x8x8xf32, #p0>, tensor<8x8x8xf32, #p1>, tensor<8x8x8xf32, #p2>
}
