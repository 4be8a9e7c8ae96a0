// Channels last, from the first convolution on.
//
// RUN: cleave-opt %s --exec-choose-layouts | FileCheck %s
// RUN: cleave-opt %s --exec-choose-layouts=for-devices | FileCheck %s --check-prefix=DEVICES
// RUN: cleave-opt %s --exec-choose-layouts --exec-fuse-kernels --exec-outline --exec-verify-form=form=outlined | FileCheck %s --check-prefix=KERNELS
// RUN: cleave-opt %s --exec-choose-layouts --exec-lower=last=outlined -o %t.mlir
// RUN: cleave run %t.mlir --against %s | FileCheck %s --check-prefix=RAN
// RAN-COUNT-6: ok
// RAN-NOT: wrong

// The image is transposed once, what leaves as it came once; in between each kernel reads and writes channels last.
// CHECK-LABEL: @main
// CHECK-DAG: %[[X:.*]] = nn.transpose %arg0 [0, 2, 3, 1]
// CHECK-DAG: %[[B:.*]] = nn.reshape %arg2 : (tensor<11x1x1xf32>) -> tensor<1x11x1x1xf32>
// CHECK-DAG: %[[BL:.*]] = nn.transpose %[[B]] [0, 2, 3, 1]
// CHECK: %[[XF:.*]] = nn.transpose %[[X]] [0, 3, 1, 2]
// CHECK: nn.conv %[[XF]], %arg1
// CHECK: nn.batch_norm
// CHECK-NEXT: %[[A:.*]] = nn.transpose %{{.*}} [0, 2, 3, 1] {{.*}} -> tensor<2x8x6x9xf32>
// CHECK-NEXT: %[[R:.*]] = nn.relu %[[A]] : (tensor<2x8x6x9xf32>)
// CHECK: nn.pool max
// CHECK: %[[P:.*]] = nn.transpose {{.*}} -> tensor<2x8x6x9xf32>
// CHECK: %[[S:.*]] = nn.slice %[[P]] starts [0, 0, 0, 2] sizes [2, 8, 6, 2] steps [1, 1, 1, 1]
// CHECK: %[[C:.*]] = nn.concat %[[R]], %[[S]] dim 3
// CHECK: %[[G:.*]] = nn.reduce mean %[[C]] dims [1, 2] keep_dims : (tensor<2x8x6x11xf32>) -> tensor<2x1x1x11xf32>
// CHECK: %[[M:.*]] = nn.mul %[[C]], %[[G]]
// CHECK: %[[Y:.*]] = nn.add %[[M]], %[[BL]]
// CHECK: nn.pad constant %[[Y]] low [0, 1, 0, 0] high [0, 0, 2, 0]
// CHECK: nn.softmax %{{.*}} dim 3
// CHECK: nn.reduce sum %[[Y]] dims [1, 2] : (tensor<2x8x6x11xf32>) -> tensor<2x11xf32>
// CHECK: return

