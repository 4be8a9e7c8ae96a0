// Memory and commands, as they are printed.
//
// RUN: cleave-opt %s | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --mlir-print-op-generic | cleave-opt | FileCheck %s

#mesh = #spmd.mesh<["data"=2, "model"=2]>
#rows = #spmd.sharding<#mesh, [{"data"}, {}]>
#uneven = #spmd.sharding<#mesh, [{"data"}, {}], uneven>
#terms = #spmd.sharding<#mesh, [{}, {}], partial = {"model": sum}>

// CHECK: exec.rank_table = {{.*}}data = array<i64: 0, 0, 1, 1>,
module attributes {spmd.mesh = #mesh, exec.rank_table = {
  "data" = array<i64: 0, 0, 1, 1>, "model * 4" = array<i64: 0, 4, 0, 4>, "model * 64" = array<i64: 0, 64, 0, 64>,
  "4 - model * 4" = array<i64: 4, 0, 4, 0>, "data * 2" = array<i64: 0, 0, 2, 2>, "3 - data * 2" = array<i64: 2, 2, 1, 1>}} {
  nn.param @w : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>

  // CHECK: exec.buffer @activations activations 1024 align 64
  exec.buffer @activations activations 1024 align 64
  // CHECK: exec.buffer @offloaded activations 256 align 64 bound 192 host
  exec.buffer @offloaded activations 256 align 64 bound 192 host
  exec.buffer @weights weights 256 align 64
  exec.buffer @in input 256 align 64
  exec.buffer @out output 256 align 64

  // CHECK: exec.pieces @turn dims 2 [
  // CHECK-NEXT: 0 -> 0 box [1, 4] from [0, 0] to [0, 0],
  // CHECK-NEXT: 1 -> 0 box [1, 4] from [0, 4] to [1, 0]
  // CHECK-NEXT: ]
  exec.pieces @turn dims 2 [0 -> 0 box [1, 4] from [0, 0] to [0, 0], 1 -> 0 box [1, 4] from [0, 4] to [1, 0]]
  // CHECK: exec.pieces @nothing dims 0 [
  exec.pieces @nothing dims 0 []

  // CHECK: exec.kernel @relu_0(%{{.*}}: tensor<2x8xf32>) attributes {in_place = array<i64: 0>} {
  exec.kernel @relu_0(%a: tensor<2x8xf32>) attributes {in_place = array<i64: 0>} {
    %r = nn.relu %a : (tensor<2x8xf32>) -> tensor<2x8xf32>
    exec.yield %r : tensor<2x8xf32>
  }

  // CHECK-LABEL: @main
  func.func @main() {
    // CHECK: %[[X:.*]] = exec.view @in[0] : memref<2x8xf32>
    %x = exec.view @in[0] : memref<2x8xf32>
    // CHECK: exec.input "x" in %[[X]] : memref<2x8xf32> of tensor<4x8xf32, #{{.*}}> starts ["data", 0]
    exec.input "x" in %x : memref<2x8xf32> of tensor<4x8xf32, #rows> starts ["data", 0]
    // CHECK: %[[W:.*]] = exec.view @weights[64] : memref<4x4xf32>
    %w = exec.view @weights[64] : memref<4x4xf32>
    // CHECK: exec.load @w starts [0, "model * 4"] sizes [4, 4] into %[[W]] : memref<4x4xf32>
    exec.load @w starts [0, "model * 4"] sizes [4, 4] into %w : memref<4x4xf32>
    // CHECK: exec.load @w starts [0, "model * 4"] sizes [4, 6] present [4, "4 - model * 4"] into %{{.*}} : memref<4x6xf32>
    %u = exec.view @weights[0] : memref<4x6xf32>
    exec.load @w starts [0, "model * 4"] sizes [4, 6] present [4, "4 - model * 4"] into %u : memref<4x6xf32>
    // CHECK: exec.input "z" in %[[X]] : memref<2x8xf32> of tensor<3x8xf32, #{{.*}}> starts ["data * 2", 0] present ["3 - data * 2", 8]
    exec.input "z" in %x : memref<2x8xf32> of tensor<3x8xf32, #uneven> starts ["data * 2", 0] present ["3 - data * 2", 8]
    %p = exec.view @weights[128] : memref<1x4x4x1xbf16>
    // CHECK: exec.load @w starts [0, 0] sizes [4, 4] order [0, 1] batch 0 width 4 interleave 1 into %{{.*}} : memref<1x4x4x1xbf16>
    exec.load @w starts [0, 0] sizes [4, 4] order [0, 1] batch 0 width 4 interleave 1 into %p : memref<1x4x4x1xbf16>
    %a = exec.view @activations[0] : memref<2x8xf32>
    // CHECK: %[[B:.*]] = exec.view @activations[64 + "model * 64"] : memref<2x8xf32>
    %b = exec.view @activations[64 + "model * 64"] : memref<2x8xf32>
    // CHECK: exec.run @relu_0(%[[X]]) into (%{{.*}}) : (memref<2x8xf32>) -> memref<2x8xf32>
    exec.run @relu_0(%x) into (%a) : (memref<2x8xf32>) -> memref<2x8xf32>
    // CHECK: exec.copy %{{.*}} into %[[B]] stream 1 : memref<2x8xf32> into memref<2x8xf32>
    exec.copy %a into %b stream 1 : memref<2x8xf32> into memref<2x8xf32>
    // CHECK: exec.view @activations[256] : memref<2x4xf32, strided<[8, 1]>>
    %s = exec.view @activations[256] : memref<2x4xf32, strided<[8, 1]>>
    // CHECK: %[[WHOLE:.*]] = exec.view @activations[512] : memref<4x8xf32>
    %h = exec.view @activations[512] : memref<4x8xf32>
    // CHECK: exec.view @activations[512 + "model * 64"] of %[[WHOLE]] : memref<2x8xf32> of memref<4x8xf32>
    %i = exec.view @activations[512 + "model * 64"] of %h : memref<2x8xf32> of memref<4x8xf32>
    // CHECK: exec.record 0
    exec.record 0
    // CHECK: exec.wait 0 stream 1
    exec.wait 0 stream 1
    // CHECK: exec.collective all_reduce by sum over {"model"} (%{{.*}}, %{{.*}}) into (%{{.*}}, %{{.*}}) stream 1 : (memref<2x8xf32>, memref<2x8xf32>) -> (memref<2x8xf32>, memref<2x8xf32>) cause "a sum"
    exec.collective all_reduce by sum over {"model"} (%a, %x) into (%a, %b) stream 1 : (memref<2x8xf32>, memref<2x8xf32>) -> (memref<2x8xf32>, memref<2x8xf32>) cause "a sum"
    %g = exec.view @activations[512] : memref<4x8xf32>
    // CHECK: exec.collective all_gather over {"data"} (%{{.*}}) into (%{{.*}}) gather [2, 1] : (memref<2x8xf32>) -> memref<4x8xf32>
    exec.collective all_gather over {"data"} (%a) into (%g) gather [2, 1] : (memref<2x8xf32>) -> memref<4x8xf32>
    // CHECK: exec.collective all_to_all over {"data"} (%{{.*}}) into (%{{.*}}) gather [2, 1] slice [1, 2]
    %t = exec.view @activations[768] : memref<4x4xf32>
    exec.collective all_to_all over {"data"} (%a) into (%t) gather [2, 1] slice [1, 2] : (memref<2x8xf32>) -> memref<4x4xf32>
    // CHECK: exec.exchange @turn over {"model"} %{{.*}} into %{{.*}} : memref<2x8xf32> into memref<4x4xf32>
    exec.exchange @turn over {"model"} %a into %t : memref<2x8xf32> into memref<4x4xf32>
    // CHECK: exec.send %{{.*}} to 1 channel 0 microbatch 3 stream 1 : memref<2x8xf32>
    exec.send %a to 1 channel 0 microbatch 3 stream 1 : memref<2x8xf32>
    // CHECK: exec.receive %{{.*}} from 2 channel 4 microbatch -1 : memref<4x4xf32>
    exec.receive %t from 2 channel 4 microbatch -1 : memref<4x4xf32>
    %y = exec.view @out[0] : memref<2x8xf32>
    // CHECK: exec.output "y" in %{{.*}} : memref<2x8xf32> of tensor<2x8xf32, #{{.*}}> starts [0, 0] term "model * 4" index 2
    exec.output "y" in %y : memref<2x8xf32> of tensor<2x8xf32, #terms> starts [0, 0] term "model * 4" index 2
    return
  }
}
