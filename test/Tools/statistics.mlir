// What passes did, in numbers, of a column-parallel product that feeds a row-parallel one, on two ranks.
//
// RUN: cleave-opt %s --spmd-shard --exec-fuse-kernels --exec-outline --exec-plan-memory --exec-order --mlir-pass-statistics -o /dev/null 2>&1 | FileCheck %s
// RUN: cleave-opt %s --spmd-shard -o /dev/null 2>&1 | FileCheck %s --check-prefix=QUIET --allow-empty

// QUIET-NOT: Statistics

// Two kernels: the first has the product and the ReLU behind it.
// CHECK-DAG: {{^ *}}2 exec-fuse-kernels {{.*}} kernels formed
// CHECK-DAG: {{^ *}}3 exec-fuse-kernels {{.*}} ops in kernels
// CHECK-DAG: {{^ *}}2 exec-outline {{.*}} launches of kernels
// CHECK-DAG: {{^ *}}2 exec-outline {{.*}} kernels with different bodies
// Of 8x16 numbers of f32 each, the first kernel's result is in the arena, and the terms of the second are in the output.
// CHECK-DAG: {{^ *}}1 exec-plan-memory {{.*}} buffers of the arena
// CHECK-DAG: {{^ *}}512 exec-plan-memory {{.*}} bytes of the arena
// CHECK-DAG: {{^ *}}512 exec-plan-memory {{.*}} bytes that are needed at once
// CHECK-DAG: {{^ *}}3 exec-order {{.*}} commands
// CHECK-DAG: {{^ *}}1 exec-order {{.*}} collectives and exchanges
// The addends become replicated by one all_reduce, in which each of two ranks sends half of 512 bytes twice.
// CHECK-DAG: {{^ *}}1 spmd-insert-reshards {{.*}} reshards inserted
// CHECK-DAG: {{^ *}}1 spmd-insert-reshards {{.*}} operands that take a reshard
// CHECK-DAG: {{^ *}}1 spmd-partition {{.*}} reshards made collectives
// CHECK-DAG: {{^ *}}1 spmd-partition {{.*}} collectives of a rank
// CHECK-DAG: {{^ *}}512 spmd-partition {{.*}} bytes that a rank sends
// CHECK-DAG: {{^ *}}3 spmd-propagate {{.*}} ops that got a strategy
// CHECK-DAG: {{^ *}}6 spmd-propagate {{.*}} values that got a sharding
#mesh = #spmd.mesh<["model"=2]>
#cols = #spmd.sharding<#mesh, [{}, {"model"}]>
#rows = #spmd.sharding<#mesh, [{"model"}, {}]>
func.func @main(%x: tensor<8x16xf32>, %a: tensor<16x32xf32, #cols>, %b: tensor<32x16xf32, #rows>) -> tensor<8x16xf32> {
  %h = nn.einsum %x, %a "ik,kj->ij" : (tensor<8x16xf32>, tensor<16x32xf32, #cols>) -> tensor<8x32xf32>
  %r = nn.relu %h : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = nn.einsum %r, %b "ik,kj->ij" : (tensor<8x32xf32>, tensor<32x16xf32, #rows>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
