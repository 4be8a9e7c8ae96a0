// RUN: cleave-kernels %s --target cuda:sm_90 | FileCheck %s
// RUN: cleave-kernels %s --target cuda:sm_90 --emit=launches | FileCheck %s --check-prefix=LAUNCH
// RUN: cleave-kernels %s --target cuda:sm_80 --emit=ptx 2>/dev/null | FileCheck %s --check-prefix=PTX
// RUN: cleave-kernels %s --target cuda:sm_90 --check | FileCheck %s --check-prefix=CHECKED
// CHECKED: 7 passed, 0 failed

// Channels last: rows of a block are pixels, and eight channels of a pixel are copied at once, or zeros where the window
// leaves the input. Normalization, relu and the way back to channels last are behind the sums.
// CHECK-LABEL: gpu.func @pixels
// CHECK: %[[BYTES:.*]] = arith.select %{{.*}}, %c8, %c0
// CHECK: nvgpu.device_async_copy %arg0[%{{.*}}], %{{.*}}, 8, %[[BYTES]] {bypassL1}
// CHECK: nvvm.mma.sync
// CHECK: arith.addf
// CHECK: vector.store {{.*}}, %arg3{{.*}}vector<8xi16>
// CHECK: gpu.return
// LAUNCH: pixels{{[[:space:]]}}14 x 128 threads
// PTX-LABEL: .visible .entry pixels(
// PTX: .minnctapersm 1
// PTX: cp.async.cg.shared.global [%{{.*}}], [%{{.*}}], 16, %r
// PTX: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// PTX: st.global.v4.b32
func.func @pixels(%x: tensor<1x15x14x16xbf16>, %w: tensor<64x16x3x3xbf16>, %c: tensor<64xf32>) -> tensor<1x15x14x64xbf16> {
  %0 = nn.transpose %x [0, 3, 1, 2] : (tensor<1x15x14x16xbf16>) -> tensor<1x16x15x14xbf16>
  %1 = nn.cast %0 : (tensor<1x16x15x14xbf16>) -> tensor<1x16x15x14xf32>
  %2 = nn.cast %w : (tensor<64x16x3x3xbf16>) -> tensor<64x16x3x3xf32>
  %3 = nn.conv %1, %2 strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<1x16x15x14xf32>, tensor<64x16x3x3xf32>) -> tensor<1x64x15x14xf32>
  %4 = nn.reshape %c : (tensor<64xf32>) -> tensor<64x1x1xf32>
  %5 = nn.add %3, %4 : (tensor<1x64x15x14xf32>, tensor<64x1x1xf32>) -> tensor<1x64x15x14xf32>
  %6 = nn.relu %5 : (tensor<1x64x15x14xf32>) -> tensor<1x64x15x14xf32>
  %7 = nn.transpose %6 [0, 2, 3, 1] : (tensor<1x64x15x14xf32>) -> tensor<1x15x14x64xf32>
  %8 = nn.cast %7 : (tensor<1x15x14x64xf32>) -> tensor<1x15x14x64xbf16>
  return %8 : tensor<1x15x14x64xbf16>
}

// One tap: both sides are copied, and nothing asks where a window ends.
// CHECK-LABEL: gpu.func @one_tap
// CHECK: nvgpu.device_async_copy %arg0[%{{.*}}], %{{.*}}, 4 {bypassL1}
// CHECK: nvgpu.device_async_copy %arg1[%{{.*}}], %{{.*}}, 4 {bypassL1}
// CHECK: math.fma
// CHECK: vector.store {{.*}}, %arg2{{.*}}vector<4xf32>
// CHECK: gpu.return
func.func @one_tap(%x: tensor<2x8x8x32xf32>, %w: tensor<64x32x1x1xf32>) -> tensor<2x8x8x64xf32> {
  %0 = nn.transpose %x [0, 3, 1, 2] : (tensor<2x8x8x32xf32>) -> tensor<2x32x8x8xf32>
  %1 = nn.conv %0, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<2x32x8x8xf32>, tensor<64x32x1x1xf32>) -> tensor<2x64x8x8xf32>
  %2 = nn.transpose %1 [0, 2, 3, 1] : (tensor<2x64x8x8xf32>) -> tensor<2x8x8x64xf32>
  return %2 : tensor<2x8x8x64xf32>
}

