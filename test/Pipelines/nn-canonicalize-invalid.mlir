// RUN: cleave-opt %s --nn-canonicalize -verify-diagnostics

// Rewrites would lose the annotation in the type.
#mesh = #spmd.mesh<["x"=2]>
#rows = #spmd.sharding<#mesh, [{"x"}]>
func.func @an_annotated_module_is_past_its_canonical_form(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'nn.exp' op has a result of type 'tensor<8xf32, #spmd.sharding<#spmd.mesh<["x"=2]>, [{"x"}]>>': the canonical form comes before shardings}}
  %y = nn.exp %x : (tensor<8xf32>) -> tensor<8xf32, #rows>
  %z = nn.neg %y : (tensor<8xf32, #rows>) -> tensor<8xf32>
  return %z : tensor<8xf32>
}
