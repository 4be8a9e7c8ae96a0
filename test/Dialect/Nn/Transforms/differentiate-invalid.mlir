// RUN: cleave-opt %s --split-input-file --nn-differentiate --verify-diagnostics

// expected-note @below {{'w' needs its gradient: freeze it, or take the loss of another value}}
func.func @main(%w: tensor<4xf32> {nn.name = "w", nn.role = "parameter"}) -> (tensor<f32> {nn.name = "loss"}) {
  %i = nn.bitcast %w : (tensor<4xf32>) -> tensor<4xf32> // expected-error {{'nn.bitcast' has no gradient: it reads the bits of a number}}
  %s = nn.reduce sum %i dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// expected-error @below {{has no result 'loss' that could be differentiated}}
func.func @main(%w: tensor<4xf32> {nn.name = "w", nn.role = "parameter"}) -> (tensor<4xf32> {nn.name = "y"}) {
  return %w : tensor<4xf32>
}

// -----

// expected-error @below {{result 'loss' is 'tensor<4xf32>': a loss is one number of floats}}
func.func @main(%w: tensor<4xf32> {nn.name = "w", nn.role = "parameter"}) -> (tensor<4xf32> {nn.name = "loss"}) {
  return %w : tensor<4xf32>
}

// -----

// expected-error @below {{argument 'w' is 'tensor<4xi32>': integers have no gradient}}
func.func @main(%w: tensor<4xi32> {nn.name = "w", nn.role = "parameter"}, %x: tensor<f32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  return %x : tensor<f32>
}