// KERNELS-LABEL: @main
// KERNELS: exec.launch @transpose_0(%arg0)
// KERNELS-NEXT: exec.launch @conv_batch_norm_relu_0
// KERNELS-NOT: exec.launch @transpose_0
// KERNELS: exec.kernel @conv_batch_norm_relu_0
// KERNELS-NEXT: nn.transpose %{{.*}} [0, 3, 1, 2]
// KERNELS-NEXT: nn.conv
// KERNELS: nn.batch_norm
// KERNELS-NEXT: nn.relu
// KERNELS-NEXT: nn.transpose %{{.*}} [0, 2, 3, 1]
// KERNELS-NEXT: exec.yield
func.func @main(%x: tensor<2x3x8x6xf32>, %w: tensor<9x3x3x3xf32>, %b: tensor<11x1x1xf32>, %v: tensor<9xf32>, %o: tensor<2x8x6x5xf32>, %f: tensor<9x5x3x3xf32>)
    -> (tensor<2x11x8x6xf32>, tensor<2x11x9x8xf32>, tensor<2x11x8x6xf32>, tensor<2x11xf32>, tensor<2x8x6x11xf32>, tensor<2x8x6x9xf32>) {
  %0 = nn.conv %x, %w strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<2x3x8x6xf32>, tensor<9x3x3x3xf32>) -> tensor<2x9x8x6xf32>
  %pos = nn.constant dense<1.5> : tensor<9xf32> -> tensor<9xf32>
  %1 = nn.batch_norm %0, %v, %v, %v, %pos epsilon 1.0e-3 : (tensor<2x9x8x6xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>) -> tensor<2x9x8x6xf32>
  %2 = nn.relu %1 : (tensor<2x9x8x6xf32>) -> tensor<2x9x8x6xf32>
  %3 = nn.pool max %2 kernel [3, 3] strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] : (tensor<2x9x8x6xf32>) -> tensor<2x9x8x6xf32>
  %4 = nn.slice %3 starts [0, 2, 0, 0] sizes [2, 2, 8, 6] steps [1, 1, 1, 1] : (tensor<2x9x8x6xf32>) -> tensor<2x2x8x6xf32>
  %5 = nn.concat %2, %4 dim 1 : (tensor<2x9x8x6xf32>, tensor<2x2x8x6xf32>) -> tensor<2x11x8x6xf32>
  %6 = nn.reduce mean %5 dims [2, 3] keep_dims : (tensor<2x11x8x6xf32>) -> tensor<2x11x1x1xf32>
  %7 = nn.mul %5, %6 : (tensor<2x11x8x6xf32>, tensor<2x11x1x1xf32>) -> tensor<2x11x8x6xf32>
  %8 = nn.add %7, %b : (tensor<2x11x8x6xf32>, tensor<11x1x1xf32>) -> tensor<2x11x8x6xf32>
  %9 = nn.pad constant %8 low [0, 0, 1, 0] high [0, 0, 0, 2] : (tensor<2x11x8x6xf32>) -> tensor<2x11x9x8xf32>
  %10 = nn.softmax %8 dim 1 : (tensor<2x11x8x6xf32>) -> tensor<2x11x8x6xf32>
  %11 = nn.reduce sum %8 dims [2, 3] : (tensor<2x11x8x6xf32>) -> tensor<2x11xf32>
  // The model's own transposes go where they undo ours.
  %12 = nn.transpose %8 [0, 2, 3, 1] : (tensor<2x11x8x6xf32>) -> tensor<2x8x6x11xf32>
  %13 = nn.transpose %o [0, 3, 1, 2] : (tensor<2x8x6x5xf32>) -> tensor<2x5x8x6xf32>
  %14 = nn.conv %13, %f strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<2x5x8x6xf32>, tensor<9x5x3x3xf32>) -> tensor<2x9x8x6xf32>
  %15 = nn.transpose %14 [0, 2, 3, 1] : (tensor<2x9x8x6xf32>) -> tensor<2x8x6x9xf32>
  return %8, %9, %10, %11, %12, %15 : tensor<2x11x8x6xf32>, tensor<2x11x9x8xf32>, tensor<2x11x8x6xf32>, tensor<2x11xf32>, tensor<2x8x6x11xf32>, tensor<2x8x6x9xf32>
}

// What has no channels is left alone: there is no convolution.
// CHECK-LABEL: @no_convolution
func.func @no_convolution(%x: tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32> {
  // CHECK-NEXT: nn.pool
  // CHECK-NEXT: return
  %0 = nn.pool max %x kernel [2, 2] strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32>
  return %0 : tensor<1x2x4x4xf32>
}

// The way back through dims of one element is no transpose, and neither is the one to the features' order of a text reader.
// CHECK-LABEL: @a_line_of_text
func.func @a_line_of_text(%x: tensor<1x1x40x3xf32>, %w: tensor<9x3x1x1xf32>) -> tensor<1x40x9xf32> {
  // CHECK: nn.conv
  // CHECK-NEXT: %[[L:.*]] = nn.transpose %{{.*}} [0, 2, 3, 1]
  // CHECK-NOT: nn.transpose
  // CHECK: nn.reshape
  // CHECK-NEXT: return
  %0 = nn.transpose %x [0, 3, 1, 2] : (tensor<1x1x40x3xf32>) -> tensor<1x3x1x40xf32>
  %1 = nn.conv %0, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x3x1x40xf32>, tensor<9x3x1x1xf32>) -> tensor<1x9x1x40xf32>
  %2 = nn.reshape %1 : (tensor<1x9x1x40xf32>) -> tensor<1x9x40xf32>
  %3 = nn.transpose %2 [0, 2, 1] : (tensor<1x9x40xf32>) -> tensor<1x40x9xf32>
  return %3 : tensor<1x40x9xf32>
}

