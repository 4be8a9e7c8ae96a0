// Ranks of a pipeline as roles of a program. Its axis stands in the middle of the mesh: ranks of a stage are those at one
// coordinate of it, and meet along "data" and "model" as groups of all ranks; each sends to the one at its own place.
//
// RUN: cleave-opt %s --exec-lower -o %t.ordered.mlir
// RUN: FileCheck %s --check-prefix=ORDERED < %t.ordered.mlir
// RUN: cleave-translate --exec-to-program %t.ordered.mlir -o %t.cleave
// RUN: cleave inspect %t.cleave | FileCheck %s
// RUN: cleave inspect --json %t.cleave | FileCheck %s --check-prefix=JSON

#replicated = #spmd.mesh<["data"=2, "stage"=2, "model"=2]>
#mesh = #spmd.mesh<["data"=2, "model"=2]>
#rows = #spmd.sharding<#mesh, [{"data"}, {}]>
#columns = #spmd.sharding<#mesh, [{}, {"model"}]>
#lines = #spmd.sharding<#mesh, [{"model"}, {}]>

// CHECK: mesh data=2, stage=2, model=2 (8 ranks)
// CHECK: groups over model: 4 of 2 ranks, the first 0-1
// CHECK: kernels: 3,
// CHECK: inputs:
// CHECK-NEXT: x  f32[8, 4]  [data, _]  stage=0: f32[4, 4] in buffer {{[0-9]+}}  stage=1: f32[4, 4] in buffer
// CHECK: outputs:
// CHECK-NEXT: y  f32[8, 4]  [data, _]  stage=1:
// CHECK: role stage=0: ranks 0-1, 4-5
// CHECK: exchange        pieces 0({{.*}} f32[2, 4])
// CHECK: exchange        pieces 0({{.*}} f32[2, 4])
// CHECK: role stage=1: ranks 2-3, 6-7
// CHECK: exchange        pieces 0 -> {{.*}} f32[2, 4]
// CHECK: launch          matmul
// CHECK: all_reduce      sum over model(
// CHECK: exchange        pieces 0 -> {{.*}} f32[2, 4]
// CHECK: sent in a call:
// CHECK-NEXT: ranks 0-1, 4-5:  exchange 2 x, 64 bytes
// CHECK-NEXT: ranks 2-3, 6-7:  all_reduce 2 x
// JSON: "role": "stage=0"
// JSON: "role": "stage=1"
module attributes {spmd.mesh = #mesh, pipe.mesh = #replicated, pipe.axis = "stage", pipe.microbatches = 2 : i64} {
  nn.param @w0 : tensor<4x8xf32> = dense<0.5> : tensor<4x8xf32>
  nn.param @w1 : tensor<8x4xf32> = dense<0.25> : tensor<8x4xf32>
  // ORDERED-LABEL: func.func @main.rank0()
  // ORDERED-COUNT-2: exec.send
  func.func @main.rank0(%x: tensor<4x4xf32> {nn.name = "x", spmd.global = tensor<8x4xf32, #rows>, pipe.index = 0 : i64}) attributes {pipe.rank = 0 : i64} {
    %w = nn.load @w0 shard(#columns) : tensor<4x4xf32>
    %i0 = nn.slice %x starts [0, 0] sizes [2, 4] steps [1, 1] : (tensor<4x4xf32>) -> tensor<2x4xf32>
    %h0 = nn.einsum %i0, %w "ik,kj->ij" : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    pipe.send %h0 to 1 channel 0 microbatch 0 : tensor<2x4xf32>
    %i1 = nn.slice %x starts [2, 0] sizes [2, 4] steps [1, 1] : (tensor<4x4xf32>) -> tensor<2x4xf32>
    %h1 = nn.einsum %i1, %w "ik,kj->ij" : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    pipe.send %h1 to 1 channel 0 microbatch 1 : tensor<2x4xf32>
    return
  }
  // ORDERED-LABEL: func.func @main.rank1()
  // ORDERED-COUNT-2: exec.receive
  func.func @main.rank1(%x: tensor<4x4xf32> {nn.name = "x", spmd.global = tensor<8x4xf32, #rows>, pipe.index = 0 : i64})
      -> (tensor<4x4xf32> {nn.name = "y", spmd.global = tensor<8x4xf32, #rows>, pipe.index = 0 : i64}) attributes {pipe.rank = 1 : i64} {
    %w = nn.load @w1 shard(#lines) : tensor<4x4xf32>
    %h0 = pipe.recv from 0 channel 0 microbatch 0 : tensor<2x4xf32>
    %p0 = nn.einsum %h0, %w "ik,kj->ij" : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %o0 = spmd.all_reduce sum %p0 over {"model"} : tensor<2x4xf32>
    %h1 = pipe.recv from 0 channel 0 microbatch 1 : tensor<2x4xf32>
    %p1 = nn.einsum %h1, %w "ik,kj->ij" : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %o1 = spmd.all_reduce sum %p1 over {"model"} : tensor<2x4xf32>
    %j = nn.concat %o0, %o1 dim 0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %y = nn.add %j, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %y : tensor<4x4xf32>
  }
}
