// Rules of recurrent nets: i steps, then directions, samples, gates, hidden units and the state's, as far as they are larger than 1.
// Steps, gates and the whole state stay together; split hidden units pay for a gather of the state in each step.
//
// RUN: cleave-opt %s --spmd-print-rules --verify-diagnostics

func.func @hidden_units_of_all_gates_are_one_factor(%p: tensor<5x2x4x4x8xf32>, %w: tensor<2x4x8x8xf32>, %h: tensor<2x4x8xf32>, %q: tensor<2x3x8xf32>, %l: tensor<4xi32>) {
  // expected-remark @below {{([i,j,k,l,m],[j,l,m,n],[j,k,m],[j,k,m],[j,o,m],[k])->([i,j,k,m],[j,k,m],[j,k,m]) {i=5,j=2,k=4,l=4,m=8,n=8,o=3} replicate={i,l,n,o}}}
  %0:3 = nn.recurrence lstm %p, %w initial (%h, %h) peepholes %q lengths %l activations ["sigmoid", "tanh", "tanh"] alphas [0.0, 0.0, 0.0] betas [0.0, 0.0, 0.0] : (tensor<5x2x4x4x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x3x8xf32>, tensor<4xi32>) -> (tensor<5x2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>)
  return
}

func.func @a_bias_goes_with_hidden_units(%p: tensor<5x1x4x3x8xf32>, %w: tensor<1x3x8x8xf32>, %h: tensor<1x4x8xf32>, %b: tensor<1x8xf32>) {
  // expected-remark @below {{([i,1,j,k,l],[1,k,l,m],[1,j,l],[1,l])->([i,1,j,l],[1,j,l]) {i=5,j=4,k=3,l=8,m=8} replicate={i,k,m}}}
  %0:2 = nn.recurrence gru %p, %w initial (%h) bias %b activations ["sigmoid", "tanh"] alphas [0.0, 0.0] betas [0.0, 0.0] {linearBeforeReset} : (tensor<5x1x4x3x8xf32>, tensor<1x3x8x8xf32>, tensor<1x4x8xf32>, tensor<1x8xf32>) -> (tensor<5x1x4x8xf32>, tensor<1x4x8xf32>)
  return
}
