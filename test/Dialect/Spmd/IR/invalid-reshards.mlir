// What constraints and reshards refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C2 of constrain.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_constraint_is_a_sharding(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.constrain' op result 'tensor<8x8xf32>' has no sharding}}
  %0 = spmd.constrain %x : tensor<8x8xf32> to tensor<8x8xf32>
  return
}
}

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
// C1 of constrain.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_constraint_keeps_the_shape(%x: tensor<8x8xf32>) {
  // expected-error @below {{differs from operand 'tensor<8x8xf32>' in more than sharding}}
  %0 = spmd.constrain %x : tensor<8x8xf32> to tensor<8x4xf32, #rows>
  return
}
}

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
// C2 of reshard: from somewhere.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_reshard_has_a_source(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.reshard' op operand 'tensor<8x8xf32>' has no sharding}}
  %0 = spmd.reshard %x : tensor<8x8xf32> to tensor<8x8xf32, #rows>
  return
}
}

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
// C2 of reshard: to somewhere.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_reshard_has_a_target(%x: tensor<8x8xf32, #rows>) {
  // expected-error @below {{'spmd.reshard' op result 'tensor<8x8xf32>' has no sharding}}
  %0 = spmd.reshard %x : tensor<8x8xf32, #rows> to tensor<8x8xf32>
  return
}
}

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
#other = #spmd.mesh<["x"=4]>
#cols = #spmd.sharding<#other, [{}, {"x"}]>
// C2 of reshard: on one mesh.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_reshard_stays_on_its_mesh(%x: tensor<8x8xf32, #rows>) {
  // expected-error @below {{'spmd.reshard' op operand is sharded over #spmd.mesh<["x"=2, "y"=4]> but result over #spmd.mesh<["x"=4]>}}
  %0 = spmd.reshard %x : tensor<8x8xf32, #rows> to tensor<8x8xf32, #cols>
  return
}
}

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
// C1 of reshard.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_reshard_keeps_the_element_type(%x: tensor<8x8xf32, #rows>) {
  // expected-error @below {{in more than sharding}}
  %0 = spmd.reshard %x : tensor<8x8xf32, #rows> to tensor<8x8xf16, #rows>
  return
}
}
