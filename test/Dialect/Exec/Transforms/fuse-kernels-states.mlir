// A state and what is new, put together: a command, which moves the state where it lies.
//
// RUN: cleave-opt %s --split-input-file --exec-fuse-kernels | FileCheck %s

// CHECK-LABEL: @grows
// CHECK: %[[NEW:.*]] = exec.fused
// CHECK: %[[ALL:.*]] = exec.append %arg0, %[[NEW]] dim 1
// CHECK: exec.fused ({{.*}} = %[[ALL]]
func.func @grows(%past: tensor<2x3x4xf32> {nn.name = "past"}, %x: tensor<1x2x4xf32>)
    -> (tensor<2x4x4xf32> {spmd.state = "past"}, tensor<2x4x4xf32>) {
  %t = nn.transpose %x [1, 0, 2] : (tensor<1x2x4xf32>) -> tensor<2x1x4xf32>
  %new = nn.exp %t : (tensor<2x1x4xf32>) -> tensor<2x1x4xf32>
  %all = nn.concat %past, %new dim 1 : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  %y = nn.relu %all : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return %all, %y : tensor<2x4x4xf32>, tensor<2x4x4xf32>
}

// -----

// No state, or one in front of which something comes: a kernel like any other.
// CHECK-LABEL: @other_concats
// CHECK-NOT: exec.append
// CHECK: return
func.func @other_concats(%past: tensor<2x3x4xf32> {nn.name = "past"}, %new: tensor<2x1x4xf32>)
    -> (tensor<2x4x4xf32> {spmd.state = "past"}, tensor<2x4x4xf32>) {
  %a = nn.concat %new, %past dim 1 : (tensor<2x1x4xf32>, tensor<2x3x4xf32>) -> tensor<2x4x4xf32>
  %b = nn.concat %past, %new dim 1 : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  return %a, %b : tensor<2x4x4xf32>, tensor<2x4x4xf32>
}
