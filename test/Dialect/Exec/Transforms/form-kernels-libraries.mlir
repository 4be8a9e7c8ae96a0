// What becomes a library command, where there are libraries.
//
// RUN: cleave-opt %s --exec-form-kernels=libraries=contractions --exec-verify-form | FileCheck %s

// A command ends a kernel, and none goes on behind it.
// CHECK-LABEL: @commands_stand_alone
func.func @commands_stand_alone(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: exec.fused
  // CHECK-NEXT: nn.exp
  // CHECK-NEXT: exec.yield
  // CHECK: exec.matmul {{.*}} "ik,kj->ij"
  // CHECK: exec.fused
  // CHECK-NEXT: nn.neg
  // CHECK-NEXT: nn.add
  %0 = nn.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = nn.einsum %0, %0 "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = nn.neg %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = nn.add %1, %2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// Heads go back to their places while they are written.
// CHECK-LABEL: @a_product_writes_in_the_order_wanted
func.func @a_product_writes_in_the_order_wanted(%p: tensor<2x4x8x8xf32>, %v: tensor<2x4x8x16xf32>) -> tensor<2x8x64xf32> {
  // CHECK-NEXT: exec.matmul %arg0, %arg1 "bhij,bhjd->bihd" : {{.*}} -> tensor<2x8x4x16xf32>
  // CHECK-NEXT: nn.reshape
  // CHECK-NEXT: return
  %0 = nn.einsum %p, %v "bhij,bhjd->bhid" : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %1 = nn.transpose %0 [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  %2 = nn.reshape %1 : (tensor<2x8x4x16xf32>) -> tensor<2x8x64xf32>
  return %2 : tensor<2x8x64xf32>
}

// CHECK-LABEL: @libraries
func.func @libraries(%x: tensor<1x2x8xf32>, %w: tensor<2x2x3xf32>, %q: tensor<1x2x4x8xf32>) -> (tensor<1x2x8xf32>, tensor<1x2x4x8xf32>) {
  // CHECK-NEXT: exec.conv
  // CHECK-NEXT: exec.attention
  // CHECK-NEXT: return
  %0 = nn.conv %x, %w strides [1] pads_low [1] pads_high [1] dilations [1] groups 1 : (tensor<1x2x8xf32>, tensor<2x2x3xf32>) -> tensor<1x2x8xf32>
  %1 = nn.attention %q, %q, %q scale 0.5 : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %0, %1 : tensor<1x2x8xf32>, tensor<1x2x4x8xf32>
}
