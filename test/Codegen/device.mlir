// RUN: cleave-kernels %s --target cuda:sm_90 | FileCheck %s
// RUN: cleave-kernels %s --target cuda:sm_90 --emit=launches | FileCheck %s --check-prefix=LAUNCH
// RUN: cleave-kernels %s --target cuda:sm_90 --emit=ptx 2>/dev/null | FileCheck %s --check-prefix=PTX
// RUN: cleave-kernels %s --target cuda:sm_90 --tf32 --emit=ptx 2>/dev/null | FileCheck %s --check-prefix=TF32
// RUN: cleave-kernels %s --target cuda:sm_80 --emit=ptx 2>/dev/null | FileCheck %s --check-prefix=SM80
// RUN: not cleave-kernels %s --target cuda:sm_50 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: sed -n '/^func.func @attention_to_a_part(/,/^}/p' %s > %t.part.mlir
// RUN: not cleave-kernels %t.part.mlir 2>&1 | FileCheck %s --check-prefix=HOST

// HOST: exec.partial_attention has a lowering for devices only
// UNKNOWN: error: no GPU of kernels is called 'sm_50'
// SM80: .target sm_80
// PTX: .target sm_90

// Every element by itself: 16 bytes a thread, and no remainder where rows are known.
// CHECK-LABEL: gpu.func @map
// CHECK-SAME: memref<393216xf32, 1> {llvm.align = 16 : i64, llvm.dereferenceable = 1572864 : i64, llvm.noalias, llvm.readonly}
// CHECK-SAME: memref<393216xf32, 1> {llvm.align = 16 : i64, llvm.dereferenceable = 1572864 : i64, llvm.noalias, llvm.writeonly}
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK: %[[AT:.*]] = arith.muli %{{.*}}, %c4
// CHECK: vector.load %arg0[%[[AT]]] {alignment = 16 : i64}
// CHECK: vector.load %arg1[%{{.*}}] {alignment = 16 : i64}
// CHECK-NOT: scf.
// CHECK: vector.store %{{.*}}, %arg2[%[[AT]]] {alignment = 16 : i64}
// CHECK: gpu.return
// LAUNCH: map{{[[:space:]]}}384 x 256 threads, 0 bytes shared
// PTX-LABEL: .visible .entry map(
// PTX: .maxntid 256
// PTX-COUNT-2: ld.global.nc.v4.b32
// PTX-NOT: call
// PTX: st.global.v4.b32
// PTX: ret;
func.func @map(%x: tensor<128x3072xf32>, %c: tensor<3072xf32>) -> tensor<128x3072xf32> {
  %0 = nn.add %x, %c : (tensor<128x3072xf32>, tensor<3072xf32>) -> tensor<128x3072xf32>
  %1 = nn.gelu %0 : (tensor<128x3072xf32>) -> tensor<128x3072xf32>
  return %1 : tensor<128x3072xf32>
}

// A warp a row: read once, two reductions by shuffles, no shared memory.
// CHECK-LABEL: gpu.func @warp_a_row
// CHECK-COUNT-1: vector.load %arg0
// CHECK-COUNT-10: gpu.shuffle xor
// CHECK-NOT: vector.load
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return
// LAUNCH: warp_a_row{{[[:space:]]}}192 x 256 threads, 0 bytes shared
func.func @warp_a_row(%x: tensor<1536x128xf32>) -> tensor<1536x128xf32> {
  %y = nn.softmax %x dim 1 : (tensor<1536x128xf32>) -> tensor<1536x128xf32>
  return %y : tensor<1536x128xf32>
}

// Five rows of 16 for teams of four, eight in a warp: a team without a row computes with the last one, and stores nothing.
// CHECK-LABEL: gpu.func @teams_without_a_row
// CHECK: %[[IS:.*]] = arith.cmpi slt, %[[ROW:.*]], %c5
// CHECK: arith.minsi
// CHECK-COUNT-4: gpu.shuffle xor
// CHECK: scf.if %[[IS]]
// CHECK: vector.store
// CHECK: gpu.return
func.func @teams_without_a_row(%x: tensor<5x16xf32>) -> tensor<5x16xf32> {
  %y = nn.softmax %x dim 1 : (tensor<5x16xf32>) -> tensor<5x16xf32>
  return %y : tensor<5x16xf32>
}

