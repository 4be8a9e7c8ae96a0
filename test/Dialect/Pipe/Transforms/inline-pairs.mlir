// Two actions of a rank that run as one (OVERLAP_F_B).
//
// RUN: cleave-opt %s --pipe-inline | FileCheck %s

// A pair that runs as one: what the forward of a microbatch sends travels while the backward of another one computes, and the other way round.
// What stands between and reads nothing of the forward moves in front; what reads it stays behind.
// CHECK-LABEL: func.func @main.rank0
// CHECK: %[[P:.*]] = nn.slice %arg2
// CHECK: %[[A:.*]] = nn.exp %arg0
// CHECK-NEXT: %[[AR:.*]] = spmd.all_reduce sum %[[A]]
// CHECK-NEXT: %[[B:.*]] = nn.abs %[[P]]
// CHECK-NEXT: %[[BR:.*]] = spmd.all_reduce sum %[[B]]
// CHECK-NEXT: %[[AY:.*]] = nn.neg %[[AR]]
// CHECK-NEXT: %[[BY:.*]] = nn.sqrt %[[BR]]
// CHECK-NEXT: %[[W:.*]] = nn.mul %[[BY]], %[[BY]]
// CHECK-NEXT: %[[S:.*]] = nn.add %arg1, %[[AY]]
// CHECK-NEXT: return %[[S]], %[[W]]
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func private @main.stage0(%x: tensor<2xf32>) -> tensor<2xf32> {
    %a = nn.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %r = spmd.all_reduce sum %a over {"x"} : tensor<2xf32>
    %y = nn.neg %r : (tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func private @main.stage1.I(%d: tensor<2xf32>) -> tensor<2xf32> {
    %b = nn.abs %d : (tensor<2xf32>) -> tensor<2xf32>
    %r = spmd.all_reduce sum %b over {"x"} : tensor<2xf32>
    %y = nn.sqrt %r : (tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func private @main.stage1.W(%d: tensor<2xf32>) -> tensor<2xf32> {
    %w = nn.mul %d, %d : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %w : tensor<2xf32>
  }
  func.func @main.rank0(%x: tensor<2xf32>, %s: tensor<2xf32>, %d: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) attributes {pipe.rank = 0 : i64} {
    %f = func.call @main.stage0(%x) {pipe.pair = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
    %sum = nn.add %s, %f : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %p = pipe.part %d[1] split 0 of 2 : tensor<4xf32> to tensor<2xf32>
    %i = func.call @main.stage1.I(%p) {pipe.pair = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
    %w = func.call @main.stage1.W(%i) {pipe.pair = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
    return %sum, %w : tensor<2xf32>, tensor<2xf32>
  }
}
