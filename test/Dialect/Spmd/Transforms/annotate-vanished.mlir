// RUN: not cleave-opt %s --spmd-annotate='mesh=x=2 shard=twin=[x]' 2>&1 | FileCheck %s --check-prefix=NAMED
// RUN: cleave-opt %s --spmd-annotate='mesh=x=2 shard=t*=[x]' 2>&1 | FileCheck %s --check-prefix=PATTERN

// Before canonicalisation the model had a tensor called twin, equal to this one. A wish for it is not lost in silence.
// NAMED: error: 'twin' is a tensor of the model, but equal to another one, or unused: name that one
// PATTERN: warning: 'twin' matches, but is equal to another tensor, or unused
// PATTERN: nn.exp {{.*}} -> tensor<8xf32, #
module attributes {nn.keep = {"tensor", twin}} {
  func.func @a_wish_for_a_merged_tensor(%x: tensor<8xf32> {nn.name = "x"}) -> tensor<8xf32> {
    %a = nn.exp %x : (tensor<8xf32>) -> tensor<8xf32> loc(#tensor)
    %b = nn.neg %a : (tensor<8xf32>) -> tensor<8xf32>
    return %b : tensor<8xf32>
  }
}
#tensor = loc(#nn.node<"n", "Exp", [], [["tensor"]]>)