// A block a row: each warp writes its slot, one barrier a reduction. The end of the row counts as the identity.
// CHECK-LABEL: gpu.func @block_a_row
// CHECK: scf.for
// CHECK: arith.cmpi slt, %{{.*}}, %c50004
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: memref.store %{{.*}} : memref<32xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK: memref.load
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return
// LAUNCH: block_a_row{{[[:space:]]}}40 x 1024 threads, 256 bytes shared
func.func @block_a_row(%x: tensor<40x50004xf32>) -> tensor<40x50004xf32> {
  %y = nn.softmax %x dim 1 : (tensor<40x50004xf32>) -> tensor<40x50004xf32>
  return %y : tensor<40x50004xf32>
}

// Rows of 197 begin anywhere. Whole vectors of them are found and read as such, once; what is before and behind goes to the
// team's first threads, element by element.
// CHECK-LABEL: gpu.func @rows_that_begin_anywhere
// CHECK: %[[START:.*]] = arith.muli %{{.*}}, %c197
// CHECK: %[[UP:.*]] = arith.addi %[[START]], %c3
// CHECK: %[[DIV:.*]] = arith.divui %[[UP]], %c4
// CHECK: %[[FIRST:.*]] = arith.muli %[[DIV]], %c4
// CHECK: %[[HEAD:.*]] = arith.subi %[[FIRST]], %[[START]]
// CHECK-COUNT-2: vector.load %arg0[%{{.*}}] {alignment = 16 : i64} : memref<465708xf32, 1>, vector<4xf32>
// CHECK: memref.load %arg0
// CHECK-NOT: load %arg0
// CHECK-COUNT-2: vector.store %{{.*}}, %arg1[%{{.*}}] {alignment = 16 : i64}
// CHECK: memref.store %{{.*}}, %arg1
// CHECK: gpu.return
// PTX-LABEL: .visible .entry rows_that_begin_anywhere(
// PTX-COUNT-2: ld.global.nc.v4.b32
// PTX: ld.global.nc.b32
// PTX-COUNT-2: st.global.v4.b32
// PTX: st.global.b32
func.func @rows_that_begin_anywhere(%x: tensor<2364x197xf32>) -> tensor<2364x197xf32> {
  %y = nn.softmax %x dim 1 : (tensor<2364x197xf32>) -> tensor<2364x197xf32>
  return %y : tensor<2364x197xf32>
}

// Likewise by a block, in a loop.
// CHECK-LABEL: gpu.func @long_rows_that_begin_anywhere
// CHECK: scf.for
// CHECK: vector.load %arg0[%{{.*}}] {alignment = 16 : i64} : memref<6432896xf32, 1>, vector<4xf32>
// CHECK: gpu.return
// PTX-LABEL: .visible .entry long_rows_that_begin_anywhere(
// PTX: ld.global.nc.v4.b32
// PTX: st.global.v4.b32
func.func @long_rows_that_begin_anywhere(%x: tensor<128x50257xf32>) -> tensor<128x50257xf32> {
  %y = nn.softmax %x dim 1 : (tensor<128x50257xf32>) -> tensor<128x50257xf32>
  return %y : tensor<128x50257xf32>
}

// What is left behind the last vector of all goes to the first three threads.
// CHECK-LABEL: gpu.func @elements_behind_the_last_vector
// CHECK: vector.load %arg0[%{{.*}}] {alignment = 16 : i64}
// CHECK: scf.if
// CHECK: memref.load %arg0
// CHECK: gpu.return
// LAUNCH: elements_behind_the_last_vector{{[[:space:]]}}1 x 256 threads
func.func @elements_behind_the_last_vector(%x: tensor<7x89xf32>) -> tensor<7x89xf32> {
  %y = nn.relu %x : (tensor<7x89xf32>) -> tensor<7x89xf32>
  return %y : tensor<7x89xf32>
}

