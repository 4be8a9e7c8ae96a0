// What a collective is for is an attribute of it: the report says so, too, of a file that has lost its locations.
//
// RUN: cleave shard %s -o %t.mlir > /dev/null
// RUN: cleave-opt %t.mlir --strip-debuginfo -o %t.stripped.mlir
// RUN: cleave run %t.stripped.mlir --report %t.json > /dev/null
// RUN: FileCheck %s < %t.json

// CHECK-LABEL: "collectives": [
// CHECK: "kind": "all_reduce"
// CHECK: "cause": "contracting dim of nn.einsum is sharded over m"
// CHECK: "kind": "all_gather"
// CHECK: "cause": "the output is [_, _] but nn.tanh gives [m, _]"
#mesh = #spmd.mesh<["m"=2]>
#rows = #spmd.sharding<#mesh, [{"m"}, {}]>
#cols = #spmd.sharding<#mesh, [{}, {"m"}]>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
func.func @main(%x: tensor<8x8xf32, #cols>, %w: tensor<8x8xf32, #rows>, %z: tensor<8x8xf32, #rows>)
    -> (tensor<8x8xf32, #replicated>, tensor<8x8xf32, #replicated>) {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<8x8xf32, #cols>, tensor<8x8xf32, #rows>) -> tensor<8x8xf32>
  %1 = nn.tanh %z : (tensor<8x8xf32, #rows>) -> tensor<8x8xf32>
  %2 = spmd.constrain %0 : tensor<8x8xf32> to tensor<8x8xf32, #replicated>
  %3 = spmd.constrain %1 : tensor<8x8xf32> to tensor<8x8xf32, #replicated>
  return %2, %3 : tensor<8x8xf32, #replicated>, tensor<8x8xf32, #replicated>
}
