// One line of the table is collectives of one kind over one axis and of one shape: two reductions of 8x4 are one line,
// one of 8x16 is another. Of 4 ranks each sends 2 * 3/4 of 128 B and of 512 B.
//
// RUN: cleave shard %s -o %t.mlir | FileCheck %s

// CHECK: 2 x all_reduce over m 8x4xf32 384 B
// CHECK-NEXT: 1 x all_reduce over m 8x16xf32 768 B
// CHECK-NEXT: sent by a rank: 1.15 kB
#mesh = #spmd.mesh<["m"=4]>
#cols = #spmd.sharding<#mesh, [{}, {"m"}]>
#rows = #spmd.sharding<#mesh, [{"m"}, {}]>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
func.func @main(%x: tensor<8x32xf32, #cols>, %a: tensor<32x4xf32, #rows>, %b: tensor<32x16xf32, #rows>)
    -> (tensor<8x4xf32, #replicated>, tensor<8x16xf32, #replicated>, tensor<8x4xf32, #replicated>) {
  %0 = nn.einsum %x, %a "ik,kj->ij" : (tensor<8x32xf32, #cols>, tensor<32x4xf32, #rows>) -> tensor<8x4xf32>
  %1 = nn.einsum %x, %b "ik,kj->ij" : (tensor<8x32xf32, #cols>, tensor<32x16xf32, #rows>) -> tensor<8x16xf32>
  %2 = nn.exp %x : (tensor<8x32xf32, #cols>) -> tensor<8x32xf32>
  %3 = nn.einsum %2, %a "ik,kj->ij" : (tensor<8x32xf32>, tensor<32x4xf32, #rows>) -> tensor<8x4xf32>
  %4 = spmd.constrain %0 : tensor<8x4xf32> to tensor<8x4xf32, #replicated>
  %5 = spmd.constrain %1 : tensor<8x16xf32> to tensor<8x16xf32, #replicated>
  %6 = spmd.constrain %3 : tensor<8x4xf32> to tensor<8x4xf32, #replicated>
  return %4, %5, %6 : tensor<8x4xf32, #replicated>, tensor<8x16xf32, #replicated>, tensor<8x4xf32, #replicated>
}
