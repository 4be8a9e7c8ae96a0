// Programs that are not those of one microbatch, stages that are none, values that are read at the wrong time.
//
// RUN: cleave-opt %s --split-input-file --pipe-split -verify-diagnostics

// expected-error@+1 {{is not the program of one microbatch: pipe-microbatch comes first}}
module attributes {spmd.phase = "optimized"} {
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
}

// -----

module attributes {pipe.microbatches = 2 : i64, spmd.phase = "optimized"} {
// expected-error@+1 {{has no op in stage 0 of 2 (P2)}}
func.func @main(%x: tensor<4xf32> {pipe.split = 0 : i64}) -> (tensor<4xf32> {pipe.split = 0 : i64}) {
  %y = nn.exp %x {pipe.stage = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
}

// -----

module attributes {pipe.microbatches = 2 : i64, spmd.phase = "optimized"} {
// expected-error@+1 {{has no op that depends on a microbatch: there is nothing to split into stages}}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
}

// -----

module attributes {pipe.microbatches = 2 : i64, spmd.phase = "optimized"} {
func.func @main(%x: tensor<4xf32> {pipe.split = 0 : i64}) -> tensor<4xf32> {
  // expected-note@+1 {{it is made here}}
  %y = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %s = pipe.accumulate sum %y : tensor<4xf32>
  // expected-error@+1 {{'nn.add' op reads what one microbatch makes, and runs after the last of them}}
  %z = nn.add %s, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}
}

// -----

module attributes {pipe.microbatches = 2 : i64, spmd.phase = "optimized"} {
func.func @main(%x: tensor<4xf32> {pipe.split = 0 : i64}) -> tensor<4xf32> {
  %y = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{returns as result 0 a value that is one microbatch's}}
  return %y : tensor<4xf32>
}
}

// -----

// Smaller microbatches need rows of their own, and these rows differ.
module attributes {pipe.microbatches = 2 : i64, spmd.phase = "optimized"} {
func.func @main(%x: tensor<2xf32> {pipe.split = 0 : i64}) -> (tensor<2xf32> {pipe.split = 0 : i64})
    attributes {pipe.samples = 3 : i64, pipe.shards = 1 : i64, pipe.per_shard = 2 : i64} {
  %c = nn.constant dense<[1.0, 2.0]> : tensor<2xf32> -> tensor<2xf32>
  // expected-error@+1 {{'nn.add' cannot be made for microbatches of 2 samples of a shard, from 2: operand 1 has a size that does not follow from the batch (P4)}}
  %y = nn.add %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
}

// -----

// Devices that have a half of the samples of a shard.
#mesh = #spmd.mesh<["model"=2]>
module attributes {pipe.microbatches = 2 : i64, spmd.mesh = #mesh, spmd.phase = "optimized"} {
func.func @main(%x: tensor<2xf32> {pipe.split = 0 : i64}) -> (tensor<2xf32> {pipe.split = 0 : i64})
    attributes {pipe.samples = 3 : i64, pipe.shards = 1 : i64, pipe.per_shard = 2 : i64} {
  // expected-error@+1 {{'spmd.local_slice' cannot be made for microbatches of 2 samples of a shard, from 2: devices have no whole samples (P4)}}
  %s = spmd.local_slice %x dims [{"model"}] : (tensor<2xf32>) -> tensor<1xf32>
  %y = spmd.all_gather %s dims [{"model"}] : (tensor<1xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
}
