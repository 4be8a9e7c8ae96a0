// RUN: cleave-opt %s --nn-split-weights | FileCheck %s

nn.param @w : tensor<64x96xf32> = dense<1.0> : tensor<64x96xf32>
nn.param @b : tensor<96xf32> = dense<1.0> : tensor<96xf32>

// Fused query and value: each gets its part of weight and bias.
// CHECK-LABEL: @slices_of_a_fused_projection
// CHECK-DAG: %[[W0:.*]] = nn.load @w starts [0, 0] sizes [64, 32] : tensor<64x32xf32>
// CHECK-DAG: %[[W1:.*]] = nn.load @w starts [0, 32] sizes [64, 64] : tensor<64x64xf32>
// CHECK-DAG: %[[B0:.*]] = nn.load @b starts [0] sizes [32] : tensor<32xf32>
// CHECK-DAG: %[[B1:.*]] = nn.load @b starts [32] sizes [64] : tensor<64xf32>
// CHECK: %[[D0:.*]] = nn.einsum %{{.*}}, %[[W0]] {{.*}} -> tensor<8x32xf32>
// CHECK: nn.add %[[D0]], %[[B0]] {{.*}} -> tensor<8x32xf32>
// CHECK: %[[D1:.*]] = nn.einsum %{{.*}}, %[[W1]] {{.*}} -> tensor<8x64xf32>
// CHECK: nn.add %[[D1]], %[[B1]] {{.*}} -> tensor<8x64xf32>
// CHECK-NOT: tensor<8x96xf32>
func.func @slices_of_a_fused_projection(%x: tensor<8x64xf32>) -> (tensor<8x32xf32>, tensor<8x64xf32>) {
  %w = nn.load @w : tensor<64x96xf32>
  %b = nn.load @b : tensor<96xf32>
  %d = nn.einsum %x, %w "ab,bc->ac" : (tensor<8x64xf32>, tensor<64x96xf32>) -> tensor<8x96xf32>
  %y = nn.add %d, %b : (tensor<8x96xf32>, tensor<96xf32>) -> tensor<8x96xf32>
  %q = nn.slice %y starts [0, 0] sizes [8, 32] steps [1, 1] : (tensor<8x96xf32>) -> tensor<8x32xf32>
  %v = nn.slice %y starts [0, 32] sizes [8, 64] steps [1, 1] : (tensor<8x96xf32>) -> tensor<8x64xf32>
  return %q, %v : tensor<8x32xf32>, tensor<8x64xf32>
}

// What a plan wants of the weight it wants of each part: every part is under a pin of the weight's name.
// CHECK-LABEL: @pinned_weights_are_pinned_in_parts
// CHECK-DAG: %[[P0:.*]] = nn.load @w starts [0, 0] sizes [64, 32]
// CHECK-DAG: %[[P1:.*]] = nn.load @w starts [0, 32] sizes [64, 64]
// CHECK: %[[W0:.*]] = spmd.pin %[[P0]] "w" : tensor<64x32xf32>
// CHECK: nn.einsum %{{.*}}, %[[W0]]
// CHECK: %[[W1:.*]] = spmd.pin %[[P1]] "w" : tensor<64x64xf32>
// CHECK: nn.einsum %{{.*}}, %[[W1]]
func.func @pinned_weights_are_pinned_in_parts(%x: tensor<8x64xf32>) -> (tensor<8x32xf32>, tensor<8x64xf32>) {
  %w = nn.load @w : tensor<64x96xf32>
  %p = spmd.pin %w "w" : tensor<64x96xf32>
  %d = nn.einsum %x, %p "ab,bc->ac" : (tensor<8x64xf32>, tensor<64x96xf32>) -> tensor<8x96xf32>
  %q = nn.slice %d starts [0, 0] sizes [8, 32] steps [1, 1] : (tensor<8x96xf32>) -> tensor<8x32xf32>
  %v = nn.slice %d starts [0, 32] sizes [8, 64] steps [1, 1] : (tensor<8x96xf32>) -> tensor<8x64xf32>
  return %q, %v : tensor<8x32xf32>, tensor<8x64xf32>
}

