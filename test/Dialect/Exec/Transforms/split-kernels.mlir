// RUN: cleave-opt %s --exec-fuse-kernels --exec-split-kernels --exec-verify-form | FileCheck %s
// RUN: cleave-opt %s --exec-fuse-kernels --exec-split-kernels --exec-outline -o %t.mlir
// RUN: cleave-kernels %t.mlir --target cuda:sm_90 --check | FileCheck %s --check-prefix=RAN
// RAN: 24 passed, 0 failed
// RUN: sed -n '/^func.func @attention_to_parts(/,/^}/p' %s | sed 's/@attention_to_parts/@main/' > %t.parts.mlir
// RUN: cleave-opt %t.parts.mlir --exec-fuse-kernels --exec-split-kernels --exec-outline -o %t.outlined.mlir
// RUN: cleave run %t.outlined.mlir --against %t.parts.mlir | FileCheck %s --check-prefix=SAME
// RUN: cleave run %t.parts.mlir --mesh one=1 --device cuda-emulated --check | FileCheck %s --check-prefix=SAME
// SAME: ok
// RUN: cleave-opt %t.parts.mlir --exec-fuse-kernels --exec-split-kernels --exec-narrow-floats --exec-verify-form | FileCheck %s --check-prefix=NARROW
// NARROW-LABEL: @main
// NARROW: exec.partial_attention
// NARROW-NEXT: exec.yield %{{.*}} : tensor<1x4x1x8x40xf32>, tensor<1x4x1x8xf32>
// NARROW-NOT: bf16

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

// A reduction over neighboring dims is rows; nothing is split.
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

