// The table of a named schedule, with messages where the loop has values between stages; and one out of a file.
//
// RUN: cleave-opt %s --pipe-schedule | FileCheck %s
// RUN: echo "0F1,0F0" > %t.csv
// RUN: echo "1F1,1F0" >> %t.csv
// RUN: cleave-opt %s --pipe-schedule="schedule=%t.csv" | FileCheck %s --check-prefix=FILE
// RUN: cleave-opt %s --pipe-schedule="ranks=1,-1" | FileCheck %s --check-prefix=RANKS
// RUN: cleave-opt %s --pipe-schedule --mlir-pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATISTICS
// RUN: cleave-opt %s --pipe-schedule --pipe-verify-phase="phase=scheduled" | FileCheck %s --check-prefix=GATE

// CHECK: pipe.schedule @main.schedule ranks 2 stages 2 microbatches 2 placement [0, 1] channels [0, 1] {
// CHECK-NEXT: pipe.rank 0 "0F0,0SEND_F0,0F1,0SEND_F1"
// CHECK-NEXT: pipe.rank 1 "1RECV_F0,1F0,1RECV_F1,1F1"
// CHECK-LABEL: func.func @main(

// FILE: pipe.rank 0 "0F1,0SEND_F1,0F0,0SEND_F0"
// FILE-NEXT: pipe.rank 1 "1RECV_F1,1F1,1RECV_F0,1F0"

// RANKS: placement [1, 0]
// RANKS-NEXT: pipe.rank 0 "1RECV_F0,1F0,1RECV_F1,1F1"

// Two stages, each of two microbatches, and a message a microbatch, sent and received.
// STATISTICS-DAG: {{^ *}}8 pipe-schedule {{.*}} actions of all ranks
// STATISTICS-DAG: {{^ *}}4 pipe-schedule {{.*}} those that send or receive

// GATE: spmd.phase = "scheduled"
#full = #spmd.mesh<["stage"=2]>
#inner = #spmd.mesh<["device"=1]>
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 2 : i64, spmd.mesh = #inner, spmd.phase = "staged"} {
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
func.func @main(%x: tensor<4x4xf32> {nn.name = "x"}) -> (tensor<4x4xf32> {nn.name = "y"}, tensor<4xf32> {nn.name = "t"}) {
  %l:2 = pipe.microbatches 2 (%i = %x split 0) -> (split 0, sum) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>) {
    %h:2 = func.call @main.stage0(%i) : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>)
    %o = func.call @main.stage1(%h#0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    pipe.yield %o, %h#1 : tensor<2x4xf32>, tensor<4xf32>
  }
  %t = call @main.after(%l#1) : (tensor<4xf32>) -> tensor<4xf32>
  return %l#0, %t : tensor<4x4xf32>, tensor<4xf32>
}
}
