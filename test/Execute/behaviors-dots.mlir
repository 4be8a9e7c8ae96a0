// Dots: which collectives they need, and no others. Each case is sharded, and runs on all ranks against one
// device. The bytes that were decided are the bytes that are sent.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-shard | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"
// RUN: cleave-opt %t/row.mlir --spmd-propagate --spmd-insert-reshards --spmd-partition=check-bytes -o /dev/null
// RUN: cleave-opt %t/defer.mlir --spmd-propagate --spmd-insert-reshards --spmd-partition=check-bytes -o /dev/null

// EQUAL: check result0: ok

//--- row.mlir
// Row-parallel: the contracting dim is split, so each rank has a term of the sum; one all-reduce, nothing else.
#mesh = #spmd.mesh<["x"=4, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#y_ = #spmd.sharding<#mesh, [{"y"}, {}]>
#x_ = #spmd.sharding<#mesh, [{"x"}, {}]>
// CHECK-LABEL: @row_parallel_dot_needs_one_all_reduce
func.func @row_parallel_dot_needs_one_all_reduce(%a: tensor<8x32xf32, #xy>, %b: tensor<32x16xf32, #y_>) -> tensor<8x16xf32, #x_> {
  // CHECK-NEXT: %[[PARTIAL:.*]] = nn.einsum %arg0, %arg1
  // CHECK-NEXT: %[[SUM:.*]] = spmd.all_reduce sum %[[PARTIAL]] over {"y"} : tensor<2x16xf32>
  // CHECK-NEXT: return %[[SUM]]
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<8x32xf32, #xy>, tensor<32x16xf32, #y_>) -> tensor<8x16xf32, #x_>
  return %0 : tensor<8x16xf32, #x_>
}

//--- scatter.mlir
// The same, the result split over the axis summed over: each rank needs only its piece of the sum.
#mesh = #spmd.mesh<["x"=4, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#y_ = #spmd.sharding<#mesh, [{"y"}, {}]>
// CHECK-LABEL: @a_cut_sum_is_reduce_scattered
func.func @a_cut_sum_is_reduce_scattered(%a: tensor<8x32xf32, #xy>, %b: tensor<32x16xf32, #y_>) -> tensor<8x16xf32, #xy> {
  // CHECK-NEXT: %[[PARTIAL:.*]] = nn.einsum %arg0, %arg1
  // CHECK-NEXT: %[[SUM:.*]] = spmd.reduce_scatter sum %[[PARTIAL]] dims [{}, {"y"}] : (tensor<2x16xf32>) -> tensor<2x8xf32>
  // CHECK-NEXT: return %[[SUM]]
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<8x32xf32, #xy>, tensor<32x16xf32, #y_>) -> tensor<8x16xf32, #xy>
  return %0 : tensor<8x16xf32, #xy>
}

//--- gather.mlir
// The contracting dim is split on the left only, and the result wants that axis: the left side is gathered.
#mesh = #spmd.mesh<["x"=4, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#_y = #spmd.sharding<#mesh, [{}, {"y"}]>
// CHECK-LABEL: @the_contested_side_is_gathered
func.func @the_contested_side_is_gathered(%a: tensor<8x32xf32, #xy>, %b: tensor<32x16xf32, #_y>) -> tensor<8x16xf32, #xy> {
  // CHECK-NEXT: %[[A:.*]] = spmd.all_gather %arg0 dims [{}, {"y"}] : (tensor<2x16xf32>) -> tensor<2x32xf32>
  // CHECK-NEXT: %[[C:.*]] = nn.einsum %[[A]], %arg1
  // CHECK-NEXT: return %[[C]]
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<8x32xf32, #xy>, tensor<32x16xf32, #_y>) -> tensor<8x16xf32, #xy>
  return %0 : tensor<8x16xf32, #xy>
}

