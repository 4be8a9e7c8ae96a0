// RUN: cleave run %s --report %t.json --check --quiet
// RUN: FileCheck %s < %t.json

// An argument is wanted in two ways, the second made of the first by a slice: what is gathered
// then has a reshard as its first reader, which is not a node of the model. The node is found all the same.

// CHECK-LABEL: "collectives": [
// CHECK: "kind": "all_gather"
// CHECK: "node": "/a",
// CHECK-NEXT: "cause": "nn.relu takes

#mesh = #spmd.mesh<["m"=2, "n"=2]>
#corner = #spmd.sharding<#mesh, [{"m"}, {"n"}]>
#rows = #spmd.sharding<#mesh, [{"m", "n"}, {}]>
#m_rows = #spmd.sharding<#mesh, [{"m"}, {}]>
func.func @main(%x: tensor<4x8xf32, #corner>) -> (tensor<4x8xf32, #m_rows>, tensor<4x8xf32, #rows>)
    attributes {spmd.wire_bytes = 32 : i64} {
  %a = nn.relu %x {spmd.operands = [#m_rows]} : (tensor<4x8xf32, #corner>) -> tensor<4x8xf32, #m_rows> loc(#a)
  %b = nn.relu %x {spmd.operands = [#rows]} : (tensor<4x8xf32, #corner>) -> tensor<4x8xf32, #rows> loc(#b)
  return %a, %b : tensor<4x8xf32, #m_rows>, tensor<4x8xf32, #rows>
}
#a = loc(#nn.node<"/a", "Relu", ["x"], [["y"]]>)
#b = loc(#nn.node<"/b", "Relu", ["x"], [["z"]]>)
