// RUN: cleave-opt %s --split-input-file --spmd-annotate | FileCheck %s
// RUN: cleave-opt %s --split-input-file --spmd-annotate='shard=alone=[x]' 2>&1 | FileCheck %s --check-prefix=MORE
// RUN: not cleave-opt %s --split-input-file --spmd-annotate='shard=one=[_]' 2>&1 | FileCheck %s --check-prefix=AGAINST

// Two equal values that are named apart, and wanted differently: each in front of its own users. A value that only its
// pin uses gets the annotation itself. A pin without an annotation goes.
#mesh = #spmd.mesh<["x"=2]>
#cut = #spmd.sharding<#mesh, [{"x"}]>
#replicated = #spmd.sharding<#mesh, [{}]>
// CHECK-LABEL: @annotations_of_pins
// CHECK: %[[A:.*]] = nn.exp {{.*}} -> tensor<8xf32>
// CHECK: %[[ONE:.*]] = spmd.constrain %[[A]] : tensor<8xf32> to tensor<8xf32, #[[CUT:.*]]> for "one" {spmd.annotation = #
// CHECK: %[[TWO:.*]] = spmd.constrain %[[A]] : tensor<8xf32> to tensor<8xf32, #[[WHOLE:.*]]> for "two" {spmd.annotation = #
// CHECK: %[[B:.*]] = nn.neg %[[ONE]] {nn.node = {{.*}}, spmd.annotation = {{.*}}} : (tensor<8xf32, #[[CUT]]>) -> tensor<8xf32, #[[CUT]]>
// CHECK: nn.add %[[B]], %[[TWO]]
// CHECK-NOT: spmd.pin
// MORE-LABEL: @annotations_of_pins
// MORE-NOT: spmd.pin
// AGAINST: --shard:1:1: error: 'one' already has another sharding in the program
// AGAINST: note: it is 'tensor<8xf32, #spmd.sharding<#spmd.mesh<["x"=2]>, [{"x"}]>>'
#one = #nn.node<"n", "Exp", ["x"], [["one"]]>
#alone = #nn.node<"l", "Neg", ["one"], [["alone"]]>
module attributes {spmd.mesh = #mesh} {
  func.func @annotations_of_pins(%x: tensor<8xf32> {nn.name = "x"}) -> tensor<8xf32> {
    %a = nn.exp %x {nn.node = #one} : (tensor<8xf32>) -> tensor<8xf32>
    %one = spmd.pin %a "one" wants <#cut, loc("p.yaml":3:5), loc("p.yaml":3:14)> : tensor<8xf32>
    %two = spmd.pin %a "two" wants <#replicated, loc("p.yaml":4:5), loc("p.yaml":4:14)> : tensor<8xf32>
    %b = nn.neg %one {nn.node = #alone} : (tensor<8xf32>) -> tensor<8xf32>
    %alone = spmd.pin %b "alone" wants <#cut, loc("p.yaml":5:5), loc("p.yaml":5:14)> : tensor<8xf32>
    %c = nn.add %alone, %two : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %only_named = spmd.pin %c "sum" : tensor<8xf32>
    return %only_named : tensor<8xf32>
  }
}
