// RUN: sed -n '/^func.func @alone(/,/^}/p' %s | sed 's/@alone/@main/' > %t.alone.mlir
// RUN: cleave run %t.alone.mlir --mesh one=1 --device cuda-emulated --check | FileCheck %s
// RUN: cleave shard %t.alone.mlir --mesh one=1 --emit=ordered -o - | FileCheck %s --check-prefix=PLACE
// RUN: sed -n '/^func.func @both(/,/^}/p' %s | sed 's/@both/@main/' > %t.both.mlir
// RUN: cleave run %t.both.mlir --mesh one=1 --device cuda-emulated --check | FileCheck %s
// CHECK: check {{.*}}: ok

// The product dies where it is updated, and its place is the result's: on a device only two rows are written.
// PLACE: exec.kernel @scatter_nd_0{{.*}}in_place = array<i64: 0>
func.func @alone(%x: tensor<512x64xf32>, %p: tensor<2x1xi64>, %n: tensor<2x64xf32>, %w: tensor<64x64xf32>) -> tensor<512x64xf32> {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %1 = nn.scatter_nd set %0, %p, %n : (tensor<512x64xf32>, tensor<2x1xi64>, tensor<2x64xf32>) -> tensor<512x64xf32>
  return %1 : tensor<512x64xf32>
}

// The first product is an output, too, so that its update lies elsewhere, and one kernel, which both have, writes all rows.
func.func @both(%x: tensor<512x64xf32>, %p: tensor<2x1xi64>, %n: tensor<2x64xf32>, %w: tensor<64x64xf32>) -> (tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>) {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %1 = nn.scatter_nd set %0, %p, %n : (tensor<512x64xf32>, tensor<2x1xi64>, tensor<2x64xf32>) -> tensor<512x64xf32>
  %2 = nn.einsum %1, %w "ik,kj->ij" : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %3 = nn.scatter_nd set %2, %p, %n : (tensor<512x64xf32>, tensor<2x1xi64>, tensor<2x64xf32>) -> tensor<512x64xf32>
  return %0, %1, %3 : tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>
}
