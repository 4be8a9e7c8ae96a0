// RUN: cleave-kernels %s --target cuda:sm_90 | FileCheck %s
// RUN: cleave-kernels %s --target cuda:sm_90 --emit=launches | FileCheck %s --check-prefix=LAUNCH
// RUN: cleave-kernels %s --target cuda:sm_80 --emit=ptx 2>/dev/null | FileCheck %s --check-prefix=PTX
// RUN: cleave-kernels %s --target cuda:sm_90 --check | FileCheck %s --check-prefix=CHECKED
// CHECKED: 10 passed, 0 failed

// Halves by mma.sync, with all that follows them: both operands are copied two steps ahead, a warp has 32 x 32 sums.
// CHECK-LABEL: gpu.func @warps
// CHECK-COUNT-2: nvgpu.device_async_copy %arg0
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 1
// CHECK-NEXT: gpu.barrier
// CHECK: nvgpu.device_async_copy %arg0
// CHECK: nvgpu.device_async_copy %arg1
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = false}
// CHECK: nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = true}
// CHECK-COUNT-8: nvvm.mma.sync
// CHECK-NOT: vector.load %arg0
// CHECK: scf.yield
// CHECK: gpu.barrier
// CHECK-COUNT-16: vector.store {{.*}} #gpu.address_space<workgroup>
// CHECK: gpu.barrier
// CHECK: vector.load %arg2{{.*}}vector<8xi16>
// CHECK: vector.store {{.*}}, %arg3{{.*}}vector<8xi16>
// CHECK: gpu.return
// LAUNCH: warps{{[[:space:]]}}192 x 128 threads, 29184 bytes shared
// PTX-LABEL: .visible .entry warps(
// PTX: cp.async.cg.shared.global
// PTX: cp.async.commit_group
// PTX: cp.async.wait_group
// PTX: bar.sync
// PTX: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// PTX: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// PTX: ld.global.nc.v4
// PTX: st.global.v4
func.func @warps(%x: tensor<256x128xbf16>, %w: tensor<128x3072xbf16>, %c: tensor<3072xbf16>) -> tensor<256x3072xbf16> {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<256x128xbf16>, tensor<128x3072xbf16>) -> tensor<256x3072xbf16>
  %1 = nn.add %0, %c : (tensor<256x3072xbf16>, tensor<3072xbf16>) -> tensor<256x3072xbf16>
  %2 = nn.relu %1 : (tensor<256x3072xbf16>) -> tensor<256x3072xbf16>
  return %2 : tensor<256x3072xbf16>
}

// What is widened for a product is multiplied as it lies in memory; the sum is rounded once.
// CHECK-LABEL: gpu.func @widened
// CHECK: nvgpu.device_async_copy %arg0{{.*}}memref<8192xf16, 1>
// CHECK: nvvm.mma.sync {{.*}}vector<2xf16>
// CHECK-NOT: math.fma
// CHECK: gpu.return
// PTX-LABEL: .visible .entry widened(
// PTX: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// PTX: st.global.v4.b32
func.func @widened(%x: tensor<128x64xf16>, %w: tensor<64x96xf16>) -> tensor<128x96xf32> {
  %0 = nn.cast %x : (tensor<128x64xf16>) -> tensor<128x64xf32>
  %1 = nn.cast %w : (tensor<64x96xf16>) -> tensor<64x96xf32>
  %2 = nn.einsum %0, %1 "ik,kj->ij" : (tensor<128x64xf32>, tensor<64x96xf32>) -> tensor<128x96xf32>
  return %2 : tensor<128x96xf32>
}

// Few rows: four warps share the depth, and their sums are added in order.
// CHECK-LABEL: gpu.func @few_rows
// CHECK: nvvm.mma.sync
// CHECK: gpu.barrier
// CHECK-COUNT-4: vector.load {{.*}} #gpu.address_space<workgroup>
// CHECK: vector.store {{.*}}, %arg2
// CHECK: gpu.return
// LAUNCH: few_rows{{[[:space:]]}}24 x 128 threads, 43776 bytes shared
func.func @few_rows(%x: tensor<3x768xf16>, %w: tensor<768x768xf16>) -> tensor<3x768xf16> {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<3x768xf16>, tensor<768x768xf16>) -> tensor<3x768xf16>
  return %0 : tensor<3x768xf16>
}

// f32 by fused multiply-add: 8 x 8 sums a thread where there are enough blocks of 128 x 128.
// CHECK-LABEL: gpu.func @lanes
// CHECK: nvgpu.device_async_copy %arg0
// CHECK: nvgpu.device_async_copy %arg1
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK-COUNT-128: math.fma
// CHECK-NOT: math.fma
// CHECK: scf.yield
// CHECK: vector.store {{.*}}, %arg2
// CHECK: gpu.return
// LAUNCH: lanes{{[[:space:]]}}144 x 256 threads, 31488 bytes shared
// PTX-LABEL: .visible .entry lanes(
// PTX: cp.async.cg.shared.global
// PTX: ld.shared.v4.b32
// PTX: fma.rn.f32
// PTX-NOT: mma.sync
// PTX: st.global.v4.b32
// PTX: ret;
func.func @lanes(%x: tensor<1536x40xf32>, %w: tensor<40x1536xf32>) -> tensor<1536x1536xf32> {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<1536x40xf32>, tensor<40x1536xf32>) -> tensor<1536x1536xf32>
  return %0 : tensor<1536x1536xf32>
}

