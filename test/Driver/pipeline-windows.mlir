// Convolutions over split rows, with 7 samples in microbatches of 3, 2 and 2: what neighbors exchange has as many samples as the
// microbatch that it belongs to.
//
// RUN: printf 'mesh: {rows: 2, stage: 2}\npipeline: {axis: stage, microbatches: 3, uneven: true, batch: {x: 0}}\nshard: [{tensor: x, dims: [_, _, rows, _]}, {tensor: y, dims: [_, _, rows, _]}]\n' > %t.yaml
// RUN: cleave run %s --plan %t.yaml --check | FileCheck %s
// RUN: cleave run %s --plan %t.yaml --check --executor=program | FileCheck %s
// RUN: cleave run %s --plan %t.yaml --check --device cuda-emulated | FileCheck %s
// CHECK: check y: ok
func.func @main(%x: tensor<7x2x8x5xf32> {nn.name = "x"}, %w: tensor<2x2x3x3xf32> {nn.name = "w"}) -> (tensor<7x2x8x5xf32> {nn.name = "y"}) {
  %h = nn.conv %x, %w strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 {pipe.stage = 0 : i64} : (tensor<7x2x8x5xf32>, tensor<2x2x3x3xf32>) -> tensor<7x2x8x5xf32>
  %t = nn.tanh %h : (tensor<7x2x8x5xf32>) -> tensor<7x2x8x5xf32>
  %y = nn.conv %t, %w strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 {pipe.stage = 1 : i64} : (tensor<7x2x8x5xf32>, tensor<2x2x3x3xf32>) -> tensor<7x2x8x5xf32>
  return %y : tensor<7x2x8x5xf32>
}
