// RUN: cleave-opt %s --exec-lower=last=outlined --exec-plan-memory | FileCheck %s --check-prefixes=CHECK,HOST
// RUN: cleave-opt %s --exec-lower=last=outlined --exec-plan-memory=devices | FileCheck %s --check-prefixes=CHECK,DEVICE

// One thread of the host reads a row before it stores any of it. Of a device's threads those without a row read that of
// another: 3 rows are fewer than a block has.
// CHECK-LABEL: func.func @main
// HOST: exec.kernel @softmax_0({{.*}}) attributes {in_place = array<i64: 0>}
// DEVICE: exec.kernel @softmax_0(%{{[^)]*}}) {
func.func @main(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = nn.cumsum %x dim 1 : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %1 = nn.softmax %0 dim 1 : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %2 = nn.cumsum %1 dim 1 : (tensor<3x5xf32>) -> tensor<3x5xf32>
  return %2 : tensor<3x5xf32>
}
