// A pass may be named as it was called before, with its options: docs/glossary.md says what it is called now.
// RUN: cleave-opt %s --exec-fuse-kernels=for-devices > %t.now
// RUN: cleave-opt %s --exec-form-kernels=for-devices > %t.before
// RUN: diff %t.now %t.before
// RUN: cleave-opt %s --pass-pipeline="builtin.module(exec-form-kernels)" | FileCheck %s

// CHECK-LABEL: @two_ops_are_one_kernel
// CHECK: exec.fused
// CHECK-NOT: exec.fused
func.func @two_ops_are_one_kernel(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
