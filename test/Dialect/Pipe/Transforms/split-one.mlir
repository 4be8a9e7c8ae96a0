// With one microbatch everything is of it. Even then a stage loads the parameters that it reads, and no others; what both read, both load.
//
// RUN: cleave-opt %s --pipe-split | FileCheck %s

#full = #spmd.mesh<["stage"=2]>
#inner = #spmd.mesh<["device"=1]>
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 1 : i64, spmd.mesh = #inner, spmd.phase = "optimized"} {
  nn.param @v : tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
  nn.param @w : tensor<4x4xf32> = dense<2.0> : tensor<4x4xf32>
  nn.param @b : tensor<4xf32> = dense<3.0> : tensor<4xf32>

  // CHECK-LABEL: func.func private @main.stage0
  // CHECK-NEXT: nn.load @v
  // CHECK-NEXT: nn.load @b
  // CHECK-NEXT: nn.einsum
  // CHECK-LABEL: func.func private @main.stage1
  // CHECK-NEXT: nn.load @w
  // CHECK-NEXT: nn.load @b
  // CHECK-NEXT: nn.einsum
  // CHECK-LABEL: func.func @main(
  func.func @main(%x: tensor<2x4xf32> {nn.name = "x"}) -> (tensor<2x4xf32> {nn.name = "y"}) {
    %v = nn.load @v : tensor<4x4xf32>
    %w = nn.load @w : tensor<4x4xf32>
    %b = nn.load @b : tensor<4xf32>
    %0 = nn.einsum %x, %v, %b "ik,kj,j->ij" {pipe.stage = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %1 = nn.einsum %0, %w, %b "ik,kj,j->ij" {pipe.stage = 1 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    return %1 : tensor<2x4xf32>
  }
}
