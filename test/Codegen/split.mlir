// Products of f32 as three of bf16, in tiles. What this machine can do is run, too: without tiles it is f32 as ever.
// RUN: cleave-kernels %s --isa sapphirerapids --split | FileCheck %s
// RUN: cleave-kernels %s --split --check | FileCheck %s --check-prefix=CHECKED
// CHECKED: 5 passed, 0 failed

// Rows are split, then a panel; then two by two tiles walk the three sums as one.
// CHECK-LABEL: func.func @blocks
// CHECK-COUNT-2: cvtneps2bf16
// CHECK: arith.shli
// CHECK-COUNT-4: tilezero
// CHECK-COUNT-2: tileloadd64
// CHECK-COUNT-2: tdpbf16ps
// CHECK: tileloadd64
// CHECK-COUNT-2: tdpbf16ps
// CHECK-COUNT-4: tilestored64
func.func @blocks(%x: tensor<45x96xf32>, %p: tensor<3x96x16x1xf32>, %bias: tensor<40xf32>) -> tensor<45x40xf32> {
  %w = exec.unpack %p order [0, 1] batch 0 width 16 interleave 1 : (tensor<3x96x16x1xf32>) -> tensor<96x40xf32>
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<45x96xf32>, tensor<96x40xf32>) -> tensor<45x40xf32>
  %1 = nn.add %0, %bias : (tensor<45x40xf32>, tensor<40xf32>) -> tensor<45x40xf32>
  return %1 : tensor<45x40xf32>
}

// CHECK-LABEL: func.func @rows
// CHECK: tdpbf16ps
// More rows than go by while a panel stays; the last block has one.
func.func @rows(%x: tensor<289x64xf32>, %w: tensor<64x72xf32>) -> tensor<289x72xf32> {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<289x64xf32>, tensor<64x72xf32>) -> tensor<289x72xf32>
  return %0 : tensor<289x72xf32>
}

// CHECK-LABEL: func.func @turned
// CHECK: tdpbf16ps
// Columns lie apart: a panel is turned first.
func.func @turned(%x: tensor<2x33x32xf32>, %y: tensor<2x40x32xf32>) -> tensor<2x33x40xf32> {
  %0 = nn.einsum %x, %y "bik,bjk->bij" : (tensor<2x33x32xf32>, tensor<2x40x32xf32>) -> tensor<2x33x40xf32>
  return %0 : tensor<2x33x40xf32>
}

// Few rows gain nothing, and tiles do not go into this depth.
// CHECK-LABEL: func.func @few
// CHECK-NOT: call_intrinsic
// CHECK-LABEL: func.func @odd
// CHECK-NOT: call_intrinsic
func.func @few(%x: tensor<4x64xf32>, %w: tensor<64x64xf32>) -> tensor<4x64xf32> {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  return %0 : tensor<4x64xf32>
}
func.func @odd(%x: tensor<40x50xf32>, %w: tensor<50x64xf32>) -> tensor<40x64xf32> {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<40x50xf32>, tensor<50x64xf32>) -> tensor<40x64xf32>
  return %0 : tensor<40x64xf32>
}
