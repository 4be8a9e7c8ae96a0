// RUN: cleave-opt %s --split-input-file --verify-diagnostics --nn-inline-calls

func.func @recursion(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'func.call' op cannot be inlined: 'recursion' calls itself}}
  %0 = func.call @recursion(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @a_long_way_round(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @first(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @first(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-note @+1 {{by way of 'second'}}
  %0 = func.call @second(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @second(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-note @+1 {{by way of 'third'}}
  %0 = func.call @third(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @third(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'func.call' op cannot be inlined: 'first' calls itself}}
  %0 = func.call @first(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-note @+1 {{it is here}}
func.func private @declared(tensor<8xf32>) -> tensor<8xf32>
func.func @a_declaration(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'func.call' op cannot be inlined: 'declared' has no body}}
  %0 = func.call @declared(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-note @+1 {{it is here}}
func.func private @branches(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
^next:
  return %x : tensor<8xf32>
}
func.func @control_flow(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'func.call' op cannot be inlined: 'branches' has control flow}}
  %0 = func.call @branches(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
