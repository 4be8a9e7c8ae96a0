// What a device's libraries have is a kernel of its own, its arguments in the order of a command's.
//
// RUN: cleave-opt %s --exec-fuse-kernels --exec-split-kernels --exec-use-libraries --exec-verify-form | FileCheck %s
// RUN: cleave-opt %s --exec-fuse-kernels --exec-split-kernels --exec-use-libraries --exec-outline -o %t.mlir
// RUN: cleave-kernels %t.mlir --target cuda:sm_90 --check | FileCheck %s --check-prefix=RAN
// RAN: 29 passed, 0 failed

// A bias, a residual and relu are part of the call; nothing is split.
// CHECK-LABEL: @whole
func.func @whole(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>, %b: tensor<32xf32>, %r: tensor<32x32xf32>) -> tensor<32x32xf32> {
  // CHECK: %[[Y:.*]] = exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg1, %{{.*}} = %arg2, %{{.*}} = %arg3)
  // CHECK-NEXT: nn.einsum
  // CHECK: nn.relu
  // CHECK-NEXT: exec.yield
  // CHECK: return %[[Y]]
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
  %1 = nn.add %r, %0 : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %2 = nn.add %1, %b : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32x32xf32>
  %3 = nn.relu %2 : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %3 : tensor<32x32xf32>
}

// Columns that go to two places, as parts for ranks do, are a batch of products, and all of it one call. The new dim has a letter that is free.
// CHECK-LABEL: @columns_in_parts
func.func @columns_in_parts(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>) -> tensor<2x32x16xf32> {
  // CHECK: %[[Y:.*]] = exec.fused (%[[A:.*]] = %arg0, %[[B:.*]] = %arg1)
  // CHECK-NEXT: %[[W:.*]] = nn.reshape %[[B]] : (tensor<64x32xf32>) -> tensor<64x2x16xf32>
  // CHECK-NEXT: %[[P:.*]] = nn.einsum %[[A]], %[[W]] "ak,kjb->ajb" : (tensor<32x64xf32>, tensor<64x2x16xf32>) -> tensor<32x2x16xf32>
  // CHECK-NEXT: nn.transpose %[[P]] [1, 0, 2]
  // CHECK-NEXT: exec.yield
  // CHECK: return %[[Y]]
  %0 = nn.einsum %x, %w "ak,kj->aj" : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
  %1 = nn.reshape %0 : (tensor<32x32xf32>) -> tensor<32x2x16xf32>
  %2 = nn.transpose %1 [1, 0, 2] : (tensor<32x2x16xf32>) -> tensor<2x32x16xf32>
  return %2 : tensor<2x32x16xf32>
}

// A reshape that puts rows and columns together splits nothing: the call is cut off.
// CHECK-LABEL: @rows_and_columns
func.func @rows_and_columns(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>) -> tensor<4x256xf32> {
  // CHECK: exec.fused
  // CHECK-NEXT: nn.einsum %{{.*}}, %{{.*}} "ik,kj->ij"
  // CHECK: exec.fused
  // CHECK-NEXT: nn.transpose
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
  %1 = nn.reshape %0 : (tensor<32x32xf32>) -> tensor<256x4xf32>
  %2 = nn.transpose %1 [1, 0] : (tensor<256x4xf32>) -> tensor<4x256xf32>
  return %2 : tensor<4x256xf32>
}

// Gelu by erf is no epilogue: what stands before it is cut off.
// CHECK-LABEL: @cut_behind_the_bias
func.func @cut_behind_the_bias(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>, %b: tensor<32xf32>) -> tensor<32x32xf32> {
  // CHECK: %[[P:.*]] = exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg1, %{{.*}} = %arg2)
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: nn.add
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[P]])
  // CHECK-NEXT: nn.gelu
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
  %1 = nn.add %0, %b : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32x32xf32>
  %2 = nn.gelu %1 : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %2 : tensor<32x32xf32>
}

// The tanh form is one.
// CHECK-LABEL: @tanh_form
func.func @tanh_form(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>) -> tensor<32x32xf32> {
  // CHECK: exec.fused
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: nn.gelu
  // CHECK-NOT: exec.fused
  // CHECK: return
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
  %1 = nn.gelu %0 {tanh = true} : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}