// Small blocks where large ones would be few. What is computed on the way to a product goes through registers, a step ahead.
// CHECK-LABEL: gpu.func @pulled
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group
// CHECK: gpu.barrier
// CHECK: vector.load %arg0
// CHECK: arith.mulf
// CHECK: math.fma
// CHECK: vector.store {{.*}} #gpu.address_space<workgroup>
// CHECK: scf.yield
// CHECK: gpu.return
// LAUNCH: pulled{{[[:space:]]}}12 x 128 threads
func.func @pulled(%x: tensor<128x64xf32>, %w: tensor<64x96xf32>) -> tensor<128x96xf32> {
  %0 = nn.mul %x, %x : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
  %1 = nn.einsum %0, %w "ik,kj->ij" : (tensor<128x64xf32>, tensor<64x96xf32>) -> tensor<128x96xf32>
  return %1 : tensor<128x96xf32>
}

// Behind the end of the depth there are zeros, which no copy reads; behind the last row others are copied, and not stored.
// CHECK-LABEL: gpu.func @ends
// CHECK: nvgpu.device_async_copy %arg0{{.*}}, 8, %{{.*}} {bypassL1}
// CHECK: arith.cmpi slt, %{{.*}}, %c33
// CHECK: scf.if
// CHECK: vector.store {{.*}}, %arg2
// CHECK: gpu.return
func.func @ends(%x: tensor<33x40xbf16>, %w: tensor<40x24xbf16>) -> tensor<33x24xbf16> {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<33x40xbf16>, tensor<40x24xbf16>) -> tensor<33x24xbf16>
  return %0 : tensor<33x24xbf16>
}

// Nothing proves that 16 bytes of rows of odd length lie at multiples of 16: they go through registers.
// CHECK-LABEL: gpu.func @odd
// CHECK-NOT: async
// CHECK: memref.load %arg0
// CHECK-NOT: async
// CHECK: nvvm.mma.sync
// CHECK: gpu.return
func.func @odd(%x: tensor<33x41xbf16>, %w: tensor<41x23xbf16>) -> tensor<33x23xbf16> {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<33x41xbf16>, tensor<41x23xbf16>) -> tensor<33x23xbf16>
  return %0 : tensor<33x23xbf16>
}

// Heads side by side: a transpose is copied as the memory that it is.
// CHECK-LABEL: gpu.func @heads
// CHECK: nvgpu.device_async_copy %arg0
// CHECK: nvgpu.device_async_copy %arg1
// CHECK: nvgpu.ldmatrix {{.*}}transpose = false}
// CHECK: nvgpu.ldmatrix {{.*}}transpose = false}
// CHECK: nvvm.mma.sync
// CHECK: gpu.return
func.func @heads(%q: tensor<2x40x3x32xf16>, %k: tensor<2x48x3x32xf16>) -> tensor<2x3x40x48xf16> {
  %0 = nn.transpose %q [0, 2, 1, 3] : (tensor<2x40x3x32xf16>) -> tensor<2x3x40x32xf16>
  %1 = nn.transpose %k [0, 2, 1, 3] : (tensor<2x48x3x32xf16>) -> tensor<2x3x48x32xf16>
  %2 = nn.einsum %0, %1 "bhik,bhjk->bhij" : (tensor<2x3x40x32xf16>, tensor<2x3x48x32xf16>) -> tensor<2x3x40x48xf16>
  return %2 : tensor<2x3x40x48xf16>
}

// What lies side by side in the result are columns, whichever operand has them.
// CHECK-LABEL: gpu.func @exchanged
// CHECK: nvvm.mma.sync
// CHECK: vector.store {{.*}}, %arg2{{.*}}vector<8xf16>
// CHECK: gpu.return
func.func @exchanged(%x: tensor<64x64xf16>, %w: tensor<64x96xf16>) -> tensor<96x64xf16> {
  %0 = nn.einsum %x, %w "ik,kj->ji" : (tensor<64x64xf16>, tensor<64x96xf16>) -> tensor<96x64xf16>
  return %0 : tensor<96x64xf16>
}

// Operands of two types are multiplied in f32.
// CHECK-LABEL: gpu.func @mixed
// CHECK: math.fma
// CHECK-NOT: nvvm.mma.sync
// CHECK: gpu.return
func.func @mixed(%x: tensor<32x64xbf16>, %w: tensor<64x48xf32>) -> tensor<32x48xf32> {
  %0 = nn.cast %x : (tensor<32x64xbf16>) -> tensor<32x64xf32>
  %1 = nn.einsum %0, %w "ik,kj->ij" : (tensor<32x64xf32>, tensor<64x48xf32>) -> tensor<32x48xf32>
  return %1 : tensor<32x48xf32>
}
