// A program of functions: a layer that is called twice, whose row-parallel product is asked to be partial inside, and
// whose bias joins its terms. One all_reduce a layer, of 8 x 16 x 4 bytes: * 2 * (2 - 1) / 2 = 512 each; with batch split
// too, half of that.
//
// RUN: cleave run %s --check | FileCheck %s --check-prefix=EQUAL
// RUN: cleave run %s --check --shard 'x=[data, _]' | FileCheck %s --check-prefix=BATCH
// RUN: cleave explain %s | FileCheck %s --check-prefix=WHY
// RUN: cleave shard %s --emit annotated | FileCheck %s
// RUN: cleave-opt %s --spmd-shard | FileCheck %s --check-prefix=LOCAL

// EQUAL: 2 x all_reduce over model 8x16xf32 1.02 kB
// EQUAL-NEXT: sent by a rank: 1.02 kB
// EQUAL: check y: ok
// BATCH: 2 x all_reduce over model 4x16xf32 512 B
// BATCH-NEXT: sent by a rank: 512 B
// BATCH: check y: ok
// WHY: all_reduce over model, 512 bytes a rank
// WHY: all_reduce over model, 512 bytes a rank

// CHECK-LABEL: func.func @main
// CHECK-NOT: func.call
// CHECK-COUNT-2: spmd.constrain
// CHECK-NOT: @layer
// LOCAL-LABEL: func.func @main
// LOCAL-COUNT-2: spmd.all_reduce
// LOCAL-NOT: @layer
#mesh = #spmd.mesh<["data"=2, "model"=2]>
#cols = #spmd.sharding<#mesh, [{}, {"model"}]>
#rows = #spmd.sharding<#mesh, [{"model"}, {}]>
#terms = #spmd.sharding<#mesh, [{?}, {?}], partial = {"model": sum}>
func.func @main(%x: tensor<8x16xf32> {nn.name = "x"}, %up: tensor<16x32xf32, #cols>, %down: tensor<32x16xf32, #rows>,
                %bias: tensor<16xf32>) -> (tensor<8x16xf32> {nn.name = "y"}) {
  %0 = func.call @layer(%x, %up, %down, %bias)
      : (tensor<8x16xf32>, tensor<16x32xf32, #cols>, tensor<32x16xf32, #rows>, tensor<16xf32>) -> tensor<8x16xf32>
  %1 = func.call @layer(%0, %up, %down, %bias)
      : (tensor<8x16xf32>, tensor<16x32xf32, #cols>, tensor<32x16xf32, #rows>, tensor<16xf32>) -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}
func.func private @layer(%x: tensor<8x16xf32>, %up: tensor<16x32xf32, #cols>, %down: tensor<32x16xf32, #rows>,
                         %bias: tensor<16xf32>) -> tensor<8x16xf32> {
  %0 = nn.einsum %x, %up "ik,kj->ij" : (tensor<8x16xf32>, tensor<16x32xf32, #cols>) -> tensor<8x32xf32>
  %1 = func.call @activation(%0) : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %2 = nn.einsum %1, %down "ik,kj->ij" : (tensor<8x32xf32>, tensor<32x16xf32, #rows>) -> tensor<8x16xf32>
  %3 = spmd.constrain %2 : tensor<8x16xf32> to tensor<8x16xf32, #terms>
  %4 = nn.add %3, %bias : (tensor<8x16xf32, #terms>, tensor<16xf32>) -> tensor<8x16xf32>
  %5 = nn.tanh %4 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %5 : tensor<8x16xf32>
}
func.func private @activation(%x: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = nn.relu %x : (tensor<8x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}
