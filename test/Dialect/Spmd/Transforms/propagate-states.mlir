// What the next call finds as an argument has that argument's sharding.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics --spmd-propagate | FileCheck %s

// The sum comes out replicated; the state is split, so each rank keeps its part. That costs nothing.
// CHECK-LABEL: @the_result_is_cut_as_the_argument
// CHECK: return {spmd.operands = [#x_replicated, unit]}
#mesh = #spmd.mesh<["x"=2]>
#x_ = #spmd.sharding<#mesh, [{"x"}, {}]>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
func.func @the_result_is_cut_as_the_argument(%old: tensor<8x4xf32, #x_> {nn.name = "old"}, %w: tensor<8x4xf32, #replicated>)
    -> (tensor<8x4xf32, #replicated> {spmd.state = "old"}, tensor<8x4xf32>) {
  %0 = nn.exp %w : (tensor<8x4xf32, #replicated>) -> tensor<8x4xf32, #replicated>
  %1 = nn.neg %old : (tensor<8x4xf32, #x_>) -> tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32, #replicated>, tensor<8x4xf32>
}

// -----

// Positions that move at every call would move between ranks.
#mesh = #spmd.mesh<["x"=2]>
#x_ = #spmd.sharding<#mesh, [{"x"}, {}]>
// expected-error @+1 {{state 'past' grows along dim 0, which cannot be sharded: its positions move at every call}}
func.func @a_dim_that_grows(%past: tensor<8x4xf32, #x_> {nn.name = "past"}, %new: tensor<2x4xf32>)
    -> (tensor<10x4xf32> {spmd.state = "past"}) {
  %0 = nn.concat %past, %new dim 0 : (tensor<8x4xf32, #x_>, tensor<2x4xf32>) -> tensor<10x4xf32>
  return %0 : tensor<10x4xf32>
}
