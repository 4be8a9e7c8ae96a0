// A reduction that a device takes out of a kernel leaves results of two numbers of elements, which no thread has in common: the whole
// rows that were reduced, and what is made of their sums.
//
// RUN: cleave-opt %s --exec-split-kernels --exec-verify-form | FileCheck %s

// CHECK-LABEL: func.func @rows_and_what_is_made_of_their_sums
// CHECK: nn.reduce sum
// CHECK: exec.yield %{{.*}} : tensor<2x1x1xf32>
// CHECK: exec.yield %{{.*}} : tensor<2x2x4x1xf32>
// CHECK: nn.bitcast
// CHECK-NEXT: exec.yield %{{.*}} : tensor<2x1x1xi32>
func.func @rows_and_what_is_made_of_their_sums(%x: tensor<4x2x2x1xf32>) -> (tensor<2x2x4x1xf32>, tensor<2x1x1xi32>) {
  %0:2 = exec.fused (%a = %x) : (tensor<4x2x2x1xf32>) -> (tensor<2x2x4x1xf32>, tensor<2x1x1xi32>) {
    %1 = nn.transpose %a [1, 2, 0, 3] : (tensor<4x2x2x1xf32>) -> tensor<2x2x4x1xf32>
    %2 = nn.reshape %1 : (tensor<2x2x4x1xf32>) -> tensor<2x2x4xf32>
    %3 = nn.reduce sum %2 dims [1, 2] keep_dims : (tensor<2x2x4xf32>) -> tensor<2x1x1xf32>
    %4 = nn.bitcast %3 : (tensor<2x1x1xf32>) -> tensor<2x1x1xi32>
    exec.yield %1, %4 : tensor<2x2x4x1xf32>, tensor<2x1x1xi32>
  }
  return %0#0, %0#1 : tensor<2x2x4x1xf32>, tensor<2x1x1xi32>
}
