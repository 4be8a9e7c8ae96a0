// Kernels by name, each once.
//
// RUN: cleave-opt %s --exec-outline | FileCheck %s

// A name that is taken already.
nn.param @add_relu_0 : tensor<8xf32> = dense<1.0> : tensor<8xf32>

// Two layers share a kernel, whatever their nodes and operands are called; another shape has its own.
// CHECK-LABEL: @equal_layers_share
func.func @equal_layers_share(%x: tensor<8xf32>, %w: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  // CHECK: %[[A:.*]] = exec.launch @add_relu_1(%arg0, %arg0)
  %0 = exec.fused (%a = %x, %b = %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    %s = nn.add %a, %b {nn.node = #nn.node<"/0/Add", "Add", [], []>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %r = nn.relu %s : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %r : tensor<8xf32>
  }
  // CHECK: %[[B:.*]] = exec.launch @add_relu_1(%[[A]], %arg0)
  %1 = exec.fused (%a = %0, %b = %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    %s = nn.add %a, %b {nn.node = #nn.node<"/1/Add", "Add", [], []>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %r = nn.relu %s : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %r : tensor<8xf32>
  }
  // CHECK: %[[C:.*]] = exec.launch @add_relu_2(%arg1, %arg1)
  %2 = exec.fused (%a = %w, %b = %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    %s = nn.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %r = nn.relu %s : (tensor<4xf32>) -> tensor<4xf32>
    exec.yield %r : tensor<4xf32>
  }
  // CHECK: return %[[B]], %[[C]]
  return %1, %2 : tensor<8xf32>, tensor<4xf32>
}

// The order of operands, and attributes, are part of what a kernel computes.
// CHECK-LABEL: @almost_equal_ones_do_not
func.func @almost_equal_ones_do_not(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK: exec.launch @sub_0
  %0 = exec.fused (%a = %x, %b = %y) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    %s = nn.sub %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    exec.yield %s : tensor<8xf32>
  }
  // CHECK: exec.launch @sub_1
  %1 = exec.fused (%a = %x, %b = %y) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    %s = nn.sub %b, %a : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    exec.yield %s : tensor<8xf32>
  }
  // CHECK: exec.launch @gelu_0
  %2 = exec.fused (%a = %x) : (tensor<8xf32>) -> tensor<8xf32> {
    %s = nn.gelu %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %s : tensor<8xf32>
  }
  // CHECK: exec.launch @gelu_1
  %3 = exec.fused (%a = %x) : (tensor<8xf32>) -> tensor<8xf32> {
    %s = nn.gelu %a {tanh = true} : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %s : tensor<8xf32>
  }
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// A kernel is called after what it computes, or, if it computes nothing, after what it moves.
// CHECK-LABEL: @a_movement
func.func @a_movement(%x: tensor<8x4xf32>) -> tensor<4x8xf32> {
  // CHECK: exec.launch @transpose_0
  %0 = exec.fused (%a = %x) : (tensor<8x4xf32>) -> tensor<4x8xf32> {
    %s = nn.transpose %a [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
    exec.yield %s : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// The notes of nodes stay with neither layer.
// CHECK: exec.kernel @add_relu_1(
// CHECK-NEXT: nn.add %{{.*}}, %{{.*}} : (tensor<8xf32>
// CHECK-NEXT: nn.relu
// CHECK: exec.kernel @add_relu_2(
// CHECK: exec.kernel @sub_0(
// CHECK: exec.kernel @sub_1(
