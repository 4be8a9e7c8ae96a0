// RUN: cleave-opt %s --split-input-file --verify-diagnostics --spmd-verify-phase=phase=resharded

#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
// expected-error @+1 {{value of type 'tensor<8xf32>' has no sharding after propagation}}
func.func @a_value_without_sharding(%x: tensor<8xf32>, %y: tensor<8xf32, #x>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x", ?}]>
// expected-error @+1 {{has an open dim after propagation (S7)}}
func.func @an_open_dim(%x: tensor<8xf32, #x>) -> tensor<8xf32, #x> {
  return %x : tensor<8xf32, #x>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
func.func @a_wish_is_left(%x: tensor<8xf32, #x>) -> tensor<8xf32, #x> {
  // expected-error @+1 {{'nn.exp' op still has 'spmd.operands' after reshards were inserted}}
  %0 = nn.exp %x {spmd.operands = [#x]} : (tensor<8xf32, #x>) -> tensor<8xf32, #x>
  return %0 : tensor<8xf32, #x>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
func.func @a_constraint_is_left(%x: tensor<8xf32, #x>) -> tensor<8xf32, #x> {
  // expected-error @+1 {{'spmd.constrain' op is left after reshards were inserted}}
  %0 = spmd.constrain %x : tensor<8xf32, #x> to tensor<8xf32, #x>
  return %0 : tensor<8xf32, #x>
}

// -----

// What is cut over x cannot come out cut over y.
#mesh = #spmd.mesh<["x"=2, "y"=2]>
#a = #spmd.sharding<#mesh, [{"x"}, {}]>
#b = #spmd.sharding<#mesh, [{"y"}, {}]>
func.func @an_op_against_its_rule(%x: tensor<8x8xf32, #a>) -> tensor<8x8xf32, #b> {
  // expected-error @+1 {{'nn.exp' op does not agree with its sharding rule: result 0 splits a dim otherwise than another operand or result that has it too}}
  %0 = nn.exp %x : (tensor<8x8xf32, #a>) -> tensor<8x8xf32, #b>
  return %0 : tensor<8x8xf32, #b>
}

// -----

// The exponential of a partial sum is no partial sum.
#mesh = #spmd.mesh<["x"=2]>
#p = #spmd.sharding<#mesh, [{}], partial = {"x": sum}>
func.func @not_linear(%x: tensor<8xf32, #p>) -> tensor<8xf32, #p> {
  // expected-error @+1 {{'nn.exp' op does not agree with its sharding rule: the op cannot do together what its operands and results do over one axis}}
  %0 = nn.exp %x : (tensor<8xf32, #p>) -> tensor<8xf32, #p>
  return %0 : tensor<8xf32, #p>
}