// Too shallow to pay for another pass over the result.
// CHECK-LABEL: @shallow
func.func @shallow(%x: tensor<32x63xf32>, %w: tensor<63x32xf32>) -> tensor<32x32xf32> {
  // CHECK: exec.fused
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: nn.gelu
  // CHECK-NOT: exec.fused
  // CHECK: return
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<32x63xf32>, tensor<63x32xf32>) -> tensor<32x32xf32>
  %1 = nn.gelu %0 : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}

// Too few rows.
// CHECK-LABEL: @flat
func.func @flat(%x: tensor<15x64xf32>, %w: tensor<64x32xf32>) -> tensor<15x32xf32> {
  // CHECK: exec.fused
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: nn.gelu
  // CHECK-NOT: exec.fused
  // CHECK: return
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<15x64xf32>, tensor<64x32xf32>) -> tensor<15x32xf32>
  %1 = nn.gelu %0 : (tensor<15x32xf32>) -> tensor<15x32xf32>
  return %1 : tensor<15x32xf32>
}

// A result that is written in columns has its operands exchanged: the second one's rows are what lies side by side.
// CHECK-LABEL: @exchanged
func.func @exchanged(%x: tensor<32x64xf32>, %w: tensor<64x16xf32>) -> tensor<16x32xf32> {
  // CHECK: exec.fused (%{{.*}} = %arg1, %{{.*}} = %arg0)
  // CHECK-NEXT: nn.einsum %{{.*}} "ik,kj->ji"
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<32x64xf32>, tensor<64x16xf32>) -> tensor<32x16xf32>
  %1 = nn.transpose %0 [1, 0] : (tensor<32x16xf32>) -> tensor<16x32xf32>
  return %1 : tensor<16x32xf32>
}

// A bias for each row is none; a factor that is a tensor is none either. Both are split.
// CHECK-LABEL: @other_epilogues
func.func @other_epilogues(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>, %b: tensor<32x1xf32>, %f: tensor<32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) {
  // CHECK: %[[P:.*]] = exec.fused
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[P]], %{{.*}} = %arg2)
  // CHECK-NEXT: nn.add
  // CHECK: %[[Q:.*]] = exec.fused
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[Q]], %{{.*}} = %arg3)
  // CHECK-NEXT: nn.mul
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
  %1 = nn.add %0, %b : (tensor<32x32xf32>, tensor<32x1xf32>) -> tensor<32x32xf32>
  %2 = nn.einsum %w, %x "kj,ik->ij" : (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<32x32xf32>
  %3 = nn.mul %2, %f : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32x32xf32>
  return %1, %3 : tensor<32x32xf32>, tensor<32x32xf32>
}

// What is read again behind the call is a result of it, and nothing is computed twice.
// CHECK-LABEL: @read_twice
func.func @read_twice(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) {
  // CHECK: %[[P:.*]] = exec.fused
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: exec.yield
  // CHECK: %[[G:.*]] = exec.fused (%{{.*}} = %[[P]])
  // CHECK-NEXT: nn.gelu
  // CHECK: return %[[P]], %[[G]]
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
  %1 = nn.gelu %0 : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0, %1 : tensor<32x32xf32>, tensor<32x32xf32>
}

// A convolution with its bias, a residual and relu is a call.
// CHECK-LABEL: @convolution
func.func @convolution(%x: tensor<1x16x8x8xf32>, %w: tensor<16x16x3x3xf32>, %b: tensor<16xf32>, %r: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  // CHECK: exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg1, %{{.*}} = %arg2, %{{.*}} = %arg3)
  // CHECK: nn.conv
  // CHECK: nn.relu
  // CHECK-NOT: exec.fused
  // CHECK: return
  %0 = nn.conv %x, %w, %b strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<1x16x8x8xf32>, tensor<16x16x3x3xf32>, tensor<16xf32>) -> tensor<1x16x8x8xf32>
  %1 = nn.add %0, %r : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %2 = nn.relu %1 : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  return %2 : tensor<1x16x8x8xf32>
}

