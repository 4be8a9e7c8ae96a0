// An op that several nodes became takes the sum of their times; a node that became several ops shares its time, as the modeled times are or, where these
// are nothing, evenly: %s has all of a and its half of b, %t the other half.
//
// RUN: printf '{"a": 1000, "b": 300}' > %t.json
// RUN: cleave schedule %s --ranks 2 --microbatches 2 --quiet --profile %t.json | FileCheck %s
// CHECK: {{^}}    0     0      1         1150
// CHECK-NEXT: {{^}}    1     1      1          150
// CHECK: {{^}}times of 2 of 2 nodes are those of
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %s = nn.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(fused[#nn.node<"a", "Exp", ["x"], [["y"]]>, #nn.node<"b", "Relu", ["y"], [["s"]]>])
  %t = nn.relu %s : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#nn.node<"b", "Relu", ["s"], [["t"]]>)
  return %t : tensor<4x4xf32>
}
