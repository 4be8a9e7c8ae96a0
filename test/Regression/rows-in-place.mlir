// Sums along a dim that is not the last, without that dim in their shape, of what dies there: the result was written over elements
// that sums of later rows still read. Results of rows are known under shapes with dims of size 1 more or less.
//
// RUN: cleave run %s --mesh x=1 --executor=program --check | FileCheck %s
// CHECK: check result0: ok

func.func @main(%x: tensor<2x32x64xf32>, %w: tensor<64x64xf32>) -> tensor<2x32x64xf32> {
  %0 = nn.einsum %x, %w "amk,kn->amn" : (tensor<2x32x64xf32>, tensor<64x64xf32>) -> tensor<2x32x64xf32>
  %1 = nn.reduce sum %0 dims [1] : (tensor<2x32x64xf32>) -> tensor<2x64xf32>
  %2 = nn.mul %0, %0 : (tensor<2x32x64xf32>, tensor<2x32x64xf32>) -> tensor<2x32x64xf32>
  %3 = nn.reduce sum %2 dims [1] : (tensor<2x32x64xf32>) -> tensor<2x64xf32>
  %4 = nn.reshape %1 : (tensor<2x64xf32>) -> tensor<2x1x64xf32>
  %5 = nn.sqrt %3 : (tensor<2x64xf32>) -> tensor<2x64xf32>
  %6 = nn.reshape %5 : (tensor<2x64xf32>) -> tensor<2x1x64xf32>
  %7 = nn.sub %0, %4 : (tensor<2x32x64xf32>, tensor<2x1x64xf32>) -> tensor<2x32x64xf32>
  %8 = nn.div %7, %6 : (tensor<2x32x64xf32>, tensor<2x1x64xf32>) -> tensor<2x32x64xf32>
  return %8 : tensor<2x32x64xf32>
}
