// Functions of the ranks of a pipeline: buffers of their own, kernels in common, messages where they stand.
//
// RUN: cleave-opt %s --exec-lower=last=planned | FileCheck %s
// RUN: cleave-opt %s --exec-lower | FileCheck %s --check-prefix=ORDERED

// What was sent is kept while the next two microbatches are computed, not for all four.
#mesh = #spmd.mesh<["stage"=2]>
module attributes {spmd.mesh = #spmd.mesh<["device"=1]>, pipe.mesh = #mesh, pipe.axis = "stage", pipe.microbatches = 4 : i64} {
  nn.param @w : tensor<4x4xf32> = dense<0.5> : tensor<4x4xf32>

  // CHECK: exec.buffer @rank0_activations activations 192 align 64 bound 192
  // CHECK-LABEL: func.func @main.rank0() attributes {pipe.rank = 0 : i64}
  // CHECK: exec.input "x" in %{{.*}} : memref<16x4xf32> of tensor<16x4xf32> starts [0, 0] index 1
  // CHECK: exec.run @matmul_0(%{{.*}}, %{{.*}}) into (%[[A:.*]]) : (memref
  // CHECK-NEXT: exec.send %[[A]] to 1 channel 0 microbatch 0 : memref<4x4xf32>
  // CHECK: exec.send %{{.*}} to 1 channel 0 microbatch 1 : memref<4x4xf32>
  // CHECK: exec.send %{{.*}} to 1 channel 0 microbatch 2 : memref<4x4xf32>
  // CHECK: exec.send %{{.*}} to 1 channel 0 microbatch 3 : memref<4x4xf32>
  // CHECK-NEXT: return
  // ORDERED-LABEL: func.func @main.rank0()
  // ORDERED: exec.send %{{.*}} microbatch 0 stream 1
  // ORDERED: exec.run @matmul_0
  // ORDERED: exec.send %{{.*}} microbatch 1 stream 1
  func.func @main.rank0(%x: tensor<16x4xf32> {nn.name = "x", pipe.index = 1 : i64}) attributes {pipe.rank = 0 : i64} {
    %w = nn.load @w : tensor<4x4xf32>
    %i0 = nn.slice %x starts [0, 0] sizes [4, 4] steps [1, 1] : (tensor<16x4xf32>) -> tensor<4x4xf32>
    %h0 = nn.einsum %i0, %w "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    pipe.send %h0 to 1 channel 0 microbatch 0 : tensor<4x4xf32>
    %i1 = nn.slice %x starts [4, 0] sizes [4, 4] steps [1, 1] : (tensor<16x4xf32>) -> tensor<4x4xf32>
    %h1 = nn.einsum %i1, %w "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    pipe.send %h1 to 1 channel 0 microbatch 1 : tensor<4x4xf32>
    %i2 = nn.slice %x starts [8, 0] sizes [4, 4] steps [1, 1] : (tensor<16x4xf32>) -> tensor<4x4xf32>
    %h2 = nn.einsum %i2, %w "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    pipe.send %h2 to 1 channel 0 microbatch 2 : tensor<4x4xf32>
    %i3 = nn.slice %x starts [12, 0] sizes [4, 4] steps [1, 1] : (tensor<16x4xf32>) -> tensor<4x4xf32>
    %h3 = nn.einsum %i3, %w "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    pipe.send %h3 to 1 channel 0 microbatch 3 : tensor<4x4xf32>
    return
  }

  // CHECK: exec.buffer @rank1_weights
  // CHECK-LABEL: func.func @main.rank1() attributes {pipe.rank = 1 : i64}
  // CHECK-COUNT-1: exec.load @w
  // CHECK-NOT: exec.load
  // CHECK: exec.receive %[[R0:.*]] from 0 channel 0 microbatch 0 : memref<4x4xf32>
  // CHECK: exec.run @matmul_0(%[[R0]],
  // CHECK: exec.receive %[[R1:.*]] from 0 channel 0 microbatch 1 : memref<4x4xf32>
  // CHECK: exec.output "y" in %{{.*}} index 0
  func.func @main.rank1() -> (tensor<16x4xf32> {nn.name = "y", pipe.index = 0 : i64}) attributes {pipe.rank = 1 : i64} {
    %w = nn.load @w : tensor<4x4xf32>
    %h0 = pipe.recv from 0 channel 0 microbatch 0 : tensor<4x4xf32>
    %o0 = nn.einsum %h0, %w "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %h1 = pipe.recv from 0 channel 0 microbatch 1 : tensor<4x4xf32>
    %o1 = nn.einsum %h1, %w "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %h2 = pipe.recv from 0 channel 0 microbatch 2 : tensor<4x4xf32>
    %o2 = nn.einsum %h2, %w "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %h3 = pipe.recv from 0 channel 0 microbatch 3 : tensor<4x4xf32>
    %o3 = nn.einsum %h3, %w "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %y = nn.concat %o0, %o1, %o2, %o3 dim 0 : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32>
    return %y : tensor<16x4xf32>
  }
}

// CHECK: exec.kernel @matmul_0
// CHECK-NOT: exec.kernel @matmul
