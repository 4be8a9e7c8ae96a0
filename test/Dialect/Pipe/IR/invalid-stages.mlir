// What is no stage (P2), and edges that go backward (P3).
//
// RUN: cleave-opt %s --split-input-file -verify-diagnostics

func.func @word(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'nn.exp' op has "first" as pipe.stage, which is an integer of 64 bits, 0 or more (P2)}}
  %a = nn.exp %x {pipe.stage = "first"} : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func @below_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'nn.exp' op has -1 : i64 as pipe.stage, which is an integer of 64 bits, 0 or more (P2)}}
  %a = nn.exp %x {pipe.stage = -1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func @backward(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note@+1 {{it is made here}}
  %a = nn.exp %x {pipe.stage = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'nn.neg' op is in stage 0 and uses what stage 1 makes (P3)}}
  %b = nn.neg %a {pipe.stage = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

func.func @unknown(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'pipe.steps' is not an attribute of pipe for an op; there are pipe.stage, pipe.mesh, pipe.axis, pipe.microbatches, pipe.rank, pipe.samples, pipe.shards, pipe.per_shard, pipe.boundaries}}
  %a = nn.exp %x {pipe.steps = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func @in_a_body(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nn.loop count 2 carries (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-error@+1 {{'nn.exp' op has a stage, but is in the body of a loop, all of which is in one stage (P2)}}
    %b = nn.exp %a {pipe.stage = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    nn.yield next (%b) : (tensor<4xf32>) -> ()
  }
  return %y : tensor<4xf32>
}