// Silu is cut off.
// CHECK-LABEL: @convolution_and_silu
func.func @convolution_and_silu(%x: tensor<1x16x8x8xf32>, %w: tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32> {
  // CHECK: %[[C:.*]] = exec.fused
  // CHECK-NEXT: nn.conv
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[C]])
  // CHECK-NEXT: nn.silu
  %0 = nn.conv %x, %w strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<1x16x8x8xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32>
  %1 = nn.silu %0 : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  return %1 : tensor<1x16x8x8xf32>
}

// Relu is last of all: what is added behind it is cut off.
// CHECK-LABEL: @relu_before_the_residual
func.func @relu_before_the_residual(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>, %r: tensor<32x32xf32>) -> tensor<32x32xf32> {
  // CHECK: %[[P:.*]] = exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg1)
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: nn.relu
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[P]], %{{.*}} = %arg2)
  // CHECK-NEXT: nn.add
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
  %1 = nn.relu %0 : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %2 = nn.add %1, %r : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %2 : tensor<32x32xf32>
}

// Attention of halves is a call, whatever order its operands come in: what was added first is the mask.
// CHECK-LABEL: @attention
func.func @attention(%m: tensor<1x1x16x64xf32>, %k: tensor<2x2x64x16xbf16>, %v: tensor<2x2x64x16xbf16>, %q: tensor<2x4x16x16xbf16>) -> tensor<2x4x16x16xbf16> {
  // CHECK: %[[Y:.*]] = exec.fused (%[[Q:.*]] = %arg3, %[[K:.*]] = %arg1, %[[V:.*]] = %arg2, %[[M:.*]] = %arg0)
  // CHECK-NEXT: nn.attention %[[Q]], %[[K]], %[[V]] mask %[[M]]
  // CHECK-NEXT: exec.yield
  // CHECK: return %[[Y]]
  %0 = nn.attention %q, %k, %v mask %m scale 0.25 : (tensor<2x4x16x16xbf16>, tensor<2x2x64x16xbf16>, tensor<2x2x64x16xbf16>, tensor<1x1x16x64xf32>) -> tensor<2x4x16x16xbf16>
  return %0 : tensor<2x4x16x16xbf16>
}

// What works on the result is cut off; how it lies is not.
// CHECK-LABEL: @cut_behind_attention
func.func @cut_behind_attention(%r: tensor<2x16x4x16xbf16>, %q: tensor<2x4x16x16xbf16>, %k: tensor<2x4x64x16xbf16>, %v: tensor<2x4x64x16xbf16>) -> tensor<2x16x4x16xbf16> {
  // CHECK: %[[P:.*]] = exec.fused (%{{.*}} = %arg1, %{{.*}} = %arg2, %{{.*}} = %arg3)
  // CHECK-NEXT: nn.attention
  // CHECK-NEXT: nn.transpose
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[P]], %{{.*}} = %arg0)
  // CHECK-NEXT: nn.add
  %0 = nn.attention %q, %k, %v scale 0.25 : (tensor<2x4x16x16xbf16>, tensor<2x4x64x16xbf16>, tensor<2x4x64x16xbf16>) -> tensor<2x4x16x16xbf16>
  %1 = nn.transpose %0 [0, 2, 1, 3] : (tensor<2x4x16x16xbf16>) -> tensor<2x16x4x16xbf16>
  %2 = nn.add %1, %r : (tensor<2x16x4x16xbf16>, tensor<2x16x4x16xbf16>) -> tensor<2x16x4x16xbf16>
  return %2 : tensor<2x16x4x16xbf16>
}

// In f32, with heads of 12 components, with a mask of bits, or with queries that see no key it stays as it is: no library has it,
// so nothing is split.
// CHECK-LABEL: @in_f32
func.func @in_f32(%r: tensor<1x1x16x16xf32>, %q: tensor<1x1x16x16xf32>, %k: tensor<1x1x64x16xf32>, %v: tensor<1x1x64x16xf32>) -> tensor<1x1x16x16xf32> {
  // CHECK: nn.attention
  // CHECK-NEXT: nn.add
  %0 = nn.attention %q, %k, %v scale 0.25 : (tensor<1x1x16x16xf32>, tensor<1x1x64x16xf32>, tensor<1x1x64x16xf32>) -> tensor<1x1x16x16xf32>
  %1 = nn.add %0, %r : (tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>) -> tensor<1x1x16x16xf32>
  return %1 : tensor<1x1x16x16xf32>
}

