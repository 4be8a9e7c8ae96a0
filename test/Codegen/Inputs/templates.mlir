// A kernel or two of each template: docs/generated/kernels.md is the table of what NVIDIA's assembler makes of them (figures.py).

func.func @gelu(%x: tensor<128x3072xf32>, %c: tensor<3072xf32>) -> tensor<128x3072xf32> {
  %0 = nn.add %x, %c : (tensor<128x3072xf32>, tensor<3072xf32>) -> tensor<128x3072xf32>
  %1 = nn.gelu %0 : (tensor<128x3072xf32>) -> tensor<128x3072xf32>
  return %1 : tensor<128x3072xf32>
}

func.func @silu_bf16(%g: tensor<128x11008xbf16>, %u: tensor<128x11008xbf16>) -> tensor<128x11008xbf16> {
  %0 = nn.silu %g : (tensor<128x11008xbf16>) -> tensor<128x11008xbf16>
  %1 = nn.mul %0, %u : (tensor<128x11008xbf16>, tensor<128x11008xbf16>) -> tensor<128x11008xbf16>
  return %1 : tensor<128x11008xbf16>
}

func.func @rotary(%x: tensor<1x32x512x128xbf16>, %c: tensor<1x512x64xbf16>, %s: tensor<1x512x64xbf16>) -> tensor<1x32x512x128xbf16> {
  %y = nn.rotary_embedding %x, %c, %s rotated 128 : (tensor<1x32x512x128xbf16>, tensor<1x512x64xbf16>, tensor<1x512x64xbf16>) -> tensor<1x32x512x128xbf16>
  return %y : tensor<1x32x512x128xbf16>
}

func.func @pool(%x: tensor<8x64x112x112xf32>) -> tensor<8x64x56x56xf32> {
  %y = nn.pool max %x kernel [3, 3] strides [2, 2] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] : (tensor<8x64x112x112xf32>) -> tensor<8x64x56x56xf32>
  return %y : tensor<8x64x56x56xf32>
}

func.func @resize(%x: tensor<2x64x64x32xf32>) -> tensor<2x128x128x32xf32> {
  %y = nn.resize linear %x coordinates half_pixel rounding floor scales [1.0, 2.0, 2.0, 1.0] : (tensor<2x64x64x32xf32>) -> tensor<2x128x128x32xf32>
  return %y : tensor<2x128x128x32xf32>
}

func.func @scatter_few(%x: tensor<1024x768xf32>, %i: tensor<16x1xi64>, %u: tensor<16x768xf32>) -> tensor<1024x768xf32> {
  %y = nn.scatter_nd add %x, %i, %u : (tensor<1024x768xf32>, tensor<16x1xi64>, tensor<16x768xf32>) -> tensor<1024x768xf32>
  return %y : tensor<1024x768xf32>
}

func.func @scatter_add(%x: tensor<30522x768xf32>, %i: tensor<4096x1xi64>, %u: tensor<4096x768xf32>) -> tensor<30522x768xf32> {
  %y = nn.scatter_nd add %x, %i, %u : (tensor<30522x768xf32>, tensor<4096x1xi64>, tensor<4096x768xf32>) -> tensor<30522x768xf32>
  return %y : tensor<30522x768xf32>
}

func.func @scatter_set(%x: tensor<8192x1024xbf16>, %i: tensor<512x1xi64>, %u: tensor<512x1024xbf16>) -> tensor<8192x1024xbf16> {
  %y = nn.scatter_nd set %x, %i, %u : (tensor<8192x1024xbf16>, tensor<512x1xi64>, tensor<512x1024xbf16>) -> tensor<8192x1024xbf16>
  return %y : tensor<8192x1024xbf16>
}

func.func @scatter_elements(%x: tensor<64x50257xf32>, %i: tensor<64x4096xi64>, %u: tensor<64x4096xf32>) -> tensor<64x50257xf32> {
  %y = nn.scatter_elements set %x, %i, %u dim 1 : (tensor<64x50257xf32>, tensor<64x4096xi64>, tensor<64x4096xf32>) -> tensor<64x50257xf32>
  return %y : tensor<64x50257xf32>
}

func.func @softmax_128(%x: tensor<1536x128xf32>) -> tensor<1536x128xf32> {
  %y = nn.softmax %x dim 1 : (tensor<1536x128xf32>) -> tensor<1536x128xf32>
  return %y : tensor<1536x128xf32>
}

func.func @softmax_197(%x: tensor<2364x197xf32>) -> tensor<2364x197xf32> {
  %y = nn.softmax %x dim 1 : (tensor<2364x197xf32>) -> tensor<2364x197xf32>
  return %y : tensor<2364x197xf32>
}

func.func @softmax_50257(%x: tensor<128x50257xf32>) -> tensor<128x50257xf32> {
  %y = nn.softmax %x dim 1 : (tensor<128x50257xf32>) -> tensor<128x50257xf32>
  return %y : tensor<128x50257xf32>
}

