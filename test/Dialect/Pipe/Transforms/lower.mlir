// A function per rank: parts, calls, messages in the order of the table; sums combined as they come, and read by the last rank.
//
// RUN: cleave-opt %s --pipe-lower --pipe-verify-phase="phase=per-rank" | FileCheck %s

// CHECK: spmd.phase = "per-rank"
// CHECK-LABEL: func.func @main.rank0(
// CHECK-SAME: %[[X:.*]]: tensor<4x4xf32> {nn.name = "x", pipe.index = 0 : i64}) attributes {pipe.rank = 0 : i64} {
// CHECK-NEXT: %[[I0:.*]] = pipe.part %[[X]][0] split 0 of 2
// CHECK-NEXT: %[[H0:.*]]:2 = call @main.stage0(%[[I0]])
// CHECK-NEXT: pipe.send %[[H0]]#0 to 1 channel 0 microbatch 0
// CHECK-NEXT: %[[I1:.*]] = pipe.part %[[X]][1] split 0 of 2
// CHECK-NEXT: %[[H1:.*]]:2 = call @main.stage0(%[[I1]])
// CHECK-NEXT: %[[S:.*]] = nn.add %[[H0]]#1, %[[H1]]#1
// CHECK-NEXT: pipe.send %[[H1]]#0 to 1 channel 0 microbatch 1
// CHECK-NEXT: pipe.send %[[S]] to 1 channel 0 microbatch -1
// CHECK-NEXT: return

// CHECK-LABEL: func.func @main.rank1()
// CHECK-SAME: (tensor<4x4xf32> {nn.name = "y", pipe.index = 0 : i64}, tensor<4xf32> {nn.name = "t", pipe.index = 1 : i64})
// CHECK: %[[Y:.*]] = pipe.join
// CHECK-NEXT: %[[R:.*]] = pipe.recv from 0 channel 0 microbatch -1
// CHECK-NEXT: %[[T:.*]] = call @main.after(%[[R]])
// CHECK-NEXT: return %[[Y]], %[[T]]

// CHECK-LABEL: func.func @main(
#full = #spmd.mesh<["stage"=2]>
#inner = #spmd.mesh<["device"=1]>
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 2 : i64, spmd.mesh = #inner, spmd.phase = "scheduled"} {
func.func private @main.stage0(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>) {
  %h = nn.exp %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %s = nn.reduce sum %h dims [0] : (tensor<2x4xf32>) -> tensor<4xf32>
  return %h, %s : tensor<2x4xf32>, tensor<4xf32>
}
func.func private @main.stage1(%h: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = nn.neg %h : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
func.func private @main.after(%s: tensor<4xf32>) -> tensor<4xf32> {
  %t = nn.sqrt %s : (tensor<4xf32>) -> tensor<4xf32>
  return %t : tensor<4xf32>
}
pipe.schedule @main.schedule ranks 2 stages 2 microbatches 2 placement [0, 1] channels [0, 1] {
  pipe.rank 0 "0F0,0SEND_F0,0F1,0SEND_F1"
  pipe.rank 1 "1RECV_F0,1F0,1RECV_F1,1F1"
}
func.func @main(%x: tensor<4x4xf32> {nn.name = "x"}) -> (tensor<4x4xf32> {nn.name = "y"}, tensor<4xf32> {nn.name = "t"}) {
  %l:2 = pipe.microbatches 2 (%i = %x split 0) -> (split 0, sum) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>) {
    %h:2 = func.call @main.stage0(%i) : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>)
    %o = func.call @main.stage1(%h#0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    pipe.yield %o, %h#1 : tensor<2x4xf32>, tensor<4xf32>
  }
  %t = call @main.after(%l#1) : (tensor<4xf32>) -> tensor<4xf32>
  return %l#0, %t : tensor<4x4xf32>, tensor<4xf32>
}

// An input that no rank reads is one of the first, in its place.
// CHECK-LABEL: func.func @unread.rank0(
// CHECK-SAME: tensor<4xf32> {nn.name = "u", pipe.index = 0 : i64}, %{{.*}}: tensor<4x4xf32> {nn.name = "x", pipe.index = 1 : i64}, %{{.*}}: tensor<i1> {nn.name = "v", pipe.index = 3 : i64})
// CHECK-LABEL: func.func @unread.rank1(
// CHECK-SAME: %{{[^,]*}}: tensor<4xf32> {nn.name = "z", pipe.index = 2 : i64}) ->
// CHECK-LABEL: func.func @unread(
func.func private @unread.stage0(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %h = nn.exp %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %h : tensor<2x4xf32>
}
func.func private @unread.stage1(%h: tensor<2x4xf32>, %z: tensor<4xf32>) -> tensor<2x4xf32> {
  %y = nn.add %h, %z : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
pipe.schedule @unread.schedule ranks 2 stages 2 microbatches 2 placement [0, 1] channels [0, 1] {
  pipe.rank 0 "0F0,0SEND_F0,0F1,0SEND_F1"
  pipe.rank 1 "1RECV_F0,1F0,1RECV_F1,1F1"
}
func.func @unread(%u: tensor<4xf32> {nn.name = "u"}, %x: tensor<4x4xf32> {nn.name = "x"}, %z: tensor<4xf32> {nn.name = "z"}, %v: tensor<i1> {nn.name = "v"}) -> (tensor<4x4xf32> {nn.name = "y"}) {
  %l = pipe.microbatches 2 (%i = %x split 0, %k = %z whole) -> (split 0) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32> {
    %h = func.call @unread.stage0(%i) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %o = func.call @unread.stage1(%h, %k) : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    pipe.yield %o : tensor<2x4xf32>
  }
  return %l : tensor<4x4xf32>
}
}
