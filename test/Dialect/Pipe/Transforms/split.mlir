// Stages as functions: a parameter in each that uses it, whole values before the loop, a residual that a stage passes by,
// what is combined over microbatches read behind the loop.
//
// RUN: cleave-opt %s --pipe-split | FileCheck %s
// RUN: cleave-opt %s --pipe-split -o /dev/null 2>&1 | FileCheck %s --check-prefix=TIED
// RUN: cleave-opt %s --pipe-split=relay | FileCheck %s --check-prefix=RELAY

#full = #spmd.mesh<["stage"=3, "data"=2]>
#inner = #spmd.mesh<["data"=2]>
#rows = #spmd.sharding<#inner, [{"data"}, {}]>
#replicated = #spmd.sharding<#inner, [{}, {}]>
#vector = #spmd.sharding<#inner, [{}]>
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 4 : i64, spmd.mesh = #inner, spmd.phase = "optimized"} {
nn.param @w : tensor<4x4xf32> = dense<0.5> : tensor<4x4xf32>

// TIED: remark: parameter 'w', 64 bytes, is used by stages 0, 1: each of their ranks holds it

// CHECK-LABEL: func.func private @main.before0
// CHECK: nn.exp

// CHECK-LABEL: func.func private @main.stage0
// CHECK: nn.load @w
// CHECK: nn.einsum
// CHECK: nn.mul
// CHECK: spmd.all_reduce
// CHECK-NOT: pipe.stage

// CHECK-LABEL: func.func private @main.stage1(%arg0: tensor<2x4xf32>) -> tensor<2x4xf32>
// CHECK: nn.load @w

// What a rank has of the part costs nothing, so it is not sent.
// CHECK-LABEL: func.func private @main.stage2(%arg0: tensor<4x4xf32>, %arg1: tensor<2x4xf32>, %arg2: tensor<2x4xf32>)
// CHECK: spmd.local_slice %arg0

// Whole values that only the end reads are made there.
// CHECK-LABEL: func.func private @main.after
// CHECK: nn.exp
// CHECK: nn.mul

// The batch is sharded twice: a part of x, whose shards are split, is one block; of all, which is replicated, two.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32> {nn.name = "x", pipe.split = 0 : i64, spmd.global = tensor<16x4xf32, #data_replicated>}
// CHECK: %[[W:.*]] = call @main.before0(%[[M:arg1]])
// CHECK: %[[Y:.*]]:2 = pipe.microbatches 4 (%{{.*}} = %[[X]] split 0, %{{.*}} = %[[W]] whole, %{{.*}} = %{{.*}} split 0 blocks 2) -> (split 0, sum)
// CHECK-NEXT: %[[A:.*]]:3 = func.call @main.stage0
// CHECK-NEXT: %[[B:.*]] = func.call @main.stage1(%[[A]]#0)
// CHECK-NEXT: %[[C:.*]] = func.call @main.stage2(%{{.*}}, %[[B]], %[[A]]#1)
// CHECK-NEXT: pipe.yield %[[C]], %[[A]]#2
// CHECK: %[[Z:.*]] = call @main.after(%[[Y]]#1, %[[M]])
// CHECK: return %[[Y]]#0, %[[Z]], %[[X]] : tensor<8x4xf32>, tensor<4xf32>, tensor<8x4xf32>

// The residual of stage 0 goes to stage 2 through stage 1.
// RELAY-LABEL: func.func private @main.stage1(%arg0: tensor<2x4xf32>, %arg1: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
// RELAY: return %1, %arg1
// RELAY-LABEL: func.func @main(
// RELAY: %[[A:.*]]:3 = func.call @main.stage0
// RELAY-NEXT: %[[B:.*]]:2 = func.call @main.stage1(%[[A]]#0, %[[A]]#1)
// RELAY-NEXT: func.call @main.stage2(%{{.*}}, %[[B]]#0, %[[B]]#1)
func.func @main(%x: tensor<2x4xf32> {nn.name = "x", pipe.split = 0 : i64, spmd.global = tensor<4x4xf32, #rows>},
                %m: tensor<4xf32> {nn.name = "m", spmd.global = tensor<4xf32, #vector>},
                %all: tensor<16x4xf32> {nn.name = "all", spmd.global = tensor<16x4xf32, #replicated>})
    -> (tensor<2x4xf32> {nn.name = "y", pipe.split = 0 : i64, spmd.global = tensor<4x4xf32, #rows>},
        tensor<4xf32> {nn.name = "s", spmd.global = tensor<4xf32, #vector>},
        tensor<2x4xf32> {nn.name = "z", pipe.split = 0 : i64, spmd.global = tensor<4x4xf32, #rows>}) {
  %w = nn.load @w : tensor<4x4xf32>
  %e = nn.exp %m : (tensor<4xf32>) -> tensor<4xf32>
  %h = nn.einsum %x, %w "ik,kj->ij" {pipe.stage = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %a = nn.mul %h, %e {pipe.stage = 0 : i64} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %p = nn.reduce sum %a dims [0] {pipe.stage = 0 : i64} : (tensor<2x4xf32>) -> tensor<4xf32>
  %q = spmd.all_reduce sum %p over {"data"} : tensor<4xf32>
  %t = pipe.accumulate sum %q : tensor<4xf32>
  %g = nn.einsum %a, %w "ik,kj->ij" {pipe.stage = 1 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %part = pipe.part %all split 0 of 4 : tensor<16x4xf32> to tensor<4x4xf32>
  %own = spmd.local_slice %part dims [{"data"}, {}] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %r = nn.add %g, %own {pipe.stage = 2 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %y = nn.add %r, %h {pipe.stage = 2 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %z = nn.mul %t, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y, %z, %x : tensor<2x4xf32>, tensor<4xf32>, tensor<2x4xf32>
}
}
