// RUN: cleave-opt %s --split-input-file --nn-verify-form -verify-diagnostics

#mesh = #spmd.mesh<["x"=2]>
#rows = #spmd.sharding<#mesh, [{"x"}]>
#replicated = #spmd.sharding<#mesh, [{}]>
func.func @only_nn_ops_after_import(%x: tensor<8xf32, #rows>) -> tensor<8xf32, #replicated> {
  // expected-error @+1 {{'spmd.reshard' op is not an nn op}}
  %y = spmd.reshard %x : tensor<8xf32, #rows> to tensor<8xf32, #replicated>
  return %y : tensor<8xf32, #replicated>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#rows = #spmd.sharding<#mesh, [{"x"}]>
func.func @shardings_come_after_the_canonical_form(%x: tensor<8xf32>) -> tensor<8xf32, #rows> {
  // expected-error @+1 {{'nn.exp' op has a result of type 'tensor<8xf32, #spmd.sharding<#spmd.mesh<["x"=2]>, [{"x"}]>>': the canonical form comes before shardings}}
  %y = nn.exp %x : (tensor<8xf32>) -> tensor<8xf32, #rows>
  return %y : tensor<8xf32, #rows>
}

// -----

// expected-error @+1 {{has a state of 'tensor<8xf32>' that begins as @w, which is not an nn.param}}
func.func @states_begin_as_parameters(%w: tensor<8xf32> {nn.begins = @w}) -> tensor<8xf32> {
  return %w : tensor<8xf32>
}

// -----

// expected-error @+1 {{has a state of 'tensor<8xf32>' that begins as 8 : i64, expected a parameter, or {param, starts, sizes}}}
func.func @states_begin_as_nothing_else(%w: tensor<8xf32> {nn.begins = 8}) -> tensor<8xf32> {
  return %w : tensor<8xf32>
}

// -----

nn.param @w : tensor<4xf32> = dense<1.0> : tensor<4xf32>
// expected-error @+1 {{has a state of 'tensor<8xf32>' that begins as @w, which is 'tensor<4xf32>'}}
func.func @states_have_the_shape_of_what_they_begin_as(%w: tensor<8xf32> {nn.begins = @w}) -> tensor<8xf32> {
  return %w : tensor<8xf32>
}

// -----

nn.param @w : tensor<8xi32> = dense<1> : tensor<8xi32>
// expected-error @+1 {{has a state of 'tensor<8xf32>' that begins as @w, which is 'tensor<8xi32>'}}
func.func @integers_are_not_cast_to_floats(%w: tensor<8xf32> {nn.begins = @w}) -> tensor<8xf32> {
  return %w : tensor<8xf32>
}

// -----

nn.param @w : tensor<8xf32> = dense<1.0> : tensor<8xf32>
// expected-error @+1 {{which is not a part of 'tensor<8xf32>'}}
func.func @parts_are_inside(%w: tensor<4xf32> {nn.begins = {param = @w, starts = array<i64: 5>, sizes = array<i64: 4>}}) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}

// -----

// expected-error @+1 {{has a state of 'tensor<4xf32>' with the origin {name = "w", shape = array<i64: 6>, starts = array<i64: 3>}, expected a name, or {name, starts, shape} that it is in}}
func.func @states_are_inside_of_their_origin(%w: tensor<4xf32> {nn.origin = {name = "w", starts = array<i64: 3>, shape = array<i64: 6>}}) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}