// Over a major dim lanes are columns of their own: 16 threads share one.
// CHECK-LABEL: gpu.func @columns
// CHECK: scf.for
// CHECK: vector.load %arg0{{.*}}vector<4xf32>
// CHECK: vector.store {{.*}} memref<2048xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK-COUNT-16: vector.load
// CHECK: vector.store {{.*}}vector<4xf32>
// CHECK: gpu.return
// LAUNCH: columns{{[[:space:]]}}3 x 512 threads, 8192 bytes shared
func.func @columns(%x: tensor<640x384xf32>) -> tensor<384xf32> {
  %y = nn.reduce sum %x dims [0] : (tensor<640x384xf32>) -> tensor<384xf32>
  return %y : tensor<384xf32>
}

// Squares of 32 x 32 through shared memory, with what is computed behind them.
// CHECK-LABEL: gpu.func @turned
// CHECK: memref.load %arg0
// CHECK: memref.store {{.*}} memref<1056xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK: memref.load {{.*}} memref<1056xf32, #gpu.address_space<workgroup>>
// CHECK: arith.mulf
// CHECK: memref.store {{.*}}, %arg1
// CHECK: gpu.return
// LAUNCH: turned{{[[:space:]]}}72 x 256 threads, 4224 bytes shared
// PTX-LABEL: .visible .entry turned(
// PTX: ld.global.nc.b32
// PTX: st.shared.b32
// PTX: bar.sync
// PTX: ld.shared.b32
// PTX: st.global.b32
func.func @turned(%x: tensor<12x70x64xf32>) -> tensor<12x64x70xf32> {
  %0 = nn.transpose %x [0, 2, 1] : (tensor<12x70x64xf32>) -> tensor<12x64x70xf32>
  %y = nn.mul %0, %0 : (tensor<12x64x70xf32>, tensor<12x64x70xf32>) -> tensor<12x64x70xf32>
  return %y : tensor<12x64x70xf32>
}

// Rows of odd length go element by element: nothing proves that a vector is aligned.
// CHECK-LABEL: gpu.func @odd_rows
// CHECK-NOT: vector<
// CHECK: gpu.return
func.func @odd_rows(%x: tensor<4x7x5xf32>, %c: tensor<4x1x5xf32>) -> tensor<4x7x5xf32> {
  %0 = nn.add %x, %c : (tensor<4x7x5xf32>, tensor<4x1x5xf32>) -> tensor<4x7x5xf32>
  return %0 : tensor<4x7x5xf32>
}

// Short lines of running sums are threads.
// CHECK-LABEL: gpu.func @lines
// CHECK: scf.if
// CHECK: scf.for
// CHECK: gpu.return
// LAUNCH: lines{{[[:space:]]}}1 x 256 threads
func.func @lines(%x: tensor<12x40xf32>) -> tensor<12x40xf32> {
  %0 = nn.cumsum %x dim 1 : (tensor<12x40xf32>) -> tensor<12x40xf32>
  return %0 : tensor<12x40xf32>
}

// With channels last a thread has four of a window, of each tap 16 bytes.
// CHECK-LABEL: gpu.func @pool_of_channels
// CHECK: scf.for %{{.*}} to %c3
// CHECK: scf.for %{{.*}} to %c3
// CHECK: vector.load %arg0{{.*}}vector<4xf32>
// CHECK: arith.cmpf ogt, {{.*}} : vector<4xf32>
// CHECK: vector.store {{.*}}, %arg1
// CHECK: gpu.return
// LAUNCH: pool_of_channels{{[[:space:]]}}1568 x 256 threads, 0 bytes shared
func.func @pool_of_channels(%x: tensor<8x112x112x64xf32>) -> tensor<8x56x56x64xf32> {
  %0 = nn.transpose %x [0, 3, 1, 2] : (tensor<8x112x112x64xf32>) -> tensor<8x64x112x112xf32>
  %1 = nn.pool max %0 kernel [3, 3] strides [2, 2] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] : (tensor<8x64x112x112xf32>) -> tensor<8x64x56x56xf32>
  %2 = nn.transpose %1 [0, 2, 3, 1] : (tensor<8x64x56x56xf32>) -> tensor<8x56x56x64xf32>
  return %2 : tensor<8x56x56x64xf32>
}

