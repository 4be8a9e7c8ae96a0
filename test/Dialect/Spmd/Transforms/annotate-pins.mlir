// RUN: cleave-opt %s --spmd-annotate='mesh=x=2 shard=one=[x],two=[_],alone=[x]' | FileCheck %s
// RUN: cleave-opt %s --spmd-annotate='mesh=x=2' | FileCheck %s --check-prefix=NONE
// RUN: not cleave-opt %s --spmd-annotate='mesh=x=2 shard=gone=[x]' 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not cleave-opt %s --spmd-annotate='mesh=x=2 shard=node:/a/Exp#0=[x]' 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: cleave-opt %s --spmd-annotate='mesh=x=2 shard=o*=[x]' 2>&1 | FileCheck %s --check-prefix=PATTERN

// Two equal values that are named apart, and wanted differently: each in front of its own users. A value that only its
// pin uses gets the wish itself. A pin without a wish goes.
// CHECK-LABEL: @wishes_of_pins
// CHECK: %[[A:.*]] = nn.exp {{.*}} -> tensor<8xf32>
// CHECK: %[[ONE:.*]] = spmd.constrain %[[A]] : tensor<8xf32> to tensor<8xf32, #[[CUT:.*]]>
// CHECK: %[[TWO:.*]] = spmd.constrain %[[A]] : tensor<8xf32> to tensor<8xf32, #[[WHOLE:.*]]>
// CHECK: nn.neg %[[ONE]] {{.*}} -> tensor<8xf32, #[[CUT]]>
// CHECK: nn.add {{.*}}, %[[TWO]]
// NONE: module attributes {spmd.mesh
// NONE-NOT: spmd.named
// NONE-NOT: spmd.pin
// NONE-NOT: spmd.constrain

// Which nodes there were, and whether a tensor was used, was noted before canonicalisation.
// UNUSED: error: 'gone' is unused: no op of the program needs its elements
// PATTERN: warning: 'other' matches, but no op of the program needs its elements
// PATTERN: spmd.constrain
module attributes {spmd.named = {gone = ["gone"], "node:/a/Exp#0" = ["gone"], "o*" = ["one", "other"]}} {
  func.func @wishes_of_pins(%x: tensor<8xf32> {nn.name = "x"}) -> tensor<8xf32> {
    %a = nn.exp %x : (tensor<8xf32>) -> tensor<8xf32> loc(#one)
    %one = spmd.pin %a "one" : tensor<8xf32> loc(#one)
    %two = spmd.pin %a "two" : tensor<8xf32> loc(#two)
    %b = nn.neg %one : (tensor<8xf32>) -> tensor<8xf32> loc(#alone)
    %alone = spmd.pin %b "alone" : tensor<8xf32> loc(#alone)
    %c = nn.add %alone, %two : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    return %c : tensor<8xf32>
  }
}
#one = loc(#nn.node<"n", "Exp", ["x"], [["one"]]>)
#two = loc(#nn.node<"m", "Exp", ["x"], [["two"]]>)
#alone = loc(#nn.node<"l", "Neg", ["one"], [["alone"]]>)
