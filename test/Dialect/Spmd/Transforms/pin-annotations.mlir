// RUN: cleave-opt %s --spmd-pin-annotations='mesh=d=2 shard=hidden=[_]' | FileCheck %s --check-prefix=TENSOR
// RUN: cleave-opt %s --spmd-pin-annotations='mesh=d=2 shard=node:*/act#r0=[_]' | FileCheck %s --check-prefix=TENSOR
// RUN: cleave-opt %s --strip-debuginfo --spmd-pin-annotations='mesh=d=2 shard=hidden=[_]' | FileCheck %s --check-prefix=TENSOR
// RUN: cleave-opt %s --spmd-pin-annotations='mesh=d=2 shard=node:*/act#0=[d],y=[_]' | FileCheck %s --check-prefix=SIGNATURE
// RUN: cleave-opt %s --spmd-pin-annotations='mesh=d=2 shard=hidden=[_],same=[d],as=[d]' | FileCheck %s --check-prefix=BOTH
// RUN: cleave-opt %s --spmd-pin-annotations | FileCheck %s --check-prefix=NONE
// RUN: cleave-opt %s --spmd-pin-annotations='mesh=d=2 shard=hidden=[_]' --nn-canonicalize | FileCheck %s --check-prefix=KEPT
// RUN: cleave-opt %s --spmd-pin-annotations='mesh=d=2 shard=hidden=[_]' --spmd-pin-annotations='shard=hidden=[_]' | FileCheck %s --check-prefix=TENSOR
// RUN: not cleave-opt %s --spmd-pin-annotations='mesh=d=2 shard=nowhere=[_]' 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: not cleave-opt %s --spmd-pin-annotations='mesh=d=2 shard=node:neg#0=[_]' 2>&1 | FileCheck %s --check-prefix=DEAD
// RUN: cleave-opt %s --spmd-pin-annotations='mesh=d=2 shard=node:{*/act,neg}#r0=[_]' 2>&1 | FileCheck %s --check-prefix=HALF-DEAD

// A value inside is pinned for all its users, with the annotation and its place. Arguments and results cannot vanish. Each name
// of a value has a pin of its own. What the model has and the program does not need is unused, not unknown.
// TENSOR: #[[$PLACE:.*]] = loc("--shard":1:1)
// TENSOR: #[[$WHOLE:.*]] = #spmd.sharding<#{{.*}}, [{}]>
// TENSOR: module attributes {spmd.mesh = #{{.*}}} {
// TENSOR-LABEL: func.func @pins_what_a_rule_addresses
// TENSOR: %[[S:.*]] = nn.sigmoid
// TENSOR-NEXT: %[[P:.*]] = spmd.pin %[[S]] "hidden" wants <#[[$WHOLE]], #[[$PLACE]], #[[$PLACE]]> : tensor<8xf32>
// TENSOR-NEXT: nn.mul %[[P]], %arg0
// SIGNATURE-LABEL: func.func @pins_what_a_rule_addresses
// SIGNATURE-SAME: nn.name = "x", spmd.annotation = #spmd.annotation<{{.*}}, [{"d"}]>,
// SIGNATURE-SAME: nn.name = "y", spmd.annotation = #spmd.annotation<#replicated,
// SIGNATURE-NOT: spmd.pin
// BOTH: %[[AS:.*]] = spmd.pin %arg0 "as" wants
// BOTH: nn.sigmoid %[[AS]]
// BOTH: %[[A:.*]] = spmd.pin {{.*}} "hidden" wants <#replicated,
// BOTH: %[[B:.*]] = spmd.pin %[[A]] "same" wants <#d,
// BOTH: nn.mul %[[B]], %[[AS]]
// NONE-NOT: spmd
// KEPT-LABEL: func.func @pins_what_a_rule_addresses
// KEPT: nn.sigmoid
// KEPT-NEXT: spmd.pin {{.*}} "hidden"
// KEPT: nn.mul
// NOWHERE: --shard:1:1: error: there is no tensor 'nowhere'
// DEAD: --shard:1:1: error: 'lost' is unused: no op of the program needs its elements
// HALF-DEAD: --shard:1:1: warning: 'dead' matches, but no op of the program needs its elements
// HALF-DEAD: spmd.pin {{.*}} "hidden"
#hidden = #nn.node<"enc/act", "Sigmoid", ["x"], [["hidden", "same"]]>
#out = #nn.node<"enc/mul", "Mul", ["hidden", "x"], [["y"]]>
module attributes {nn.unused = [#nn.node<"neg", "Neg", ["lost"], [["dead"]]>]} {
  func.func @pins_what_a_rule_addresses(%x: tensor<8xf32> {nn.name = "x", nn.aliases = ["as"]}) -> (tensor<8xf32> {nn.name = "y"}) {
    %s = nn.sigmoid %x {nn.node = #hidden} : (tensor<8xf32>) -> tensor<8xf32>
    %y = nn.mul %s, %x {nn.node = #out} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    return %y : tensor<8xf32>
  }
}