// CHECK-LABEL: @heads_of_12
func.func @heads_of_12(%q: tensor<1x1x16x12xbf16>, %k: tensor<1x1x64x12xbf16>, %v: tensor<1x1x64x12xbf16>) -> tensor<1x1x16x12xbf16> {
  // CHECK: nn.attention
  // CHECK-NEXT: nn.relu
  %0 = nn.attention %q, %k, %v scale 0.25 : (tensor<1x1x16x12xbf16>, tensor<1x1x64x12xbf16>, tensor<1x1x64x12xbf16>) -> tensor<1x1x16x12xbf16>
  %1 = nn.relu %0 : (tensor<1x1x16x12xbf16>) -> tensor<1x1x16x12xbf16>
  return %1 : tensor<1x1x16x12xbf16>
}

// CHECK-LABEL: @a_mask_of_bits
func.func @a_mask_of_bits(%m: tensor<16x64xi1>, %q: tensor<1x1x16x16xbf16>, %k: tensor<1x1x64x16xbf16>, %v: tensor<1x1x64x16xbf16>) -> tensor<1x1x16x16xbf16> {
  // CHECK: nn.attention
  // CHECK-NEXT: nn.relu
  %0 = nn.attention %q, %k, %v mask %m scale 0.25 : (tensor<1x1x16x16xbf16>, tensor<1x1x64x16xbf16>, tensor<1x1x64x16xbf16>, tensor<16x64xi1>) -> tensor<1x1x16x16xbf16>
  %1 = nn.relu %0 : (tensor<1x1x16x16xbf16>) -> tensor<1x1x16x16xbf16>
  return %1 : tensor<1x1x16x16xbf16>
}

// CHECK-LABEL: @causal_from_the_first_key
func.func @causal_from_the_first_key(%q: tensor<1x1x16x16xbf16>, %k: tensor<1x1x64x16xbf16>, %v: tensor<1x1x64x16xbf16>) -> tensor<1x1x16x16xbf16> {
  // CHECK: nn.attention
  // CHECK-NEXT: nn.relu
  %0 = nn.attention %q, %k, %v scale 0.25 causal : (tensor<1x1x16x16xbf16>, tensor<1x1x64x16xbf16>, tensor<1x1x64x16xbf16>) -> tensor<1x1x16x16xbf16>
  %1 = nn.relu %0 : (tensor<1x1x16x16xbf16>) -> tensor<1x1x16x16xbf16>
  return %1 : tensor<1x1x16x16xbf16>
}

// No call knows of a window.
// CHECK-LABEL: @a_window_of_the_last_keys
func.func @a_window_of_the_last_keys(%q: tensor<1x1x16x16xbf16>, %k: tensor<1x1x64x16xbf16>, %v: tensor<1x1x64x16xbf16>) -> tensor<1x1x16x16xbf16> {
  // CHECK: nn.attention
  // CHECK-NEXT: nn.relu
  %0 = nn.attention %q, %k, %v scale 0.25 causal {causalOffset = 48 : i64, left = 7 : i64} : (tensor<1x1x16x16xbf16>, tensor<1x1x64x16xbf16>, tensor<1x1x64x16xbf16>) -> tensor<1x1x16x16xbf16>
  %1 = nn.relu %0 : (tensor<1x1x16x16xbf16>) -> tensor<1x1x16x16xbf16>
  return %1 : tensor<1x1x16x16xbf16>
}

// CHECK-LABEL: @causal_to_the_last_key
func.func @causal_to_the_last_key(%q: tensor<1x1x16x16xbf16>, %k: tensor<1x1x64x16xbf16>, %v: tensor<1x1x64x16xbf16>) -> tensor<1x1x16x16xbf16> {
  // CHECK: nn.attention
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused
  // CHECK-NEXT: nn.relu
  %0 = nn.attention %q, %k, %v scale 0.25 causal {causalOffset = 48 : i64} : (tensor<1x1x16x16xbf16>, tensor<1x1x64x16xbf16>, tensor<1x1x64x16xbf16>) -> tensor<1x1x16x16xbf16>
  %1 = nn.relu %0 : (tensor<1x1x16x16xbf16>) -> tensor<1x1x16x16xbf16>
  return %1 : tensor<1x1x16x16xbf16>
}
