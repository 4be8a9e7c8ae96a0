// RUN: cleave-kernels %s --target cuda:sm_90 | FileCheck %s
// RUN: cleave-kernels %s --target cuda:sm_90 --emit=launches | FileCheck %s --check-prefix=LAUNCH
// RUN: cleave-kernels %s --target cuda:sm_90 --emit=ptx 2>/dev/null | FileCheck %s --check-prefix=PTX

// Of few updates each vector of what is updated looks for those that meet it: the same result whatever the order of threads.
// CHECK-LABEL: gpu.func @scattered
// CHECK: scf.for
// CHECK: scf.if
// CHECK: vector.load %arg2
// CHECK: vector.store {{.*}}, %arg3
// CHECK: gpu.return
func.func @scattered(%x: tensor<64x8xf32>, %i: tensor<5x1xi64>, %u: tensor<5x8xf32>) -> tensor<64x8xf32> {
  %0 = nn.scatter_nd add %x, %i, %u : (tensor<64x8xf32>, tensor<5x1xi64>, tensor<5x8xf32>) -> tensor<64x8xf32>
  return %0 : tensor<64x8xf32>
}

// Of many updates a block looks for those of its rows: warps vote, and sums in shared memory are in the order of updates.
// CHECK-LABEL: gpu.func @added_in_order
// CHECK-SAME: workgroup(%[[SUMS:[a-z0-9]+]] : memref<4096xf32, #gpu.address_space<workgroup>>
// CHECK: vector.load %arg0
// CHECK: vector.store {{.*}}, %[[SUMS]]
// CHECK: memref.load %arg1
// CHECK: scf.for
// CHECK: nvvm.vote.sync ballot
// CHECK: gpu.barrier
// CHECK: scf.while
// CHECK: llvm.intr.cttz
// CHECK: vector.load %arg2
// CHECK: arith.addf
// CHECK: vector.store {{.*}}, %[[SUMS]]
// CHECK: vector.load %[[SUMS]]
// CHECK: vector.store {{.*}}, %arg3
// CHECK: gpu.return
// LAUNCH: added_in_order{{[[:space:]]}}1250 x 256 threads, 18496 bytes shared
func.func @added_in_order(%x: tensor<5000x1024xf32>, %i: tensor<1000x1xi64>, %u: tensor<1000x1024xf32>) -> tensor<5000x1024xf32> {
  %0 = nn.scatter_nd add %x, %i, %u : (tensor<5000x1024xf32>, tensor<1000x1xi64>, tensor<1000x1024xf32>) -> tensor<5000x1024xf32>
  return %0 : tensor<5000x1024xf32>
}

// What is replaced is written once, by the last update of its row, whichever thread finds it.
// CHECK-LABEL: gpu.func @last_update_wins
// CHECK-SAME: workgroup(%[[LAST:[a-z0-9]+]] : memref<4xi32, #gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK: memref.load %arg1
// CHECK: memref.atomic_rmw maxs %{{.*}}, %[[LAST]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[LAST]]
// CHECK: scf.if
// CHECK: vector.load %arg2
// CHECK: vector.load %arg0
// CHECK: vector.store {{.*}}, %arg3
// CHECK: gpu.return
// Atomics order nothing: barriers do.
// PTX-LABEL: .entry last_update_wins(
// PTX-NOT: fence
// PTX-NOT: membar
// PTX: atom.shared.max.s32
// PTX-NOT: fence
// PTX: ret;
func.func @last_update_wins(%x: tensor<5000x1024xf32>, %i: tensor<1000x1xi64>, %u: tensor<1000x1024xf32>) -> tensor<5000x1024xf32> {
  %0 = nn.scatter_nd set %x, %i, %u : (tensor<5000x1024xf32>, tensor<1000x1xi64>, tensor<1000x1024xf32>) -> tensor<5000x1024xf32>
  return %0 : tensor<5000x1024xf32>
}