// Channels are resized before rows and columns: with channels last they would come after these, and sums round otherwise.
// CHECK-LABEL: @channels_are_resized_first
func.func @channels_are_resized_first(%x: tensor<1x8x8x8xf32>, %w: tensor<8x8x1x1xf32>) -> tensor<1x16x16x8xf32> {
  // CHECK: %[[C:.*]] = nn.conv
  // CHECK: %[[L:.*]] = nn.transpose %[[C]] [0, 2, 3, 1]
  // CHECK: %[[F:.*]] = nn.transpose %[[L]] [0, 3, 1, 2]
  // CHECK: nn.resize linear %[[F]] {{.*}} scales [1.000000e+00, 2.000000e+00, 2.000000e+00, 1.000000e+00]
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x8x8x8xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x8x8xf32>
  %1 = nn.resize linear %0 coordinates half_pixel rounding floor scales [1.0, 2.0, 2.0, 1.0] : (tensor<1x8x8x8xf32>) -> tensor<1x16x16x8xf32>
  return %1 : tensor<1x16x16x8xf32>
}

// Few channels would fill no vector: the image stays as it is, and what is upsampled has channels last where a convolution made it so.
// CHECK-LABEL: @upsampled
func.func @upsampled(%x: tensor<1x3x8x8xf32>, %w: tensor<2x3x1x1xf32>, %v: tensor<8x2x1x1xf32>, %u: tensor<8x8x2x2xf32>) -> (tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) {
  // CHECK: %[[F:.*]] = nn.conv %arg0
  // CHECK: nn.transpose %[[F]] [0, 2, 3, 1]
  // CHECK: nn.conv
  // CHECK: %[[L:.*]] = nn.transpose %{{.*}} [0, 2, 3, 1]
  // CHECK: nn.resize nearest %[[L]] {{.*}} scales [1.000000e+00, 2.000000e+00, 2.000000e+00, 1.000000e+00]
  // CHECK: nn.einsum %[[L]], %arg3 "npqc,coxy->npxqyo"
  %0 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x3x8x8xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x8x8xf32>
  %1 = nn.conv %0, %v strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<1x2x8x8xf32>, tensor<8x2x1x1xf32>) -> tensor<1x8x8x8xf32>
  %2 = nn.resize nearest %1 coordinates asymmetric rounding floor scales [1.0, 1.0, 2.0, 2.0] : (tensor<1x8x8x8xf32>) -> tensor<1x8x16x16xf32>
  %3 = nn.conv_transpose %1, %u strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] output_pads [0, 0] groups 1 : (tensor<1x8x8x8xf32>, tensor<8x8x2x2xf32>) -> tensor<1x8x16x16xf32>
  return %2, %3 : tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>
}

