// A column-parallel dot feeds a row-parallel one: only the second needs the ranks to talk.
#mesh = #spmd.mesh<["model"=4]>
#cols = #spmd.sharding<#mesh, [{}, {"model"}]>
#rows = #spmd.sharding<#mesh, [{"model"}, {}]>

func.func @main(%x: tensor<8x64xf32>, %a: tensor<64x256xf32, #cols>, %b: tensor<256x64xf32, #rows>) -> tensor<8x64xf32> {
  %h = nn.einsum %x, %a "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x256xf32, #cols>) -> tensor<8x256xf32>
  %g = nn.gelu %h : (tensor<8x256xf32>) -> tensor<8x256xf32>
  %y = nn.einsum %g, %b "ik,kj->ij" : (tensor<8x256xf32>, tensor<256x64xf32, #rows>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