// Few queries, a warp each: no key that a causal mask hides is read, and no score is stored.
// CHECK-LABEL: gpu.func @attention
// CHECK: %[[VISIBLE:.*]] = arith.minsi
// CHECK: scf.for %{{.*}} to %[[VISIBLE]]
// CHECK: gpu.shuffle xor
// CHECK: gpu.shuffle idx
// CHECK-NOT: workgroup
// CHECK: memref.store {{.*}}, %arg3
// CHECK: gpu.return
// LAUNCH: attention{{[[:space:]]}}128 x 256 threads, 0 bytes shared
func.func @attention(%q: tensor<16x8x8x64xf32>, %k: tensor<16x2x40x64xf32>, %v: tensor<16x2x40x64xf32>) -> tensor<16x8x8x64xf32> {
  %y = nn.attention %q, %k, %v scale 0.125 causal : (tensor<16x8x8x64xf32>, tensor<16x2x40x64xf32>, tensor<16x2x40x64xf32>) -> tensor<16x8x8x64xf32>
  return %y : tensor<16x8x8x64xf32>
}

// Many queries of f32: a lane has four of them and four keys of a tile, of which nothing is stored but weights, on their way to values.
// CHECK-LABEL: gpu.func @attention_of_f32
// CHECK: %[[VISIBLE:[^ ]+]] = arith.minsi {{.*}}, %c512
// CHECK-NEXT: scf.for %{{.*}} to %[[VISIBLE]] step %c32
// CHECK: gpu.barrier
// CHECK: gpu.barrier
// CHECK: scf.for %{{.*}} to %c64 step %c4
// CHECK-COUNT-8: vector.load {{.*}}#gpu.address_space<workgroup>>, vector<4xf32>
// CHECK-COUNT-64: math.fma
// CHECK: gpu.shuffle xor
// CHECK-COUNT-16: memref.store {{.*}}#gpu.address_space<workgroup>
// CHECK-NEXT: gpu.barrier
// CHECK: scf.for %{{.*}} to %c32 step %c4
// CHECK-COUNT-32: math.fma {{.*}} : vector<4xf32>
// CHECK-NOT: nvvm.mma.sync
// CHECK: vector.store {{.*}}, %arg3
// CHECK: gpu.return
// LAUNCH: attention_of_f32{{[[:space:]]}}192 x 128 threads, 43520 bytes shared
// PTX-LABEL: .visible .entry attention_of_f32(
// PTX: ld.global.nc.v4.b32
// PTX: ld.shared.v4.b32
// PTX: fma.rn.f32
// TF32-LABEL: .visible .entry attention_of_f32(
// TF32: cvt.rna.tf32.f32
// TF32: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
func.func @attention_of_f32(%q: tensor<2x12x512x64xf32>, %k: tensor<2x12x512x64xf32>, %v: tensor<2x12x512x64xf32>) -> tensor<2x12x512x64xf32> {
  %y = nn.attention %q, %k, %v scale 0.125 causal : (tensor<2x12x512x64xf32>, tensor<2x12x512x64xf32>, tensor<2x12x512x64xf32>) -> tensor<2x12x512x64xf32>
  return %y : tensor<2x12x512x64xf32>
}

// Where heads are large, values come to where keys were: a barrier more.
// CHECK-LABEL: gpu.func @attention_of_large_heads
// CHECK-COUNT-4: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return
// LAUNCH: attention_of_large_heads{{[[:space:]]}}128 x 64 threads, 38400 bytes shared
func.func @attention_of_large_heads(%q: tensor<1x32x128x128xf32>, %k: tensor<1x8x128x128xf32>, %v: tensor<1x8x128x128xf32>) -> tensor<1x32x128x128xf32> {
  %y = nn.attention %q, %k, %v scale 0.088 : (tensor<1x32x128x128xf32>, tensor<1x8x128x128xf32>, tensor<1x8x128x128xf32>) -> tensor<1x32x128x128xf32>
  return %y : tensor<1x32x128x128xf32>
}