// A weight that is read as a whole too is stored once, as a whole.
// CHECK-LABEL: @shared_weights_are_sliced
// CHECK: %[[W:.*]] = nn.load @w : tensor<64x96xf32>
// CHECK: nn.slice %[[W]] starts [0, 0] sizes [64, 32] steps [1, 1]
// CHECK: nn.slice %[[W]] starts [0, 32] sizes [64, 64] steps [1, 1]
func.func @shared_weights_are_sliced(%x: tensor<8x64xf32>) -> (tensor<8x32xf32>, tensor<8x64xf32>, tensor<64x96xf32>) {
  %w = nn.load @w : tensor<64x96xf32>
  %d = nn.einsum %x, %w "ab,bc->ac" : (tensor<8x64xf32>, tensor<64x96xf32>) -> tensor<8x96xf32>
  %q = nn.slice %d starts [0, 0] sizes [8, 32] steps [1, 1] : (tensor<8x96xf32>) -> tensor<8x32xf32>
  %v = nn.slice %d starts [0, 32] sizes [8, 64] steps [1, 1] : (tensor<8x96xf32>) -> tensor<8x64xf32>
  %n = nn.neg %w : (tensor<64x96xf32>) -> tensor<64x96xf32>
  return %q, %v, %n : tensor<8x32xf32>, tensor<8x64xf32>, tensor<64x96xf32>
}

// A value on the way that something else reads needs the whole dot anyway; so does a sliced value with another user.
// CHECK-LABEL: @a_dot_that_is_read_on_the_way_stays
// CHECK: %[[D:.*]] = nn.einsum {{.*}} -> tensor<8x96xf32>
// CHECK: nn.add %[[D]], {{.*}} -> tensor<8x96xf32>
// CHECK: nn.neg %[[D]]
// CHECK-NOT: nn.einsum
func.func @a_dot_that_is_read_on_the_way_stays(%x: tensor<8x64xf32>) -> (tensor<8x32xf32>, tensor<8x64xf32>, tensor<8x96xf32>) {
  %w = nn.load @w : tensor<64x96xf32>
  %b = nn.load @b : tensor<96xf32>
  %d = nn.einsum %x, %w "ab,bc->ac" : (tensor<8x64xf32>, tensor<64x96xf32>) -> tensor<8x96xf32>
  %y = nn.add %d, %b : (tensor<8x96xf32>, tensor<96xf32>) -> tensor<8x96xf32>
  %q = nn.slice %y starts [0, 0] sizes [8, 32] steps [1, 1] : (tensor<8x96xf32>) -> tensor<8x32xf32>
  %v = nn.slice %y starts [0, 32] sizes [8, 64] steps [1, 1] : (tensor<8x96xf32>) -> tensor<8x64xf32>
  %n = nn.neg %d : (tensor<8x96xf32>) -> tensor<8x96xf32>
  return %q, %v, %n : tensor<8x32xf32>, tensor<8x64xf32>, tensor<8x96xf32>
}

// Overlapping pieces would compute columns twice.
// CHECK-LABEL: @overlapping_slices_stay
// CHECK: nn.einsum {{.*}} -> tensor<8x96xf32>
func.func @overlapping_slices_stay(%x: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>) {
  %w = nn.load @w : tensor<64x96xf32>
  %d = nn.einsum %x, %w "ab,bc->ac" : (tensor<8x64xf32>, tensor<64x96xf32>) -> tensor<8x96xf32>
  %q = nn.slice %d starts [0, 0] sizes [8, 64] steps [1, 1] : (tensor<8x96xf32>) -> tensor<8x64xf32>
  %v = nn.slice %d starts [0, 32] sizes [8, 64] steps [1, 1] : (tensor<8x96xf32>) -> tensor<8x64xf32>
  return %q, %v : tensor<8x64xf32>, tensor<8x64xf32>
}

// The wide dim stems from an activation.
// CHECK-LABEL: @slices_of_an_activation_stay
// CHECK: nn.einsum {{.*}} -> tensor<8x96xf32>
func.func @slices_of_an_activation_stay(%x: tensor<8x64xf32>, %w: tensor<64x96xf32>) -> (tensor<8x32xf32>, tensor<8x64xf32>) {
  %d = nn.einsum %x, %w "ab,bc->ac" : (tensor<8x64xf32>, tensor<64x96xf32>) -> tensor<8x96xf32>
  %q = nn.slice %d starts [0, 0] sizes [8, 32] steps [1, 1] : (tensor<8x96xf32>) -> tensor<8x32xf32>
  %v = nn.slice %d starts [0, 32] sizes [8, 64] steps [1, 1] : (tensor<8x96xf32>) -> tensor<8x64xf32>
  return %q, %v : tensor<8x32xf32>, tensor<8x64xf32>
}

#mesh = #spmd.mesh<["a"=2]>
#units = #spmd.sharding<#mesh, [{}, {"a"}, {}]>
#columns = #spmd.sharding<#mesh, [{}, {}, {"a"}]>
nn.param @r : tensor<1x32x8xf32> = dense<0.5> : tensor<1x32x8xf32>
nn.param @s : tensor<1x24x4xf32> = dense<0.5> : tensor<1x24x4xf32>

