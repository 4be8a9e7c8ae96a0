func.func @main(%x: tensor<8xf32> {nn.name = "x"}) -> tensor<8xf32> {
  %y = nn.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