func.func @residual_layer_norm(%x: tensor<1024x768xf32>, %r: tensor<1024x768xf32>, %s: tensor<768xf32>, %b: tensor<768xf32>) -> tensor<1024x768xf32> {
  %0 = nn.add %x, %r : (tensor<1024x768xf32>, tensor<1024x768xf32>) -> tensor<1024x768xf32>
  %y = nn.layer_norm %0, %s bias %b dim 1 epsilon 1.0e-5 : (tensor<1024x768xf32>, tensor<768xf32>, tensor<768xf32>) -> tensor<1024x768xf32>
  return %y : tensor<1024x768xf32>
}

func.func @rms_norm_bf16(%x: tensor<128x4096xbf16>, %s: tensor<4096xbf16>) -> tensor<128x4096xbf16> {
  %y = nn.rms_norm %x, %s dim 1 epsilon 1.0e-5 : (tensor<128x4096xbf16>, tensor<4096xbf16>) -> tensor<128x4096xbf16>
  return %y : tensor<128x4096xbf16>
}

func.func @columns(%x: tensor<640x384xf32>) -> tensor<384xf32> {
  %y = nn.reduce sum %x dims [0] : (tensor<640x384xf32>) -> tensor<384xf32>
  return %y : tensor<384xf32>
}

func.func @turned(%x: tensor<12x128x64xf32>) -> tensor<12x64x128xf32> {
  %0 = nn.transpose %x [0, 2, 1] : (tensor<12x128x64xf32>) -> tensor<12x64x128xf32>
  return %0 : tensor<12x64x128xf32>
}

func.func @cumsum(%x: tensor<64x4096xf32>) -> tensor<64x4096xf32> {
  %y = nn.cumsum %x dim 1 : (tensor<64x4096xf32>) -> tensor<64x4096xf32>
  return %y : tensor<64x4096xf32>
}

func.func @top_k(%x: tensor<64x4096xf32>) -> (tensor<64x50xf32>, tensor<64x50xi64>) {
  %v, %i = nn.top_k %x k 50 dim 1 : (tensor<64x4096xf32>) -> (tensor<64x50xf32>, tensor<64x50xi64>)
  return %v, %i : tensor<64x50xf32>, tensor<64x50xi64>
}

func.func @product(%x: tensor<512x768xf32>, %w: tensor<768x3072xf32>, %c: tensor<3072xf32>) -> tensor<512x3072xf32> {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<512x768xf32>, tensor<768x3072xf32>) -> tensor<512x3072xf32>
  %1 = nn.add %0, %c : (tensor<512x3072xf32>, tensor<3072xf32>) -> tensor<512x3072xf32>
  return %1 : tensor<512x3072xf32>
}

func.func @attention(%q: tensor<2x12x512x64xf32>, %k: tensor<2x12x512x64xf32>, %v: tensor<2x12x512x64xf32>) -> tensor<2x12x512x64xf32> {
  %y = nn.attention %q, %k, %v scale 0.125 causal : (tensor<2x12x512x64xf32>, tensor<2x12x512x64xf32>, tensor<2x12x512x64xf32>) -> tensor<2x12x512x64xf32>
  return %y : tensor<2x12x512x64xf32>
}

func.func @attention_48(%q: tensor<16x12x48x64xf16>, %k: tensor<16x12x512x64xf16>, %v: tensor<16x12x512x64xf16>) -> tensor<16x12x48x64xf16> {
  %y = nn.attention %q, %k, %v scale 0.125 : (tensor<16x12x48x64xf16>, tensor<16x12x512x64xf16>, tensor<16x12x512x64xf16>) -> tensor<16x12x48x64xf16>
  return %y : tensor<16x12x48x64xf16>
}

func.func @attention_part(%q: tensor<1x12x32x64xbf16>, %k: tensor<1x12x4096x64xbf16>, %v: tensor<1x12x4096x64xbf16>) -> (tensor<1x12x32x16x64xf32>, tensor<1x12x32x16xf32>) {
  %s, %l = exec.partial_attention %q, %k, %v part 256 scale 0.125 : (tensor<1x12x32x64xbf16>, tensor<1x12x4096x64xbf16>, tensor<1x12x4096x64xbf16>) -> (tensor<1x12x32x16x64xf32>, tensor<1x12x32x16xf32>)
  return %s, %l : tensor<1x12x32x16x64xf32>, tensor<1x12x32x16xf32>
}

func.func @attention_bf16(%q: tensor<1x32x512x128xbf16>, %k: tensor<1x8x512x128xbf16>, %v: tensor<1x8x512x128xbf16>) -> tensor<1x32x512x128xbf16> {
  %y = nn.attention %q, %k, %v scale 0.088 causal : (tensor<1x32x512x128xbf16>, tensor<1x8x512x128xbf16>, tensor<1x8x512x128xbf16>) -> tensor<1x32x512x128xbf16>
  return %y : tensor<1x32x512x128xbf16>
}

func.func @decode(%q: tensor<1x32x1x128xbf16>, %k: tensor<1x8x4096x128xbf16>, %v: tensor<1x8x4096x128xbf16>) -> tensor<1x32x1x128xbf16> {
  %y = nn.attention %q, %k, %v scale 0.088 : (tensor<1x32x1x128xbf16>, tensor<1x8x4096x128xbf16>, tensor<1x8x4096x128xbf16>) -> tensor<1x32x1x128xbf16>
  return %y : tensor<1x32x1x128xbf16>
}
