// The report counts what the partitioned file does. Figures worked out by hand:
//
//   all_reduce over 4 of 8x16 f32     2 * 3/4 * 512 B = 768 B
//   all_gather over 2 to 8x16 f32         1/2 * 512 B = 256 B
//   parameters                        f32 32x16 + 16 = 2112 B; a rank has a quarter of the first: 512 + 64 = 576 B
//   compute                           2 * 8*32*16 = 8192 flops, a quarter of them on a rank
//   peak                              during the all_reduce: parameters 576 B, z gathered 512 B, and what is reduced
//                                     before and after, 512 B each; x and z are gone: 2112 B
//
// RUN: cleave shard %s --report %t.json -o %t.mlir > %t.txt
// RUN: FileCheck %s < %t.json
// RUN: FileCheck %s --check-prefix=TABLE < %t.txt
// RUN: cleave run %s --check | FileCheck %s --check-prefix=EQUAL

// EQUAL: check {{.*}}: ok

// CHECK: "version": 1
// CHECK: "mesh": {
// CHECK-NEXT: "d": 2,
// CHECK-NEXT: "m": 4
// CHECK: "ranks": 8
// CHECK-NEXT: "parameters": {
// CHECK-NEXT: "bytes": 2112,
// CHECK-NEXT: "bytes_per_rank": 576
// CHECK: "peak_bytes_per_rank": 2112
// CHECK-NEXT: "flops": {
// CHECK-NEXT: "total": 8192,
// CHECK-NEXT: "per_rank": 2048
// CHECK: "inputs": [
// CHECK: "name": "x",
// CHECK-NEXT: "type": "f32",
// CHECK-NEXT: "shape": [
// CHECK-NEXT: 8,
// CHECK-NEXT: 32
// CHECK: "local_shape": [
// CHECK-NEXT: 8,
// CHECK-NEXT: 8
// CHECK: "sharding": "[{}, {m}]"
// CHECK: "outputs": [
// CHECK: "name": "y"
// CHECK: "sharding": "[{}, {}]"
// CHECK: "collectives": [
// CHECK: "kind": "all_gather"
// CHECK: "wire_bytes_per_rank": 256
// CHECK: "kind": "all_reduce",
// CHECK-NEXT: "axes": [
// CHECK-NEXT: "m"
// CHECK: "group_size": 4,
// CHECK-NEXT: "type": "f32",
// CHECK-NEXT: "operand_shape": [
// CHECK-NEXT: 8,
// CHECK-NEXT: 16
// CHECK: "result_shape"
// CHECK: "wire_bytes_per_rank": 768,
// CHECK-NEXT: "node": "/ffn/down",
// CHECK-NEXT: "cause": "contracting dim of nn.einsum is sharded over m"
// CHECK: "totals": {
// CHECK-NEXT: "all_gather": {
// CHECK-NEXT: "count": 1,
// CHECK-NEXT: "wire_bytes_per_rank": 256
// CHECK: "all_reduce": {
// CHECK-NEXT: "count": 1,
// CHECK-NEXT: "wire_bytes_per_rank": 768
// CHECK: "replicated": []
// CHECK: "seconds": {

// TABLE-LABEL: mesh d=2, m=4 (8 ranks)
// TABLE-NEXT: 1 x all_gather over d 4x16xf32 256 B
// TABLE-NEXT: 1 x all_reduce over m 8x16xf32 768 B
// TABLE-NEXT: sent by a rank: 1.02 kB
// TABLE-NEXT: parameters of a rank: 576 B of 2.11 kB
// TABLE-NEXT: peak memory of a rank: 2.11 kB
// TABLE-NEXT: compute of a rank: 2.05 kflop of 8.19 kflop
#mesh = #spmd.mesh<["d"=2, "m"=4]>
#rows = #spmd.sharding<#mesh, [{"m"}, {}]>
#cols = #spmd.sharding<#mesh, [{}, {"m"}]>
#d_ = #spmd.sharding<#mesh, [{"d"}, {}]>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
module {
  nn.param @w : tensor<32x16xf32> = dense<0.5> : tensor<32x16xf32>
  nn.param @b : tensor<16xf32> = dense<1.0> : tensor<16xf32>
  func.func @main(%x: tensor<8x32xf32, #cols> {nn.name = "x"}, %z: tensor<8x16xf32, #d_> {nn.name = "z"})
      -> (tensor<8x16xf32, #replicated> {nn.name = "y"}, tensor<8x16xf32, #replicated> {nn.name = "g"}) {
    %w = nn.load @w : tensor<32x16xf32, #rows>
    %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<8x32xf32, #cols>, tensor<32x16xf32, #rows>) -> tensor<8x16xf32> loc(#down)
    %1 = spmd.constrain %0 : tensor<8x16xf32> to tensor<8x16xf32, #replicated>
    %b = nn.load @b : tensor<16xf32>
    %2 = nn.add %1, %b : (tensor<8x16xf32, #replicated>, tensor<16xf32>) -> tensor<8x16xf32, #replicated>
    %3 = spmd.constrain %z : tensor<8x16xf32, #d_> to tensor<8x16xf32, #replicated>
    return %2, %3 : tensor<8x16xf32, #replicated>, tensor<8x16xf32, #replicated>
  }
}
#down = loc(#nn.node<"/ffn/down", "MatMul", ["x", "w"], [["h"]]>)
