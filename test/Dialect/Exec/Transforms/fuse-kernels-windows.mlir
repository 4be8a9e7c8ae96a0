// Convolutions that are products of what is in their windows, and those that stay.
//
// RUN: %{each} %s %t "cleave-opt {} --exec-fuse-kernels | FileCheck {}" "cleave run {} --mesh one=1 --executor=program --check --quiet"

//--- by-taps.mlir
// Many weights, few windows: what is in the windows is written tap by tap, by one kernel, and each weight is read once for all windows
// of all samples. A filter that is turned around is read as it is, the taps from the last one on.
// CHECK-LABEL: @by_taps
// CHECK: exec.fused
// CHECK-COUNT-4: nn.slice
// CHECK: nn.concat {{.*}} dim 0 : {{.*}} -> tensor<8x2x3x16xf32>
// CHECK: exec.fused
// CHECK-NOT: nn.slice
// CHECK: nn.einsum {{.*}} "pqmi,iopq->mo" : (tensor<2x2x12x16xf32>, tensor<16x72x2x2xf32>) -> tensor<12x72xf32>
// CHECK: nn.relu
func.func @by_taps(%x: tensor<2x16x4x5xf32>, %w: tensor<16x72x2x2xf32>) -> tensor<2x72x2x3xf32> {
  %t = nn.transpose %w [1, 0, 2, 3] : (tensor<16x72x2x2xf32>) -> tensor<72x16x2x2xf32>
  %s = nn.slice %t starts [0, 0, 1, 0] sizes [72, 16, 2, 2] steps [1, 1, -1, 1] : (tensor<72x16x2x2xf32>) -> tensor<72x16x2x2xf32>
  %y = nn.conv %x, %s strides [2, 2] pads_low [0, 1] pads_high [1, 0] dilations [1, 1] groups 1 : (tensor<2x16x4x5xf32>, tensor<72x16x2x2xf32>) -> tensor<2x72x2x3xf32>
  %r = nn.relu %y : (tensor<2x72x2x3xf32>) -> tensor<2x72x2x3xf32>
  return %r : tensor<2x72x2x3xf32>
}

//--- by-windows.mlir
// Few samples and channels, many results: the gradient of such a weight. What follows works on the product as it is.
// CHECK-LABEL: @by_windows
// CHECK: nn.concat {{.*}} dim 0 : {{.*}} -> tensor<12x2x3x24xf32>
// CHECK: nn.transpose {{.*}} [1, 0] : (tensor<6x288xf32>) -> tensor<288x6xf32>
// CHECK: nn.einsum {{.*}} "ipqc,oipq->oc"
// CHECK: nn.sub
func.func @by_windows(%x: tensor<24x2x4x4xf32>, %d: tensor<40x2x2x3xf32>, %w: tensor<40x24x2x3xf32>) -> tensor<40x24x2x3xf32> {
  %g = nn.conv %x, %d strides [1, 1] pads_low [0, 1] pads_high [0, 0] dilations [2, 1] groups 1 : (tensor<24x2x4x4xf32>, tensor<40x2x2x3xf32>) -> tensor<24x40x2x3xf32>
  %t = nn.transpose %g [1, 0, 2, 3] : (tensor<24x40x2x3xf32>) -> tensor<40x24x2x3xf32>
  %n = nn.sub %w, %t : (tensor<40x24x2x3xf32>, tensor<40x24x2x3xf32>) -> tensor<40x24x2x3xf32>
  return %n : tensor<40x24x2x3xf32>
}

//--- few-windows.mlir
// As many places of the kernel as a picture has pixels, as in the gradient of a first convolution's weight: slices are of windows.
// CHECK-LABEL: @few_windows
// CHECK-COUNT-9: nn.slice
// CHECK-NOT: nn.slice
// CHECK: nn.concat {{.*}} dim 0 : {{.*}} -> tensor<9x3x2x16x16xf32>
// CHECK: nn.einsum {{.*}} "wbipq,oipq->bow"
func.func @few_windows(%x: tensor<3x2x17x35xf32>, %d: tensor<64x2x16x16xf32>, %b: tensor<64xf32>) -> tensor<3x64x3x3xf32> {
  %y = nn.conv %x, %d, %b strides [1, 2] pads_low [1, 0] pads_high [0, 0] dilations [1, 2] groups 1 : (tensor<3x2x17x35xf32>, tensor<64x2x16x16xf32>, tensor<64xf32>) -> tensor<3x64x3x3xf32>
  return %y : tensor<3x64x3x3xf32>
}

//--- stored.mlir
// Zeros go around what is stored, with channels last, and rows of channels are sliced.
// CHECK-LABEL: @stored
// CHECK: nn.pad {{.*}} low [0, 1, 2, 0] high [0, 1, 0, 0] : {{.*}} -> tensor<2x4x4x16xf32>
// CHECK-COUNT-4: nn.slice {{.*}} : (tensor<2x4x4x16xf32>) -> tensor<2x3x3x16xf32>
// CHECK-NOT: nn.transpose
// CHECK: nn.einsum {{.*}} "pqmi,oipq->mo"
func.func @stored(%x: tensor<2x2x2x16xf32>, %w: tensor<72x16x2x2xf32>) -> tensor<2x72x3x3xf32> {
  %t = nn.transpose %x [0, 3, 1, 2] : (tensor<2x2x2x16xf32>) -> tensor<2x16x2x2xf32>
  %zero = nn.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %p = nn.pad constant %t value %zero low [0, 0, 1, 1] high [0, 0, 0, 0] : (tensor<2x16x2x2xf32>, tensor<f32>) -> tensor<2x16x3x3xf32>
  %y = nn.conv %p, %w strides [1, 1] pads_low [0, 1] pads_high [1, 0] dilations [1, 1] groups 1 : (tensor<2x16x3x3xf32>, tensor<72x16x2x2xf32>) -> tensor<2x72x3x3xf32>
  return %y : tensor<2x72x3x3xf32>
}

