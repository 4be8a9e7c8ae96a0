// Stages as they are written by hand, or by pipe-assign-stages: on any op, forward.
//
// RUN: cleave-opt %s | cleave-opt | FileCheck %s

// The parameter has no stage: it is of every stage that uses it.
// CHECK-LABEL: @edges_go_forward
// CHECK: nn.load @w : tensor<4x4xf32>{{$}}
// CHECK: nn.exp {{.*}} {pipe.stage = 0 : i64}
// CHECK: nn.einsum {{.*}} {pipe.stage = 0 : i64}
// CHECK: nn.add {{.*}} {pipe.stage = 2 : i64}
nn.param @w : tensor<4x4xf32> = dense<0.5> : tensor<4x4xf32>
func.func @edges_go_forward(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %w = nn.load @w : tensor<4x4xf32>
  %a = nn.exp %x {pipe.stage = 0 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = nn.einsum %a, %w "ik,kj->ij" {pipe.stage = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = nn.add %b, %w {pipe.stage = 2 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}
