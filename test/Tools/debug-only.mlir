// In builds with assertions, the passes that are named note what they decide, and no others do; other builds have no such option.
//
// RUN: cleave-opt %s --spmd-shard --debug-only=spmd-partition,spmd-insert-reshards -o /dev/null 2>&1 | FileCheck %s

// CHECK-NOT: spmd-propagate
// CHECK: [spmd-insert-reshards InsertReshards.cpp:{{[0-9]+}} 1] for 1 users: {{.*}}spmd.reshard
// CHECK: [spmd-partition Partition.cpp:{{[0-9]+}} 1] 512 bytes: {{.*}}spmd.all_reduce sum
// CHECK-NOT: spmd-propagate
#mesh = #spmd.mesh<["model"=2]>
#cols = #spmd.sharding<#mesh, [{}, {"model"}]>
#rows = #spmd.sharding<#mesh, [{"model"}, {}]>
func.func @main(%x: tensor<8x16xf32>, %a: tensor<16x32xf32, #cols>, %b: tensor<32x16xf32, #rows>) -> tensor<8x16xf32> {
  %h = nn.einsum %x, %a "ik,kj->ij" : (tensor<8x16xf32>, tensor<16x32xf32, #cols>) -> tensor<8x32xf32>
  %y = nn.einsum %h, %b "ik,kj->ij" : (tensor<8x32xf32>, tensor<32x16xf32, #rows>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
