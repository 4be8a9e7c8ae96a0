// RUN: cleave-opt %s --nn-verify-form=form=imported
// RUN: cleave-opt %s --split-input-file --nn-verify-form=form=canonical -verify-diagnostics

func.func @a_split_a_transpose_and_a_merge_are_canonical(%x: tensor<2x8x64xf32>) -> tensor<2x32x16xf32> {
  %r = nn.reshape %x : (tensor<2x8x64xf32>) -> tensor<2x8x4x16xf32>
  %t = nn.transpose %r [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %y = nn.reshape %t : (tensor<2x4x8x16xf32>) -> tensor<2x32x16xf32>
  return %y : tensor<2x32x16xf32>
}

// -----

func.func @a_transpose_of_a_transpose_is_one(%x: tensor<2x3x4xf32>) -> tensor<3x4x2xf32> {
  // expected-note @+1 {{the other one is here}}
  %a = nn.transpose %x [1, 0, 2] : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  // expected-error @+1 {{'nn.transpose' op follows another nn.transpose, which could be fused with it}}
  %b = nn.transpose %a [0, 2, 1] : (tensor<3x2x4xf32>) -> tensor<3x4x2xf32>
  return %b : tensor<3x4x2xf32>
}

// -----

func.func @equal_ops_are_one(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // expected-note @+1 {{the other one is here}}
  %a = nn.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error @+1 {{'nn.exp' op computes what another op computes}}
  %b = nn.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}
