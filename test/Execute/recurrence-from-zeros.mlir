// An LSTM of one step from zeros multiplies nothing, so that nothing is gathered for it, wherever the zeros come from by then; one of the same types
// from another state is no such one. The bytes that were decided are the bytes that are sent.
//
// RUN: %{each} %s %t "cleave-opt {} --canonicalize --spmd-propagate --spmd-insert-reshards --spmd-partition=check-bytes | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2]>
#p = #spmd.sharding<#mesh, [{}, {}, {}, {}, {"x"}]>
#y = #spmd.sharding<#mesh, [{}, {}, {}, {"x"}]>
#h = #spmd.sharding<#mesh, [{}, {}, {"x"}]>
#replicated = #spmd.sharding<#mesh, [{}, {}, {}]>

//--- zeros-of-others.mlir
// The zeros come by way of what another user wants of them.
// CHECK-LABEL: @zeros_that_somebody_else_wants_too
// CHECK-NOT: spmd.all_gather
func.func @zeros_that_somebody_else_wants_too(%p: tensor<1x1x4x4x64xf32, #p>, %c: tensor<1x4x64xf32>, %w: tensor<1x4x64x64xf32>) -> (tensor<1x1x4x64xf32, #y>, tensor<1x4x64xf32, #replicated>) {
  %z = nn.constant dense<0.0> : tensor<1x4x64xf32> -> tensor<1x4x64xf32>
  %0:3 = nn.recurrence lstm %p, %w initial (%z, %c) activations ["sigmoid", "tanh", "tanh"] alphas [0.0, 0.0, 0.0] betas [0.0, 0.0, 0.0] : (tensor<1x1x4x4x64xf32, #p>, tensor<1x4x64x64xf32>, tensor<1x4x64xf32>, tensor<1x4x64xf32>) -> (tensor<1x1x4x64xf32, #y>, tensor<1x4x64xf32>, tensor<1x4x64xf32>)
  %1 = spmd.constrain %z : tensor<1x4x64xf32> to tensor<1x4x64xf32, #replicated>
  return %0#0, %1 : tensor<1x1x4x64xf32, #y>, tensor<1x4x64xf32, #replicated>
}

//--- two-states.mlir
// The state of the second one is gathered: 4 x 64 numbers, of which a rank has half.
// CHECK-LABEL: @one_from_zeros_and_one_of_its_types
// CHECK-COUNT-1: spmd.all_gather {{.*}} -> tensor<1x4x64xf32>
// CHECK-NOT: spmd.all_gather
func.func @one_from_zeros_and_one_of_its_types(%p: tensor<1x1x4x4x64xf32, #p>, %c: tensor<1x4x64xf32, #h>, %w: tensor<1x4x64x64xf32>) -> (tensor<1x1x4x64xf32, #y>, tensor<1x1x4x64xf32, #y>) {
  %z = nn.constant dense<0.0> : tensor<1x4x64xf32> -> tensor<1x4x64xf32>
  %0:3 = nn.recurrence lstm %p, %w initial (%z, %c) activations ["sigmoid", "tanh", "tanh"] alphas [0.0, 0.0, 0.0] betas [0.0, 0.0, 0.0] : (tensor<1x1x4x4x64xf32, #p>, tensor<1x4x64x64xf32>, tensor<1x4x64xf32>, tensor<1x4x64xf32, #h>) -> (tensor<1x1x4x64xf32, #y>, tensor<1x4x64xf32>, tensor<1x4x64xf32>)
  %e = nn.exp %c : (tensor<1x4x64xf32, #h>) -> tensor<1x4x64xf32>
  %1:3 = nn.recurrence lstm %p, %w initial (%e, %c) activations ["sigmoid", "tanh", "tanh"] alphas [0.0, 0.0, 0.0] betas [0.0, 0.0, 0.0] : (tensor<1x1x4x4x64xf32, #p>, tensor<1x4x64x64xf32>, tensor<1x4x64xf32>, tensor<1x4x64xf32, #h>) -> (tensor<1x1x4x64xf32, #y>, tensor<1x4x64xf32>, tensor<1x4x64xf32>)
  return %0#0, %1#0 : tensor<1x1x4x64xf32, #y>, tensor<1x1x4x64xf32, #y>
}
