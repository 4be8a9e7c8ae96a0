// Attention whose gradients run in parts, and why. What a trained mask wants are the gradients of all scores.
//
// RUN: cleave-opt %s --split-input-file --nn-differentiate --exec-recognize-attention=few-bytes=0 --verify-diagnostics -o /dev/null

func.func @main(%q: tensor<2x4x6x8xf32> {nn.name = "q", nn.role = "parameter"}, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %b: tensor<4x6x6xf32> {nn.name = "b", nn.role = "parameter"}) -> (tensor<f32> {nn.name = "loss"}) {
  %0 = nn.einsum %q, %k "bhid,bhjd->bhij" : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  %1 = nn.add %0, %b : (tensor<2x4x6x6xf32>, tensor<4x6x6xf32>) -> tensor<2x4x6x6xf32>
  // expected-remark @below {{this attention runs in parts, its scores stored: something else is done to the gradients of scores}}
  %3 = nn.softmax %1 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %4 = nn.einsum %3, %v "bhij,bhjd->bhid" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %w = nn.mul %4, %4 : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %loss = nn.reduce sum %w dims [0, 1, 2, 3] : (tensor<2x4x6x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

