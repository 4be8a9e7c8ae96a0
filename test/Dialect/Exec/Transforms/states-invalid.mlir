// A state that is none.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics --exec-plan-memory

// expected-error @+1 {{has a result that is the next value of 'past', which is not an argument, or has a state already}}
func.func @no_argument(%x: tensor<8xf32>) -> (tensor<8xf32> {spmd.state = "past"}) {
  return %x : tensor<8xf32>
}

// -----

// expected-error @+1 {{has a result that is the next value of 'arg0', which is not an argument, or has a state already}}
func.func @two_states(%x: tensor<8xf32>) -> (tensor<8xf32> {spmd.state = "arg0"}, tensor<8xf32> {spmd.state = "arg0"}) {
  return %x, %x : tensor<8xf32>, tensor<8xf32>
}

// -----

// expected-error @+1 {{has a state 'arg0' of type 'tensor<8xf32>', which cannot become 'tensor<4xf32>'}}
func.func @smaller(%x: tensor<8xf32>, %y: tensor<4xf32>) -> (tensor<4xf32> {spmd.state = "arg0"}) {
  return %y : tensor<4xf32>
}

// -----

nn.param @w : tensor<8xf32> = dense<1.0> : tensor<8xf32>
// expected-error @+1 {{has an argument 'w' that begins as a parameter, and is not a state}}
func.func @no_state_begins(%w: tensor<8xf32> {nn.name = "w", nn.begins = @w}) -> tensor<8xf32> {
  return %w : tensor<8xf32>
}

// -----

nn.param @w : tensor<2x3x4xf32> = dense<1.0> : tensor<2x3x4xf32>
// expected-error @+1 {{has a state 'past' that grows: it begins as zeros, not as a parameter}}
func.func @what_grows_begins_as_zeros(%past: tensor<2x3x4xf32> {nn.name = "past", nn.begins = @w}, %x: tensor<2x1x4xf32>)
    -> (tensor<2x4x4xf32> {spmd.state = "past"}) {
  %all = nn.concat %past, %x dim 1 : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  return %all : tensor<2x4x4xf32>
}
