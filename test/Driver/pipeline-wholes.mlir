// A whole value that the stages of two ranks read, and that takes longer to make than to send, is made by one of them: three products of
// 2000 ns each to start, against 5055 ns for a message of 16 KiB. What runs gives the same as one device, which makes it once, too.
//
// RUN: printf 'mesh: {stage: 2}\npipeline: {axis: stage, microbatches: 4, batch: {x: 0, t: none}}\n' > %t.yaml
// RUN: cleave run %s --plan %t.yaml --check | FileCheck %s
// RUN: cleave run %s --plan %t.yaml --check --executor=program | FileCheck %s
// RUN: cleave run %s --plan %t.yaml --check --emit=staged | FileCheck %s --check-prefix=SAME
// RUN: cleave run %s --plan %t.yaml --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=TOLD
// RUN: printf 'mesh: {data: 2, stage: 2}\npipeline: {axis: stage, microbatches: 2, batch: {x: 0, t: none}}\nshard: [{tensor: x, dims: [data, _]}]\n' > %t.2d.yaml
// RUN: cleave run %s --plan %t.2d.yaml --check | FileCheck %s --check-prefix=SAME
// RUN: cleave run %s --plan %t.2d.yaml --check --executor=program | FileCheck %s --check-prefix=SAME
// RUN: cleave run %s --plan %t.2d.yaml --check --device cuda-emulated | FileCheck %s --check-prefix=SAME
// CHECK: 1 x send over stage 64x64xf32
// CHECK: 4 x send over stage 2x64xf32
// CHECK: check y: ok
// SAME: check y: ok
// TOLD: remark: whole value '{{[^']+}}', 16384 bytes, takes {{6[0-9]+}} ns to make and 5055 ns to send: stage 0 makes it for stages 1
func.func @main(%x: tensor<8x64xf32> {nn.name = "x"}, %t: tensor<64x64xf32> {nn.name = "t"}) -> (tensor<8x64xf32> {nn.name = "y"}) {
  %a = nn.einsum %t, %t "ik,kj->ij" : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = nn.tanh %a : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = nn.einsum %b, %t "ik,kj->ij" : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = nn.tanh %c : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = nn.einsum %d, %t "ik,kj->ij" : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %f = nn.tanh %e : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %g = nn.einsum %x, %f "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %h = nn.tanh %g : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %y = nn.einsum %h, %f "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
