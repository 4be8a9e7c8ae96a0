// What kernels around a contraction, convolution, attention or window hold.
//
// RUN: cleave-opt %s --exec-fuse-kernels --exec-verify-form | FileCheck %s
// RUN: sed -n '/@boxes(/,/^}/p' %s | sed 's/@boxes/@main/' > %t.boxes.mlir
// RUN: cleave-opt %t.boxes.mlir --exec-lower=last=outlined -o %t.mlir
// RUN: cleave run %t.mlir --against %t.boxes.mlir | FileCheck %s --check-prefix=RAN
// RAN-COUNT-2: ok

// Bias, activation, residual and cast are done on the tile, in the shape of the tile: a reshape comes last.
// CHECK-LABEL: @an_epilogue
func.func @an_epilogue(%x: tensor<2x8x64xf32>, %w: tensor<64x32xf32>, %b: tensor<32xf32>, %r: tensor<16x32xf32>) -> tensor<16x32xf16> {
  // CHECK-NEXT: %[[K:.*]] = exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg1, %{{.*}} = %arg2, %{{.*}} = %arg3)
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: nn.add
  // CHECK-NEXT: %[[G:.*]] = nn.gelu
  // CHECK-NEXT: %[[R:.*]] = nn.reshape %{{.*}} : (tensor<16x32xf32>) -> tensor<2x8x32xf32>
  // CHECK-NEXT: nn.add %[[G]], %[[R]]
  // CHECK-NEXT: nn.cast
  // CHECK-NEXT: nn.reshape
  // CHECK-NEXT: exec.yield
  // CHECK: return %[[K]]
  %0 = nn.einsum %x, %w "bik,kj->bij" : (tensor<2x8x64xf32>, tensor<64x32xf32>) -> tensor<2x8x32xf32>
  %1 = nn.add %b, %0 : (tensor<32xf32>, tensor<2x8x32xf32>) -> tensor<2x8x32xf32>
  %2 = nn.gelu %1 : (tensor<2x8x32xf32>) -> tensor<2x8x32xf32>
  %3 = nn.reshape %2 : (tensor<2x8x32xf32>) -> tensor<16x32xf32>
  %4 = nn.add %3, %r : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  %5 = nn.cast %4 : (tensor<16x32xf32>) -> tensor<16x32xf16>
  return %5 : tensor<16x32xf16>
}

// What is read in between as well is stored, too. Rows walk over whole tiles: they read it from memory.
// CHECK-LABEL: @a_norm_is_another_kernel
func.func @a_norm_is_another_kernel(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>, %s: tensor<64xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>) {
  // CHECK-NEXT: %[[K:.*]]:2 = exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg1)
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: nn.add
  // CHECK-NEXT: exec.yield
  // CHECK: %[[N:.*]] = exec.fused (%{{.*}} = %[[K]]#1, %{{.*}} = %arg2)
  // CHECK-NEXT: nn.rms_norm
  // CHECK-NEXT: exec.yield
  // CHECK: return %[[K]]#0, %[[K]]#1, %[[N]]
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %1 = nn.add %0, %x : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %2 = nn.rms_norm %1, %s dim 1 epsilon 1.0e-5 : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  return %0, %1, %2 : tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>
}

// The product of two contractions is behind one of them.
// CHECK-LABEL: @one_anchor_a_kernel
func.func @one_anchor_a_kernel(%x: tensor<8x64xf32>, %g: tensor<64x32xf32>, %u: tensor<64x32xf32>) -> tensor<8x32xf32> {
  // CHECK-NEXT: %[[U:.*]] = exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg2)
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg1, %{{.*}} = %[[U]])
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: nn.sigmoid
  // CHECK-NEXT: nn.mul
  // CHECK-NEXT: nn.mul
  // CHECK-NEXT: exec.yield
  %0 = nn.einsum %x, %g "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  %1 = nn.sigmoid %0 : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %2 = nn.mul %0, %1 : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %3 = nn.einsum %x, %u "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  %4 = nn.mul %2, %3 : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return %4 : tensor<8x32xf32>
}

// Nothing is computed per tile that has another space: not a sum over the result, not a part of it, not a repetition.
// CHECK-LABEL: @one_space
func.func @one_space(%x: tensor<8x64xf32>, %w: tensor<64x1xf32>, %v: tensor<64x32xf32>, %y: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x16xf32>) {
  // CHECK: nn.einsum
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused
  // CHECK-NEXT: nn.add
  // CHECK-NEXT: exec.yield
  // CHECK: nn.einsum
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused
  // CHECK-NEXT: nn.slice
  // CHECK-NEXT: exec.yield
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x1xf32>) -> tensor<8x1xf32>
  %1 = nn.add %0, %y : (tensor<8x1xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %2 = nn.einsum %x, %v "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  %3 = nn.slice %2 starts [0, 0] sizes [8, 16] steps [1, 1] : (tensor<8x32xf32>) -> tensor<8x16xf32>
  return %1, %3 : tensor<8x64xf32>, tensor<8x16xf32>
}

