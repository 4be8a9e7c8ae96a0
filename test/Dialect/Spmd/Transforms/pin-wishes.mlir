// RUN: cleave-opt %s --spmd-pin-wishes='shard=hidden=[_]' | FileCheck %s --check-prefix=TENSOR
// RUN: cleave-opt %s --spmd-pin-wishes='shard=node:*/act#0=[_]' | FileCheck %s --check-prefix=NODE
// RUN: cleave-opt %s --spmd-pin-wishes='shard=nowhere=[_]' | FileCheck %s --check-prefix=NONE

// A tensor by its name; the operand of a node by the name of its tensor; a rule that matches nothing pins nothing.
// TENSOR: module attributes {nn.keep = {hidden}}
// NODE: module attributes {nn.keep = {x}}
// NONE-NOT: nn.keep
module {
  func.func @pins_what_a_rule_addresses(%x: tensor<8xf32> {nn.name = "x"}) -> tensor<8xf32> {
    %s = nn.sigmoid %x : (tensor<8xf32>) -> tensor<8xf32> loc(#hidden)
    %y = nn.mul %s, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    return %y : tensor<8xf32>
  }
}
#hidden = loc(#nn.node<"enc/act", "Sigmoid", ["x"], [["hidden"]]>)
