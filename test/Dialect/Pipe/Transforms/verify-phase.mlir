// The gates: what a phase promises and a module does not hold.
//
// RUN: cleave-opt %s --split-input-file --pipe-verify-phase="phase=per-rank" -verify-diagnostics

#full = #spmd.mesh<["stage"=2]>
#inner = #spmd.mesh<["device"=1]>
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 2 : i64, spmd.mesh = #inner, spmd.phase = "per-rank"} {
func.func @main.rank0(%x: tensor<4xf32>) attributes {pipe.rank = 0 : i64} {
  // expected-note@+1 {{it is sent here}}
  pipe.send %x to 1 channel 0 microbatch 0 : tensor<4xf32>
  return
}
func.func @main.rank1(%x: tensor<4xf32>) attributes {pipe.rank = 1 : i64} {
  // expected-error@+1 {{'pipe.recv' op is not what the other end sends (P8, P12)}}
  %y = pipe.recv from 0 channel 0 microbatch 1 : tensor<4xf32>
  return
}
}

// -----

#full = #spmd.mesh<["stage"=2]>
#inner = #spmd.mesh<["device"=1]>
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 2 : i64, spmd.mesh = #inner, spmd.phase = "per-rank"} {
func.func @main.rank0(%x: tensor<4xf32>) attributes {pipe.rank = 0 : i64} {
  pipe.send %x to 1 channel 0 microbatch 0 : tensor<4xf32>
  // expected-error@+1 {{'pipe.send' op is where rank 0 waits for ever (P9)}}
  pipe.send %x to 1 channel 1 microbatch 0 : tensor<4xf32>
  return
}
func.func @main.rank1(%x: tensor<4xf32>) attributes {pipe.rank = 1 : i64} {
  %y = pipe.recv from 0 channel 0 microbatch 0 : tensor<4xf32>
  pipe.send %x to 0 channel 2 microbatch 0 : tensor<4xf32>
  return
}
}

// -----

// expected-error@+1 {{has no function of a rank of the pipeline}}
module {}
