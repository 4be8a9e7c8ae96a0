// RUN: cleave-opt %s --spmd-pin-wishes='shard=hidden=[_]' | FileCheck %s --check-prefix=TENSOR
// RUN: cleave-opt %s --spmd-pin-wishes='shard=node:*/act#r0=[_]' | FileCheck %s --check-prefix=RESULT
// RUN: cleave-opt %s --spmd-pin-wishes='shard=node:*/act#0=[_]' | FileCheck %s --check-prefix=ARGUMENT
// RUN: cleave-opt %s --spmd-pin-wishes='shard=hidden=[_],same=[_]' | FileCheck %s --check-prefix=BOTH
// RUN: cleave-opt %s --spmd-pin-wishes='shard=nowhere=[_],x=[_],y=[_]' | FileCheck %s --check-prefix=NONE
// RUN: cleave-opt %s --spmd-pin-wishes='shard=hidden=[_]' --nn-canonicalize | FileCheck %s --check-prefix=KEPT
// RUN: cleave-opt %s --spmd-pin-wishes='shard=hidden=[_]' --spmd-pin-wishes='shard=hidden=[_]' | FileCheck %s --check-prefix=TENSOR

// A value inside is pinned for all its users; what a node's rule addressed is noted. An argument cannot vanish. Each
// name of a value has a pin of its own. A rule that matches nothing pins nothing, nor does one for the signature.
// TENSOR: module attributes {spmd.named = {hidden = ["hidden"]}}
// TENSOR-LABEL: func.func @pins_what_a_rule_addresses
// TENSOR: %[[S:.*]] = nn.sigmoid
// TENSOR-NEXT: %[[P:.*]] = spmd.pin %[[S]] "hidden" : tensor<8xf32>
// TENSOR-NEXT: nn.mul %[[P]], %arg0
// RESULT: module attributes {spmd.named = {"node:*/act#r0" = ["hidden"]}}
// RESULT-LABEL: func.func @pins_what_a_rule_addresses
// RESULT: spmd.pin {{.*}} "hidden"
// ARGUMENT: module attributes {spmd.named = {"node:*/act#0" = ["x"]}}
// ARGUMENT-LABEL: func.func @pins_what_a_rule_addresses
// ARGUMENT-NOT: spmd.pin
// BOTH: %[[A:.*]] = spmd.pin {{.*}} "hidden"
// BOTH: %[[B:.*]] = spmd.pin %[[A]] "same"
// BOTH: nn.mul %[[B]], %arg0
// NONE-NOT: spmd
// KEPT-LABEL: func.func @pins_what_a_rule_addresses
// KEPT: nn.sigmoid
// KEPT-NEXT: spmd.pin {{.*}} "hidden"
// KEPT: nn.mul
module {
  func.func @pins_what_a_rule_addresses(%x: tensor<8xf32> {nn.name = "x"}) -> (tensor<8xf32> {nn.name = "y"}) {
    %s = nn.sigmoid %x : (tensor<8xf32>) -> tensor<8xf32> loc(#hidden)
    %y = nn.mul %s, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> loc(#out)
    return %y : tensor<8xf32>
  }
}
#hidden = loc(#nn.node<"enc/act", "Sigmoid", ["x"], [["hidden", "same"]]>)
#out = loc(#nn.node<"enc/mul", "Mul", ["hidden", "x"], [["y"]]>)
