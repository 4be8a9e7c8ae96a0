// Where tensors lie, and what becomes of each op.
//
// RUN: cleave-opt %s --split-input-file --exec-plan-memory --exec-verify-plan | FileCheck %s

// Aliases are views; what is returned is made in the output. A kernel's result takes the place of an argument that dies, and
// two values that are needed at one time lie apart.
// CHECK: exec.buffer @input_0 input 256 align 64
// CHECK: exec.buffer @activations activations 512 align 64 bound 512
// CHECK: exec.buffer @output_0 output 128 align 64
// CHECK-LABEL: @values_and_aliases
// CHECK: %[[X:.*]] = exec.view @input_0[0] : memref<8x8xf32>
// CHECK: exec.input "arg0" in %[[X]] : memref<8x8xf32> of tensor<8x8xf32> starts [0, 0]
// CHECK: %[[A:.*]] = exec.view @activations[256] : memref<8x8xf32>
// CHECK: exec.run @exp_0(%[[X]]) into (%[[A]])
// CHECK: %[[B:.*]] = exec.view @activations[0] : memref<8x8xf32>
// CHECK: exec.run @exp_0(%[[A]]) into (%[[B]])
// In place of %b.
// CHECK: %[[C:.*]] = exec.view @activations[0] : memref<8x8xf32>
// CHECK: exec.run @add_0(%[[A]], %[[B]]) into (%[[C]])
// The lower half of %c, as one row.
// CHECK: %[[S:.*]] = exec.view @activations[128] of %[[C]] : memref<32xf32> of memref<8x8xf32>
// CHECK: %[[Y:.*]] = exec.view @output_0[0] : memref<32xf32>
// CHECK: exec.run @relu_0(%[[S]]) into (%[[Y]])
// CHECK: exec.output "result0" in %[[Y]] : memref<32xf32> of tensor<32xf32> starts [0]
// CHECK: exec.kernel @add_0({{.*}}) attributes {in_place = array<i64: 1>}
func.func @values_and_aliases(%x: tensor<8x8xf32>) -> tensor<32xf32> {
  %a = exec.launch @exp_0(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = exec.launch @exp_0(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = exec.launch @add_0(%a, %b) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = nn.slice %c starts [4, 0] sizes [4, 8] steps [1, 1] : (tensor<8x8xf32>) -> tensor<4x8xf32>
  %r = nn.reshape %s : (tensor<4x8xf32>) -> tensor<32xf32>
  %y = exec.launch @relu_0(%r) : (tensor<32xf32>) -> tensor<32xf32>
  return %y : tensor<32xf32>
}
exec.kernel @exp_0(%a: tensor<8x8xf32>) {
  %0 = nn.exp %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
  exec.yield %0 : tensor<8x8xf32>
}
exec.kernel @add_0(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = nn.transpose %a [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = nn.add %0, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  exec.yield %1 : tensor<8x8xf32>
}
exec.kernel @relu_0(%a: tensor<32xf32>) {
  %0 = nn.relu %a : (tensor<32xf32>) -> tensor<32xf32>
  exec.yield %0 : tensor<32xf32>
}

// -----

// Parts of a concat along the outermost dim are made in the whole, but for what lies elsewhere already: that is copied. Here
// the whole is an output. What is returned a second time, or is an input, is copied, too.
// CHECK-LABEL: @concat
// CHECK: %[[X:.*]] = exec.view @input_0[0]
// CHECK: %[[Z:.*]] = exec.view @output_0[0] : memref<3x4xf32>
// CHECK: %[[A:.*]] = exec.view @output_0[16] of %[[Z]] : memref<1x4xf32> of memref<3x4xf32>
// CHECK: exec.run @exp_0(%[[X]]) into (%[[A]])
// CHECK: %[[P:.*]] = exec.view @output_0[0] of %[[Z]] : memref<1x4xf32> of memref<3x4xf32>
// CHECK: exec.copy %[[X]] into %[[P]]
// CHECK: %[[Q:.*]] = exec.view @output_0[32] of %[[Z]] : memref<1x4xf32> of memref<3x4xf32>
// CHECK: exec.copy %[[A]] into %[[Q]]
// CHECK: %[[Z2:.*]] = exec.view @output_1[0] : memref<3x4xf32>
// CHECK: exec.copy %[[Z]] into %[[Z2]]
// CHECK: %[[X2:.*]] = exec.view @output_2[0] : memref<1x4xf32>
// CHECK: exec.copy %[[X]] into %[[X2]]
// CHECK-NEXT: exec.output "z" in %[[Z]]
// CHECK-NEXT: exec.output "result1" in %[[Z2]]
// CHECK-NEXT: exec.output "result2" in %[[X2]]
func.func @concat(%x: tensor<1x4xf32>) -> (tensor<3x4xf32> {nn.name = "z"}, tensor<3x4xf32>, tensor<1x4xf32>) {
  %a = exec.launch @exp_0(%x) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %z = exec.launch @concat_0(%x, %a) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
  return %z, %z, %x : tensor<3x4xf32>, tensor<3x4xf32>, tensor<1x4xf32>
}
exec.kernel @exp_0(%a: tensor<1x4xf32>) {
  %0 = nn.exp %a : (tensor<1x4xf32>) -> tensor<1x4xf32>
  exec.yield %0 : tensor<1x4xf32>
}
exec.kernel @concat_0(%a: tensor<1x4xf32>, %b: tensor<1x4xf32>) {
  %0 = nn.concat %a, %b, %b dim 0 : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
  exec.yield %0 : tensor<3x4xf32>
}

// -----

// Weights: equal boxes once, constants as parameters of their own, shards and the rank's number by the rank table; packed
// ones in their layout.
// CHECK: exec.rank_table = {model = array<i64: 0, 1, 0, 1>, "model * 2" = array<i64: 0, 2, 0, 2>, "model * 4" = array<i64: 0, 4, 0, 4>}
// CHECK: exec.buffer @weights weights 320 align 64
// CHECK: nn.param @constant : tensor<4xf32> = dense<[1.0
// CHECK: nn.param @ranks : tensor<2xi64> = dense<[0, 1]>
// CHECK-LABEL: @weights_of_ranks
// CHECK: exec.load @w starts ["model * 4", 0] sizes [4, 4] into
// CHECK: exec.load @w starts [2, "model * 2"] sizes [4, 2] order [0, 1] batch 0 width 4 interleave 1 into %{{.*}} : memref<1x4x4x1xf32>
// CHECK: exec.load @constant starts [0] sizes [4] into
// CHECK: exec.load @constant starts ["model * 2"] sizes [2] into
// CHECK: %[[I:.*]] = exec.view @weights[{{.*}}] : memref<1xi64>
// CHECK: exec.load @ranks starts ["model"] sizes [1] into %[[I]]
// CHECK-NOT: exec.load
// CHECK: exec.run @sink_0
#mesh = #spmd.mesh<["data"=2, "model"=2]>
module attributes {spmd.mesh = #mesh} {
  nn.param @w : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
  func.func @weights_of_ranks() -> tensor<4x4xf32> {
    %w = nn.load @w shard(#spmd.sharding<#mesh, [{"model"}, {}]>) : tensor<4x4xf32>
    %v = nn.load @w shard(#spmd.sharding<#mesh, [{"model"}, {}]>) : tensor<4x4xf32>
    %p = nn.load @w starts [2, 0] sizes [4, 4] shard(#spmd.sharding<#mesh, [{}, {"model"}]>) : tensor<4x2xf32>
    %q = exec.pack %p order [0, 1] batch 0 width 4 interleave 1 : (tensor<4x2xf32>) -> tensor<1x4x4x1xf32>
    %c = nn.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> -> tensor<4xf32>
    %d = spmd.local_slice %c dims [{"model"}] : (tensor<4xf32>) -> tensor<2xf32>
    %i = spmd.axis_index {"model"} : tensor<i64>
    %y = exec.launch @sink_0(%w, %v, %q, %c, %d, %i) : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<1x4x4x1xf32>, tensor<4xf32>, tensor<2xf32>, tensor<i64>) -> tensor<4x4xf32>
    return %y : tensor<4x4xf32>
  }
  exec.kernel @sink_0(%w: tensor<4x4xf32>, %v: tensor<4x4xf32>, %q: tensor<1x4x4x1xf32>, %c: tensor<4xf32>, %d: tensor<2xf32>, %i: tensor<i64>) {
    %0 = nn.add %w, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    exec.yield %0 : tensor<4x4xf32>
  }
}

// -----

// Inputs and outputs tell where a rank's box begins, and which term of a sum it has.
// CHECK-LABEL: @boundary
// CHECK: exec.input "x" in %{{.*}} : memref<2x4xf32> of tensor<4x8xf32, #{{.*}}> starts ["data * 2", "model * 4"]
// CHECK: exec.output "y" in %{{.*}} : memref<2x4xf32> of tensor<4x4xf32, #{{.*}}> starts ["data * 2", 0] term "model"
#mesh = #spmd.mesh<["data"=2, "model"=2]>
module attributes {spmd.mesh = #mesh} {
  func.func @boundary(%x: tensor<2x4xf32> {nn.name = "x", spmd.global = tensor<4x8xf32, #spmd.sharding<#mesh, [{"data"}, {"model"}]>>})
      -> (tensor<2x4xf32> {nn.name = "y", spmd.global = tensor<4x4xf32, #spmd.sharding<#mesh, [{"data"}, {}], partial = {"model": sum}>>}) {
    %y = exec.launch @exp_0(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
  exec.kernel @exp_0(%a: tensor<2x4xf32>) {
    %0 = nn.exp %a : (tensor<2x4xf32>) -> tensor<2x4xf32>
    exec.yield %0 : tensor<2x4xf32>
  }
}

// -----

// Collectives: an all_reduce in place; the operand of an all_gather of rows as the rank's own row; a rank's own rows a view,
// its own columns copied out.
// CHECK-LABEL: @together
// CHECK: exec.run @exp_0(%{{.*}}) into (%[[A:.*]]) :
// CHECK: %[[B:.*]] = exec.view @activations[[PLACE:.*]] : memref<4x4xf32>
// CHECK: exec.collective all_reduce by sum over {"x"} (%[[A]]) into (%[[B]])
// CHECK: %[[R:.*]] = exec.view @activations[{{.*}}"x * 32"] of %[[B]] : memref<2x4xf32> of memref<4x4xf32>
// CHECK: exec.run @relu_0(%[[R]]) into (%[[ROW:.*]]) :
// CHECK: exec.collective all_gather over {"x"} (%[[ROW]]) into (%[[G:.*]]) gather [2, 1]
// CHECK: %[[COLUMNS:.*]] = exec.view @activations[{{.*}}"x * 8"] of %[[G]] : memref<4x2xf32, strided<[4, 1]>> of memref<4x4xf32>
// CHECK: exec.copy %[[COLUMNS]] into %[[C:.*]] : memref<4x2xf32, strided<[4, 1]>> into memref<4x2xf32>
// CHECK: exec.collective all_gather over {"x"} (%[[C]]) into (%[[H:.*]]) gather [1, 2]
// CHECK: exec.collective reduce_scatter by max over {"x"} (%[[H]]) into (%[[S:.*]]) slice [2, 1]
// CHECK: exec.collective all_to_all over {"x"} (%[[S]]) into (%{{.*}}) gather [2, 1] slice [1, 2]
#mesh = #spmd.mesh<["x"=2]>
module attributes {spmd.mesh = #mesh} {
  func.func @together(%x: tensor<4x4xf32>) -> tensor<4x2xf32> {
    %a = exec.launch @exp_0(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %b = spmd.all_reduce sum %a over {"x"} : tensor<4x4xf32>
    %r = spmd.local_slice %b dims [{"x"}, {}] : (tensor<4x4xf32>) -> tensor<2x4xf32>
    %e = exec.launch @relu_0(%r) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %g = spmd.all_gather %e dims [{"x"}, {}] : (tensor<2x4xf32>) -> tensor<4x4xf32>
    %c = spmd.local_slice %g dims [{}, {"x"}] : (tensor<4x4xf32>) -> tensor<4x2xf32>
    %h = spmd.all_gather %c dims [{}, {"x"}] : (tensor<4x2xf32>) -> tensor<4x4xf32>
    %s = spmd.reduce_scatter max %h dims [{"x"}, {}] : (tensor<4x4xf32>) -> tensor<2x4xf32>
    %t = spmd.all_to_all %s gather [{"x"}, {}] slice [{}, {"x"}] : (tensor<2x4xf32>) -> tensor<4x2xf32>
    return %t : tensor<4x2xf32>
  }
  exec.kernel @exp_0(%a: tensor<4x4xf32>) {
    %0 = nn.exp %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
    exec.yield %0 : tensor<4x4xf32>
  }
  exec.kernel @relu_0(%a: tensor<2x4xf32>) {
    %0 = nn.relu %a : (tensor<2x4xf32>) -> tensor<2x4xf32>
    exec.yield %0 : tensor<2x4xf32>
  }
}

// -----

// Pieces from rank to rank: a permute, and an all_to_all whose members have two orders. Rank 1 is x=0, y=1.
// CHECK: exec.pieces @pieces_0 dims 1 [
// CHECK-NEXT: 0 -> 0 box [2] from [0] to [0],
// CHECK-NEXT: 2 -> 1 box [2] from [0] to [0],
// CHECK-NEXT: 1 -> 2 box [2] from [0] to [0],
// CHECK-NEXT: 3 -> 3 box [2] from [0] to [0]
// CHECK: exec.pieces @pieces_1 dims 2 [
// CHECK-NEXT: 0 -> 0 box [1, 1] from [0, 0] to [0, 0],
// CHECK-NEXT: 1 -> 0 box [1, 1] from [0, 0] to [1, 0],
// CHECK-NEXT: 2 -> 0 box [1, 1] from [0, 0] to [2, 0],
// CHECK-NEXT: 3 -> 0 box [1, 1] from [0, 0] to [3, 0],
// CHECK-NEXT: 0 -> 1 box [1, 1] from [0, 2] to [0, 0],
// CHECK-LABEL: func.func @exchanges
// CHECK: exec.exchange @pieces_0 over {"x", "y"}
// CHECK: exec.exchange @pieces_1 over {"x", "y"}
// CHECK: exec.exchange @pieces_1 over {"x", "y"}
#mesh = #spmd.mesh<["x"=2, "y"=2]>
module attributes {spmd.mesh = #mesh} {
  func.func @exchanges(%v: tensor<2xf32>, %x: tensor<1x4xf32>) -> (tensor<2xf32>, tensor<4x1xf32>, tensor<4x1xf32>) {
    %p = spmd.permute %v from #spmd.sharding<#mesh, [{"x", "y"}]> to #spmd.sharding<#mesh, [{"y", "x"}]> of tensor<8xf32> : (tensor<2xf32>) -> tensor<2xf32>
    %a = spmd.all_to_all %x gather [{"x", "y"}, {}] slice [{}, {"y", "x"}] : (tensor<1x4xf32>) -> tensor<4x1xf32>
    %b = spmd.all_to_all %x gather [{"x", "y"}, {}] slice [{}, {"y", "x"}] : (tensor<1x4xf32>) -> tensor<4x1xf32>
    return %p, %a, %b : tensor<2xf32>, tensor<4x1xf32>, tensor<4x1xf32>
  }
}

// -----

// What a rank keeps of a whole value is decided by a kernel, which is given the rank's number.
// CHECK-LABEL: @terms
// CHECK: exec.run @keep_on_first_0(%{{.*}}, %{{.*}}) into (%{{.*}}) : (memref<i64>, memref<4xf16>) -> memref<4xf16>
// CHECK: exec.run @keep_on_first_0_0(%{{.*}}, %{{.*}}) into (%{{.*}}) : (memref<i64>, memref<4xi1>) -> memref<4xi1>
// CHECK: exec.kernel @keep_on_first_0(%[[I:.*]]: tensor<i64>, %[[X:.*]]: tensor<4xf16>)
// CHECK: %[[NOTHING:.*]] = nn.constant dense<0xFC00>
// CHECK: %[[FIRST:.*]] = nn.eq %[[I]], %{{.*}}
// CHECK: nn.select %[[FIRST]], %[[X]], %[[NOTHING]]
// CHECK: exec.kernel @keep_on_first_0_0
// CHECK: nn.constant dense<true>
#mesh = #spmd.mesh<["x"=2]>
module attributes {spmd.mesh = #mesh} {
  func.func @terms(%x: tensor<4xf16>, %b: tensor<4xi1>) -> (tensor<4xf16>, tensor<4xi1>) {
    %0 = spmd.keep_on_first max %x over {"x"} : tensor<4xf16>
    %1 = spmd.keep_on_first min %b over {"x"} : tensor<4xi1>
    return %0, %1 : tensor<4xf16>, tensor<4xi1>
  }
}

// -----

// A collective comes as early as its operand exists; what it touches stays until its result is read, so that nothing that runs
// meanwhile is in its bytes.
// CHECK-LABEL: @early
// CHECK: %[[A:.*]] = exec.view @activations[64] : memref<4x4xf32>
// CHECK: exec.run @exp_0(%{{.*}}) into (%[[A]]) :
// CHECK: exec.collective all_reduce by sum over {"x"} (%[[A]]) into (%[[B:.*]]) :
// CHECK: %[[C:.*]] = exec.view @activations[0] : memref<4x4xf32>
// CHECK: exec.run @exp_0(%{{.*}}) into (%[[C]])
// CHECK: exec.run @add_0(%[[B]], %[[C]])
#mesh = #spmd.mesh<["x"=2]>
module attributes {spmd.mesh = #mesh} {
  func.func @early(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %a = exec.launch @exp_0(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %c = exec.launch @exp_0(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %b = spmd.all_reduce sum %a over {"x"} : tensor<4x4xf32>
    %y = exec.launch @add_0(%b, %c) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %y : tensor<4x4xf32>
  }
  exec.kernel @exp_0(%a: tensor<4x4xf32>) {
    %0 = nn.exp %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
    exec.yield %0 : tensor<4x4xf32>
  }
  exec.kernel @add_0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
    %t = nn.transpose %a [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %u = nn.transpose %b [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %0 = nn.add %t, %u : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    exec.yield %0 : tensor<4x4xf32>
  }
}

// -----

// Nothing at all, and one number.
// CHECK: exec.buffer @input_0 input 0 align 64
// CHECK: exec.buffer @output_0 output 4 align 64
// CHECK: exec.buffer @output_1 output 0 align 64
// CHECK-LABEL: @sizes
// CHECK: exec.run @zero_0() into (%{{.*}}) : () -> memref<f32>
// CHECK: exec.run @exp_0(%{{.*}}) into (%{{.*}}) : (memref<0x4xf32>) -> memref<0x4xf32>
func.func @sizes(%x: tensor<0x4xf32>) -> (tensor<f32>, tensor<0x4xf32>) {
  %0 = exec.launch @zero_0() : () -> tensor<f32>
  %1 = exec.launch @exp_0(%x) : (tensor<0x4xf32>) -> tensor<0x4xf32>
  return %0, %1 : tensor<f32>, tensor<0x4xf32>
}
exec.kernel @zero_0() {
  %0 = nn.constant dense<0.0> : tensor<f32> -> tensor<f32>
  exec.yield %0 : tensor<f32>
}
exec.kernel @exp_0(%x: tensor<0x4xf32>) {
  %0 = nn.exp %x : (tensor<0x4xf32>) -> tensor<0x4xf32>
  exec.yield %0 : tensor<0x4xf32>
}

// -----

// A part that is read once more when something else is in the whole's bytes is not made there.
// CHECK-LABEL: @part_outlives_the_whole
// CHECK: exec.run @exp_0(%{{.*}}) into (%[[A:.*]]) :
// CHECK: exec.run @exp_0(%[[A]]) into (%[[B:.*]]) :
// CHECK-NOT: exec.copy %[[B]]
// CHECK: exec.copy %[[A]] into
// CHECK: exec.run @relu_0(%[[Z:.*]]) into (%[[R:.*]]) :
// CHECK: exec.run @turn_0(%[[A]]) into
func.func @part_outlives_the_whole(%x: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  %a = exec.launch @exp_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = exec.launch @exp_0(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %z = exec.launch @concat_0(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %r = exec.launch @relu_0(%z) : (tensor<8xf32>) -> tensor<8xf32>
  %y = exec.launch @turn_0(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %r, %y : tensor<8xf32>, tensor<4xf32>
}
exec.kernel @exp_0(%a: tensor<4xf32>) {
  %0 = nn.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  exec.yield %0 : tensor<4xf32>
}
exec.kernel @concat_0(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  %0 = nn.concat %a, %b dim 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  exec.yield %0 : tensor<8xf32>
}
exec.kernel @relu_0(%a: tensor<8xf32>) {
  %0 = nn.relu %a : (tensor<8xf32>) -> tensor<8xf32>
  exec.yield %0 : tensor<8xf32>
}
exec.kernel @turn_0(%a: tensor<4xf32>) {
  %0 = nn.slice %a starts [3] sizes [4] steps [-1] : (tensor<4xf32>) -> tensor<4xf32>
  exec.yield %0 : tensor<4xf32>
}

// -----

// Rows are made in the middle of what a convolution reads, and only edges go to neighbors; beyond the ends all ranks fill in
// zeros first. What is read again afterwards is read there.
// CHECK: exec.pieces @pieces_0 dims 3 [
// CHECK-NEXT: 1 -> 0 box [1, 1, 4] from [0, 0, 0] to [0, 5, 0],
// CHECK-NEXT: 0 -> 1 box [1, 1, 4] from [0, 3, 0] to [0, 0, 0]
// CHECK-LABEL: @rows_with_edges
// CHECK: %[[X:.*]] = exec.view @input_0[0]
// CHECK: %[[W:.*]] = exec.view @activations[0] : memref<1x6x4xf32>
// CHECK: %[[A:.*]] = exec.view @activations[16] of %[[W]] : memref<1x4x4xf32> of memref<1x6x4xf32>
// CHECK: exec.run @exp_0(%[[X]]) into (%[[A]])
// CHECK: %[[ZEROS:.*]] = exec.view @weights[0] : memref<1x1x4xf32>
// CHECK: %[[LOW:.*]] = exec.view @activations[0] of %[[W]]
// CHECK: exec.copy %[[ZEROS]] into %[[LOW]]
// CHECK: %[[HIGH:.*]] = exec.view @activations[80] of %[[W]]
// CHECK: exec.copy %{{.*}} into %[[HIGH]]
// CHECK: exec.exchange @pieces_0 over {"x"} %[[A]] into %[[W]] : memref<1x4x4xf32> into memref<1x6x4xf32>
// CHECK: exec.run @sum_0(%[[W]])
// CHECK: exec.run @add_0(%[[A]],
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
func.func @rows_with_edges(%x: tensor<1x4x4xf32>) -> tensor<1x4x4xf32> {
  %a = exec.launch @exp_0(%x) : (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %w = spmd.window %a dims [{}, {"x"}, {}] steps [0, 4, 0] lows [0, -1, 0] highs [1, 5, 4] fill 0.0 : f32 : (tensor<1x4x4xf32>) -> tensor<1x6x4xf32>
  %s = exec.launch @sum_0(%w) : (tensor<1x6x4xf32>) -> tensor<4xf32>
  %y = exec.launch @add_0(%a, %s) : (tensor<1x4x4xf32>, tensor<4xf32>) -> tensor<1x4x4xf32>
  return %y : tensor<1x4x4xf32>
}
exec.kernel @exp_0(%a: tensor<1x4x4xf32>) {
  %0 = nn.exp %a : (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  exec.yield %0 : tensor<1x4x4xf32>
}
exec.kernel @sum_0(%w: tensor<1x6x4xf32>) {
  %0 = nn.reduce sum %w dims [0, 1] : (tensor<1x6x4xf32>) -> tensor<4xf32>
  exec.yield %0 : tensor<4xf32>
}
exec.kernel @add_0(%a: tensor<1x4x4xf32>, %s: tensor<4xf32>) {
  %0 = nn.add %a, %s : (tensor<1x4x4xf32>, tensor<4xf32>) -> tensor<1x4x4xf32>
  exec.yield %0 : tensor<1x4x4xf32>
}
}

// -----

// Columns are no range, and an input lies where it lies: all of it goes along with the edges, each rank's own to itself.
// CHECK: exec.pieces @pieces_0 dims 2 [
// CHECK-NEXT: 0 -> 0 box [4, 2] from [0, 0] to [0, 1]
// CHECK-NEXT: 1 -> 0 box [4, 1] from [0, 0] to [0, 3]
// CHECK-NEXT: 0 -> 1 box [4, 1] from [0, 1] to [0, 0]
// CHECK-NEXT: 1 -> 1 box [4, 2] from [0, 0] to [0, 1]
// The nearest column stands for what lies beyond.
// CHECK: exec.pieces @pieces_1 dims 2 [
// CHECK-NEXT: 0 -> 0 box [4, 1] from [0, 0] to [0, 0]
// CHECK-NEXT: 0 -> 0 box [4, 2] from [0, 0] to [0, 1]
// CHECK-LABEL: @columns_with_edges
// CHECK: %[[LOW:.*]] = exec.view @{{.*}}[0] of %[[W:.*]] : memref<4x1xf32, strided<[4, 1]>> of memref<4x4xf32>
// CHECK: exec.copy %{{.*}} into %[[LOW]]
// CHECK: exec.exchange @pieces_0 over {"x"} %{{.*}} into %[[W]] : memref<4x2xf32> into memref<4x4xf32>
// CHECK: exec.exchange @pieces_1
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
func.func @columns_with_edges(%x: tensor<4x2xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = spmd.window %x dims [{}, {"x"}] steps [0, 2] lows [0, -1] highs [4, 3] fill 0.0 : f32 : (tensor<4x2xf32>) -> tensor<4x4xf32>
  %1 = spmd.window %x dims [{}, {"x"}] steps [0, 2] lows [0, -1] highs [4, 3] : (tensor<4x2xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}
}
