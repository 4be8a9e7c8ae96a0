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
func.func @a_annotation_is_left(%x: tensor<8xf32, #x>) -> tensor<8xf32, #x> {
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

// What is split over x cannot come out split over y.
#mesh = #spmd.mesh<["x"=2, "y"=2]>
#a = #spmd.sharding<#mesh, [{"x"}, {}]>
#b = #spmd.sharding<#mesh, [{"y"}, {}]>
func.func @an_op_against_its_rule(%x: tensor<8x8xf32, #a>) -> tensor<8x8xf32, #b> {
  // expected-error @+1 {{'nn.exp' op does not agree with its sharding rule: result 0 shards a dim differently than another operand or result does}}
  %0 = nn.exp %x : (tensor<8x8xf32, #a>) -> tensor<8x8xf32, #b>
  return %0 : tensor<8x8xf32, #b>
}

// -----

// The exponential of a partial sum is not a partial sum.
#mesh = #spmd.mesh<["x"=2]>
#p = #spmd.sharding<#mesh, [{}], partial = {"x": sum}>
func.func @not_linear(%x: tensor<8xf32, #p>) -> tensor<8xf32, #p> {
  // expected-error @+1 {{'nn.exp' op does not agree with its sharding rule: no choice of the op's sharding rule gives these shardings of operands and results over one axis}}
  %0 = nn.exp %x : (tensor<8xf32, #p>) -> tensor<8xf32, #p>
  return %0 : tensor<8xf32, #p>
}

// -----

// A loop carries a value in one sharding all the way.
#mesh = #spmd.mesh<["x"=2]>
#a = #spmd.sharding<#mesh, [{"x"}]>
#b = #spmd.sharding<#mesh, [{}]>
func.func @a_loop_that_changes_a_sharding(%x: tensor<8xf32, #a>) -> tensor<8xf32, #a> {
  // expected-error @+1 {{'nn.loop' op carries value 0 in two shardings: it goes in as 'tensor<8xf32, #spmd.sharding<#spmd.mesh<["x"=2]>, [{"x"}]>>', and the body yields 'tensor<8xf32, #spmd.sharding<#spmd.mesh<["x"=2]>, [{}]>>'}}
  %0 = nn.loop count 2 carries (%x) : (tensor<8xf32, #a>) -> tensor<8xf32, #a> {
  ^bb0(%i: tensor<8xf32, #a>):
    %1 = spmd.reshard %i : tensor<8xf32, #a> to tensor<8xf32, #b>
    nn.yield next (%1) : (tensor<8xf32, #b>) -> ()
  }
  return %0 : tensor<8xf32, #a>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#a = #spmd.sharding<#mesh, [{"x"}]>
#b = #spmd.sharding<#mesh, [{}]>
func.func @a_body_that_takes_another_sharding(%x: tensor<8xf32, #b>, %y: tensor<8xf32, #a>) -> tensor<8xf32, #a> {
  // expected-error @+1 {{'nn.loop' op carries value 1 in two shardings: it goes in as 'tensor<8xf32, #spmd.sharding<#spmd.mesh<["x"=2]>, [{"x"}]>>', and the body takes 'tensor<8xf32, #spmd.sharding<#spmd.mesh<["x"=2]>, [{}]>>'}}
  %0:2 = nn.loop count 2 carries (%x, %y) : (tensor<8xf32, #b>, tensor<8xf32, #a>) -> (tensor<8xf32, #b>, tensor<8xf32, #a>) {
  ^bb0(%i: tensor<8xf32, #b>, %j: tensor<8xf32, #b>):
    %1 = spmd.reshard %j : tensor<8xf32, #b> to tensor<8xf32, #a>
    nn.yield next (%i, %1) : (tensor<8xf32, #b>, tensor<8xf32, #a>) -> ()
  }
  return %0#1 : tensor<8xf32, #a>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#a = #spmd.sharding<#mesh, [{"x"}]>
#b = #spmd.sharding<#mesh, [{}]>
func.func @a_result_in_another_sharding(%x: tensor<8xf32, #a>) -> tensor<8xf32, #b> {
  // expected-error @+1 {{'nn.loop' op carries value 0 in two shardings: it goes in as 'tensor<8xf32, #spmd.sharding<#spmd.mesh<["x"=2]>, [{"x"}]>>', and the result is 'tensor<8xf32, #spmd.sharding<#spmd.mesh<["x"=2]>, [{}]>>'}}
  %0 = nn.loop count 2 carries (%x) : (tensor<8xf32, #a>) -> tensor<8xf32, #b> {
  ^bb0(%i: tensor<8xf32, #a>):
    nn.yield next (%i) : (tensor<8xf32, #a>) -> ()
  }
  return %0 : tensor<8xf32, #b>
}

// -----

// What is captured comes as it is.
#mesh = #spmd.mesh<["x"=2]>
#a = #spmd.sharding<#mesh, [{"x"}]>
#b = #spmd.sharding<#mesh, [{}]>
func.func @a_captured_value_in_another_sharding(%x: tensor<8xf32, #a>, %w: tensor<4xf32, #a>) -> tensor<8xf32, #a> {
  // expected-error @+1 {{'nn.loop' op captures value 0 in two shardings: it goes in as 'tensor<4xf32, #spmd.sharding<#spmd.mesh<["x"=2]>, [{"x"}]>>', and the body takes 'tensor<4xf32, #spmd.sharding<#spmd.mesh<["x"=2]>, [{}]>>'}}
  %0 = nn.loop count 2 carries (%x) captures (%w) : (tensor<8xf32, #a>, tensor<4xf32, #a>) -> tensor<8xf32, #a> {
  ^bb0(%i: tensor<8xf32, #a>, %v: tensor<4xf32, #b>):
    nn.yield next (%i) : (tensor<8xf32, #a>) -> ()
  }
  return %0 : tensor<8xf32, #a>
}

// -----

// Ranks that hold terms of a condition would not know whether to go on.
#mesh = #spmd.mesh<["x"=2]>
#s = #spmd.sharding<#mesh, []>
#p = #spmd.sharding<#mesh, [], partial = {"x": max}>
func.func @a_condition_in_terms(%go: tensor<i1, #p>, %x: tensor<i1, #s>) -> tensor<i1, #s> {
  // expected-error @+1 {{'nn.loop' op has a condition that is not replicated on every rank}}
  %0 = nn.loop while %go carries (%x) : (tensor<i1, #p>, tensor<i1, #s>) -> tensor<i1, #s> {
  ^bb0(%i: tensor<i1, #s>):
    nn.yield while %i next (%i) : (tensor<i1, #s>, tensor<i1, #s>) -> ()
  }
  return %0 : tensor<i1, #s>
}
