// An ordered module, written by hand, as a program: every command and every table.
//
// RUN: cleave-translate --exec-to-program %s -o %t.cleave
// RUN: cleave inspect %t.cleave | FileCheck %s
// RUN: cleave-translate --exec-to-program %s -o %t.again && cmp %t.cleave %t.again

#mesh = #spmd.mesh<["data"=2, "model"=2]>
#rows = #spmd.sharding<#mesh, [{"data"}, {}]>
#terms = #spmd.sharding<#mesh, [{"data"}, {}], partial = {"model": sum}>

// CHECK: program version 1
// CHECK: target host
// CHECK: mesh data=2, model=2 (4 ranks)
// CHECK: groups over model: 2 of 2 ranks, the first 0-1
// CHECK: kernels: 1,
// CHECK: weights: 2
// CHECK-NEXT: w  f32[4, 8]  splat
// CHECK-NEXT: b  f32[2, 4]  embedded
module attributes {spmd.mesh = #mesh, exec.rank_table = {
  "data * 2" = array<i64: 0, 0, 2, 2>, "model" = array<i64: 0, 1, 0, 1>, "model * 4" = array<i64: 0, 4, 0, 4>}} {
  nn.param @w : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
  nn.param @b : tensor<2x4xf32> = dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>
  exec.buffer @activations activations 256 align 64
  exec.buffer @weights weights 256 align 64
  exec.buffer @in input 32 align 64
  exec.buffer @out output 32 align 64
  exec.pieces @swap dims 2 [
    0 -> 1 box [2, 4] from [0, 0] to [0, 0], 1 -> 0 box [2, 4] from [0, 0] to [0, 0],
    2 -> 3 box [2, 4] from [0, 0] to [0, 0], 3 -> 2 box [2, 4] from [0, 0] to [0, 0]]
  exec.kernel @add_0(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {in_place = array<i64: 0>} {
    %r = nn.add %a, %b : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    exec.yield %r : tensor<2x4xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<2x4xf32>
    %y = exec.view @out[0] : memref<2x4xf32>
    // CHECK: inputs:
    // CHECK-NEXT: x  f32[4, 4]  [data, _]  all: f32[2, 4] in buffer 2
    exec.input "x" in %x : memref<2x4xf32> of tensor<4x4xf32, #rows> starts ["data * 2", 0]
    // CHECK: outputs:
    // CHECK-NEXT: y  f32[4, 4]  [data, _] partial(model: sum)  all: f32[2, 4] in buffer 3
    exec.output "y" in %y : memref<2x4xf32> of tensor<4x4xf32, #terms> starts ["data * 2", 0] term "model"
    %w = exec.view @weights[0] : memref<2x4xf32>
    exec.load @w starts [0, "model * 4"] sizes [2, 4] into %w : memref<2x4xf32>
    %b = exec.view @weights[64] : memref<2x4xf32>
    exec.load @b starts [0, 0] sizes [2, 4] into %b : memref<2x4xf32>
    %a = exec.view @activations[0] : memref<2x4xf32>
    %c = exec.view @activations[64] : memref<2x4xf32>
    %d = exec.view @activations[128] : memref<2x4xf32>
    // CHECK: commands:
    // CHECK-NEXT: 0  stream 0  launch          add_0{{.*}}/enc/Add
    exec.run @add_0(%x, %w) into (%a) : (memref<2x4xf32>, memref<2x4xf32>) -> memref<2x4xf32> loc(#nn.node<"/enc/Add", "Add", [], []>)
    // CHECK-NEXT: 1  stream 0  launch          add_0
    exec.run @add_0(%a, %b) into (%a) : (memref<2x4xf32>, memref<2x4xf32>) -> memref<2x4xf32>
    // CHECK-NEXT: 2  stream 0  record
    exec.record 0
    // CHECK-NEXT: 3  stream 1  wait
    exec.wait 0 stream 1
    // CHECK-NEXT: 4  stream 1  all_reduce
    exec.collective all_reduce by sum over {"model"} (%a) into (%c) stream 1 : (memref<2x4xf32>) -> memref<2x4xf32>
    // CHECK-NEXT: 5  stream 1  exchange
    exec.exchange @swap over {"model"} %c into %d stream 1 : memref<2x4xf32> into memref<2x4xf32>
    // CHECK-NEXT: 6  stream 1  record
    exec.record 1 stream 1
    // CHECK-NEXT: 7  stream 0  wait
    exec.wait 1
    // CHECK-NEXT: 8  stream 0  copy
    exec.copy %d into %y : memref<2x4xf32> into memref<2x4xf32>
    return
  }
}
