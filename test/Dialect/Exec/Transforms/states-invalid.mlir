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
