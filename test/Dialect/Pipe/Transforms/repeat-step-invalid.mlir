// RUN: cleave-opt %s --split-input-file --pipe-repeat-step=steps=3 -verify-diagnostics

// expected-error @below {{has a state that grows: it has another size in each step of a call}}
func.func @main(%past: tensor<2x4xf32> {nn.name = "past"}, %x: tensor<1x4xf32>) -> (tensor<3x4xf32> {spmd.state = "past"}) {
  %y = nn.concat %past, %x dim 0 : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
