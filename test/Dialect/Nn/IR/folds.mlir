// Ops that do nothing go; a change of sharding is something.
//
// RUN: cleave-opt %s --canonicalize --split-input-file | FileCheck %s

// Every op that gives back its operand as it is.
// CHECK-LABEL: @ops_that_do_nothing_go
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>)
func.func @ops_that_do_nothing_go(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK-NEXT: return %[[X]]
  %0 = nn.reshape %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = nn.transpose %0 [0, 1] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = nn.broadcast %1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = nn.slice %2 starts [0, 0] sizes [8, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = nn.cast %3 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = nn.bitcast %4 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %5 : tensor<8x4xf32>
}

// -----

// The same shape is not the same value: a square is transposed, rows are reversed, numbers converted.
// CHECK-LABEL: @ops_that_keep_the_shape_may_do_something
func.func @ops_that_keep_the_shape_may_do_something(%x: tensor<4x4xf32>) -> tensor<4x4xi32> {
  // CHECK: nn.transpose
  %0 = nn.transpose %x [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: nn.slice
  %1 = nn.slice %0 starts [3, 0] sizes [4, 4] steps [-1, 1] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: nn.cast
  %2 = nn.cast %1 : (tensor<4x4xf32>) -> tensor<4x4xi32>
  return %2 : tensor<4x4xi32>
}

// -----

// Only the last shape of a chain of reshapes counts.
// CHECK-LABEL: @a_reshape_of_a_reshape_is_one_reshape
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>)
func.func @a_reshape_of_a_reshape_is_one_reshape(%x: tensor<8x4xf32>) -> tensor<16x2xf32> {
  // CHECK-NEXT: %[[Y:.*]] = nn.reshape %[[X]] : (tensor<8x4xf32>) -> tensor<16x2xf32>
  // CHECK-NEXT: return %[[Y]]
  %0 = nn.reshape %x : (tensor<8x4xf32>) -> tensor<32xf32>
  %1 = nn.reshape %0 : (tensor<32xf32>) -> tensor<2x16xf32>
  %2 = nn.reshape %1 : (tensor<2x16xf32>) -> tensor<16x2xf32>
  return %2 : tensor<16x2xf32>
}

// -----

// There and back again is nowhere.
// CHECK-LABEL: @a_reshape_and_its_inverse_go
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>)
func.func @a_reshape_and_its_inverse_go(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK-NEXT: return %[[X]]
  %0 = nn.reshape %x : (tensor<8x4xf32>) -> tensor<32xf32>
  %1 = nn.reshape %0 : (tensor<32xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
#vector = #spmd.sharding<#mesh, [{"x"}]>

// A sharding on the way is an annotation of the user's: neither an op that changes it nor a value that carries it goes.
// CHECK-LABEL: @shardings_keep_ops_that_do_nothing
func.func @shardings_keep_ops_that_do_nothing(%x: tensor<8x4xf32>) -> tensor<16x2xf32> {
  // CHECK: nn.transpose %{{.*}} [0, 1]
  %0 = nn.transpose %x [0, 1] : (tensor<8x4xf32>) -> tensor<8x4xf32, #rows>
  // CHECK: nn.reshape %{{.*}} -> tensor<32xf32, #{{.*}}>
  %1 = nn.reshape %0 : (tensor<8x4xf32, #rows>) -> tensor<32xf32, #vector>
  // CHECK: nn.reshape %{{.*}} -> tensor<16x2xf32>
  %2 = nn.reshape %1 : (tensor<32xf32, #vector>) -> tensor<16x2xf32>
  return %2 : tensor<16x2xf32>
}

// -----

// Equal constants become one; what nobody reads goes.
// CHECK-LABEL: @equal_constants_become_one
func.func @equal_constants_become_one() -> (tensor<2xi64>, tensor<2xi64>) {
  // CHECK-NEXT: %[[C:.*]] = nn.constant dense<7>
  // CHECK-NEXT: return %[[C]], %[[C]]
  %0 = nn.constant dense<7> : tensor<2xi64> -> tensor<2xi64>
  %1 = nn.constant dense<[7, 7]> : tensor<2xi64> -> tensor<2xi64>
  %2 = nn.constant dense<8> : tensor<2xi64> -> tensor<2xi64>
  return %0, %1 : tensor<2xi64>, tensor<2xi64>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#vector = #spmd.sharding<#mesh, [{"x"}]>

// A constant with a sharding and one without are two values.
// CHECK-LABEL: @constants_of_different_sharding_stay_apart
func.func @constants_of_different_sharding_stay_apart() -> (tensor<2xi64>, tensor<2xi64, #vector>) {
  // CHECK-DAG: nn.constant dense<7> : tensor<2xi64> -> tensor<2xi64>{{$}}
  %0 = nn.constant dense<7> : tensor<2xi64> -> tensor<2xi64>
  // CHECK-DAG: nn.constant dense<7> : tensor<2xi64> -> tensor<2xi64, #{{.*}}>
  %1 = nn.constant dense<7> : tensor<2xi64> -> tensor<2xi64, #vector>
  return %0, %1 : tensor<2xi64>, tensor<2xi64, #vector>
}

// -----

// A recurrence that starts from zeros says so itself, so that no rule need ask which op made them; -0 is none, as products keep its sign.
// CHECK-LABEL: @a_recurrence_that_starts_from_zeros
func.func @a_recurrence_that_starts_from_zeros(%p: tensor<1x1x2x1x8xf32>, %w: tensor<1x1x8x8xf32>, %h: tensor<1x2x8xf32>) -> (tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>) {
  %z = nn.constant dense<0.0> : tensor<1x2x8xf32> -> tensor<1x2x8xf32>
  %m = nn.constant dense<-0.0> : tensor<1x2x8xf32> -> tensor<1x2x8xf32>
  // CHECK: nn.recurrence {{.*}} betas [0.000000e+00] {startsFromZeros} :
  %0:2 = nn.recurrence rnn %p, %w initial (%z) activations ["tanh"] alphas [0.0] betas [0.0] : (tensor<1x1x2x1x8xf32>, tensor<1x1x8x8xf32>, tensor<1x2x8xf32>) -> (tensor<1x1x2x8xf32>, tensor<1x2x8xf32>)
  // CHECK: nn.recurrence {{.*}} betas [0.000000e+00] :
  %1:2 = nn.recurrence rnn %p, %w initial (%m) activations ["tanh"] alphas [0.0] betas [0.0] : (tensor<1x1x2x1x8xf32>, tensor<1x1x8x8xf32>, tensor<1x2x8xf32>) -> (tensor<1x1x2x8xf32>, tensor<1x2x8xf32>)
  // CHECK: nn.recurrence {{.*}} betas [0.000000e+00] :
  %2:2 = nn.recurrence rnn %p, %w initial (%h) activations ["tanh"] alphas [0.0] betas [0.0] : (tensor<1x1x2x1x8xf32>, tensor<1x1x8x8xf32>, tensor<1x2x8xf32>) -> (tensor<1x1x2x8xf32>, tensor<1x2x8xf32>)
  return %0#1, %1#1, %2#1 : tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>
}
