// Several steps in one call: states go from step to step, all else has one more dim in front.
//
// RUN: cleave-opt %s --split-input-file --pipe-repeat-step=steps=2 | FileCheck %s

// What a step takes and gives is that of its number; a state is one.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32> {nn.dims = ["step", "batch"], nn.name = "x"}
// CHECK-SAME: %[[W:.*]]: tensor<4xf32> {nn.name = "w"}
// CHECK-SAME: -> (tensor<2xf32> {nn.name = "loss"}, tensor<4xf32> {spmd.state = "w"})
// CHECK: %[[A:.*]] = nn.slice %[[X]] starts [0, 0]
// CHECK: %[[X0:.*]] = nn.reshape %[[A]]
// CHECK: %[[N0:.*]] = nn.sub %[[W]], %[[X0]]
// CHECK: %[[B:.*]] = nn.slice %[[X]] starts [1, 0]
// CHECK: %[[X1:.*]] = nn.reshape %[[B]]
// CHECK: %[[N1:.*]] = nn.sub %[[N0]], %[[X1]]
// CHECK: %[[L:.*]] = nn.concat
// CHECK: return %[[L]], %[[N1]]
func.func @main(%x: tensor<4xf32> {nn.name = "x", nn.dims = ["batch"]}, %w: tensor<4xf32> {nn.name = "w"})
    -> (tensor<f32> {nn.name = "loss"}, tensor<4xf32> {spmd.state = "w"}) {
  %l = nn.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %n = nn.sub %w, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %l, %n : tensor<f32>, tensor<4xf32>
}

// -----

// A dim in front is sharded over nothing; buckets of two steps are different ones.
// CHECK-LABEL: func.func @sharded
// CHECK-SAME: spmd.global = tensor<2x8x4xf32, #spmd.sharding<#{{.*}}, [{}, {"data"}, {}]>>
// CHECK: spmd.all_reduce {{.*}} {exec.bucket = 0 : i64}
// CHECK: spmd.all_reduce {{.*}} {exec.bucket = 1 : i64}
#mesh = #spmd.mesh<["data"=2]>
module attributes {spmd.mesh = #mesh} {
  func.func @sharded(%x: tensor<4x4xf32> {nn.name = "x", spmd.global = tensor<8x4xf32, #spmd.sharding<#mesh, [{"data"}, {}]>>}, %w: tensor<4x4xf32> {nn.name = "w"})
      -> (tensor<4x4xf32> {spmd.state = "w"}) {
    %g = spmd.all_reduce sum %x over {"data"} {exec.bucket = 0 : i64} : tensor<4x4xf32>
    %n = nn.sub %w, %g : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %n : tensor<4x4xf32>
  }
}

// -----

// Ranks of a pipeline repeat what they do; messages of the second step are of microbatches behind those of the first.
// CHECK-LABEL: func.func @main.rank0
// CHECK-SAME: tensor<2x4xf32> {pipe.index = 0 : i64}
// CHECK: pipe.send {{.*}} microbatch 0
// CHECK: pipe.send {{.*}} microbatch -1
// CHECK: pipe.send {{.*}} microbatch 2
// CHECK: pipe.send {{.*}} microbatch -1
// CHECK: return %{{.*}} : tensor<2xf32>
func.func private @main.stage0(%x: tensor<2xf32>) -> tensor<f32> {
  %l = nn.reduce sum %x dims [0] : (tensor<2xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
func.func @main(%x: tensor<4xf32> {nn.name = "x"}, %w: tensor<f32> {nn.name = "w"}) -> (tensor<f32>, tensor<f32> {spmd.state = "w"}) {
  %l = pipe.microbatches 2 (%i = %x split 0) -> (sum) : (tensor<4xf32>) -> tensor<f32> {
    %o = func.call @main.stage0(%i) : (tensor<2xf32>) -> tensor<f32>
    pipe.yield %o : tensor<f32>
  }
  %n = nn.add %w, %l : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %l, %n : tensor<f32>, tensor<f32>
}
func.func @main.rank0(%x: tensor<4xf32> {pipe.index = 0 : i64}) -> (tensor<f32> {pipe.index = 0 : i64}) attributes {pipe.rank = 0 : i64} {
  %a = pipe.part %x[0] split 0 of 2 : tensor<4xf32> to tensor<2xf32>
  %l = func.call @main.stage0(%a) : (tensor<2xf32>) -> tensor<f32>
  pipe.send %l to 1 channel 0 microbatch 0 : tensor<f32>
  pipe.send %l to 1 channel 0 microbatch -1 : tensor<f32>
  return %l : tensor<f32>
}

// -----

// A model that is not trained stays as it is.
// CHECK-LABEL: func.func @model(
// CHECK-SAME: tensor<4xf32>) -> tensor<4xf32>
func.func @model(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
