#mesh = #spmd.mesh<["a"=2, "b"=4], devices=[7, 6, 5, 4, 3, 2, 1, 0]>
module attributes {spmd.mesh = #mesh} {
  func.func @main(%x: tensor<16x32xf32, #spmd.sharding<#mesh, [{"a"}, {"b"}]>> {nn.name = "x"},
                  %w: tensor<32x8xf32, #spmd.sharding<#mesh, [{"b", "a"}, {}]>> {nn.name = "w"},
                  %v: tensor<64xf32, #spmd.sharding<#mesh, [{"b":(1)2}]>> {nn.name = "v"})
      -> (tensor<16x8xf32> {nn.name = "y"}, tensor<64xf32> {nn.name = "u"}) {
    %y = nn.einsum %x, %w "ik,kj->ij" : (tensor<16x32xf32, #spmd.sharding<#mesh, [{"a"}, {"b"}]>>, tensor<32x8xf32, #spmd.sharding<#mesh, [{"b", "a"}, {}]>>) -> tensor<16x8xf32>
    %u = nn.neg %v : (tensor<64xf32, #spmd.sharding<#mesh, [{"b":(1)2}]>>) -> tensor<64xf32>
    return %y, %u : tensor<16x8xf32>, tensor<64xf32>
  }
}
