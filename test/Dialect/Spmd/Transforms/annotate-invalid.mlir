// RUN: cleave-opt %s --split-input-file --verify-diagnostics --spmd-annotate

// What nothing uses any more was asked for in vain: an error where a rule has nothing else, a warning where it does.
#mesh = #spmd.mesh<["x"=2]>
#cut = #spmd.sharding<#mesh, [{"x"}]>
module attributes {spmd.mesh = #mesh} {
  func.func @a_annotation_for_what_is_unused(%x: tensor<8xf32> {spmd.annotation = #spmd.annotation<#cut, loc("p.yaml":3:5), loc("p.yaml":3:14)>}) -> tensor<8xf32> {
    %a = nn.exp %x : (tensor<8xf32>) -> tensor<8xf32>
    %p = spmd.pin %a "also" wants <#cut, loc("p.yaml":3:5), loc(unknown)> : tensor<8xf32>
    %q = spmd.pin %a "gone" wants <#cut, loc("p.yaml":4:5), loc(unknown)> : tensor<8xf32>
    return %x : tensor<8xf32>
  }
}
// expected-warning@unknown {{'also' matches, but no op of the program needs its elements}}
// expected-error@unknown {{'gone' is unused: no op of the program needs its elements}}

// -----

// expected-error@+1 {{the module is resharded already, and cannot become annotated}}
module attributes {spmd.phase = "resharded"} {
  func.func @past_annotation(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

// expected-error@+1 {{has control flow: only functions of one block can be sharded}}
func.func @two_blocks() {
  return
^next:
  return
}

// -----

// A rule holds for each part of a parameter; what does not divide is left to propagation.
#mesh = #spmd.mesh<["x"=2]>
#cut = #spmd.sharding<#mesh, [{"x"}]>
module attributes {spmd.mesh = #mesh} {
  nn.param @w : tensor<9xf32> = dense<1.0> : tensor<9xf32>
  func.func @parts_of_a_parameter() -> (tensor<4xf32>, tensor<5xf32>) {
    %a = nn.load @w starts [0] sizes [4] : tensor<4xf32>
    %b = nn.load @w starts [4] sizes [5] : tensor<5xf32>
    %p = spmd.pin %a "w" wants <#cut, loc(unknown), loc(unknown)> : tensor<4xf32>
    %q = spmd.pin %b "w" wants <#cut, loc(unknown), loc(unknown)> : tensor<5xf32>
    return %p, %q : tensor<4xf32>, tensor<5xf32>
  }
}
// expected-remark@unknown {{the part of 'w' at [0] is sharded separately, because the model reads this part of a fused weight separately}}
// expected-warning@unknown {{the part of 'w' at [4] has size 5 in dim 0, which axis "x"=2 does not divide: propagation decides how that part is cut}}
