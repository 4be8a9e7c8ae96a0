// Recurrent nets become steps. What comes out is run beside what went in; and steps that are alike share kernels.
//
// RUN: cleave-opt %s --exec-unroll-recurrences | FileCheck %s --implicit-check-not=nn.recurrence
// RUN: cleave-opt %s --nn-inline-calls -o %t.whole.mlir
// RUN: cleave-opt %t.whole.mlir --exec-lower=last=outlined -o %t.mlir
// RUN: FileCheck %s --check-prefix=ONCE < %t.mlir
// RUN: cleave run %t.mlir --against %t.whole.mlir | FileCheck %s --check-prefix=RAN
// RAN-COUNT-6: ok
// RAN-NOT: wrong

// One product and one sum a step, of a slice of the projection; results lie one behind the other.
// CHECK-LABEL: @simple(
// CHECK: %[[W:.*]] = nn.reshape %arg1 : (tensor<1x1x8x8xf32>) -> tensor<8x8xf32>
// CHECK: nn.slice %arg0 starts [0, 0, 0, 0, 0] sizes [1, 1, 2, 1, 8]
// CHECK: nn.einsum %{{.*}}, %[[W]] "bk,nk->bn"
// CHECK: nn.tanh
// CHECK: nn.slice %arg0 starts [1, 0, 0, 0, 0] sizes [1, 1, 2, 1, 8]
// CHECK: nn.einsum %{{.*}}, %[[W]] "bk,nk->bn"
// CHECK: nn.tanh
// CHECK: %[[Y:.*]] = nn.concat {{.*}} dim 0 : (tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>) -> tensor<2x1x2x8xf32>
// CHECK: return %[[Y]]
func.func @simple(%p: tensor<2x1x2x1x8xf32>, %w: tensor<1x1x8x8xf32>, %h: tensor<1x2x8xf32>) -> tensor<2x1x2x8xf32> {
  %0:2 = nn.recurrence rnn %p, %w initial (%h) activations ["tanh"] alphas [0.0] betas [0.0] : (tensor<2x1x2x1x8xf32>, tensor<1x1x8x8xf32>, tensor<1x2x8xf32>) -> (tensor<2x1x2x8xf32>, tensor<1x2x8xf32>)
  return %0#0 : tensor<2x1x2x8xf32>
}

// All steps have two kernels: the product, and the gates.
// ONCE-LABEL: func.func @main(
// ONCE-COUNT-9: exec.launch @matmul_add_0(
// ONCE-NOT: exec.launch @matmul_add_1
// Two directions are one product of two matrices; peepholes, lengths and clipping stand in the steps.
// CHECK-LABEL: @all_of_an_lstm(
// CHECK: nn.lt {{.*}} -> tensor<9x2xi1>
// CHECK-COUNT-9: nn.einsum {{.*}} "dbk,dnk->dbn"
func.func @all_of_an_lstm(%p: tensor<9x2x2x4x8xf32>, %w: tensor<2x4x8x8xf32>, %h: tensor<2x2x8xf32>, %q: tensor<2x3x8xf32>, %l: tensor<2xi32>) -> (tensor<9x2x2x8xf32>, tensor<2x2x8xf32>, tensor<2x2x8xf32>) {
  %0:3 = nn.recurrence lstm %p, %w initial (%h, %h) peepholes %q lengths %l activations ["sigmoid", "tanh", "softsign"] alphas [0.0, 0.0, 0.0] betas [0.0, 0.0, 0.0] {clip = 0.5, inputForget} : (tensor<9x2x2x4x8xf32>, tensor<2x4x8x8xf32>, tensor<2x2x8xf32>, tensor<2x2x8xf32>, tensor<2x3x8xf32>, tensor<2xi32>) -> (tensor<9x2x2x8xf32>, tensor<2x2x8xf32>, tensor<2x2x8xf32>)
  return %0#0, %0#1, %0#2 : tensor<9x2x2x8xf32>, tensor<2x2x8xf32>, tensor<2x2x8xf32>
}

// A gru has a product for the gates and one for what they made, unless it is reset behind its product.
// CHECK-LABEL: @two_ways_of_a_gru(
// CHECK-COUNT-12: nn.einsum
func.func @two_ways_of_a_gru(%p: tensor<4x1x2x3x8xf32>, %w: tensor<1x3x8x8xf32>, %h: tensor<1x2x8xf32>, %b: tensor<1x8xf32>) -> (tensor<4x1x2x8xf32>, tensor<1x2x8xf32>) {
  %0:2 = nn.recurrence gru %p, %w initial (%h) activations ["hard_sigmoid", "scaled_tanh"] alphas [0.2, 0.8] betas [0.5, 0.9] : (tensor<4x1x2x3x8xf32>, tensor<1x3x8x8xf32>, tensor<1x2x8xf32>) -> (tensor<4x1x2x8xf32>, tensor<1x2x8xf32>)
  %1:2 = nn.recurrence gru %p, %w initial (%h) bias %b activations ["sigmoid", "affine"] alphas [0.0, 0.5] betas [0.0, 0.1] {linearBeforeReset} : (tensor<4x1x2x3x8xf32>, tensor<1x3x8x8xf32>, tensor<1x2x8xf32>, tensor<1x8xf32>) -> (tensor<4x1x2x8xf32>, tensor<1x2x8xf32>)
  return %0#0, %1#1 : tensor<4x1x2x8xf32>, tensor<1x2x8xf32>
}

// CHECK-LABEL: @main(
func.func @main(%p: tensor<2x1x2x1x8xf32>, %w: tensor<1x1x8x8xf32>, %h: tensor<1x2x8xf32>, %lp: tensor<9x2x2x4x8xf32>, %lw: tensor<2x4x8x8xf32>, %lh: tensor<2x2x8xf32>, %q: tensor<2x3x8xf32>, %l: tensor<2xi32>, %gp: tensor<4x1x2x3x8xf32>, %gw: tensor<1x3x8x8xf32>, %b: tensor<1x8xf32>) -> (tensor<2x1x2x8xf32>, tensor<9x2x2x8xf32>, tensor<2x2x8xf32>, tensor<2x2x8xf32>, tensor<4x1x2x8xf32>, tensor<1x2x8xf32>) {
  %0 = func.call @simple(%p, %w, %h) : (tensor<2x1x2x1x8xf32>, tensor<1x1x8x8xf32>, tensor<1x2x8xf32>) -> tensor<2x1x2x8xf32>
  %1:3 = func.call @all_of_an_lstm(%lp, %lw, %lh, %q, %l) : (tensor<9x2x2x4x8xf32>, tensor<2x4x8x8xf32>, tensor<2x2x8xf32>, tensor<2x3x8xf32>, tensor<2xi32>) -> (tensor<9x2x2x8xf32>, tensor<2x2x8xf32>, tensor<2x2x8xf32>)
  %2:2 = func.call @two_ways_of_a_gru(%gp, %gw, %h, %b) : (tensor<4x1x2x3x8xf32>, tensor<1x3x8x8xf32>, tensor<1x2x8xf32>, tensor<1x8xf32>) -> (tensor<4x1x2x8xf32>, tensor<1x2x8xf32>)
  return %0, %1#0, %1#1, %1#2, %2#0, %2#1 : tensor<2x1x2x8xf32>, tensor<9x2x2x8xf32>, tensor<2x2x8xf32>, tensor<2x2x8xf32>, tensor<4x1x2x8xf32>, tensor<1x2x8xf32>
}
