// RUN: cleave-opt %s --split-input-file --verify-diagnostics --spmd-insert-reshards

#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
func.func @one_entry_per_operand(%x: tensor<8xf32, #x>) -> tensor<8xf32, #x> {
  // expected-error @+1 {{'nn.add' op attribute 'spmd.operands' is not a list of 2 shardings or units}}
  %0 = nn.add %x, %x {spmd.operands = [#x]} : (tensor<8xf32, #x>, tensor<8xf32, #x>) -> tensor<8xf32, #x>
  return %0 : tensor<8xf32, #x>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
func.func @results_have_shardings_only(%x: tensor<8xf32, #x>) -> tensor<8xf32, #x> {
  // expected-error @+1 {{'nn.exp' op attribute 'spmd.results' is not a list of 1 shardings or units}}
  %0 = nn.exp %x {spmd.results = ["x"]} : (tensor<8xf32, #x>) -> tensor<8xf32, #x>
  return %0 : tensor<8xf32, #x>
}

// -----

// expected-error @+1 {{there is no mesh: give one by --mesh, in the plan, or in the sharding of a type}}
module {
  func.func @nothing_is_sharded(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

#a = #spmd.sharding<#spmd.mesh<["a"=2]>, [{"a"}]>
#b = #spmd.sharding<#spmd.mesh<["b"=2]>, [{"b"}]>
// expected-error @+1 {{types are sharded over #spmd.mesh<["b"=2]> but the module's mesh is #spmd.mesh<["a"=2]>}}
module {
  // expected-note @+1 {{this value is}}
  func.func @two_meshes(%x: tensor<8xf32, #a>, %y: tensor<8xf32, #b>) -> tensor<8xf32, #a> {
    return %x : tensor<8xf32, #a>
  }
}

// -----

// Propagation has not run: what is constrained has no sharding yet.
#a = #spmd.sharding<#spmd.mesh<["a"=2]>, [{"a"}]>
module {
  func.func @not_propagated(%x: tensor<8xf32, #a>) -> tensor<8xf32, #a> {
    // expected-error @+1 {{value of type 'tensor<8xf32>' has no sharding}}
    %y = nn.neg %x : (tensor<8xf32, #a>) -> tensor<8xf32>
    %z = spmd.constrain %y : tensor<8xf32> to tensor<8xf32, #a>
    return %z : tensor<8xf32, #a>
  }
}

// -----

#mesh = #spmd.mesh<["x"=2]>
// expected-error @+1 {{'spmd.costs' has an entry 'per_ns' of the wrong type, or out of range: 3}}
module attributes {spmd.mesh = #mesh, spmd.costs = {per_ns = 3 : i64}} {
  func.func @costs_are_checked(%x: tensor<8xf32, #spmd.sharding<#mesh, [{"x"}]>>) -> tensor<8xf32, #spmd.sharding<#mesh, [{"x"}]>> {
    return %x : tensor<8xf32, #spmd.sharding<#mesh, [{"x"}]>>
  }
}
