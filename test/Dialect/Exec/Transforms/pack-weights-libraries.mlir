// Filters with channels last, for libraries of devices.
//
// RUN: cleave-opt %s --exec-fuse-kernels --exec-use-libraries --exec-pack-weights=libraries=true --exec-verify-form | FileCheck %s

nn.param @w : tensor<8x4x3x3xf32> = dense<1.0> : tensor<8x4x3x3xf32>
nn.param @m : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>

// Where input and result have channels last.
// CHECK-LABEL: @last
func.func @last(%x: tensor<1x6x6x4xf32>) -> tensor<1x4x4x8xf32> {
  // CHECK: %[[P:.*]] = exec.pack %{{.*}} order [0, 2, 3, 1] batch 0 width 0 interleave 1 : (tensor<8x4x3x3xf32>) -> tensor<8x3x3x4xf32>
  // CHECK: exec.fused (%{{.*}} = %arg0, %[[A:.*]] = %[[P]])
  // CHECK-NEXT: exec.unpack %[[A]] order [0, 2, 3, 1]
  %w = nn.load @w : tensor<8x4x3x3xf32>
  %0 = nn.transpose %x [0, 3, 1, 2] : (tensor<1x6x6x4xf32>) -> tensor<1x4x6x6xf32>
  %1 = nn.conv %0, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x4x4xf32>
  %2 = nn.transpose %1 [0, 2, 3, 1] : (tensor<1x8x4x4xf32>) -> tensor<1x4x4x8xf32>
  return %2 : tensor<1x4x4x8xf32>
}

// Channels first stay so, and so does a matrix.
// CHECK-LABEL: @first
func.func @first(%x: tensor<1x4x6x6xf32>, %y: tensor<4x16xf32>) -> (tensor<1x8x4x4xf32>, tensor<4x8xf32>) {
  // CHECK-NOT: exec.pack
  // CHECK: return
  %w = nn.load @w : tensor<8x4x3x3xf32>
  %m = nn.load @m : tensor<16x8xf32>
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x4x4xf32>
  %1 = nn.einsum %y, %m "ik,kj->ij" : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  return %0, %1 : tensor<1x8x4x4xf32>, tensor<4x8xf32>
}
