// Kernels whose speed is known from other compilers: bench/kernels.py runs them.
func.func @gelu(%x: tensor<96x384xf32>) -> tensor<96x384xf32> {
  %y = nn.gelu %x : (tensor<96x384xf32>) -> tensor<96x384xf32>
  return %y : tensor<96x384xf32>
}
func.func @softmax_96x128(%x: tensor<96x128xf32>) -> tensor<96x128xf32> {
  %y = nn.softmax %x dim 1 : (tensor<96x128xf32>) -> tensor<96x128xf32>
  return %y : tensor<96x128xf32>
}
func.func @softmax_96x1536(%x: tensor<96x1536xf32>) -> tensor<96x1536xf32> {
  %y = nn.softmax %x dim 1 : (tensor<96x1536xf32>) -> tensor<96x1536xf32>
  return %y : tensor<96x1536xf32>
}
func.func @residual_layer_norm_384(%x: tensor<96x384xf32>, %r: tensor<96x384xf32>, %s: tensor<384xf32>, %b: tensor<384xf32>) -> tensor<96x384xf32> {
  %h = nn.add %x, %r : (tensor<96x384xf32>, tensor<96x384xf32>) -> tensor<96x384xf32>
  %y = nn.layer_norm %h, %s bias %b dim 1 epsilon 1.0e-5 : (tensor<96x384xf32>, tensor<384xf32>, tensor<384xf32>) -> tensor<96x384xf32>
  return %y : tensor<96x384xf32>
}
func.func @add_column_mul_row_relu(%x: tensor<96x384xf32>, %c: tensor<96x1xf32>, %r: tensor<384xf32>) -> tensor<96x384xf32> {
  %0 = nn.add %x, %c : (tensor<96x384xf32>, tensor<96x1xf32>) -> tensor<96x384xf32>
  %1 = nn.mul %0, %r : (tensor<96x384xf32>, tensor<384xf32>) -> tensor<96x384xf32>
  %y = nn.relu %1 : (tensor<96x384xf32>) -> tensor<96x384xf32>
  return %y : tensor<96x384xf32>
}
func.func @mean_over_columns(%x: tensor<96x384xf32>) -> tensor<96xf32> {
  %y = nn.reduce mean %x dims [1] : (tensor<96x384xf32>) -> tensor<96xf32>
  return %y : tensor<96xf32>
}
func.func @mean_over_rows(%x: tensor<96x384xf32>) -> tensor<384xf32> {
  %y = nn.reduce mean %x dims [0] : (tensor<96x384xf32>) -> tensor<384xf32>
  return %y : tensor<384xf32>
}
func.func @heads_1x32x12x32(%x: tensor<1x32x12x32xf32>) -> tensor<1x12x32x32xf32> {
  %y = nn.transpose %x [0, 2, 1, 3] : (tensor<1x32x12x32xf32>) -> tensor<1x12x32x32xf32>
  return %y : tensor<1x12x32x32xf32>
}
func.func @transpose_512x384(%x: tensor<512x384xf32>) -> tensor<384x512xf32> {
  %y = nn.transpose %x [1, 0] : (tensor<512x384xf32>) -> tensor<384x512xf32>
  return %y : tensor<384x512xf32>
}
func.func @silu_mul_bf16(%g: tensor<96x1024xbf16>, %u: tensor<96x1024xbf16>) -> tensor<96x1024xbf16> {
  %s = nn.silu %g : (tensor<96x1024xbf16>) -> tensor<96x1024xbf16>
  %y = nn.mul %s, %u : (tensor<96x1024xbf16>, tensor<96x1024xbf16>) -> tensor<96x1024xbf16>
  return %y : tensor<96x1024xbf16>
}
