// RUN: cleave-opt %s --nn-keep-loss --verify-diagnostics

// What is no step has nothing to keep.
// expected-error@+1 {{has no result 'loss': nn-outline-step makes it}}
func.func @main(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y"}) {
  return %x : tensor<4xf32>
}
