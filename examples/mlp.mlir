// A perceptron of two layers, as it is imported: no sharding yet. docs/generated/phases.md shows what becomes of it.
func.func @main(%x: tensor<8x64xf32> {nn.name = "x"}, %a: tensor<64x256xf32> {nn.name = "a"}, %b: tensor<256x64xf32> {nn.name = "b"})
    -> (tensor<8x64xf32> {nn.name = "y"}) {
  %h = nn.einsum %x, %a "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x256xf32>) -> tensor<8x256xf32>
  %g = nn.gelu %h : (tensor<8x256xf32>) -> tensor<8x256xf32>
  %y = nn.einsum %g, %b "ik,kj->ij" : (tensor<8x256xf32>, tensor<256x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
