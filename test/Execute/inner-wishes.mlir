// A wish for a tensor inside of what would become one op, or inside of a chain of reshapes, keeps it: it is cut as asked.
//
// RUN: cleave explain %s --mesh c=2 --shard 'cube=[c, _]' cube | FileCheck %s --check-prefix=CUBE
// RUN: cleave explain %s --mesh c=2 --shard 'mean=[c, _]' mean | FileCheck %s --check-prefix=MEAN
// RUN: cleave explain %s --mesh c=2 --shard 'flat=[c, _, _]' flat | FileCheck %s --check-prefix=FLAT
// RUN: cleave explain %s --mesh c=2 --shard 'back=[c, _, _, _]' back | FileCheck %s --check-prefix=BACK
// RUN: cleave run %s --mesh c=2 --shard 'cube=[c, _]' --shard 'mean=[c, _]' --shard 'flat=[c, _, _]' --check | FileCheck %s --check-prefix=EQUAL
// RUN: cleave shard %s --mesh c=2 --emit canonical | FileCheck %s --check-prefix=FUSED

// CUBE: cube: f32[4, 8] [{"c"}, {}]
// MEAN: mean: f32[4, 1] [{"c"}, {}]
// FLAT: flat: f32[6, 4, 8] [{"c"}, {}, {}]
// BACK: back: f32[2, 3, 4, 8] [{"c"}, {}, {}, {}]
// EQUAL: check gelu: ok
// EQUAL: check norm: ok
// EQUAL: check moved: ok
// EQUAL: check same: ok
// FUSED-LABEL: func.func @main
// FUSED-DAG: nn.gelu
// FUSED-DAG: nn.layer_norm
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}, %z: tensor<2x3x4x8xf32> {nn.name = "z"})
    -> (tensor<4x8xf32> {nn.name = "gelu"}, tensor<4x8xf32> {nn.name = "norm"},
        tensor<2x3x8x4xf32> {nn.name = "moved"}, tensor<2x3x4x8xf32> {nn.name = "same"}) {
  // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  %half = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %three = nn.constant dense<3.0> : tensor<f32> -> tensor<f32>
  %small = nn.constant dense<0.044715> : tensor<f32> -> tensor<f32>
  %root = nn.constant dense<0.7978845608> : tensor<f32> -> tensor<f32>
  %0 = nn.pow %x, %three : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32> loc(#cube)
  %1 = nn.mul %0, %small : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %2 = nn.add %x, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = nn.mul %2, %root : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %4 = nn.tanh %3 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = nn.add %4, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %6 = nn.mul %x, %half : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %7 = nn.mul %6, %5 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon)
  %epsilon = nn.constant dense<1.0e-5> : tensor<f32> -> tensor<f32>
  %10 = nn.reduce mean %x dims [1] keep_dims : (tensor<4x8xf32>) -> tensor<4x1xf32> loc(#mean)
  %11 = nn.sub %x, %10 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %12 = nn.mul %11, %11 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %13 = nn.reduce mean %12 dims [1] keep_dims : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %14 = nn.add %13, %epsilon : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %15 = nn.sqrt %14 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %16 = nn.div %11, %15 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  // Two dims merged and taken apart again.
  %20 = nn.reshape %z : (tensor<2x3x4x8xf32>) -> tensor<6x4x8xf32> loc(#flat)
  %21 = nn.transpose %20 [0, 2, 1] : (tensor<6x4x8xf32>) -> tensor<6x8x4xf32>
  %22 = nn.reshape %21 : (tensor<6x8x4xf32>) -> tensor<2x3x8x4xf32>
  %30 = nn.exp %z : (tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  %31 = nn.reshape %30 : (tensor<2x3x4x8xf32>) -> tensor<24x8xf32>
  %32 = nn.reshape %31 : (tensor<24x8xf32>) -> tensor<2x3x4x8xf32> loc(#back)
  %33 = nn.neg %32 : (tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  return %7, %16, %22, %33 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<2x3x8x4xf32>, tensor<2x3x4x8xf32>
}
#cube = loc(#nn.node<"/cube", "Pow", ["x"], [["cube"]]>)
#mean = loc(#nn.node<"/mean", "ReduceMean", ["x"], [["mean"]]>)
#flat = loc(#nn.node<"/flat", "Reshape", ["z"], [["flat"]]>)
#back = loc(#nn.node<"/back", "Reshape", ["merged"], [["back"]]>)
