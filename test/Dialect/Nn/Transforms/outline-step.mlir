// RUN: cleave-opt %s --split-input-file --nn-outline-step="train='{loss: {kind: mse, of: y}, optimizer: sgd, freeze: fixed}'" | FileCheck %s

nn.param @w : tensor<3x2xf32> = dense<1.0> : tensor<3x2xf32>
nn.param @qkv : tensor<2x4xf32> = dense<1.0> : tensor<2x4xf32>
nn.param @fixed : tensor<4xf32> = dense<1.0> : tensor<4xf32>
nn.param @idle : tensor<4xf32> = dense<1.0> : tensor<4xf32>

// Two loads of one weight are one argument; a part of a fused weight is one of its own, and says where it is. What is frozen stays, and
// what does not reach the loss. The model's results go.
// CHECK-LABEL: @main(
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32> {nn.name = "x", nn.role = "batch"}
// CHECK-SAME: %[[T:.*]]: tensor<4x2xf32> {nn.name = "labels", nn.role = "batch"}
// CHECK-SAME: %[[W:.*]]: tensor<3x2xf32> {nn.begins = @w, nn.name = "w", nn.role = "parameter"}
// CHECK-SAME: %[[K:.*]]: tensor<2x2xf32> {nn.begins = {param = @qkv, sizes = array<i64: 2, 2>, starts = array<i64: 0, 2>}, nn.name = "qkv[0, 2]", nn.origin = {name = "qkv", shape = array<i64: 2, 4>, starts = array<i64: 0, 2>}, nn.role = "parameter"}
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"})
// CHECK: %[[F:.*]] = nn.load @fixed
// CHECK: nn.einsum %[[X]], %[[W]]
// CHECK: nn.einsum %[[X]], %[[W]]
// CHECK: %[[Y:.*]] = nn.einsum %{{.*}}, %[[K]]
// CHECK: %[[E:.*]] = nn.sub %[[Y]], %[[T]]
// CHECK: %[[Q:.*]] = nn.mul %[[E]], %[[E]]
// CHECK: %[[S:.*]] = nn.reduce sum %[[Q]] dims [0, 1]
// CHECK: %[[L:.*]] = nn.mul %[[S]], %{{.*}} : (tensor<f32>, tensor<f32>)
// CHECK: return %[[L]] : tensor<f32>
func.func @main(%x: tensor<4x3xf32> {nn.name = "x"}) -> (tensor<4x2xf32> {nn.name = "y"}, tensor<4xf32> {nn.name = "z"}) {
  %w = nn.load @w : tensor<3x2xf32>
  %again = nn.load @w : tensor<3x2xf32>
  %k = nn.load @qkv starts [0, 2] sizes [2, 2] : tensor<2x2xf32>
  %f = nn.load @fixed : tensor<4xf32>
  %i = nn.load @idle : tensor<4xf32>
  %a = nn.einsum %x, %w "bi,io->bo" : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %b = nn.einsum %x, %again "bi,io->bo" : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %h = nn.mul %a, %b : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %y = nn.einsum %h, %k "bi,io->bo" : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %z = nn.mul %f, %i : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y, %z : tensor<4x2xf32>, tensor<4xf32>
}

// -----

// Statistics of a norm are no weights: they stay as they are.
nn.param @scale : tensor<3xf32> = dense<1.0> : tensor<3xf32>
nn.param @mean : tensor<3xf32> = dense<0.0> : tensor<3xf32>
nn.param @fixed : tensor<3xf32> = dense<1.0> : tensor<3xf32>
// CHECK-LABEL: @main(
// CHECK-SAME: nn.name = "scale", nn.role = "parameter"
// CHECK-NOT: nn.name = "mean"
func.func @main(%x: tensor<4x3x2xf32> {nn.name = "x"}) -> (tensor<4x3x2xf32> {nn.name = "y"}) {
  %s = nn.load @scale : tensor<3xf32>
  %m = nn.load @mean : tensor<3xf32>
  %f = nn.load @fixed : tensor<3xf32>
  %y = nn.batch_norm %x, %s, %f, %m, %f epsilon 1.0e-5 : (tensor<4x3x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3x2xf32>
  return %y : tensor<4x3x2xf32>
}

// -----

// What a plan wants of a fused weight its part takes along, and nothing is wanted of the weight itself any more.
#mesh = #spmd.mesh<["model"=2]>
#columns = #spmd.sharding<#mesh, [{}, {"model"}]>
#split = #spmd.annotation<#columns, loc("p.yaml":3:5), loc("p.yaml":3:14)>
nn.param @qkv : tensor<2x4xf32> = dense<1.0> : tensor<2x4xf32>
nn.param @fixed : tensor<2xf32> = dense<1.0> : tensor<2xf32>
// CHECK-LABEL: @main(
// CHECK-SAME: nn.name = "qkv[0, 2]", {{.*}}nn.role = "parameter", spmd.annotation = #{{.*}}}
// CHECK-NOT: spmd.pin
func.func @main(%x: tensor<4x2xf32> {nn.name = "x"}) -> (tensor<4x2xf32> {nn.name = "y"}) {
  %whole = nn.load @qkv : tensor<2x4xf32>
  %p = spmd.pin %whole "qkv" wants #split : tensor<2x4xf32>
  %part = nn.load @qkv starts [0, 2] sizes [2, 2] : tensor<2x2xf32>
  %q = spmd.pin %part "qkv" wants #split : tensor<2x2xf32>
  %h = nn.einsum %x, %q "bi,io->bo" : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %f = nn.load @fixed : tensor<2xf32>
  %y = nn.add %h, %f : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}
