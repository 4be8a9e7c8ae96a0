// Reductions of a body that is called twice: each copy is a bucket of its own, and those of one copy stay together.
//
// RUN: cleave-opt %s --pipe-lower --pipe-inline | FileCheck %s

// CHECK-LABEL: func.func @main.rank0
// CHECK: spmd.all_reduce sum %{{.*}} {exec.bucket = 0 : i64}
// CHECK: spmd.all_reduce sum %{{.*}} {exec.bucket = 0 : i64}
// CHECK: spmd.all_reduce sum %{{.*}} {exec.bucket = 1 : i64}
// CHECK: spmd.all_reduce sum %{{.*}} {exec.bucket = 2 : i64}
// CHECK: spmd.all_reduce sum %{{.*}} {exec.bucket = 2 : i64}
// CHECK: spmd.all_reduce sum %{{.*}} {exec.bucket = 3 : i64}
#full = #spmd.mesh<["stage"=1, "data"=2]>
#inner = #spmd.mesh<["data"=2]>
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 2 : i64, spmd.mesh = #inner, spmd.phase = "scheduled"} {
func.func private @main.stage0(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %a = nn.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = nn.neg %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = nn.abs %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %ra = spmd.all_reduce sum %a over {"data"} {exec.bucket = 0 : i64} : tensor<4x4xf32>
  %rb = spmd.all_reduce sum %b over {"data"} {exec.bucket = 0 : i64} : tensor<4x4xf32>
  %rc = spmd.all_reduce sum %c over {"data"} {exec.bucket = 1 : i64} : tensor<4x4xf32>
  %ab = nn.add %ra, %rb : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = nn.add %ab, %rc : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
pipe.schedule @main.schedule ranks 1 stages 1 microbatches 2 placement [0] channels [] {
  pipe.rank 0 "0F0,0F1"
}
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %l = pipe.microbatches 2 (%i = %x split 0) -> (split 0) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
    %h = func.call @main.stage0(%i) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    pipe.yield %h : tensor<4x4xf32>
  }
  return %l : tensor<8x4xf32>
}
}