// Channels first: rows are channels, columns pixels; weights are copied as the rows that they are, a pixel is loaded by itself.
// CHECK-LABEL: gpu.func @channels_first
// CHECK: nvgpu.device_async_copy %arg1
// CHECK: memref.load %arg0
// CHECK: arith.select
// CHECK: math.fma
// CHECK: memref.load %arg2
// CHECK: vector.store {{.*}}, %arg3{{.*}}vector<4xf32>
// CHECK: gpu.return
func.func @channels_first(%x: tensor<2x8x12x12xf32>, %w: tensor<24x8x3x3xf32>, %c: tensor<24xf32>) -> tensor<2x24x12x12xf32> {
  %0 = nn.conv %x, %w, %c strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<2x8x12x12xf32>, tensor<24x8x3x3xf32>, tensor<24xf32>) -> tensor<2x24x12x12xf32>
  return %0 : tensor<2x24x12x12xf32>
}

// Groups are products of their own; strides, dilations and uneven padding are a matter of where a pixel lies.
// CHECK-LABEL: gpu.func @groups
// CHECK: nvvm.mma.sync
// CHECK: gpu.return
// LAUNCH: groups{{[[:space:]]}}9 x 128 threads
func.func @groups(%x: tensor<2x24x17x13xf16>, %w: tensor<36x8x3x2xf16>) -> tensor<2x36x7x6xf16> {
  %0 = nn.conv %x, %w strides [2, 3] pads_low [1, 0] pads_high [0, 4] dilations [2, 1] groups 3 : (tensor<2x24x17x13xf16>, tensor<36x8x3x2xf16>) -> tensor<2x36x7x6xf16>
  return %0 : tensor<2x36x7x6xf16>
}

// Of groups of one channel each element walks its window: there is nothing to share.
// CHECK-LABEL: gpu.func @depthwise
// CHECK-NOT: workgroup
// CHECK: scf.for
// CHECK: gpu.return
func.func @depthwise(%x: tensor<2x8x9x9xf32>, %w: tensor<8x1x3x3xf32>) -> tensor<2x8x9x9xf32> {
  %0 = nn.conv %x, %w strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 8 : (tensor<2x8x9x9xf32>, tensor<8x1x3x3xf32>) -> tensor<2x8x9x9xf32>
  return %0 : tensor<2x8x9x9xf32>
}

// One spatial dim, and three.
// CHECK-LABEL: gpu.func @line
// CHECK: math.fma
// CHECK: gpu.return
func.func @line(%x: tensor<2x5x40xf32>, %w: tensor<12x5x4xf32>) -> tensor<2x12x21xf32> {
  %0 = nn.conv %x, %w strides [2] pads_low [3] pads_high [1] dilations [1] groups 1 : (tensor<2x5x40xf32>, tensor<12x5x4xf32>) -> tensor<2x12x21xf32>
  return %0 : tensor<2x12x21xf32>
}

// CHECK-LABEL: gpu.func @volume
// CHECK: math.fma
// CHECK: gpu.return
func.func @volume(%x: tensor<2x3x6x7x8xf32>, %w: tensor<10x3x2x3x3xf32>) -> tensor<2x10x5x4x8xf32> {
  %0 = nn.conv %x, %w strides [1, 2, 1] pads_low [0, 1, 1] pads_high [0, 1, 1] dilations [1, 1, 1] groups 1 : (tensor<2x3x6x7x8xf32>, tensor<10x3x2x3x3xf32>) -> tensor<2x10x5x4x8xf32>
  return %0 : tensor<2x10x5x4x8xf32>
}
