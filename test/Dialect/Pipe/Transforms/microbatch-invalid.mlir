// Ops that mix samples of different microbatches, and what else cannot be split.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics --pipe-microbatch=microbatches=4

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @softmax_along_the_batch(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error@+1 {{'nn.softmax' mixes samples of different microbatches: it works along the batch}}
  %y = nn.softmax %x dim 0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'x', split into microbatches here}}
func.func @sorted_samples(%x: tensor<8x4xf32> {nn.name = "x"}) -> (tensor<8x4xf32>, tensor<8x4xi64>) {
  // expected-error@+1 {{'nn.top_k' mixes samples of different microbatches: it works along the batch}}
  %v, %i = nn.top_k %x k 8 dim 0 : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xi64>)
  return %v, %i : tensor<8x4xf32>, tensor<8x4xi64>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @running_sum_of_samples(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error@+1 {{'nn.cumsum' mixes samples of different microbatches: it works along the batch}}
  %y = nn.cumsum %x dim 0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @the_best_sample(%x: tensor<8x4xf32>) -> tensor<4xi64> {
  // expected-error@+1 {{'nn.arg_reduce' mixes samples of different microbatches: it works along the batch}}
  %y = nn.arg_reduce max %x dim 0 : (tensor<8x4xf32>) -> tensor<4xi64>
  return %y : tensor<4xi64>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @gather_across_samples(%x: tensor<8x4xf32>) -> tensor<3x4xf32> {
  %i = nn.constant dense<[7, 0, 3]> : tensor<3xi64> -> tensor<3xi64>
  // expected-error@+1 {{'nn.gather' mixes samples of different microbatches: it looks for positions along the batch}}
  %y = nn.gather %x, %i dim 0 : (tensor<8x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @the_first_sample(%x: tensor<8x4xf32>) -> tensor<1x4xf32> {
  // expected-error@+1 {{'nn.slice' mixes samples of different microbatches: it looks for positions along the batch}}
  %y = nn.slice %x starts [0, 0] sizes [1, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @one_batch_behind_the_other(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> tensor<16x4xf32> {
  // expected-error@+1 {{'nn.concat' mixes samples of different microbatches: it works along the batch}}
  %z = nn.concat %x, %y dim 0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  return %z : tensor<16x4xf32>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @merged_behind_a_dim(%x: tensor<8x4xf32>) -> tensor<32xf32> {
  %t = nn.transpose %x [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  // expected-error@+1 {{'nn.reshape' mixes samples of different microbatches: the batch would come after another part of a dim of its result}}
  %y = nn.reshape %t : (tensor<4x8xf32>) -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @taken_apart(%x: tensor<8x4xf32>) -> tensor<2x4x4xf32> {
  // expected-error@+1 {{'nn.reshape' mixes samples of different microbatches: dim 0 of operand 0, the batch, is taken apart otherwise than into microbatches}}
  %y = nn.reshape %x : (tensor<8x4xf32>) -> tensor<2x4x4xf32>
  return %y : tensor<2x4x4xf32>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @every_sample_with_every_other(%x: tensor<8x4xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{'nn.einsum' mixes samples of different microbatches: dim 0 of operand 1, the batch, does not go with the batch of operand 0}}
  %y = nn.einsum %x, %x "ik,jk->ij" : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// A norm with the statistics of the batch, as exporters write it for training.
// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @batch_statistics(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %mean = nn.reduce mean %x dims [0] keep_dims : (tensor<8x4xf32>) -> tensor<1x4xf32>
  // expected-error@+1 {{'nn.sub' mixes samples of different microbatches: operand 1 is made of all of them, by 'nn.reduce'}}
  %y = nn.sub %x, %mean : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// Also behind other ops of the epilogue.
// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @scaled_by_the_largest(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %max = nn.reduce max %x dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  %e = nn.exp %max : (tensor<f32>) -> tensor<f32>
  // expected-error@+1 {{'nn.div' mixes samples of different microbatches: operand 1 is made of all of them, by 'nn.reduce'}}
  %y = nn.div %x, %e : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// A triangle over samples depends on which one it is.
// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @triangle_of_samples(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{'nn.trilu' mixes samples of different microbatches: it looks for positions along the batch}}
  %y = nn.trilu %x offset 0 upper : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @mean_of_integers(%x: tensor<8x4xi64>) -> tensor<4xi64> {
  // expected-error@+1 {{'nn.reduce' mixes samples of different microbatches: it works along the batch}}
  %y = nn.reduce mean %x dims [0] : (tensor<8x4xi64>) -> tensor<4xi64>
  return %y : tensor<4xi64>
}

// -----

// A running mean: all microbatches would write it.
// expected-note@+1 {{the batch is split into microbatches here}}
func.func @a_whole_state(%x: tensor<8x4xf32>, %mean: tensor<1x4xf32> {nn.name = "mean"}) -> (tensor<1x4xf32> {spmd.state = "mean"}) {
  %new = nn.reduce mean %x dims [0] keep_dims : (tensor<8x4xf32>) -> tensor<1x4xf32>
  // expected-error@+1 {{every microbatch would change state 'mean' of all: it is whole, and leaves accumulated}}
  %sum = nn.add %mean, %new : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  return %sum : tensor<1x4xf32>
}

// -----

// expected-note@+1 {{the batch is split into microbatches here}}
func.func @a_state_that_turns(%x: tensor<8x8xf32> {nn.name = "x"}) -> (tensor<8x8xf32> {spmd.state = "x"}) {
  // expected-error@+1 {{every microbatch would change state 'x' of all: it is split along dim 0, and leaves split along dim 1}}
  %y = nn.transpose %x [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// What is wanted fits the batch, but not that of a microbatch.
#mesh = #spmd.mesh<["data"=4]>
#rows = #spmd.sharding<#mesh, [{"data"}, {}]>
// expected-error@unknown {{'h' has size 2 in dim 0, which axis "data"=4 does not divide (S5)}}
// expected-note@unknown {{16 samples would do}}
// expected-note@+1 {{the batch is that of one of 4 microbatches, which are split here}}
func.func @a_annotation_for_more_devices(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %h = nn.exp %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %p = spmd.pin %h "h" wants <#rows, loc(unknown), loc(unknown)> : tensor<8x4xf32>
  return %p : tensor<8x4xf32>
}

// -----

// expected-error@+1 {{the batch of 'arg0', dim 0, has 6 samples, which 4 microbatches do not divide; 3 or 6 would, or 'uneven: true' in 'pipeline:' (P4)}}
func.func @does_not_divide(%x: tensor<6x4xf32>) -> tensor<6x4xf32> {
  return %x : tensor<6x4xf32>
}

// -----

// expected-error@+1 {{the inputs do not agree in dim 0, which has 8 elements in 'arg0' and 6 in 'arg1'; say which dims are the batch, such as batch: {arg0: 0}}}
func.func @disagree(%x: tensor<8x4xf32>, %y: tensor<6xf32>) -> tensor<8x4xf32> {
  return %x : tensor<8x4xf32>
}

// -----

// expected-error@+1 {{no input has a batch: there is nothing to cut into microbatches}}
func.func @no_batch(%x: tensor<1x4xf32>, %y: tensor<f32>) -> tensor<1x4xf32> {
  return %x : tensor<1x4xf32>
}

// -----

// expected-error@+1 {{the module is propagated already, and cannot become annotated}}
module attributes {spmd.phase = "propagated"} {
  func.func @too_late(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

#two = #spmd.mesh<["x"=2]>
// expected-error@+1 {{'func.func' op is sharded already: microbatches are split before spmd-annotate}}
func.func @sharded(%x: tensor<8xf32, #spmd.sharding<#two, [{"x"}]>>) -> tensor<8xf32, #spmd.sharding<#two, [{"x"}]>> {
  return %x : tensor<8xf32, #spmd.sharding<#two, [{"x"}]>>
}

// -----

// expected-error@+1 {{has been split into microbatches already}}
module attributes {pipe.microbatches = 2 : i64} {
  func.func @twice(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

// expected-error@+1 {{has control flow: only functions of one block can be split into microbatches}}
func.func @two_blocks() {
  return
^next:
  return
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @a_condition_of_all_samples(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %go = nn.constant dense<true> : tensor<i1> -> tensor<i1>
  %limit = nn.constant dense<9.0> : tensor<f32> -> tensor<f32>
  // expected-error@+1 {{'nn.loop' mixes samples of different microbatches: its condition is made of all of them, by 'nn.reduce'}}
  %y = nn.loop count 2 while %go carries (%x) captures (%limit) : (tensor<i1>, tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>, %l: tensor<f32>):
    %b = nn.exp %a : (tensor<8x4xf32>) -> tensor<8x4xf32>
    // expected-note@+1 {{it is made here}}
    %most = nn.reduce max %b dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
    %more = nn.lt %most, %l : (tensor<f32>, tensor<f32>) -> tensor<i1>
    nn.yield while %more next (%b) : (tensor<i1>, tensor<8x4xf32>) -> ()
  }
  return %y : tensor<8x4xf32>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @a_first_condition_of_all_samples(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %limit = nn.constant dense<9.0> : tensor<f32> -> tensor<f32>
  // expected-note@+1 {{it is made here}}
  %most = nn.reduce max %x dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  %go = nn.lt %most, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
  // expected-error@+1 {{'nn.loop' mixes samples of different microbatches: its condition is made of all of them, by 'nn.reduce'}}
  %y = nn.loop count 2 while %go carries (%x) : (tensor<i1>, tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>):
    %b = nn.exp %a : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = nn.constant dense<false> : tensor<i1> -> tensor<i1>
    nn.yield while %c next (%b) : (tensor<i1>, tensor<8x4xf32>) -> ()
  }
  return %y : tensor<8x4xf32>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @a_carried_sum_of_all_samples(%x: tensor<8x4xf32>) -> tensor<4xf32> {
  %zero = nn.constant dense<0.0> : tensor<4xf32> -> tensor<4xf32>
  // expected-error@+1 {{'nn.loop' mixes samples of different microbatches: value 1 that it carries is made of all of them, by 'nn.reduce'}}
  %y:2 = nn.loop count 2 carries (%x, %zero) : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<8x4xf32>, %s: tensor<4xf32>):
    %b = nn.exp %a : (tensor<8x4xf32>) -> tensor<8x4xf32>
    // expected-note@+1 {{it is made here}}
    %sum = nn.reduce sum %b dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
    nn.yield next (%b, %sum) : (tensor<8x4xf32>, tensor<4xf32>) -> ()
  }
  return %y#1 : tensor<4xf32>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @a_batch_that_turns_in_each_iteration(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{'nn.loop' mixes samples of different microbatches: value 0 that it carries has the batch as dim 0, and comes back with it as dim 1}}
  %y = nn.loop count 2 carries (%x) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: tensor<8x8xf32>):
    %b = nn.transpose %a [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    nn.yield next (%b) : (tensor<8x8xf32>) -> ()
  }
  return %y : tensor<8x8xf32>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'x', split into microbatches here}}
func.func @what_comes_back_is_of_all_samples(%x: tensor<8x4xf32> {nn.name = "x", nn.dims = ["batch", ""]}, %n: tensor<2xi64> {nn.name = "n", nn.dims = ["", ""]}) -> tensor<8x4xf32> {
  // expected-error@+1 {{'nn.loop' mixes samples of different microbatches: value 0 that it carries comes back with a size that does not follow from the batch}}
  %y:2 = nn.loop count 2 carries (%x, %n) : (tensor<8x4xf32>, tensor<2xi64>) -> (tensor<8x4xf32>, tensor<2xi64>) {
  ^bb0(%a: tensor<8x4xf32>, %m: tensor<2xi64>):
    %i = nn.iota dim 0 start 0 step 1 : tensor<8x4xf32>
    nn.yield next (%i, %m) : (tensor<8x4xf32>, tensor<2xi64>) -> ()
  }
  return %y#0 : tensor<8x4xf32>
}

// -----

// expected-note@+1 {{dim 0 is the batch of 'arg0', split into microbatches here}}
func.func @a_loop_takes_a_sum_of_all_samples(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-note@+1 {{it is made here}}
  %sum = nn.reduce sum %x dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'nn.loop' mixes samples of different microbatches: what it takes is made of all of them, by 'nn.reduce'}}
  %y = nn.loop count 2 carries (%x) captures (%sum) : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>, %s: tensor<4xf32>):
    %b = nn.add %a, %s : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    nn.yield next (%b) : (tensor<8x4xf32>) -> ()
  }
  return %y : tensor<8x4xf32>
}

// -----

// Of what is added to a table each microbatch would add the table, too.
// expected-note@+1 {{dim 0 is the batch of 'arg1', split into microbatches here}}
func.func @adds_to_a_table(%x: tensor<8x4xf32> {nn.role = "batch"}, %i: tensor<8x1xi64> {nn.role = "batch"}, %w: tensor<16x4xf32> {nn.name = "w", nn.role = "parameter"}) -> tensor<16x4xf32> {
  // expected-error@+1 {{'nn.scatter_nd' mixes samples of different microbatches: it works along the batch}}
  %d = nn.scatter_nd add %w, %i, %x : (tensor<16x4xf32>, tensor<8x1xi64>, tensor<8x4xf32>) -> tensor<16x4xf32>
  return %d : tensor<16x4xf32>
}

// -----

#mesh = #spmd.mesh<["data"=2]>
#rows = #spmd.sharding<#mesh, [{"data"}]>
#share = #spmd.annotation<#rows, loc("p.yaml":3:5), loc("p.yaml":3:14)>
module attributes {spmd.mesh = #mesh} {
  func.func @no_sum_itself(%x: tensor<8x4xf32>) -> tensor<4xf32> {
    %s = nn.reduce sum %x dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
    %e = nn.exp %s : (tensor<4xf32>) -> tensor<4xf32>
    // expected-warning@+1 {{'grad(w)' is made of a sum over microbatches, which each rank keeps all of}}
    %p = spmd.pin %e "grad(w)" wants #share {spmd.of_parts} : tensor<4xf32>
    return %p : tensor<4xf32>
  }
}
