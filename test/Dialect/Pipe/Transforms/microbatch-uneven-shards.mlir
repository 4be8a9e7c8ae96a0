// Samples of two shards, each of which microbatches do not divide.
//
// RUN: cleave-opt %s --pipe-microbatch="microbatches=3 uneven" | FileCheck %s
// RUN: cleave-opt %s --pipe-microbatch="microbatches=3 uneven" --pipe-split | FileCheck %s --check-prefix=SPLIT
// RUN: not cleave-opt %s --pipe-microbatch="microbatches=6 uneven" 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: cleave-opt %s --pipe-microbatch="microbatches=5 uneven" | FileCheck %s --check-prefix=EVEN

// FEW: error: 10 samples are 5 on each of 2 shards, too few for 6 microbatches (P4)

// What divides is as without.
// EVEN: @shards(%{{.*}}: tensor<2x4xf32>
// EVEN-SAME: attributes {pipe.samples = 10 : i64}

// An annotation for two shards: of the 5 samples on each the first two microbatches have 2, the last one 1. The program is written for 3, which
// no device divides.
#mesh = #spmd.mesh<["data"=2]>
#rows = #spmd.sharding<#mesh, [{"data"}, {}]>
module attributes {spmd.mesh = #mesh} {
// CHECK-LABEL: func.func @shards(
// CHECK-SAME: tensor<6x4xf32> {pipe.split = 0 : i64
// CHECK-SAME: attributes {pipe.per_shard = 3 : i64, pipe.samples = 10 : i64, pipe.shards = 2 : i64}
// CHECK: pipe.part %{{.*}} split 0 of 3 samples 5 blocks 2 : tensor<10x1xf32> to tensor<6x1xf32>
// SPLIT-LABEL: func.func private @shards.stage0(
// SPLIT: nn.mul {{.*}} : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
// SPLIT-LABEL: func.func private @shards.stage0.rest(
// SPLIT: nn.mul {{.*}} : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
// SPLIT: pipe.microbatches 3 samples 5 (%{{.*}} = %arg0 split 0 blocks 2, %{{.*}} = %{{.*}} split 0 blocks 2) -> (split 0 blocks 2)
func.func @shards(%x: tensor<10x4xf32> {spmd.annotation = #spmd.annotation<#rows, loc(unknown), loc(unknown)>}) -> tensor<10x4xf32> {
  %c = nn.constant dense<[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0], [10.0]]> : tensor<10x1xf32> -> tensor<10x1xf32>
  %y = nn.mul %x, %c : (tensor<10x4xf32>, tensor<10x1xf32>) -> tensor<10x4xf32>
  return %y : tensor<10x4xf32>
}
}
