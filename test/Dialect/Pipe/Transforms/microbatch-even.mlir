// A plan may allow uneven shards: of a weight here. The batch is not padded for that: each device gets as many samples of a microbatch as any other.
//
// RUN: cleave-opt %s --pipe-microbatch="microbatches=2 uneven batch=arg0=0,arg1=none" | FileCheck %s
// RUN: cleave-opt %s --pipe-microbatch="microbatches=5 batch=arg0=0,arg1=none" | FileCheck %s --check-prefix=SAME

// Of 5 samples a microbatch has 3 or 2. Dims of 6 are multiples of both, so that the program is written for 5: no other dim is one of these.
#mesh = #spmd.mesh<["a"=4]>
#columns = #spmd.sharding<#mesh, [{?}, {"a"}], uneven>
module attributes {spmd.mesh = #mesh} {
// CHECK-LABEL: func.func @two_sizes(
// CHECK-SAME: tensor<5x6xf32> {pipe.split = 0 : i64, spmd.even = 0 : i64}
// CHECK-SAME: -> (tensor<5x6xf32> {pipe.split = 0 : i64, spmd.even = 0 : i64})
// CHECK-SAME: pipe.per_shard = 5 : i64, pipe.samples = 5 : i64, pipe.shards = 1 : i64, spmd.even = 5 : i64
// SAME-LABEL: func.func @two_sizes(
// SAME-SAME: tensor<1x6xf32> {pipe.split = 0 : i64, spmd.even = 0 : i64}
// SAME-NOT: spmd.even = 5
func.func @two_sizes(%x: tensor<5x6xf32>, %w: tensor<6x6xf32> {spmd.annotation = #spmd.annotation<#columns, loc(unknown), loc(unknown)>}) -> tensor<5x6xf32> {
  %y = nn.einsum %x, %w "mk,kn->mn" : (tensor<5x6xf32>, tensor<6x6xf32>) -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}
}