//--- square.mlir
// A times A: each side is gathered along the contracting dim, nothing is reduced.
#mesh = #spmd.mesh<["x"=4, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
// CHECK-LABEL: @a_square_needs_two_gathers
func.func @a_square_needs_two_gathers(%a: tensor<16x16xf32, #xy>) -> tensor<16x16xf32, #xy> {
  // CHECK-NOT: = spmd.
  // CHECK-DAG: %[[L:.*]] = spmd.all_gather %arg0 dims [{}, {"y"}] : (tensor<4x8xf32>) -> tensor<4x16xf32>
  // CHECK-DAG: %[[R:.*]] = spmd.all_gather %arg0 dims [{"x"}, {}] : (tensor<4x8xf32>) -> tensor<16x8xf32>
  // CHECK-NOT: = spmd.
  // CHECK: nn.einsum %[[L]], %[[R]]
  // CHECK-NOT: = spmd.
  %0 = nn.einsum %a, %a "ik,kj->ij" : (tensor<16x16xf32, #xy>, tensor<16x16xf32, #xy>) -> tensor<16x16xf32, #xy>
  return %0 : tensor<16x16xf32, #xy>
}

//--- tie.mlir
// Both sides want axis a: the left keeps it, the right gives up its minor half, and the result follows both.
#mesh = #spmd.mesh<["a"=2, "b"=2]>
#a_ = #spmd.sharding<#mesh, [{"a"}, {}]>
#_ba = #spmd.sharding<#mesh, [{}, {"b", "a"}]>
// CHECK-LABEL: @a_tie_goes_to_the_left
// CHECK-SAME: -> (tensor<4x4xf32> {spmd.global = tensor<8x8xf32, #a_b>})
func.func @a_tie_goes_to_the_left(%a: tensor<8x8xf32, #a_>, %b: tensor<8x8xf32, #_ba>) -> tensor<8x8xf32> {
  // CHECK-NEXT: %[[B:.*]] = spmd.all_gather %arg1 dims [{}, {"a"}] : (tensor<8x2xf32>) -> tensor<8x4xf32>
  // CHECK-NEXT: %[[C:.*]] = nn.einsum %arg0, %[[B]]
  // CHECK-NEXT: return %[[C]]
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<8x8xf32, #a_>, tensor<8x8xf32, #_ba>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

//--- defer.mlir
// Partial over two axes, added to itself, and only then wanted replicated: the reduction waits for the addition.
#mesh = #spmd.mesh<["x"=2, "y"=2, "z"=2]>
#x_yz = #spmd.sharding<#mesh, [{"x"}, {"y", "z"}]>
#yz_ = #spmd.sharding<#mesh, [{"y", "z"}, {}]>
#x_ = #spmd.sharding<#mesh, [{"x"}, {}]>
// CHECK-LABEL: @a_reduction_waits_for_the_addition
func.func @a_reduction_waits_for_the_addition(%a: tensor<8x32xf32, #x_yz>, %b: tensor<32x16xf32, #yz_>) -> tensor<8x16xf32, #x_> {
  // CHECK-NEXT: %[[P:.*]] = nn.einsum %arg0, %arg1
  // CHECK-NEXT: %[[TWICE:.*]] = nn.add %[[P]], %[[P]]
  // CHECK-NEXT: %[[SUM:.*]] = spmd.all_reduce sum %[[TWICE]] over {"y", "z"} : tensor<4x16xf32>
  // CHECK-NEXT: return %[[SUM]]
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<8x32xf32, #x_yz>, tensor<32x16xf32, #yz_>) -> tensor<8x16xf32>
  %1 = nn.add %0, %0 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32, #x_>
  return %1 : tensor<8x16xf32, #x_>
}

//--- constant.mlir
// One constant on both sides of a dot: every rank has it, so each side takes its own split, and nothing is sent.
#mesh = #spmd.mesh<["a"=2, "b"=2]>
#ab = #spmd.sharding<#mesh, [{"a"}, {"b"}]>
// CHECK-LABEL: @a_constant_is_cut_twice
func.func @a_constant_is_cut_twice() -> tensor<8x8xf32, #ab> {
  // CHECK-NEXT: %[[C:.*]] = nn.constant
  // CHECK-DAG: %[[L:.*]] = spmd.local_slice %[[C]] dims [{"a"}, {}] : (tensor<8x8xf32>) -> tensor<4x8xf32>
  // CHECK-DAG: %[[R:.*]] = spmd.local_slice %[[C]] dims [{}, {"b"}] : (tensor<8x8xf32>) -> tensor<8x4xf32>
  // CHECK: %[[D:.*]] = nn.einsum %[[L]], %[[R]]
  // CHECK-NEXT: return %[[D]]
  %c = nn.constant dense<1.5> : tensor<8x8xf32> -> tensor<8x8xf32>
  %0 = nn.einsum %c, %c "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32, #ab>
  return %0 : tensor<8x8xf32, #ab>
}