// Four rows are four blocks: parts of rows first, then their means.
// CHECK-LABEL: @few_rows
func.func @few_rows(%x: tensor<4x65536xf32>) -> tensor<4xf32> {
  // CHECK: %[[P:.*]] = exec.fused (%{{.*}} = %arg0) : (tensor<4x65536xf32>) -> tensor<4x64xf32>
  // CHECK: nn.reduce mean %{{.*}} dims [2] keep_dims : (tensor<4x64x1024xf32>)
  // CHECK: exec.fused (%{{.*}} = %[[P]]) : (tensor<4x64xf32>) -> tensor<4xf32>
  // CHECK: nn.reduce mean %{{.*}} dims [1]
  // CHECK: return
  %y = nn.reduce mean %x dims [1] : (tensor<4x65536xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// Parts of sums of bf16 are f32; what is behind the sum comes in the second kernel.
// CHECK-LABEL: @few_columns
func.func @few_columns(%x: tensor<16384x64xbf16>, %c: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: exec.fused (%{{.*}} = %arg0) : (tensor<16384x64xbf16>) -> tensor<256x64xf32>
  // CHECK: exec.fused
  // CHECK: nn.reduce sum %{{.*}} dims [0]
  // CHECK: nn.cast
  // CHECK: nn.add
  // CHECK-NOT: exec.fused
  // CHECK: return
  %0 = nn.reduce sum %x dims [0] : (tensor<16384x64xbf16>) -> tensor<64xbf16>
  %y = nn.add %0, %c : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16>
  return %y : tensor<64xbf16>
}

// Neighboring dims are parted together, by a divisor of all of their elements.
// CHECK-LABEL: @one_number
func.func @one_number(%x: tensor<513x1029xf32>) -> tensor<f32> {
  // CHECK: nn.mul
  // CHECK: nn.reduce sum %{{.*}} dims [1] keep_dims : (tensor<189x2793xf32>)
  // CHECK: exec.fused
  // CHECK-NOT: nn.mul
  // CHECK: nn.reduce sum
  // CHECK: return
  %z = nn.mul %x, %x : (tensor<513x1029xf32>, tensor<513x1029xf32>) -> tensor<513x1029xf32>
  %y = nn.reduce sum %z dims [0, 1] : (tensor<513x1029xf32>) -> tensor<f32>
  return %y : tensor<f32>
}

// Dims that do not lie together: rows of pixels first.
// CHECK-LABEL: @channels
func.func @channels(%x: tensor<16x32x28x28xf32>) -> tensor<32xf32> {
  // CHECK: nn.reduce sum %{{.*}} dims [3] keep_dims : (tensor<16x32x1x784xf32>)
  // CHECK: exec.fused
  // CHECK: nn.reduce sum %{{.*}} dims [0]
  // CHECK: return
  %y = nn.reduce sum %x dims [0, 2, 3] : (tensor<16x32x28x28xf32>) -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// What is read before a second kernel would start stays one, and so does what has rows enough.
// CHECK-LABEL: @little
func.func @little(%x: tensor<4x4096xf32>, %z: tensor<512x1024xf32>) -> (tensor<4xf32>, tensor<512xf32>) {
  // CHECK-COUNT-2: exec.fused
  // CHECK-NOT: exec.fused
  // CHECK: return
  %y = nn.reduce mean %x dims [1] : (tensor<4x4096xf32>) -> tensor<4xf32>
  %w = nn.reduce mean %z dims [1] : (tensor<512x1024xf32>) -> tensor<512xf32>
  return %y, %w : tensor<4xf32>, tensor<512xf32>
}

// One query of few heads: attention to parts of the keys, then to the parts. What works on the result is behind the second.
// CHECK-LABEL: @attention_to_parts
func.func @attention_to_parts(%q: tensor<1x4x1x32xf32>, %k: tensor<1x2000x2x32xf32>, %v: tensor<1x2x2000x40xf32>) -> tensor<1x1x4x40xf32> {
  // CHECK: %[[P:.*]]:2 = exec.fused (%[[Q:.*]] = %arg0, %[[K:.*]] = %arg1, %[[V:.*]] = %arg2) : {{.*}} -> (tensor<1x4x1x8x40xf32>, tensor<1x4x1x8xf32>)
  // CHECK-NEXT: %[[T:.*]] = nn.transpose %[[K]]
  // CHECK-NEXT: exec.partial_attention %[[Q]], %[[T]], %[[V]] part 256 scale 1.250000e-01 causal {causalOffset = 1800 : i64}
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[P]]#0, %{{.*}} = %[[P]]#1)
  // CHECK: nn.attention %{{.*}} mask %{{.*}} scale 1.000000e+00 : (tensor<4x1x1x1xf32>, tensor<4x1x8x1xf32>, tensor<4x1x8x40xf32>, tensor<4x1x1x8xf32>)
  // CHECK: nn.neg
  // CHECK: exec.yield
  %0 = nn.transpose %k [0, 2, 1, 3] : (tensor<1x2000x2x32xf32>) -> tensor<1x2x2000x32xf32>
  %1 = nn.attention %q, %0, %v scale 0.125 causal {causalOffset = 1800 : i64} : (tensor<1x4x1x32xf32>, tensor<1x2x2000x32xf32>, tensor<1x2x2000x40xf32>) -> tensor<1x4x1x40xf32>
  %2 = nn.transpose %1 [0, 2, 1, 3] : (tensor<1x4x1x40xf32>) -> tensor<1x1x4x40xf32>
  %3 = nn.neg %2 : (tensor<1x1x4x40xf32>) -> tensor<1x1x4x40xf32>
  return %3 : tensor<1x1x4x40xf32>
}

// Of 16 bits parts stay f32 until they are together; a mask of bools goes to the first stage.
// CHECK-LABEL: @attention_of_bf16_to_parts
func.func @attention_of_bf16_to_parts(%q: tensor<2x2x2x64xbf16>, %k: tensor<2x2x1500x64xbf16>, %v: tensor<2x2x1500x64xbf16>, %m: tensor<2x1x1x1500xi1>) -> tensor<2x2x2x64xbf16> {
  // CHECK: exec.partial_attention %{{.*}} mask %{{.*}} part 256 {{.*}} -> (tensor<2x2x2x6x64xf32>, tensor<2x2x2x6xf32>)
  // CHECK: nn.attention {{.*}} -> tensor<8x1x1x64xf32>
  // CHECK: nn.cast
  %0 = nn.attention %q, %k, %v mask %m scale 0.125 : (tensor<2x2x2x64xbf16>, tensor<2x2x1500x64xbf16>, tensor<2x2x1500x64xbf16>, tensor<2x1x1x1500xi1>) -> tensor<2x2x2x64xbf16>
  return %0 : tensor<2x2x2x64xbf16>
}

// Heads enough for a device, or too few keys: one kernel.
// CHECK-LABEL: @attention_in_one_stage
func.func @attention_in_one_stage(%q: tensor<1x64x1x64xf32>, %k: tensor<1x1x1024x64xf32>, %f: tensor<1x1x512x64xf32>) -> (tensor<1x64x1x64xf32>, tensor<1x1x1x64xf32>) {
  // CHECK-NOT: exec.partial_attention
  // CHECK: return
  %0 = nn.attention %q, %k, %k scale 0.125 : (tensor<1x64x1x64xf32>, tensor<1x1x1024x64xf32>, tensor<1x1x1024x64xf32>) -> tensor<1x64x1x64xf32>
  %1 = nn.slice %q starts [0, 0, 0, 0] sizes [1, 1, 1, 64] steps [1, 1, 1, 1] : (tensor<1x64x1x64xf32>) -> tensor<1x1x1x64xf32>
  %2 = nn.attention %1, %f, %f scale 0.125 : (tensor<1x1x1x64xf32>, tensor<1x1x512x64xf32>, tensor<1x1x512x64xf32>) -> tensor<1x1x1x64xf32>
  return %0, %2 : tensor<1x64x1x64xf32>, tensor<1x1x1x64xf32>
}

// A pool with channels last on both sides is one kernel: whoever pulls an element walks its window.
// CHECK-LABEL: @pool_of_channels
func.func @pool_of_channels(%x: tensor<2x9x9x8xf32>) -> tensor<2x4x4x8xf32> {
  // CHECK: exec.fused
  // CHECK-NEXT: nn.transpose
  // CHECK-NEXT: nn.pool
  // CHECK-NEXT: nn.transpose
  // CHECK-NEXT: exec.yield
  // CHECK-NOT: exec.fused
  // CHECK: return
  %0 = nn.transpose %x [0, 3, 1, 2] : (tensor<2x9x9x8xf32>) -> tensor<2x8x9x9xf32>
  %1 = nn.pool average %0 kernel [3, 3] strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] : (tensor<2x8x9x9xf32>) -> tensor<2x8x4x4xf32>
  %2 = nn.transpose %1 [0, 2, 3, 1] : (tensor<2x8x4x4xf32>) -> tensor<2x4x4x8xf32>
  return %2 : tensor<2x4x4x8xf32>
}
