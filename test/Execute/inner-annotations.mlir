// An annotation for a tensor inside of what would become one op, or inside of a chain of reshapes, keeps it: it is split as asked.
// Without the annotation the op or the chain is fused.
//
// RUN: %{each} %s %t "cleave run {} --mesh c=2 --check | FileCheck {} --check-prefix=EQUAL" "cleave shard {} --mesh c=2 --emit canonical | FileCheck {} --check-prefix=FUSED"

// EQUAL: check y: ok

//--- gelu.mlir
// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), and the cube.
// RUN: cleave explain %t/gelu.mlir --mesh c=2 --shard 'cube=[c, _]' cube | FileCheck %s --check-prefix=CUBE
// RUN: cleave run %t/gelu.mlir --mesh c=2 --shard 'cube=[c, _]' --check | FileCheck %s --check-prefix=EQUAL
// CUBE: cube: f32[4, 8] [c, _]
// FUSED-LABEL: func.func @a_annotation_keeps_the_cube
// FUSED-NEXT: nn.gelu
// FUSED-NEXT: return
func.func @a_annotation_keeps_the_cube(%x: tensor<4x8xf32>) -> (tensor<4x8xf32> {nn.name = "y"}) {
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
  return %7 : tensor<4x8xf32>
}
#cube = loc(#nn.node<"/cube", "Pow", ["x"], [["cube"]]>)

//--- norm.mlir
// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon), and the first mean.
// RUN: cleave explain %t/norm.mlir --mesh c=2 --shard 'mean=[c, _]' mean | FileCheck %s --check-prefix=MEAN
// RUN: cleave run %t/norm.mlir --mesh c=2 --shard 'mean=[c, _]' --check | FileCheck %s --check-prefix=EQUAL
// MEAN: mean: f32[4, 1] [c, _]
// FUSED-LABEL: func.func @a_annotation_keeps_the_mean
// FUSED: nn.layer_norm
// FUSED-NEXT: return
func.func @a_annotation_keeps_the_mean(%x: tensor<4x8xf32>) -> (tensor<4x8xf32> {nn.name = "y"}) {
  %epsilon = nn.constant dense<1.0e-5> : tensor<f32> -> tensor<f32>
  %0 = nn.reduce mean %x dims [1] keep_dims : (tensor<4x8xf32>) -> tensor<4x1xf32> loc(#mean)
  %1 = nn.sub %x, %0 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %2 = nn.mul %1, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = nn.reduce mean %2 dims [1] keep_dims : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %4 = nn.add %3, %epsilon : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %5 = nn.sqrt %4 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %6 = nn.div %1, %5 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %6 : tensor<4x8xf32>
}
#mean = loc(#nn.node<"/mean", "ReduceMean", ["x"], [["mean"]]>)

//--- moved.mlir
// Two dims merged, moved and taken apart again; the annotation is for what is merged.
// RUN: cleave explain %t/moved.mlir --mesh c=2 --shard 'flat=[c, _, _]' flat | FileCheck %s --check-prefix=FLAT
// RUN: cleave run %t/moved.mlir --mesh c=2 --shard 'flat=[c, _, _]' --check | FileCheck %s --check-prefix=EQUAL
// FLAT: flat: f32[6, 4, 8] [c, _, _]
// FUSED-LABEL: func.func @a_annotation_keeps_merged_dims
// FUSED-NEXT: nn.transpose
// FUSED-NEXT: return
func.func @a_annotation_keeps_merged_dims(%x: tensor<2x3x4x8xf32>) -> (tensor<2x3x8x4xf32> {nn.name = "y"}) {
  %0 = nn.reshape %x : (tensor<2x3x4x8xf32>) -> tensor<6x4x8xf32> loc(#flat)
  %1 = nn.transpose %0 [0, 2, 1] : (tensor<6x4x8xf32>) -> tensor<6x8x4xf32>
  %2 = nn.reshape %1 : (tensor<6x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %2 : tensor<2x3x8x4xf32>
}
#flat = loc(#nn.node<"/flat", "Reshape", ["x"], [["flat"]]>)

//--- back.mlir
// Merged, and taken apart at once; the annotation is for what is replicated again.
// RUN: cleave explain %t/back.mlir --mesh c=2 --shard 'back=[c, _, _, _]' back | FileCheck %s --check-prefix=BACK
// RUN: cleave run %t/back.mlir --mesh c=2 --shard 'back=[c, _, _, _]' --check | FileCheck %s --check-prefix=EQUAL
// BACK: back: f32[2, 3, 4, 8] [c, _, _, _]
// FUSED-LABEL: func.func @a_annotation_keeps_a_way_back
// FUSED-NEXT: nn.exp
// FUSED-NEXT: nn.neg
// FUSED-NEXT: return
func.func @a_annotation_keeps_a_way_back(%x: tensor<2x3x4x8xf32>) -> (tensor<2x3x4x8xf32> {nn.name = "y"}) {
  %0 = nn.exp %x : (tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  %1 = nn.reshape %0 : (tensor<2x3x4x8xf32>) -> tensor<24x8xf32>
  %2 = nn.reshape %1 : (tensor<24x8xf32>) -> tensor<2x3x4x8xf32> loc(#back)
  %3 = nn.neg %2 : (tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  return %3 : tensor<2x3x4x8xf32>
}
#back = loc(#nn.node<"/back", "Reshape", ["merged"], [["back"]]>)