// The gradient of a weight is a convolution whose own weight is made here: its first dim, along which vectors run, is put last once.
// CHECK-LABEL: @gradient_of_a_weight
// CHECK: %[[D:.*]] = nn.relu %arg1
// CHECK: %[[L:.*]] = nn.transpose %[[D]] [0, 2, 3, 1] {{.*}} -> tensor<2x8x6x9xf32>
// CHECK: %[[W:.*]] = nn.transpose %[[L]] [3, 0, 1, 2] {{.*}} -> tensor<9x2x8x6xf32>
// CHECK: nn.conv %{{.*}}, %[[W]]
func.func @gradient_of_a_weight(%x: tensor<2x3x10x8xf32>, %d: tensor<2x9x8x6xf32>) -> tensor<3x9x3x3xf32> {
  %0 = nn.relu %d : (tensor<2x9x8x6xf32>) -> tensor<2x9x8x6xf32>
  %1 = nn.transpose %x [1, 0, 2, 3] : (tensor<2x3x10x8xf32>) -> tensor<3x2x10x8xf32>
  %2 = nn.transpose %0 [1, 0, 2, 3] : (tensor<2x9x8x6xf32>) -> tensor<9x2x8x6xf32>
  %3 = nn.conv %1, %2 strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<3x2x10x8xf32>, tensor<9x2x8x6xf32>) -> tensor<3x9x3x3xf32>
  return %3 : tensor<3x9x3x3xf32>
}

// So is one that has been cut out of what was made, in an order that no value has otherwise.
// CHECK-LABEL: @gradient_of_a_part
// CHECK: %[[S:.*]] = nn.slice
// CHECK: %[[L:.*]] = nn.transpose %[[S]] [2, 3, 1, 0] {{.*}} -> tensor<8x6x2x8xf32>
// CHECK: %[[W:.*]] = nn.transpose %[[L]] [3, 2, 0, 1] {{.*}} -> tensor<8x2x8x6xf32>
// CHECK: nn.conv %{{.*}}, %[[W]]
func.func @gradient_of_a_part(%x: tensor<3x2x10x8xf32>, %d: tensor<16x2x8x6xf32>) -> tensor<3x8x3x3xf32> {
  %0 = nn.relu %d : (tensor<16x2x8x6xf32>) -> tensor<16x2x8x6xf32>
  %1 = nn.slice %0 starts [8, 0, 0, 0] sizes [8, 2, 8, 6] steps [1, 1, 1, 1] : (tensor<16x2x8x6xf32>) -> tensor<8x2x8x6xf32>
  %2 = nn.conv %x, %1 strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<3x2x10x8xf32>, tensor<8x2x8x6xf32>) -> tensor<3x8x3x3xf32>
  return %2 : tensor<3x8x3x3xf32>
}

// A weight that is given, or has only been moved from there, is read as it is: few windows do not make up for another order.
// CHECK-LABEL: @of_a_given_weight
// CHECK: %[[T:.*]] = nn.transpose %arg1 [1, 0, 2, 3]
// CHECK: nn.conv %{{.*}}, %[[T]]
func.func @of_a_given_weight(%x: tensor<2x9x8x6xf32>, %w: tensor<9x9x3x3xf32>) -> tensor<2x9x8x6xf32> {
  %0 = nn.transpose %w [1, 0, 2, 3] : (tensor<9x9x3x3xf32>) -> tensor<9x9x3x3xf32>
  %1 = nn.conv %x, %0 strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<2x9x8x6xf32>, tensor<9x9x3x3xf32>) -> tensor<2x9x8x6xf32>
  return %1 : tensor<2x9x8x6xf32>
}

// Many do, but not on devices.
// CHECK-LABEL: @of_many_windows
// CHECK: %[[L:.*]] = nn.transpose %arg1 [2, 3, 1, 0] {{.*}} -> tensor<3x3x8x9xf32>
// CHECK: %[[W:.*]] = nn.transpose %[[L]] [3, 2, 0, 1] {{.*}} -> tensor<9x8x3x3xf32>
// CHECK: nn.conv %{{.*}}, %[[W]]
// DEVICES-LABEL: @of_many_windows
// DEVICES-NOT: nn.transpose %arg1
// DEVICES: nn.conv %{{.*}}, %arg1
func.func @of_many_windows(%x: tensor<4x8x8x8xf32>, %w: tensor<9x8x3x3xf32>) -> tensor<4x9x8x8xf32> {
  %0 = nn.conv %x, %w strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<4x8x8x8xf32>, tensor<9x8x3x3xf32>) -> tensor<4x9x8x8xf32>
  return %0 : tensor<4x9x8x8xf32>
}
