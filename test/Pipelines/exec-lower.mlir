// From the program of one device to commands.
//
// RUN: cleave-opt %s --spmd-shard --exec-lower | FileCheck %s
// RUN: cleave shard %s --emit=clustered | FileCheck %s --check-prefix=CLUSTERED
// RUN: cleave shard %s --emit=outlined | FileCheck %s --check-prefix=OUTLINED
// RUN: cleave shard %s --emit=ordered -o %t.mlir --report %t.json
// RUN: cleave shard %s --emit=ordered -o %t.again.mlir
// RUN: cmp %t.mlir %t.again.mlir
// RUN: FileCheck %s --check-prefix=FLOPS < %t.json
// RUN: cleave run %t.mlir --against %s | FileCheck %s --check-prefix=RAN
// RUN: cleave run %s --emit=outlined --check | FileCheck %s --check-prefix=RAN
// RUN: cleave run %s --emit=planned --check | FileCheck %s --check-prefix=RAN
// RUN: cleave run %s --emit=ordered --check | FileCheck %s --check-prefix=RAN
// RUN: not cleave run %s --emit=propagated 2>&1 | FileCheck %s --check-prefix=EARLY

#mesh = #spmd.mesh<["model"=2]>
#columns = #spmd.sharding<#mesh, [{}, {"model"}]>
#rows = #spmd.sharding<#mesh, [{"model"}, {}]>

// Two equal layers, split as columns and rows: their kernels are there once, and every rank runs the same.
// CHECK: module attributes {exec.rank_table = {"model * 8" = array<i64: 0, 8>}, {{.*}}spmd.phase = "ordered"
// CHECK-LABEL: @main
// CHECK: exec.run @matmul_add_relu_0
// CHECK: exec.run @matmul_0
// CHECK: exec.collective all_reduce
// CHECK: exec.run @add_0
// CHECK: exec.run @matmul_add_relu_0
// CHECK: exec.run @matmul_0
// CHECK: exec.collective all_reduce
// CHECK: exec.run @add_0
// CHECK-COUNT-3: exec.kernel
// CHECK-NOT: exec.kernel

// OUTLINED-LABEL: @main
// OUTLINED: exec.launch @matmul_add_relu_0
// OUTLINED-NEXT: exec.launch @matmul_0
// OUTLINED-NEXT: spmd.all_reduce
// OUTLINED-NEXT: exec.launch @add_0
// OUTLINED-NEXT: exec.launch @matmul_add_relu_0
// OUTLINED-NEXT: exec.launch @matmul_0
// OUTLINED-NEXT: spmd.all_reduce
// OUTLINED-NEXT: exec.launch @add_0
// OUTLINED-NEXT: return

// CLUSTERED: spmd.phase = "clustered"
// CLUSTERED-COUNT-6: exec.fused

// RAN: check result0: ok
// Four products of 2 * 4 * 8 * 16, half of each on a rank, wherever they stand.
// The arena holds a product and its sum; of the inputs, a rank has its shards.
// FLOPS: "arena_bytes": 256
// FLOPS-NEXT: "liveness_bound_bytes": 256
// FLOPS: "total": 4096
// FLOPS: "per_rank": 2048
// FLOPS: "name": "arg1"
// FLOPS: "sharding": "[{}, {model}]"
// FLOPS: "all_reduce": {
// FLOPS-NEXT: "count": 2
// EARLY: 'run' runs a partitioned program, '--emit propagated' stops before
func.func @main(%x: tensor<4x8xf32>, %a: tensor<8x16xf32, #columns>, %b: tensor<16x8xf32, #rows>, %c: tensor<16xf32>) -> tensor<4x8xf32> {
  %0 = nn.einsum %x, %a "ik,kj->ij" : (tensor<4x8xf32>, tensor<8x16xf32, #columns>) -> tensor<4x16xf32>
  %1 = nn.add %0, %c : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %2 = nn.relu %1 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %3 = nn.einsum %2, %b "ik,kj->ij" : (tensor<4x16xf32>, tensor<16x8xf32, #rows>) -> tensor<4x8xf32>
  %4 = nn.add %3, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = nn.einsum %4, %a "ik,kj->ij" : (tensor<4x8xf32>, tensor<8x16xf32, #columns>) -> tensor<4x16xf32>
  %6 = nn.add %5, %c : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %7 = nn.relu %6 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %8 = nn.einsum %7, %b "ik,kj->ij" : (tensor<4x16xf32>, tensor<16x8xf32, #rows>) -> tensor<4x8xf32>
  %9 = nn.add %8, %4 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %9 : tensor<4x8xf32>
}
