// Every op of pipe, and every attribute, as text and back.
//
// RUN: cleave-opt %s | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --spmd-print-rules -o /dev/null 2>&1 | FileCheck %s --check-prefix=RULE

#full = #spmd.mesh<["stage"=2, "data"=2]>
#inner = #spmd.mesh<["data"=2]>

// CHECK: module attributes {pipe.axis = "stage", pipe.mesh = #{{.*}}, pipe.microbatches = 8 : i64, spmd.mesh
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 8 : i64, spmd.mesh = #inner} {

// CHECK-LABEL: @one_microbatch
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32> {pipe.split = 0 : i64}
// CHECK-SAME: -> (tensor<2x4xf32> {pipe.split = 0 : i64}, tensor<4xf32>)
// CHECK: %[[PART:.*]] = pipe.part %{{.*}} split 0 of 8 : tensor<16x4xf32> to tensor<2x4xf32>
// CHECK: pipe.accumulate sum %{{.*}} : tensor<4xf32>
// RULE: ([i,k])->([j,k]) {i=16,j=2,k=4} replicate={i,j}
// RULE: ([i])->([i]) {i=4} linear(sum)={0}
func.func @one_microbatch(%x: tensor<2x4xf32> {pipe.split = 0 : i64}, %all: tensor<16x4xf32>)
    -> (tensor<2x4xf32> {pipe.split = 0 : i64}, tensor<4xf32>) {
  %part = pipe.part %all split 0 of 8 : tensor<16x4xf32> to tensor<2x4xf32>
  %y = nn.add %x, %part : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %s = nn.reduce sum %y dims [0] : (tensor<2x4xf32>) -> tensor<4xf32>
  %t = pipe.accumulate sum %s : tensor<4xf32>
  return %y, %t : tensor<2x4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @loop
// CHECK: %[[Y:.*]]:2 = pipe.microbatches 8 (%[[I:.*]] = %arg0 split 0 blocks 2, %[[W:.*]] = %arg1 whole) -> (split 0 blocks 2, sum)
// CHECK-SAME: : (tensor<16x4xf32>, tensor<4xf32>) -> (tensor<16x4xf32>, tensor<4xf32>) {
// CHECK: nn.mul %[[I]], %[[W]]
// CHECK: pipe.yield %{{.*}}, %arg3 : tensor<2x4xf32>, tensor<4xf32>
func.func @loop(%x: tensor<16x4xf32>, %w: tensor<4xf32>) -> (tensor<16x4xf32>, tensor<4xf32>) {
  %y:2 = pipe.microbatches 8 (%i = %x split 0 blocks 2, %v = %w whole) -> (split 0 blocks 2, sum)
      : (tensor<16x4xf32>, tensor<4xf32>) -> (tensor<16x4xf32>, tensor<4xf32>) {
    %o = nn.mul %i, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    pipe.yield %o, %v : tensor<2x4xf32>, tensor<4xf32>
  }
  return %y#0, %y#1 : tensor<16x4xf32>, tensor<4xf32>
}

// Of 7 samples on each of 2 shards the first microbatch has 3, the others 2.
// CHECK-LABEL: @uneven_loop
// CHECK: pipe.part %arg0 split 0 of 3 samples 7 blocks 2 : tensor<28x4xf32> to tensor<20x4xf32>
// CHECK: pipe.part %arg0[2] split 0 of 3 samples 7 blocks 2 : tensor<28x4xf32> to tensor<8x4xf32>
// CHECK: pipe.microbatches 3 samples 7 (%[[I:.*]] = %arg0 split 0 blocks 2) -> (split 0 blocks 2) : (tensor<28x4xf32>) -> tensor<28x4xf32> {
// CHECK-NEXT: nn.exp %[[I]] : (tensor<12x4xf32>) -> tensor<12x4xf32>
// CHECK: } rest {
// CHECK-NEXT: ^bb0(%[[J:.*]]: tensor<8x4xf32>):
// CHECK-NEXT: nn.exp %[[J]]
// CHECK: pipe.join %{{.*}}, %{{.*}} split 0 : tensor<20x4xf32>, tensor<8x4xf32> to tensor<28x4xf32>
func.func @uneven_loop(%x: tensor<28x4xf32>) -> (tensor<28x4xf32>, tensor<28x4xf32>) {
  %p = pipe.part %x split 0 of 3 samples 7 blocks 2 : tensor<28x4xf32> to tensor<20x4xf32>
  %q = pipe.part %x[2] split 0 of 3 samples 7 blocks 2 : tensor<28x4xf32> to tensor<8x4xf32>
  %y = pipe.microbatches 3 samples 7 (%i = %x split 0 blocks 2) -> (split 0 blocks 2) : (tensor<28x4xf32>) -> tensor<28x4xf32> {
    %o = nn.exp %i : (tensor<12x4xf32>) -> tensor<12x4xf32>
    pipe.yield %o : tensor<12x4xf32>
  } rest {
  ^bb0(%i: tensor<8x4xf32>):
    %o = nn.exp %i : (tensor<8x4xf32>) -> tensor<8x4xf32>
    pipe.yield %o : tensor<8x4xf32>
  }
  %z = pipe.join %p, %q split 0 : tensor<20x4xf32>, tensor<8x4xf32> to tensor<28x4xf32>
  return %y, %z : tensor<28x4xf32>, tensor<28x4xf32>
}

// CHECK-LABEL: @main.rank0
// CHECK-SAME: {pipe.index = 1 : i64}
// CHECK-SAME: attributes {pipe.rank = 0 : i64}
// CHECK: pipe.part %arg0[1] split 0 of 2 blocks 2 : tensor<8x4xf32> to tensor<4x4xf32>
// CHECK: pipe.send %{{.*}} to 1 channel 0 microbatch -1 : tensor<4x4xf32>
// CHECK: pipe.recv from 1 channel 1 microbatch 0 : tensor<4x4xf32>, tensor<f32>
// CHECK: pipe.join %{{.*}}, %{{.*}} split 0 blocks 2 : tensor<4x4xf32>, tensor<4x4xf32> to tensor<8x4xf32>
func.func @main.rank0(%x: tensor<8x4xf32> {pipe.index = 1 : i64}) -> tensor<8x4xf32> attributes {pipe.rank = 0 : i64} {
  %a = pipe.part %x[1] split 0 of 2 blocks 2 : tensor<8x4xf32> to tensor<4x4xf32>
  pipe.send %a to 1 channel 0 microbatch -1 : tensor<4x4xf32>
  %b:2 = pipe.recv from 1 channel 1 microbatch 0 : tensor<4x4xf32>, tensor<f32>
  %y = pipe.join %a, %b#0 split 0 blocks 2 : tensor<4x4xf32>, tensor<4x4xf32> to tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// CHECK: pipe.schedule @main.schedule ranks 2 stages 2 microbatches 2 placement [0, 1] channels [0, 1] {
// CHECK-NEXT: pipe.rank 0 "0F0,0SEND_F0,0F1,0SEND_F1"
// CHECK-NEXT: pipe.rank 1 "1RECV_F0,1F0,1RECV_F1,1F1"
pipe.schedule @main.schedule ranks 2 stages 2 microbatches 2 placement [0, 1] channels [0, 1] {
  pipe.rank 0 "0F0,0SEND_F0,0F1,0SEND_F1"
  pipe.rank 1 "1RECV_F0,1F0,1RECV_F1,1F1"
}

}
