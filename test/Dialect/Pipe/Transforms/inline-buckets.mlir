// A body that is called for each microbatch and reduces its gradients there (ZeRO-2): reductions of one call are a bucket, and those of two
// calls are none, since the first ones are added up before the last ones are there.
//
// RUN: cleave-opt %s --pipe-lower --pipe-inline --exec-bucket-reductions | FileCheck %s

// CHECK-LABEL: func.func @main.rank0
// CHECK: spmd.all_reduce sum %{{.*}} {exec.bucket = 0 : i64} : tensor<4x4xf32>
// CHECK-NEXT: spmd.all_reduce sum %{{.*}} {exec.bucket = 0 : i64} : tensor<4x4xf32>
// CHECK: spmd.all_reduce sum %{{.*}} {exec.bucket = 1 : i64} : tensor<4x4xf32>
// CHECK-NEXT: spmd.all_reduce sum %{{.*}} {exec.bucket = 1 : i64} : tensor<4x4xf32>
// CHECK-NOT: exec.bucket
#full = #spmd.mesh<["stage"=1, "data"=2]>
#inner = #spmd.mesh<["data"=2]>
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 2 : i64, spmd.mesh = #inner, spmd.phase = "scheduled"} {
func.func private @main.stage0(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %a = nn.einsum %x, %x "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = nn.einsum %x, %a "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %ra = spmd.all_reduce sum %a over {"data"} : tensor<4x4xf32>
  %rb = spmd.all_reduce sum %b over {"data"} : tensor<4x4xf32>
  return %ra, %rb : tensor<4x4xf32>, tensor<4x4xf32>
}
pipe.schedule @main.schedule ranks 1 stages 1 microbatches 2 placement [0] channels [] {
  pipe.rank 0 "0F0,0F1"
}
func.func private @main.after0(%w: tensor<4x4xf32>, %v: tensor<4x4xf32>, %a: tensor<4x4xf32>, %b: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %nw = nn.sub %w, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %nv = nn.sub %v, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %nw, %nv : tensor<4x4xf32>, tensor<4x4xf32>
}
func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x4xf32> {nn.name = "w"}, %v: tensor<4x4xf32> {nn.name = "v"})
    -> (tensor<4x4xf32> {spmd.state = "w"}, tensor<4x4xf32> {spmd.state = "v"}) {
  %l:2 = pipe.microbatches 2 (%i = %x split 0) -> (sum, sum) : (tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %h:2 = func.call @main.stage0(%i) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
    pipe.yield %h#0, %h#1 : tensor<4x4xf32>, tensor<4x4xf32>
  }
  %n:2 = func.call @main.after0(%w, %v, %l#0, %l#1) {pipe.home = 0 : i64}
      : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
  return %n#0, %n#1 : tensor<4x4xf32>, tensor<4x4xf32>
}
}