// Many queries of 16 bits: a warp has 16 of them, and keys and values go through shared memory. Weights are rows of the second product.
// CHECK-LABEL: gpu.func @attention_of_many_queries
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK: gpu.barrier
// CHECK-COUNT-32: nvvm.mma.sync
// CHECK: gpu.shuffle xor
// CHECK-COUNT-32: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: gpu.return
// LAUNCH: attention_of_many_queries{{[[:space:]]}}192 x 128 threads, 27648 bytes shared
// PTX-LABEL: .visible .entry attention_of_many_queries(
// PTX: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// PTX: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
func.func @attention_of_many_queries(%q: tensor<2x12x512x64xbf16>, %k: tensor<2x12x512x64xbf16>, %v: tensor<2x12x512x64xbf16>) -> tensor<2x12x512x64xbf16> {
  %y = nn.attention %q, %k, %v scale 0.125 causal : (tensor<2x12x512x64xbf16>, tensor<2x12x512x64xbf16>, tensor<2x12x512x64xbf16>) -> tensor<2x12x512x64xbf16>
  return %y : tensor<2x12x512x64xbf16>
}

// What is widened to f32 for attention is multiplied as it was; the result is rounded to nothing.
// CHECK-LABEL: gpu.func @attention_of_what_is_widened
// CHECK: vector.store {{.*}}#gpu.address_space<workgroup>>, vector<8xi16>
// CHECK-COUNT-8: nvvm.mma.sync
// CHECK: vector.store {{.*}}, %arg3{{.*}} vector<2xf32>
// CHECK: gpu.return
func.func @attention_of_what_is_widened(%q: tensor<1x12x64x64xbf16>, %k: tensor<1x12x64x64xbf16>, %v: tensor<1x12x64x64xbf16>) -> tensor<1x12x64x64xf32> {
  %0 = nn.cast %q : (tensor<1x12x64x64xbf16>) -> tensor<1x12x64x64xf32>
  %1 = nn.cast %k : (tensor<1x12x64x64xbf16>) -> tensor<1x12x64x64xf32>
  %2 = nn.cast %v : (tensor<1x12x64x64xbf16>) -> tensor<1x12x64x64xf32>
  %3 = nn.attention %0, %1, %2 scale 0.125 : (tensor<1x12x64x64xf32>, tensor<1x12x64x64xf32>, tensor<1x12x64x64xf32>) -> tensor<1x12x64x64xf32>
  return %3 : tensor<1x12x64x64xf32>
}

// One query a head: the warps of a block take its keys in turn, and meet in shared memory.
// CHECK-LABEL: gpu.func @attention_of_one_query
// CHECK: scf.for %{{.*}} to %c4096 step %c256
// CHECK: gpu.barrier
// CHECK: gpu.return
// LAUNCH: attention_of_one_query{{[[:space:]]}}32 x 256 threads, 4160 bytes shared
// PTX-LABEL: .visible .entry attention_of_one_query(
// PTX: ld.global.nc.v4.b32
func.func @attention_of_one_query(%q: tensor<1x32x1x128xbf16>, %k: tensor<1x8x4096x128xbf16>, %v: tensor<1x8x4096x128xbf16>) -> tensor<1x32x1x128xbf16> {
  %y = nn.attention %q, %k, %v scale 0.088 : (tensor<1x32x1x128xbf16>, tensor<1x8x4096x128xbf16>, tensor<1x8x4096x128xbf16>) -> tensor<1x32x1x128xbf16>
  return %y : tensor<1x32x1x128xbf16>
}

