// The next value of a state stands where its gradient is there, and where nobody reads the old one any more.
//
// RUN: cleave-opt %s --split-input-file --exec-advance-updates | FileCheck %s

// Each update goes up to behind its gradient.
// CHECK-LABEL: @behind_its_gradient
// CHECK: %[[G1:.*]] = nn.einsum %arg1, %arg1
// CHECK-NEXT: %[[N1:.*]] = nn.sub %arg3, %[[G1]]
// CHECK-NEXT: %[[G0:.*]] = nn.einsum %arg0, %[[G1]]
// CHECK-NEXT: %[[N0:.*]] = nn.sub %arg2, %[[G0]]
// CHECK-NEXT: return %[[N0]], %[[N1]]
func.func @behind_its_gradient(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %w: tensor<4x4xf32> {nn.name = "w"}, %v: tensor<4x4xf32> {nn.name = "v"})
    -> (tensor<4x4xf32> {spmd.state = "w"}, tensor<4x4xf32> {spmd.state = "v"}) {
  %g1 = nn.einsum %y, %y "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %g0 = nn.einsum %x, %g1 "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %n0 = nn.sub %w, %g0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %n1 = nn.sub %v, %g1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %n0, %n1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Who reads the old value comes first, with all of its kernel: else the next one could not be made in its place.
// CHECK-LABEL: @behind_other_readers
// CHECK: %[[G:.*]] = nn.einsum %arg0, %arg0
// CHECK-NEXT: %[[D:.*]] = nn.einsum %[[G]], %arg1
// CHECK-NEXT: %[[E:.*]] = nn.exp %[[D]]
// CHECK-NEXT: nn.sub %arg1, %[[G]]
// CHECK-NEXT: nn.einsum %[[E]]
func.func @behind_other_readers(%x: tensor<4x4xf32>, %w: tensor<4x4xf32> {nn.name = "w"}) -> (tensor<4x4xf32> {spmd.state = "w"}, tensor<4x4xf32>) {
  %g = nn.einsum %x, %x "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %d = nn.einsum %g, %w "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = nn.exp %d : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %f = nn.einsum %e, %x "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = nn.sub %w, %g : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %n, %f : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// What waits for other ranks waits as long as it did; others have begun meanwhile.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  // CHECK-LABEL: @what_is_reduced_is_waited_for_late
  // CHECK: spmd.all_reduce
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: nn.sub %arg1
  func.func @what_is_reduced_is_waited_for_late(%x: tensor<4x4xf32>, %w: tensor<4x4xf32> {nn.name = "w"}) -> (tensor<4x4xf32> {spmd.state = "w"}, tensor<4x4xf32>) {
    %p = nn.einsum %x, %x "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %g = spmd.all_reduce sum %p over {"x"} : tensor<4x4xf32>
    %e = nn.einsum %x, %p "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %n = nn.sub %w, %g : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %n, %e : tensor<4x4xf32>, tensor<4x4xf32>
  }
}

// -----

// A rate that is a result stands in nobody's way.
// CHECK-LABEL: @a_rate
// CHECK: %[[G1:.*]] = nn.einsum %arg0, %arg0
// CHECK-NEXT: nn.add %arg1
// CHECK-NEXT: nn.mul %[[G1]]
// CHECK-NEXT: nn.sub %arg2
// CHECK-NEXT: nn.einsum %[[G1]]
func.func @a_rate(%x: tensor<4x4xf32>, %n: tensor<f32>, %w: tensor<4x4xf32> {nn.name = "w"}) -> (tensor<4x4xf32>, tensor<f32>, tensor<4x4xf32> {spmd.state = "w"}) {
  %g = nn.einsum %x, %x "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = nn.einsum %g, %x "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = nn.add %n, %n : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %s = nn.mul %g, %r : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %m = nn.sub %w, %s : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y, %r, %m : tensor<4x4xf32>, tensor<f32>, tensor<4x4xf32>
}

// -----

// A gradient reads the old value turned around: it is its kernel that has to come first.
// CHECK-LABEL: @behind_readers_of_what_is_moved
// CHECK: %[[G:.*]] = nn.einsum %arg0, %arg0
// CHECK-NEXT: %[[T:.*]] = nn.transpose %arg1
// CHECK-NEXT: %[[S:.*]] = nn.slice %[[T]]
// CHECK-NEXT: nn.einsum %[[G]], %[[S]]
// CHECK-NEXT: nn.sub %arg1, %[[G]]
// CHECK-NEXT: nn.exp
func.func @behind_readers_of_what_is_moved(%x: tensor<4x4xf32>, %w: tensor<4x4xf32> {nn.name = "w"}) -> (tensor<4x4xf32> {spmd.state = "w"}, tensor<4x4xf32>) {
  %g = nn.einsum %x, %x "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = nn.transpose %w [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = nn.slice %t starts [0, 3] sizes [4, 4] steps [1, -1] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %d = nn.einsum %g, %s "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %u = nn.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = nn.einsum %d, %u "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = nn.sub %w, %g : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %n, %e : tensor<4x4xf32>, tensor<4x4xf32>
}
