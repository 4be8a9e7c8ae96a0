// Recurrent nets by samples and directions are local; over split hidden units the state travels in each step, and nothing else.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-partition | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2]>
#p_batch = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}, {}]>
#p_hidden = #spmd.sharding<#mesh, [{}, {}, {}, {}, {"x"}]>
#p_way = #spmd.sharding<#mesh, [{}, {"x"}, {}, {}, {}]>
#w_hidden = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}]>
#w_way = #spmd.sharding<#mesh, [{"x"}, {}, {}, {}]>
#w_replicated = #spmd.sharding<#mesh, [{}, {}, {}, {}]>
#h_batch = #spmd.sharding<#mesh, [{}, {"x"}, {}]>
#h_hidden = #spmd.sharding<#mesh, [{}, {}, {"x"}]>
#h_way = #spmd.sharding<#mesh, [{"x"}, {}, {}]>
#y_batch = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}]>
#y_hidden = #spmd.sharding<#mesh, [{}, {}, {}, {"x"}]>
#y_way = #spmd.sharding<#mesh, [{}, {"x"}, {}, {}]>

//--- batch.mlir
// A rank has its samples.
// CHECK-LABEL: @samples_know_nothing_of_each_other
func.func @samples_know_nothing_of_each_other(%p: tensor<3x1x4x4x6xf32, #p_batch>, %w: tensor<1x4x6x6xf32, #w_replicated>, %h: tensor<1x4x6xf32, #h_batch>) -> tensor<3x1x4x6xf32, #y_batch> {
  // CHECK-NEXT: nn.recurrence lstm {{.*}} (tensor<3x1x2x4x6xf32>, tensor<1x4x6x6xf32>, tensor<1x2x6xf32>, tensor<1x2x6xf32>)
  // CHECK-NEXT: return
  %0:3 = nn.recurrence lstm %p, %w initial (%h, %h) activations ["sigmoid", "tanh", "tanh"] alphas [0.0, 0.0, 0.0] betas [0.0, 0.0, 0.0] : (tensor<3x1x4x4x6xf32, #p_batch>, tensor<1x4x6x6xf32, #w_replicated>, tensor<1x4x6xf32, #h_batch>, tensor<1x4x6xf32, #h_batch>) -> (tensor<3x1x4x6xf32, #y_batch>, tensor<1x4x6xf32, #h_batch>, tensor<1x4x6xf32, #h_batch>)
  return %0#0 : tensor<3x1x4x6xf32, #y_batch>
}

//--- directions.mlir
// A rank has its direction.
// CHECK-LABEL: @directions_know_nothing_of_each_other
func.func @directions_know_nothing_of_each_other(%p: tensor<3x2x4x3x6xf32, #p_way>, %w: tensor<2x3x6x6xf32, #w_way>, %h: tensor<2x4x6xf32, #h_way>) -> tensor<3x2x4x6xf32, #y_way> {
  // CHECK-NEXT: nn.recurrence gru {{.*}} (tensor<3x1x4x3x6xf32>, tensor<1x3x6x6xf32>, tensor<1x4x6xf32>)
  // CHECK-NEXT: return
  %0:2 = nn.recurrence gru %p, %w initial (%h) activations ["sigmoid", "tanh"] alphas [0.0, 0.0] betas [0.0, 0.0] : (tensor<3x2x4x3x6xf32, #p_way>, tensor<2x3x6x6xf32, #w_way>, tensor<2x4x6xf32, #h_way>) -> (tensor<3x2x4x6xf32, #y_way>, tensor<2x4x6xf32, #h_way>)
  return %0#0 : tensor<3x2x4x6xf32, #y_way>
}

//--- hidden.mlir
// Rows of all gates for a rank's units: the state is gathered once a step.
// CHECK-LABEL: @units_need_the_whole_state
func.func @units_need_the_whole_state(%p: tensor<3x1x4x4x6xf32, #p_hidden>, %w: tensor<1x4x6x6xf32, #w_hidden>, %h: tensor<1x4x6xf32, #h_hidden>) -> tensor<3x1x4x6xf32, #y_hidden> {
  // CHECK-COUNT-3: spmd.all_gather {{.*}} : (tensor<1x4x3xf32>) -> tensor<1x4x6xf32>
  // CHECK-NOT: = spmd.
  // CHECK: nn.concat {{.*}} dim 0 : {{.*}} -> tensor<3x1x4x3xf32>
  // CHECK-NOT: = spmd.
  %0:3 = nn.recurrence lstm %p, %w initial (%h, %h) activations ["sigmoid", "tanh", "tanh"] alphas [0.0, 0.0, 0.0] betas [0.0, 0.0, 0.0] : (tensor<3x1x4x4x6xf32, #p_hidden>, tensor<1x4x6x6xf32, #w_hidden>, tensor<1x4x6xf32, #h_hidden>, tensor<1x4x6xf32, #h_hidden>) -> (tensor<3x1x4x6xf32, #y_hidden>, tensor<1x4x6xf32, #h_hidden>, tensor<1x4x6xf32, #h_hidden>)
  return %0#0 : tensor<3x1x4x6xf32, #y_hidden>
}

//--- reset.mlir
// What a gru resets before its product is gathered, too.
// CHECK-LABEL: @a_state_that_is_reset_travels_twice
func.func @a_state_that_is_reset_travels_twice(%p: tensor<3x1x4x3x6xf32, #p_hidden>, %w: tensor<1x3x6x6xf32, #w_hidden>, %h: tensor<1x4x6xf32, #h_hidden>) -> tensor<3x1x4x6xf32, #y_hidden> {
  // CHECK-COUNT-6: spmd.all_gather {{.*}} : (tensor<1x4x3xf32>) -> tensor<1x4x6xf32>
  // CHECK-NOT: = spmd.
  %0:2 = nn.recurrence gru %p, %w initial (%h) activations ["sigmoid", "tanh"] alphas [0.0, 0.0] betas [0.0, 0.0] : (tensor<3x1x4x3x6xf32, #p_hidden>, tensor<1x3x6x6xf32, #w_hidden>, tensor<1x4x6xf32, #h_hidden>) -> (tensor<3x1x4x6xf32, #y_hidden>, tensor<1x4x6xf32, #h_hidden>)
  return %0#0 : tensor<3x1x4x6xf32, #y_hidden>
}