// A part of its keys a block: as many as stand before all of them, and those that are seen. The logarithm of their sum goes along.
// CHECK-LABEL: gpu.func @attention_to_a_part
// CHECK: %[[FIRST:[^ ]+]] = arith.muli {{.*}}, %c512
// CHECK: %[[END:[^ ]+]] = arith.minsi
// CHECK: scf.for %{{.*}} to %[[END]] step %c256
// CHECK: gpu.barrier
// CHECK: memref.store {{.*}}, %arg3
// CHECK: memref.store {{.*}}, %arg4[%block_id_x]
// CHECK: gpu.return
// LAUNCH: attention_to_a_part{{[[:space:]]}}256 x 256 threads, 4160 bytes shared
func.func @attention_to_a_part(%q: tensor<1x32x1x128xbf16>, %k: tensor<1x8x4096x128xbf16>, %v: tensor<1x8x4096x128xbf16>) -> (tensor<1x32x1x8x128xf32>, tensor<1x32x1x8xf32>) {
  %s, %l = exec.partial_attention %q, %k, %v part 512 scale 0.088 causal {causalOffset = 4095 : i64} : (tensor<1x32x1x128xbf16>, tensor<1x8x4096x128xbf16>, tensor<1x8x4096x128xbf16>) -> (tensor<1x32x1x8x128xf32>, tensor<1x32x1x8xf32>)
  return %s, %l : tensor<1x32x1x8x128xf32>, tensor<1x32x1x8xf32>
}

// A block a line: four elements a thread, five shuffles, one barrier a round.
// CHECK-LABEL: gpu.func @running_sums
// CHECK: scf.for
// CHECK: vector.load %arg0{{.*}}vector<4xf32>
// CHECK-COUNT-5: gpu.shuffle idx
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: vector.store {{.*}}vector<4xf32>
// CHECK: gpu.return
// LAUNCH: running_sums{{[[:space:]]}}64 x 256 threads, 64 bytes shared
func.func @running_sums(%x: tensor<64x4096xf32>) -> tensor<64x4096xf32> {
  %y = nn.cumsum %x dim 1 : (tensor<64x4096xf32>) -> tensor<64x4096xf32>
  return %y : tensor<64x4096xf32>
}

// Sorted in shared memory, 8 KiB of it elements and 8 KiB their positions.
// CHECK-LABEL: gpu.func @best
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK: arith.shli
// CHECK: gpu.barrier
// CHECK: gpu.return
// LAUNCH: best{{[[:space:]]}}64 x 512 threads, 16384 bytes shared
func.func @best(%x: tensor<64x2048xf32>) -> (tensor<64x50xf32>, tensor<64x50xi64>) {
  %v, %i = nn.top_k %x k 50 dim 1 : (tensor<64x2048xf32>) -> (tensor<64x50xf32>, tensor<64x50xi64>)
  return %v, %i : tensor<64x50xf32>, tensor<64x50xi64>
}

// Of large tensors a thread has several vectors, and loads them before it stores any: four of one operand, two of two.
// CHECK-LABEL: gpu.func @four_loads
// CHECK-COUNT-4: vector.load %arg0
// CHECK-NOT: vector.load
// CHECK-COUNT-4: vector.store
// CHECK: gpu.return
// LAUNCH: four_loads{{[[:space:]]}}512 x 256 threads
// PTX-LABEL: .visible .entry four_loads(
// PTX-COUNT-4: ld.global.nc.v4.b32
// PTX-COUNT-4: st.global.v4.b32
func.func @four_loads(%x: tensor<2048x1024xf32>) -> tensor<2048x1024xf32> {
  %y = nn.relu %x : (tensor<2048x1024xf32>) -> tensor<2048x1024xf32>
  return %y : tensor<2048x1024xf32>
}

// Both halves of a head's rotated part are read as wide as the rest.
// CHECK-LABEL: gpu.func @rotated
// CHECK-NOT: memref.load
// CHECK: gpu.return
func.func @rotated(%x: tensor<1x32x512x128xbf16>, %c: tensor<1x512x64xbf16>, %s: tensor<1x512x64xbf16>) -> tensor<1x32x512x128xbf16> {
  %y = nn.rotary_embedding %x, %c, %s rotated 128 : (tensor<1x32x512x128xbf16>, tensor<1x512x64xbf16>, tensor<1x512x64xbf16>) -> tensor<1x32x512x128xbf16>
  return %y : tensor<1x32x512x128xbf16>
}
