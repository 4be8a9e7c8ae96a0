// Schedules that a model has no use for, and files that are none.
//
// RUN: not cleave-opt %s --pipe-schedule="schedule=zb-h1" 2>&1 | FileCheck %s --check-prefix=GRADIENTS
// RUN: not cleave-opt %s --pipe-schedule="schedule=gpip" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not cleave-opt %s --pipe-schedule="schedule=%t.none.csv" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not cleave-opt %s --pipe-schedule="placement=zigzag" 2>&1 | FileCheck %s --check-prefix=PLACEMENT
// RUN: not cleave-opt %s --pipe-schedule="placement=v" 2>&1 | FileCheck %s --check-prefix=TURNS
// RUN: not cleave-opt %s --pipe-schedule="ranks=1,1" 2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: echo "0F0,0F1,0F2" > %t.csv
// RUN: echo "1F0,1F1,1F2" >> %t.csv
// RUN: not cleave-opt %s --pipe-schedule="schedule=%t.csv" 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: echo "0F0,1F1" > %t.cell.csv
// RUN: not cleave-opt %s --pipe-schedule="schedule=%t.cell.csv" 2>&1 | FileCheck %s --check-prefix=CELL

// GRADIENTS: error: schedule "zb-h1" needs gradients, as a step of training has them ('cleave train', or --train); forward-only schedules are: forward, circular
// NAME: error: {{.*}}gpip
// NONE: error: cannot read schedule '{{.*}}none.csv'
// SHAPE: error: schedule '{{.*}}' is of 2 ranks and 3 microbatches, the model of 2 and 2
// CELL: error:
// PLACEMENT: error: 'zigzag' is not a placement: linear, loop, v, wave
// TURNS: error: the plan wants placement 'v', and schedule 'forward' has its stages on ranks 0, 1
// RANKS: error: stage 1 cannot be on rank 1 where stage 0 is on rank 1
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
