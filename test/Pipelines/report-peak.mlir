// What an op reads twice is freed once. A rank's tensors are 256 B: at the last op it holds %z, %1, %2 and %3.
//
// RUN: cleave shard %s -o %t.mlir | FileCheck %s

// CHECK: peak memory of a rank: 1.02 kB
#mesh = #spmd.mesh<["m"=2]>
#rows = #spmd.sharding<#mesh, [{"m"}, {}]>
func.func @main(%x: tensor<8x16xf32, #rows>, %z: tensor<8x16xf32, #rows>) -> (tensor<8x16xf32, #rows>, tensor<8x16xf32, #rows>) {
  %0 = nn.exp %x : (tensor<8x16xf32, #rows>) -> tensor<8x16xf32, #rows>
  %1 = nn.mul %0, %0 : (tensor<8x16xf32, #rows>, tensor<8x16xf32, #rows>) -> tensor<8x16xf32, #rows>
  %2 = nn.exp %1 : (tensor<8x16xf32, #rows>) -> tensor<8x16xf32, #rows>
  %3 = nn.sub %1, %z : (tensor<8x16xf32, #rows>, tensor<8x16xf32, #rows>) -> tensor<8x16xf32, #rows>
  return %2, %3 : tensor<8x16xf32, #rows>, tensor<8x16xf32, #rows>
}
