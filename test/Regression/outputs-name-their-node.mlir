// RUN: cleave run %s --report %t.json --check --quiet
// RUN: FileCheck %s < %t.json

// What is gathered for an output is told at the node that gives it, and as what the output is: the end of the function is
// at no place in the model.

// CHECK-LABEL: "collectives": [
// CHECK: "kind": "all_gather"
// CHECK: "node": "/fc"
// CHECK-NEXT: "cause": "the output is [_, _] but nn.relu gives [_, m]

#mesh = #spmd.mesh<["m"=2]>
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32, #spmd.sharding<#mesh, [{}, {"m"}]>>)
    -> (tensor<4x8xf32, #spmd.sharding<#mesh, [{}, {}]>>) {
  %h = nn.einsum %x, %w "ik,kj->ij" : (tensor<4x8xf32>, tensor<8x8xf32, #spmd.sharding<#mesh, [{}, {"m"}]>>) -> tensor<4x8xf32>
  %y = nn.relu %h : (tensor<4x8xf32>) -> tensor<4x8xf32> loc(#fc)
  %z = spmd.constrain %y : tensor<4x8xf32> to tensor<4x8xf32, #spmd.sharding<#mesh, [{}, {}]>>
  return %z : tensor<4x8xf32, #spmd.sharding<#mesh, [{}, {}]>>
}
#fc = loc(#nn.node<"/fc", "Relu", ["h"], [["y"]]>)
