// RUN: cleave-opt %s --split-input-file --nn-verify-form -verify-diagnostics

#mesh = #spmd.mesh<["x"=2]>
#rows = #spmd.sharding<#mesh, [{"x"}]>
#whole = #spmd.sharding<#mesh, [{}]>
func.func @only_nn_ops_after_import(%x: tensor<8xf32, #rows>) -> tensor<8xf32, #whole> {
  // expected-error @+1 {{'spmd.reshard' op is not an nn op}}
  %y = spmd.reshard %x : tensor<8xf32, #rows> to tensor<8xf32, #whole>
  return %y : tensor<8xf32, #whole>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#rows = #spmd.sharding<#mesh, [{"x"}]>
func.func @shardings_come_after_the_canonical_form(%x: tensor<8xf32>) -> tensor<8xf32, #rows> {
  // expected-error @+1 {{'nn.exp' op has a result of type 'tensor<8xf32, #spmd.sharding<#spmd.mesh<["x"=2]>, [{"x"}]>>': the canonical form comes before shardings}}
  %y = nn.exp %x : (tensor<8xf32>) -> tensor<8xf32, #rows>
  return %y : tensor<8xf32, #rows>
}
