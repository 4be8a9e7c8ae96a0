// RUN: cleave-opt %s --exec-form-kernels --exec-split-kernels --exec-verify-form | FileCheck %s
// RUN: cleave-opt %s --exec-form-kernels --exec-split-kernels --exec-outline -o %t.mlir
// RUN: cleave-kernels %t.mlir --target cuda:sm_90 --check | FileCheck %s --check-prefix=RAN
// RAN: 7 passed, 0 failed

// What fills by itself is a kernel, and what reads it another.
// CHECK-LABEL: @scanned
func.func @scanned(%x: tensor<2x6x40xf32>) -> tensor<2x6x40xf32> {
  // CHECK: %[[S:.*]] = exec.fused (%{{.*}} = %arg0)
  // CHECK-NEXT: nn.cumsum
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[S]])
  // CHECK-NEXT: nn.relu
  // CHECK-NEXT: exec.yield
  %0 = nn.cumsum %x dim 2 : (tensor<2x6x40xf32>) -> tensor<2x6x40xf32>
  %1 = nn.relu %0 : (tensor<2x6x40xf32>) -> tensor<2x6x40xf32>
  return %1 : tensor<2x6x40xf32>
}

// Groups of channels are no rows of the result: mean, variance, then the rest.
// CHECK-LABEL: @grouped
func.func @grouped(%x: tensor<2x8x5x5xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x8x5x5xf32> {
  // CHECK: %[[M:.*]] = exec.fused (%{{.*}} = %arg0)
  // CHECK: nn.reduce mean
  // CHECK: %[[V:.*]] = exec.fused (%{{.*}} = %arg0, %{{.*}} = %[[M]])
  // CHECK: nn.reduce mean
  // CHECK: exec.fused (%{{.*}} = %arg0, %{{.*}} = %[[M]], %{{.*}} = %[[V]]
  // CHECK-NOT: nn.reduce
  // CHECK: exec.yield
  %0 = nn.group_norm %x, %s, %b groups 4 epsilon 1.0e-5 : (tensor<2x8x5x5xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8x5x5xf32>
  return %0 : tensor<2x8x5x5xf32>
}

// A reduction over neighbouring dims is rows; nothing is split.
// CHECK-LABEL: @whole
func.func @whole(%x: tensor<4x3x5xf32>) -> tensor<4xf32> {
  // CHECK: exec.fused
  // CHECK-NEXT: nn.reduce
  // CHECK-NOT: exec.fused
  // CHECK: return
  %0 = nn.reduce sum %x dims [1, 2] : (tensor<4x3x5xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// An op that fills by itself writes all of its results, wanted or not.
// CHECK-LABEL: @unwanted
func.func @unwanted(%x: tensor<64xf32>) -> tensor<64xf32> {
  // CHECK: exec.fused (%{{.*}} = %arg0) : (tensor<64xf32>) -> (tensor<64xf32>, tensor<64xi64>)
  // CHECK-NOT: exec.fused
  // CHECK: return
  %0, %1 = nn.top_k %x k 64 dim 0 smallest : (tensor<64xf32>) -> (tensor<64xf32>, tensor<64xi64>)
  return %0 : tensor<64xf32>
}