// A plan that splits the gates of a recurrent net, one behind the other in the parameter, splits the units of each.
// CHECK-LABEL: @gates_are_cut_one_by_one
// CHECK: %[[I:.*]] = nn.load @r starts [0, 0, 0] sizes [1, 8, 8]
// CHECK: nn.load @r starts [0, 8, 0] sizes [1, 8, 8]
// CHECK: nn.load @r starts [0, 16, 0] sizes [1, 8, 8]
// CHECK: nn.load @r starts [0, 24, 0] sizes [1, 8, 8]
// CHECK: %[[P:.*]] = spmd.pin %[[I]] "r" wants
// CHECK: %[[G:.*]] = nn.reshape %[[P]] : {{.*}} -> tensor<1x1x8x8xf32>
// CHECK: nn.concat %[[G]], {{.*}} dim 1 : {{.*}} -> tensor<1x4x8x8xf32>
func.func @gates_are_cut_one_by_one(%x: tensor<5x1x3x4x8xf32>, %h: tensor<1x3x8xf32>) -> tensor<5x1x3x8xf32> {
  %w = nn.load @r : tensor<1x32x8xf32>
  %p = spmd.pin %w "r" wants <#units, loc("p.yaml":3:5), loc("p.yaml":3:14)> : tensor<1x32x8xf32>
  %r = nn.reshape %p : (tensor<1x32x8xf32>) -> tensor<1x4x8x8xf32>
  %0:3 = nn.recurrence lstm %x, %r initial (%h, %h) activations ["sigmoid", "tanh", "tanh"] alphas [0.0, 0.0, 0.0] betas [0.0, 0.0, 0.0] : (tensor<5x1x3x4x8xf32>, tensor<1x4x8x8xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> (tensor<5x1x3x8xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>)
  return %0#0 : tensor<5x1x3x8xf32>
}

// So are those that are multiplied with the input; without an annotation for gates the weight stays as it is.
// CHECK-LABEL: @gates_of_the_input
// CHECK: nn.load @s starts [0, 0, 0] sizes [1, 8, 4]
// CHECK: nn.load @s starts [0, 16, 0] sizes [1, 8, 4]
// CHECK: %[[W:.*]] = nn.load @r : tensor<1x32x8xf32>
// CHECK: spmd.pin %[[W]]
func.func @gates_of_the_input(%x: tensor<5x3x4xf32>, %h: tensor<1x3x8xf32>, %b: tensor<1x1x3x8xf32>, %z: tensor<5x1x3x4x8xf32>) -> (tensor<5x1x3x8xf32>, tensor<5x1x3x8xf32>) {
  %v = nn.load @s : tensor<1x24x4xf32>
  %o = spmd.pin %v "s" wants <#units, loc("p.yaml":3:5), loc("p.yaml":3:14)> : tensor<1x24x4xf32>
  %s = nn.reshape %o : (tensor<1x24x4xf32>) -> tensor<1x3x8x4xf32>
  %e = nn.einsum %x, %s "tbi,dghi->tdbgh" : (tensor<5x3x4xf32>, tensor<1x3x8x4xf32>) -> tensor<5x1x3x3x8xf32>
  %y = nn.add %e, %b : (tensor<5x1x3x3x8xf32>, tensor<1x1x3x8xf32>) -> tensor<5x1x3x3x8xf32>
  %u = nn.load @t : tensor<1x3x8x8xf32>
  %0:2 = nn.recurrence gru %y, %u initial (%h) activations ["sigmoid", "tanh"] alphas [0.0, 0.0] betas [0.0, 0.0] : (tensor<5x1x3x3x8xf32>, tensor<1x3x8x8xf32>, tensor<1x3x8xf32>) -> (tensor<5x1x3x8xf32>, tensor<1x3x8xf32>)
  %w = nn.load @r : tensor<1x32x8xf32>
  %p = spmd.pin %w "r" wants <#columns, loc("p.yaml":3:5), loc("p.yaml":3:14)> : tensor<1x32x8xf32>
  %r = nn.reshape %p : (tensor<1x32x8xf32>) -> tensor<1x4x8x8xf32>
  %1:3 = nn.recurrence lstm %z, %r initial (%h, %h) activations ["sigmoid", "tanh", "tanh"] alphas [0.0, 0.0, 0.0] betas [0.0, 0.0, 0.0] : (tensor<5x1x3x4x8xf32>, tensor<1x4x8x8xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> (tensor<5x1x3x8xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>)
  return %0#0, %1#0 : tensor<5x1x3x8xf32>, tensor<5x1x3x8xf32>
}

nn.param @t : tensor<1x3x8x8xf32> = dense<0.5> : tensor<1x3x8x8xf32>
