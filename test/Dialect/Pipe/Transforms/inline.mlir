// What kernels are formed of: a block per rank, parts as slices, in blocks as slices put together.
//
// RUN: cleave-opt %s --pipe-lower --pipe-inline | FileCheck %s

// CHECK-NOT: @main.stage0
// CHECK-NOT: pipe.schedule
// CHECK-LABEL: func.func @main.rank0(%arg0: tensor<8x4xf32>
// CHECK: %[[A:.*]] = nn.slice %arg0 starts [0, 0] sizes [2, 4] steps [1, 1]
// CHECK: %[[B:.*]] = nn.slice %arg0 starts [4, 0] sizes [2, 4] steps [1, 1]
// CHECK: %[[P:.*]] = nn.concat %[[A]], %[[B]] dim 0 : {{.*}} -> tensor<4x4xf32>
// CHECK: %[[W:.*]] = nn.load @w
// CHECK: %[[H:.*]] = nn.mul %[[P]], %[[W]]
// CHECK: pipe.send %[[H]] to 1 channel 0 microbatch 0
// CHECK: nn.slice %arg0 starts [2, 0]
// CHECK: nn.slice %arg0 starts [6, 0]
// CHECK-NOT: nn.load
// CHECK: pipe.send %{{.*}} to 1 channel 0 microbatch 1

// CHECK-LABEL: func.func @main.rank1
// CHECK: nn.slice %[[Y0:.*]] starts [0, 0] sizes [2, 4]
// CHECK: nn.slice %[[Y1:.*]] starts [0, 0] sizes [2, 4]
// CHECK: nn.slice %[[Y0]] starts [2, 0] sizes [2, 4]
// CHECK: nn.slice %[[Y1]] starts [2, 0] sizes [2, 4]
// CHECK: nn.concat %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} dim 0 : {{.*}} -> tensor<8x4xf32>
// CHECK-NOT: func.func @main(
#full = #spmd.mesh<["stage"=2]>
#inner = #spmd.mesh<["device"=1]>
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 2 : i64, spmd.mesh = #inner, spmd.phase = "scheduled"} {
nn.param @w : tensor<4xf32> = dense<0.5> : tensor<4xf32>
func.func private @main.stage0(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %w = nn.load @w : tensor<4xf32>
  %h = nn.mul %x, %w : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %h : tensor<4x4xf32>
}
func.func private @main.stage1(%h: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %y = nn.neg %h : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
pipe.schedule @main.schedule ranks 2 stages 2 microbatches 2 placement [0, 1] channels [0, 1] {
  pipe.rank 0 "0F0,0SEND_F0,0F1,0SEND_F1"
  pipe.rank 1 "1RECV_F0,1F0,1RECV_F1,1F1"
}
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %l = pipe.microbatches 2 (%i = %x split 0 blocks 2) -> (split 0 blocks 2) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
    %h = func.call @main.stage0(%i) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %o = func.call @main.stage1(%h) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    pipe.yield %o : tensor<4x4xf32>
  }
  return %l : tensor<8x4xf32>
}
}
