// RUN: cleave-opt %s --split-input-file --verify-diagnostics --spmd-verify-phase=phase=partitioned

#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
// expected-error @+1 {{'func.func' op argument 0 does not say its global type}}
func.func @no_global_argument(%x: tensor<4xf32>) -> (tensor<4xf32> {spmd.global = tensor<8xf32, #x>}) {
  return %x : tensor<4xf32>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
// expected-error @+1 {{'func.func' op result 0 does not say its global type}}
func.func @no_global_result(%x: tensor<4xf32> {spmd.global = tensor<8xf32, #x>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
func.func @a_sharded_type_is_left(%x: tensor<4xf32> {spmd.global = tensor<8xf32, #x>}) {
  // expected-error @+1 {{value still has the sharded type}}
  %0 = nn.constant dense<0.0> : tensor<8xf32> -> tensor<8xf32, #x>
  return
}

// -----

// expected-error @+1 {{'func.func' op has control flow}}
func.func @two_blocks() {
  return
^next:
  return
}
