// Tables that cannot be lowered: none, one of another shape, actions that are none, values that are read too soon; states of two ranks.
//
// RUN: cleave-opt %s --split-input-file --pipe-lower -verify-diagnostics

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
// expected-error@+1 {{has no schedule: there is no pipe.schedule @main.schedule}}
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

// -----

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
// expected-error@+1 {{is of 2 stages and 3 microbatches, the program of 2 and 2}}
pipe.schedule @main.schedule ranks 2 stages 2 microbatches 3 placement [0, 1] channels [0, 1] {
  pipe.rank 0 "0F0,0SEND_F0"
  pipe.rank 1 "1RECV_F0,1F0"
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

// -----

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
// expected-error@+1 {{has gradients, which the program does not compute}}
pipe.schedule @main.schedule ranks 2 stages 2 microbatches 2 placement [0, 1] channels [0, 1] {
  pipe.rank 0 "0F0,0W0"
  pipe.rank 1 "1RECV_F0,1F0"
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

// -----

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
  // expected-error@+1 {{has '0Q0', which is not an action of 2 stages and 2 microbatches (P6)}}
  pipe.rank 0 "0F0,0Q0"
  pipe.rank 1 "1RECV_F0,1F0"
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

// -----

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
  pipe.rank 1 "1F0,1RECV_F0,1RECV_F1,1F1"
}
// expected-error@+1 {{rank 1 reads what stage 0 makes of microbatch 0 before it is there (P7)}}
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

// -----

#full = #spmd.mesh<["stage"=1]>
#inner = #spmd.mesh<["device"=1]>
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 2 : i64, spmd.mesh = #inner, spmd.phase = "scheduled"} {
func.func private @large(%x: tensor<2xf32>, %w: tensor<2xf32>) -> tensor<2xf32>
func.func private @small(%w: tensor<1xf32>, %x: tensor<1xf32>) -> tensor<1xf32>
pipe.schedule @main.schedule ranks 1 stages 1 microbatches 2 placement [0] {
  pipe.rank 0 "0F0,0F1"
}
func.func @main(%x: tensor<3xf32>, %w: tensor<3xf32>) -> tensor<3xf32> {
  %l = pipe.microbatches 2 samples 3 (%i = %x split 0, %j = %w split 0) -> (split 0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32> {
    %h = func.call @large(%i, %j) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    pipe.yield %h : tensor<2xf32>
  } rest {
  ^bb0(%i: tensor<1xf32>, %j: tensor<1xf32>):
    // expected-error@+1 {{'func.call' op does not read in the second body what its counterpart reads in the first}}
    %h = func.call @small(%j, %i) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    pipe.yield %h : tensor<1xf32>
  }
  return %l : tensor<3xf32>
}
}

// -----

#full = #spmd.mesh<["stage"=1]>
#inner = #spmd.mesh<["device"=1]>
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 2 : i64, spmd.mesh = #inner, spmd.phase = "scheduled"} {
func.func private @large(%x: tensor<2xf32>) -> tensor<2xf32>
pipe.schedule @main.schedule ranks 1 stages 1 microbatches 2 placement [0] {
  pipe.rank 0 "0F0,0F1"
}
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error@+1 {{'pipe.microbatches' op calls other stages in its second body than in its first}}
  %l = pipe.microbatches 2 samples 3 (%i = %x split 0) -> (split 0) : (tensor<3xf32>) -> tensor<3xf32> {
    %h = func.call @large(%i) : (tensor<2xf32>) -> tensor<2xf32>
    pipe.yield %h : tensor<2xf32>
  } rest {
  ^bb0(%i: tensor<1xf32>):
    pipe.yield %i : tensor<1xf32>
  }
  return %l : tensor<3xf32>
}
}

// -----

// Rank 0 has what the last call left, and rank 1 what the next one should find.
#full = #spmd.mesh<["stage"=2]>
#inner = #spmd.mesh<["device"=1]>
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 2 : i64, spmd.mesh = #inner, spmd.phase = "scheduled"} {
func.func private @main.stage0(%old: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %h = nn.exp %old : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %h : tensor<2x4xf32>
}
func.func private @main.stage1(%h: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %next = nn.neg %h : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %next : tensor<2x4xf32>
}
pipe.schedule @main.schedule ranks 2 stages 2 microbatches 2 placement [0, 1] channels [0, 1] {
  pipe.rank 0 "0F0,0SEND_F0,0F1,0SEND_F1"
  pipe.rank 1 "1RECV_F0,1F0,1RECV_F1,1F1"
}
// expected-error@+1 {{state 'old' is read on pipeline ranks 0, and its next value is made on rank 1: a state stays in one rank, so that stages on one rank have to do both}}
func.func @main(%old: tensor<4x4xf32> {nn.name = "old"}) -> (tensor<4x4xf32> {nn.name = "next", spmd.state = "old"}) {
  %l = pipe.microbatches 2 (%i = %old split 0) -> (split 0) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
    %h = func.call @main.stage0(%i) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %next = func.call @main.stage1(%h) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    pipe.yield %next : tensor<2x4xf32>
  }
  return %l : tensor<4x4xf32>
}
}