// What only moves operands is read through, by attention too: nobody stores heads apart. Their transposes are letters of a
// contraction.
// CHECK-LABEL: @movement_in_front
func.func @movement_in_front(%p: tensor<2x8x192xf32>, %x: tensor<2x8x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8x8xf32>) {
  // CHECK-NEXT: %[[H:.*]] = nn.reshape %arg0
  // CHECK-NEXT: %[[K:.*]] = exec.fused (%[[A:.*]] = %[[H]])
  // CHECK-COUNT-3: nn.slice %[[A]]
  // CHECK: nn.attention
  // CHECK-NEXT: nn.transpose
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[K]], %{{.*}} = %arg1)
  // CHECK-NEXT: nn.einsum %{{.*}}, %{{.*}} "bihd,bjhd->bhij"
  // CHECK-NEXT: exec.yield
  %0 = nn.reshape %p : (tensor<2x8x192xf32>) -> tensor<2x8x12x16xf32>
  %1 = nn.slice %0 starts [0, 0, 0, 0] sizes [2, 8, 4, 16] steps [1, 1, 1, 1] : (tensor<2x8x12x16xf32>) -> tensor<2x8x4x16xf32>
  %2 = nn.slice %0 starts [0, 0, 4, 0] sizes [2, 8, 4, 16] steps [1, 1, 1, 1] : (tensor<2x8x12x16xf32>) -> tensor<2x8x4x16xf32>
  %3 = nn.slice %0 starts [0, 0, 8, 0] sizes [2, 8, 4, 16] steps [1, 1, 1, 1] : (tensor<2x8x12x16xf32>) -> tensor<2x8x4x16xf32>
  %q = nn.transpose %1 [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %k = nn.transpose %2 [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %v = nn.transpose %3 [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %4 = nn.attention %q, %k, %v scale 0.25 : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %5 = nn.transpose %4 [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  %6 = nn.transpose %5 [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %7 = nn.transpose %x [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %8 = nn.einsum %6, %7 "bhid,bhdj->bhij" : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  return %5, %8 : tensor<2x8x4x16xf32>, tensor<2x4x8x8xf32>
}

// Heads go back to their places while they are written.
// CHECK-LABEL: @a_product_writes_in_the_order_wanted
func.func @a_product_writes_in_the_order_wanted(%p: tensor<2x4x8x8xf32>, %v: tensor<2x4x8x16xf32>) -> tensor<2x8x64xf32> {
  // CHECK-NEXT: exec.fused
  // CHECK-NEXT: nn.einsum %{{.*}}, %{{.*}} "bhij,bhjd->bihd" : {{.*}} -> tensor<2x8x4x16xf32>
  // CHECK-NEXT: exec.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: nn.reshape
  // CHECK-NEXT: return
  %0 = nn.einsum %p, %v "bhij,bhjd->bhid" : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %1 = nn.transpose %0 [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  %2 = nn.reshape %1 : (tensor<2x8x4x16xf32>) -> tensor<2x8x64xf32>
  return %2 : tensor<2x8x64xf32>
}

// Behind a transpose, too, the shape is that of the tile; channels may go back and forth.
// CHECK-LABEL: @channels_last
func.func @channels_last(%x: tensor<1x4x6x2xf32>, %w: tensor<8x2x3x3xf32>, %r: tensor<1x4x6x8xf32>, %v: tensor<8xf32>) -> tensor<1x4x6x8xf32> {
  // CHECK-NEXT: exec.fused (%[[X:.*]] = %arg0, %[[W:.*]] = %arg1, %[[R:.*]] = %arg2, %[[V:.*]] = %arg3)
  // CHECK-NEXT: %[[XF:.*]] = nn.transpose %[[X]] [0, 3, 1, 2]
  // CHECK-NEXT: %[[C:.*]] = nn.conv %[[XF]], %[[W]]
  // CHECK-NEXT: %[[RF:.*]] = nn.transpose %[[R]] [0, 3, 1, 2]
  // CHECK-NEXT: %[[S:.*]] = nn.add %[[C]], %[[RF]]
  // CHECK-NEXT: %[[B:.*]] = nn.batch_norm %[[S]]
  // CHECK-NEXT: %[[V4:.*]] = nn.reshape %[[V]] : (tensor<8xf32>) -> tensor<1x1x1x8xf32>
  // CHECK-NEXT: %[[VF:.*]] = nn.transpose %[[V4]] [0, 3, 1, 2]
  // CHECK-NEXT: %[[M:.*]] = nn.mul %[[VF]], %[[B]]
  // CHECK-NEXT: %[[Y:.*]] = nn.transpose %[[M]] [0, 2, 3, 1]
  // CHECK-NEXT: exec.yield %[[Y]]
  %0 = nn.transpose %x [0, 3, 1, 2] : (tensor<1x4x6x2xf32>) -> tensor<1x2x4x6xf32>
  %1 = nn.conv %0, %w strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<1x2x4x6xf32>, tensor<8x2x3x3xf32>) -> tensor<1x8x4x6xf32>
  %2 = nn.transpose %1 [0, 2, 3, 1] : (tensor<1x8x4x6xf32>) -> tensor<1x4x6x8xf32>
  %3 = nn.add %2, %r : (tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>) -> tensor<1x4x6x8xf32>
  %4 = nn.transpose %3 [0, 3, 1, 2] : (tensor<1x4x6x8xf32>) -> tensor<1x8x4x6xf32>
  %5 = nn.batch_norm %4, %v, %v, %v, %v epsilon 1.0e-3 : (tensor<1x8x4x6xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<1x8x4x6xf32>
  %6 = nn.transpose %5 [0, 2, 3, 1] : (tensor<1x8x4x6xf32>) -> tensor<1x4x6x8xf32>
  %7 = nn.mul %v, %6 : (tensor<8xf32>, tensor<1x4x6x8xf32>) -> tensor<1x4x6x8xf32>
  return %7 : tensor<1x4x6x8xf32>
}

// A transpose ends an epilogue; convolutions and windows have one, too.
// CHECK-LABEL: @windows
func.func @windows(%x: tensor<1x2x8xf32>, %w: tensor<2x2x3xf32>, %b: tensor<8x1x2xf32>) -> (tensor<8x1x2xf32>, tensor<1x2x4xf32>) {
  // CHECK-NEXT: %[[C:.*]] = exec.fused
  // CHECK-NEXT: nn.conv
  // CHECK-NEXT: nn.relu
  // CHECK-NEXT: nn.transpose
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %[[C]],
  // CHECK-NEXT: nn.add
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused
  // CHECK-NEXT: nn.pool
  // CHECK-NEXT: nn.relu
  // CHECK-NEXT: exec.yield
  %0 = nn.conv %x, %w strides [1] pads_low [1] pads_high [1] dilations [1] groups 1 : (tensor<1x2x8xf32>, tensor<2x2x3xf32>) -> tensor<1x2x8xf32>
  %1 = nn.relu %0 : (tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  %2 = nn.transpose %1 [2, 0, 1] : (tensor<1x2x8xf32>) -> tensor<8x1x2xf32>
  %3 = nn.add %2, %b : (tensor<8x1x2xf32>, tensor<8x1x2xf32>) -> tensor<8x1x2xf32>
  %4 = nn.pool max %x kernel [2] strides [2] pads_low [0] pads_high [0] dilations [1] : (tensor<1x2x8xf32>) -> tensor<1x2x4xf32>
  %5 = nn.relu %4 : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  return %3, %5 : tensor<8x1x2xf32>, tensor<1x2x4xf32>
}

// Boxes that do not overlap are a contraction, and what follows is done on it; overlapping ones are left.
// CHECK-LABEL: @boxes
func.func @boxes(%x: tensor<2x3x4x5xf32>, %w: tensor<3x6x2x3xf32>, %b: tensor<6xf32>) -> (tensor<2x6x8x15xf32>, tensor<2x6x5x17xf32>) {
  // CHECK: exec.fused
  // CHECK-NEXT: nn.einsum %{{.*}}, %{{.*}} "ncpq,coxy->nopxqy" : (tensor<2x3x4x5xf32>, tensor<3x6x2x3xf32>) -> tensor<2x6x4x2x5x3xf32>
  // CHECK-NEXT: nn.reshape
  // CHECK: nn.add
  // CHECK-NEXT: nn.relu
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused
  // CHECK-NEXT: nn.conv_transpose
  %0 = nn.conv_transpose %x, %w, %b strides [2, 3] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] output_pads [0, 0] groups 1 : (tensor<2x3x4x5xf32>, tensor<3x6x2x3xf32>, tensor<6xf32>) -> tensor<2x6x8x15xf32>
  %1 = nn.relu %0 : (tensor<2x6x8x15xf32>) -> tensor<2x6x8x15xf32>
  %2 = nn.conv_transpose %x, %w strides [1, 3] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] output_pads [0, 2] groups 1 : (tensor<2x3x4x5xf32>, tensor<3x6x2x3xf32>) -> tensor<2x6x5x17xf32>
  return %1, %2 : tensor<2x6x8x15xf32>, tensor<2x6x5x17xf32>
}

// A sum of integers is no tile of vectors.
// CHECK-LABEL: @of_floats_alone
func.func @of_floats_alone(%x: tensor<8x8xi32>) -> tensor<8x8xi32> {
  // CHECK: nn.einsum
  // CHECK-NEXT: exec.yield
  // CHECK: nn.add
  %0 = nn.einsum %x, %x "ik,kj->ij" : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi32>
  %1 = nn.add %0, %x : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi32>
  return %1 : tensor<8x8xi32>
}

// What combines microbatches is the epilogue of the last one; a kernel of the first one that waited for it would hold all that this reads.
// CHECK-LABEL: @sums_over_microbatches
func.func @sums_over_microbatches(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>, %d: tensor<8x32xf32>, %e: tensor<8x32xf32>) -> (tensor<64x32xf32>, tensor<32xf32>) {
  // CHECK-NEXT: %[[A:.*]] = exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg2)
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: exec.yield
  // CHECK: %[[B:.*]] = exec.fused (%{{.*}} = %arg2)
  // CHECK-NEXT: nn.reduce
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %arg1, %{{.*}} = %arg3, %{{.*}} = %[[A]])
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: nn.add
  // CHECK-NEXT: exec.yield
  // CHECK: exec.fused (%{{.*}} = %arg3, %{{.*}} = %[[B]])
  // CHECK-NEXT: nn.reduce
  // CHECK-NEXT: nn.add
  %0 = nn.einsum %x, %d "ki,kj->ij" : (tensor<8x64xf32>, tensor<8x32xf32>) -> tensor<64x32xf32>
  %1 = nn.reduce sum %d dims [0] : (tensor<8x32xf32>) -> tensor<32xf32>
  %2 = nn.einsum %y, %e "ki,kj->ij" : (tensor<8x64xf32>, tensor<8x32xf32>) -> tensor<64x32xf32>
  %3 = nn.reduce sum %e dims [0] : (tensor<8x32xf32>) -> tensor<32xf32>
  %4 = nn.add %0, %2 {spmd.combines} : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
  %5 = nn.add %1, %3 {spmd.combines} : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  return %4, %5 : tensor<64x32xf32>, tensor<32xf32>
}

// What a norm's gradient makes of that of its result goes into the kernel of its rows, with the row's statistics: the product stores no more
// than what else is read.
// CHECK-LABEL: @gradients_of_a_norm
func.func @gradients_of_a_norm(%d: tensor<8x32xf32>, %w: tensor<64x32xf32>, %x: tensor<8x64xf32>, %s: tensor<64xf32>) -> (tensor<8x64xf32>, tensor<64xf32>) {
  // CHECK-NEXT: %[[DY:.*]] = exec.fused (%{{.*}} = %arg0, %{{.*}} = %arg1)
  // CHECK-NEXT: nn.einsum
  // CHECK-NEXT: exec.yield
  // CHECK: %[[DX:.*]]:2 = exec.fused
  // CHECK: nn.reduce mean
  // CHECK: nn.mul
  // CHECK-NEXT: nn.mul
  // CHECK-NEXT: nn.reduce mean
  // CHECK: exec.yield
  // CHECK: %[[DS:.*]] = exec.fused (%{{.*}} = %[[DY]], %{{.*}} = %[[DX]]#0)
  // CHECK-NEXT: nn.mul
  // CHECK-NEXT: nn.reduce sum
  // CHECK-NEXT: exec.yield
  // CHECK: return %[[DX]]#1, %[[DS]]
  %m = nn.reduce mean %x dims [1] keep_dims : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %n = nn.sub %x, %m : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  %dy = nn.einsum %d, %w "ij,kj->ik" : (tensor<8x32xf32>, tensor<64x32xf32>) -> tensor<8x64xf32>
  %g = nn.mul %dy, %s : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  %p = nn.mul %g, %n : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %mp = nn.reduce mean %p dims [1] keep_dims : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %t = nn.mul %n, %mp : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  %mg = nn.reduce mean %g dims [1] keep_dims : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %u = nn.add %t, %mg : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  %dx = nn.sub %g, %u : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %q = nn.mul %dy, %n : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %ds = nn.reduce sum %q dims [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  return %dx, %ds : tensor<8x64xf32>, tensor<64xf32>
}
