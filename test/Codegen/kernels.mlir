// RUN: cleave-kernels %s --isa x86-64-v4 | FileCheck %s

// A chain of elementwise ops is one loop over whole vectors, then a masked one; dims that no operand lacks are merged.
// CHECK-LABEL: func.func @a_chain_is_one_loop
// CHECK: %[[END:.*]] = arith.constant 64 : index
// CHECK: scf.for
// CHECK: vector.load {{.*}}vector<16xf32>
// CHECK: arith.addf
// CHECK: arith.select
// CHECK: vector.store
// CHECK: }
// CHECK: vector.maskedload
// CHECK: vector.maskedstore
// CHECK-NOT: scf.for
// CHECK: return
func.func @a_chain_is_one_loop(%x: tensor<2x5x7xf32>, %y: tensor<2x5x7xf32>) -> tensor<2x5x7xf32> {
  %0 = nn.add %x, %y : (tensor<2x5x7xf32>, tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %1 = nn.relu %0 : (tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  return %1 : tensor<2x5x7xf32>
}

// A short row is read once: eight loads for three sweeps over 128 elements, and no loop but that over rows.
// CHECK-LABEL: func.func @softmax_reads_its_row_once
// CHECK: scf.for
// CHECK-COUNT-8: vector.load
// CHECK-NOT: vector.load
// CHECK-NOT: scf.for
// CHECK: return
func.func @softmax_reads_its_row_once(%x: tensor<96x128xf32>) -> tensor<96x128xf32> {
  %y = nn.softmax %x dim 1 : (tensor<96x128xf32>) -> tensor<96x128xf32>
  return %y : tensor<96x128xf32>
}

// Of a long row what was added is kept, so that both operands are read in one sweep only.
// CHECK-LABEL: func.func @layer_norm_keeps_a_long_row
// CHECK-SAME: %[[X:[^:]*]]: memref<3072xf32>, %[[R:[^:]*]]: memref<3072xf32>
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
// CHECK-COUNT-4: vector.load %[[X]]
// CHECK-NOT: vector.load %[[X]]
// CHECK: return
func.func @layer_norm_keeps_a_long_row(%x: tensor<3x1024xf32>, %r: tensor<3x1024xf32>) -> tensor<3x1024xf32> {
  %h = nn.add %x, %r : (tensor<3x1024xf32>, tensor<3x1024xf32>) -> tensor<3x1024xf32>
  %y = nn.layer_norm %h dim 1 epsilon 1.0e-5 : (tensor<3x1024xf32>) -> tensor<3x1024xf32>
  return %y : tensor<3x1024xf32>
}

// A reduction over a major dim runs in all lanes at once, and nothing goes across them. Rows are as many at once as registers hold sums of.
// CHECK-LABEL: func.func @major_dims_are_reduced_lane_by_lane
// CHECK: vector.load {{.*}}vector<32xf32>
// CHECK-NOT: vector.extract
// CHECK: return
func.func @major_dims_are_reduced_lane_by_lane(%x: tensor<64x32xf32>) -> tensor<32xf32> {
  %y = nn.reduce sum %x dims [0] : (tensor<64x32xf32>) -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// What takes more than arithmetic is computed of one vector of rows.
// CHECK-LABEL: func.func @few_rows_of_much_work
// CHECK: vector.load {{.*}}vector<16xf32>
// CHECK-NOT: vector<32xf32>
// CHECK: return
func.func @few_rows_of_much_work(%x: tensor<64x32xf32>) -> tensor<32xf32> {
  %e = nn.exp %x : (tensor<64x32xf32>) -> tensor<64x32xf32>
  %y = nn.reduce sum %e dims [0] : (tensor<64x32xf32>) -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// What is read through a reshape is read by vectors though they go over several of its rows: a weight of 3 x 3 next to its gradient.
// CHECK-LABEL: func.func @weights_are_updated_by_vectors
// CHECK-SAME: %[[W:[^:]*]]: memref<1152xf32>,
// CHECK-NOT: memref.load %[[W]]
// CHECK: vector.load %[[W]]{{.*}}vector<16xf32>
// CHECK-NOT: memref.load %[[W]]
// CHECK: return
func.func @weights_are_updated_by_vectors(%w: tensor<8x16x3x3xf32>, %d: tensor<6x8xf32>, %x: tensor<6x144xf32>) -> tensor<8x16x3x3xf32> {
  %g = nn.einsum %d, %x "ko,kc->oc" : (tensor<6x8xf32>, tensor<6x144xf32>) -> tensor<8x144xf32>
  %r = nn.reshape %w : (tensor<8x16x3x3xf32>) -> tensor<8x144xf32>
  %s = nn.sub %r, %g : (tensor<8x144xf32>, tensor<8x144xf32>) -> tensor<8x144xf32>
  %y = nn.reshape %s : (tensor<8x144xf32>) -> tensor<8x16x3x3xf32>
  return %y : tensor<8x16x3x3xf32>
}

// Columns that are as far apart as a kernel has places are brought together by squares in registers, of as many steps as there are.
// CHECK-LABEL: func.func @short_depths_are_turned
// CHECK-SAME: %[[X:[^:]*]]: memref<{{[0-9]*}}xf32>, %[[W:[^:]*]]: memref<18432xf32>
// CHECK-NOT: memref.load %[[W]]
// CHECK-COUNT-16: vector.maskedload %[[W]]
// CHECK: vector.transpose {{.*}}vector<16x16xf32>
// CHECK-NOT: memref.load %[[W]]
// CHECK: return
func.func @short_depths_are_turned(%x: tensor<20x32x9xf32>, %w: tensor<32x64x9xf32>) -> tensor<20x64xf32> {
  %y = nn.einsum %x, %w "rip,iop->ro" : (tensor<20x32x9xf32>, tensor<32x64x9xf32>) -> tensor<20x64xf32>
  return %y : tensor<20x64xf32>
}

// Parts of a line are stored one behind the other, row by row: all operands within one loop.
// CHECK-LABEL: func.func @parts_of_a_line_are_stored_together
// CHECK-SAME: %[[A:[^:]*]]: memref<640xf32>, %[[B:[^:]*]]: memref<640xf32>
// CHECK: scf.for
// CHECK: vector.load %[[A]]{{.*}}vector<16xf32>
// CHECK-NOT: return
// CHECK: vector.load %[[B]]{{.*}}vector<16xf32>
// CHECK: }
// CHECK: return
func.func @parts_of_a_line_are_stored_together(%a: tensor<20x32x1xf32>, %b: tensor<20x32x1xf32>) -> tensor<20x32x2xf32> {
  %y = nn.concat %a, %b dim 2 : (tensor<20x32x1xf32>, tensor<20x32x1xf32>) -> tensor<20x32x2xf32>
  return %y : tensor<20x32x2xf32>
}

// A transpose that leaves the last dim alone moves whole vectors.
// CHECK-LABEL: func.func @heads_move_as_vectors
// CHECK: vector.load {{.*}}vector<16xf32>
// CHECK-NOT: memref.load
// CHECK: vector.store
// CHECK: return
func.func @heads_move_as_vectors(%x: tensor<2x8x4x32xf32>) -> tensor<2x4x8x32xf32> {
  %y = nn.transpose %x [0, 2, 1, 3] : (tensor<2x8x4x32xf32>) -> tensor<2x4x8x32xf32>
  return %y : tensor<2x4x8x32xf32>
}

// An index is clamped before it is used.
// CHECK-LABEL: func.func @gather_stays_inside
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: vector.load
// CHECK: return
func.func @gather_stays_inside(%x: tensor<10x32xf32>, %i: tensor<4xi64>) -> tensor<4x32xf32> {
  %y = nn.gather %x, %i dim 0 : (tensor<10x32xf32>, tensor<4xi64>) -> tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}

// What is allocated is given back behind its last use.
// CHECK-LABEL: func.func @memory_is_given_back_last
// CHECK: %[[M:.*]] = memref.alloc()
// CHECK-NOT: memref.dealloc
// CHECK: vector.store {{.*}}, %arg1
// CHECK: memref.dealloc %[[M]]
// CHECK-NEXT: return
func.func @memory_is_given_back_last(%x: tensor<40x512xf32>) -> tensor<512x40xf32> {
  %s = nn.cumsum %x dim 1 : (tensor<40x512xf32>) -> tensor<40x512xf32>
  %y = nn.transpose %s [1, 0] : (tensor<40x512xf32>) -> tensor<512x40xf32>
  return %y : tensor<512x40xf32>
}

// Blocks of 8 rows and 3 vectors; bias and activation are computed before anything is stored.
// CHECK-LABEL: func.func @products_are_computed_in_blocks
// CHECK-COUNT-24: math.fma
// CHECK-NEXT: scf.yield
// CHECK: arith.select
// CHECK: vector.store {{.*}}, %arg3
// CHECK-NOT: vector.load %arg3
// CHECK: return
func.func @products_are_computed_in_blocks(%x: tensor<64x128xf32>, %w: tensor<128x96xf32>, %b: tensor<96xf32>) -> tensor<64x96xf32> {
  %p = nn.einsum %x, %w "mk,kn->mn" : (tensor<64x128xf32>, tensor<128x96xf32>) -> tensor<64x96xf32>
  %a = nn.add %p, %b : (tensor<64x96xf32>, tensor<96xf32>) -> tensor<64x96xf32>
  %y = nn.relu %a : (tensor<64x96xf32>) -> tensor<64x96xf32>
  return %y : tensor<64x96xf32>
}
