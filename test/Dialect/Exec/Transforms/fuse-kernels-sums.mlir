// Gradients of the parts of a value, each with zeros around it, are one behind the other where they fill it.
//
// RUN: %{each} %s %t "cleave-opt {} --exec-fuse-kernels | FileCheck {}" "cleave run {} --mesh one=1 --executor=program --check --quiet"

//--- fills.mlir
// CHECK-LABEL: @parts_that_fill_the_whole
// CHECK-NOT: nn.pad
// CHECK: nn.concat %{{.*}}, %{{.*}}, %{{.*}} dim 1 : (tensor<4x8xf32>, tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<4x16xf32>
func.func @parts_that_fill_the_whole(%a: tensor<4x3xf32>, %b: tensor<4x8xf32>, %c: tensor<4x5xf32>) -> tensor<4x16xf32> {
  %z = nn.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %0 = nn.pad constant %a value %z low [0, 8] high [0, 5] : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x16xf32>
  %1 = nn.pad constant %b value %z low [0, 0] high [0, 8] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x16xf32>
  %2 = nn.add %0, %1 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %3 = nn.pad constant %c low [0, 11] high [0, 0] : (tensor<4x5xf32>) -> tensor<4x16xf32>
  %4 = nn.add %2, %3 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  return %4 : tensor<4x16xf32>
}

//--- overlaps.mlir
// Parts that overlap, or leave something out, are added up.
// CHECK-LABEL: @parts_that_overlap
// CHECK-NOT: nn.concat
// CHECK: nn.add
func.func @parts_that_overlap(%a: tensor<4x9xf32>, %b: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %0 = nn.pad constant %a low [0, 7] high [0, 0] : (tensor<4x9xf32>) -> tensor<4x16xf32>
  %1 = nn.pad constant %b low [0, 0] high [0, 8] : (tensor<4x8xf32>) -> tensor<4x16xf32>
  %2 = nn.add %0, %1 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  return %2 : tensor<4x16xf32>
}

//--- ones.mlir
// What is around a part is no zero.
// CHECK-LABEL: @parts_with_ones_around
// CHECK-NOT: nn.concat
// CHECK: nn.add
func.func @parts_with_ones_around(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %z = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %0 = nn.pad constant %a value %z low [0, 8] high [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x16xf32>
  %1 = nn.pad constant %b low [0, 0] high [0, 8] : (tensor<4x8xf32>) -> tensor<4x16xf32>
  %2 = nn.add %0, %1 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  return %2 : tensor<4x16xf32>
}