//--- other-pad.mlir
// Other numbers than zeros are none that a convolution would put there.
// CHECK-LABEL: @other_pad
// CHECK: nn.pad {{.*}} low [0, 0, 1, 1]
// CHECK: nn.einsum {{.*}} "pqmi,oipq->mo"
func.func @other_pad(%x: tensor<2x16x2x2xf32>, %w: tensor<72x16x2x2xf32>) -> tensor<2x72x3x3xf32> {
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %p = nn.pad constant %x value %one low [0, 0, 1, 1] high [0, 0, 0, 0] : (tensor<2x16x2x2xf32>, tensor<f32>) -> tensor<2x16x3x3xf32>
  %y = nn.conv %p, %w strides [1, 1] pads_low [0, 1] pads_high [1, 0] dilations [1, 1] groups 1 : (tensor<2x16x3x3xf32>, tensor<72x16x2x2xf32>) -> tensor<2x72x3x3xf32>
  return %y : tensor<2x72x3x3xf32>
}

//--- loaded.mlir
// Weights that are loaded are laid out beforehand, and many windows are read where they are.
// CHECK-LABEL: @loaded
// CHECK: nn.conv
nn.param @w : tensor<72x16x2x2xf32> = dense<2.0> : tensor<72x16x2x2xf32>
func.func @loaded(%x: tensor<2x16x4x5xf32>) -> tensor<2x72x3x4xf32> {
  %w = nn.load @w : tensor<72x16x2x2xf32>
  %y = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<2x16x4x5xf32>, tensor<72x16x2x2xf32>) -> tensor<2x72x3x4xf32>
  return %y : tensor<2x72x3x4xf32>
}

//--- many-windows.mlir
// CHECK-LABEL: @many_windows
// CHECK: nn.conv
func.func @many_windows(%x: tensor<2x16x14x15xf32>, %w: tensor<72x16x2x2xf32>) -> tensor<2x72x13x14xf32> {
  %y = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<2x16x14x15xf32>, tensor<72x16x2x2xf32>) -> tensor<2x72x13x14xf32>
  return %y : tensor<2x72x13x14xf32>
}

//--- moved-parts.mlir
// Each part is moved once, where it belongs, however many other ones there are: no slice is stored first.
// CHECK-LABEL: @moved_parts
// CHECK-NEXT: exec.fused
// CHECK-COUNT-9: nn.slice
// CHECK-NEXT: nn.concat
// CHECK-NOT: exec.fused
func.func @moved_parts(%x: tensor<16x65x512xf32>) -> tensor<72x63x512xf32> {
  %0 = nn.slice %x starts [0, 0, 0] sizes [8, 63, 512] steps [1, 1, 1] : (tensor<16x65x512xf32>) -> tensor<8x63x512xf32>
  %1 = nn.slice %x starts [0, 1, 0] sizes [8, 63, 512] steps [1, 1, 1] : (tensor<16x65x512xf32>) -> tensor<8x63x512xf32>
  %2 = nn.slice %x starts [0, 2, 0] sizes [8, 63, 512] steps [1, 1, 1] : (tensor<16x65x512xf32>) -> tensor<8x63x512xf32>
  %3 = nn.slice %x starts [1, 0, 0] sizes [8, 63, 512] steps [1, 1, 1] : (tensor<16x65x512xf32>) -> tensor<8x63x512xf32>
  %4 = nn.slice %x starts [1, 1, 0] sizes [8, 63, 512] steps [1, 1, 1] : (tensor<16x65x512xf32>) -> tensor<8x63x512xf32>
  %5 = nn.slice %x starts [1, 2, 0] sizes [8, 63, 512] steps [1, 1, 1] : (tensor<16x65x512xf32>) -> tensor<8x63x512xf32>
  %6 = nn.slice %x starts [2, 0, 0] sizes [8, 63, 512] steps [1, 1, 1] : (tensor<16x65x512xf32>) -> tensor<8x63x512xf32>
  %7 = nn.slice %x starts [2, 1, 0] sizes [8, 63, 512] steps [1, 1, 1] : (tensor<16x65x512xf32>) -> tensor<8x63x512xf32>
  %8 = nn.slice %x starts [2, 2, 0] sizes [8, 63, 512] steps [1, 1, 1] : (tensor<16x65x512xf32>) -> tensor<8x63x512xf32>
  %r = nn.concat %0, %1, %2, %3, %4, %5, %6, %7, %8 dim 0 : (tensor<8x63x512xf32>, tensor<8x63x512xf32>, tensor<8x63x512xf32>, tensor<8x63x512xf32>, tensor<8x63x512xf32>, tensor<8x63x512xf32>, tensor<8x63x512xf32>, tensor<8x63x512xf32>, tensor<8x63x512xf32>) -> tensor<72x63x512xf32>
  return %r : tensor<72x63x512xf32>
}
