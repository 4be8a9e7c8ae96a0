// Each kind of op that is left to a slow kernel is told once.
//
// RUN: cleave-opt %s --exec-fuse-kernels --verify-diagnostics

func.func @slow(%x: tensor<2x8x8xf32>, %a: tensor<4x8xi32>, %b: tensor<8x4xi32>, %i: tensor<2x8x1xi64>, %u: tensor<2x8x1xf32>, %w: tensor<8x4x3xf32>)
    -> (tensor<2x8x4xf32>, tensor<2x8x2xf32>, tensor<2x8x2xi64>, tensor<4x4xi32>, tensor<2x8x8xf32>, tensor<8xf32>, tensor<2x4x10xf32>) {
  // A pool that has a template, and one that has none.
  %m = nn.pool max %x kernel [1] strides [1] pads_low [0] pads_high [0] dilations [1] : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  // expected-remark @below {{nn.pool runs in a slow kernel: each element walks its window}}
  %0 = nn.pool lp %m kernel [2] strides [2] pads_low [0] pads_high [0] dilations [1] : (tensor<2x8x8xf32>) -> tensor<2x8x4xf32>
  // The same again, no word.
  %1 = nn.pool lp %x kernel [2] strides [2] pads_low [0] pads_high [0] dilations [1] : (tensor<2x8x8xf32>) -> tensor<2x8x4xf32>
  %2 = nn.add %0, %1 : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  // Vectors along a dim that is kept; then along none.
  %r = nn.resize nearest %x coordinates asymmetric rounding floor scales [1.0, 0.5, 1.0] : (tensor<2x8x8xf32>) -> tensor<2x4x8xf32>
  // expected-remark @below {{nn.resize runs in a slow kernel: each element walks its window}}
  %s = nn.resize nearest %r coordinates asymmetric rounding floor scales [1.0, 2.0, 0.5] : (tensor<2x4x8xf32>) -> tensor<2x8x4xf32>
  %t = nn.add %2, %s : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  // expected-remark @below {{nn.top_k runs in a slow kernel: each row is sorted by one thread}}
  %3:2 = nn.top_k %x k 2 dim 2 : (tensor<2x8x8xf32>) -> (tensor<2x8x2xf32>, tensor<2x8x2xi64>)
  // expected-remark @below {{nn.einsum runs in a slow kernel: it is not a product of two float matrices, so each element is summed by a scalar loop}}
  %4 = nn.einsum %a, %b "ik,kj->ij" : (tensor<4x8xi32>, tensor<8x4xi32>) -> tensor<4x4xi32>
  // expected-remark @below {{nn.scatter_elements runs in a slow kernel: updates are applied one after the other}}
  %5 = nn.scatter_elements set %x, %i, %u dim 2 : (tensor<2x8x8xf32>, tensor<2x8x1xi64>, tensor<2x8x1xf32>) -> tensor<2x8x8xf32>
  // expected-remark @below {{nn.reduce runs in a slow kernel: the dims that it walks do not lie together}}
  %6 = nn.reduce sum %x dims [0, 2] : (tensor<2x8x8xf32>) -> tensor<8xf32>
  // expected-remark @below {{nn.conv_transpose runs in a slow kernel: no template computes this convolution, so each element walks its window}}
  %7 = nn.conv_transpose %x, %w strides [1] pads_low [0] pads_high [0] dilations [1] output_pads [0] groups 1 : (tensor<2x8x8xf32>, tensor<8x4x3xf32>) -> tensor<2x4x10xf32>
  return %t, %3#0, %3#1, %4, %5, %6, %7 : tensor<2x8x4xf32>, tensor<2x8x2xf32>, tensor<2x8x2xi64>, tensor<4x4xi32>, tensor<2x8x8xf32>, tensor<8xf32>, tensor<2x4x10xf32>
}
