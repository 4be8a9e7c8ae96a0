// Constants, counted numbers and parameters of one row, asked for in rows on two ranks: the first has it, and the sum is right.
//
// RUN: cleave run %s --check --quiet
// RUN: cleave run %s --check --quiet --executor=program

#mesh = #spmd.mesh<["x"=2]>
#row = #spmd.sharding<#mesh, [{"x"}, {}], uneven>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
module attributes {spmd.mesh = #mesh, spmd.phase = "annotated"} {
  nn.param @w : tensor<1x4xf32> = dense<[[0.5, -1.0, 8.0, 0.25]]> : tensor<1x4xf32>
  func.func @main(%x: tensor<1x4xf32> {nn.name = "x"}) -> (tensor<1x4xf32> {nn.name = "y"}) {
    %0 = nn.constant dense<[[1.0, 2.0, 3.0, 4.0]]> : tensor<1x4xf32> -> tensor<1x4xf32, #row>
    %1 = nn.add %x, %0 : (tensor<1x4xf32>, tensor<1x4xf32, #row>) -> tensor<1x4xf32>
    %2 = nn.load @w : tensor<1x4xf32, #row>
    %3 = nn.mul %1, %2 : (tensor<1x4xf32>, tensor<1x4xf32, #row>) -> tensor<1x4xf32>
    %4 = nn.iota dim 1 start 0 step 1 : tensor<1x4xf32, #row>
    %5 = nn.add %3, %4 : (tensor<1x4xf32>, tensor<1x4xf32, #row>) -> tensor<1x4xf32>
    return %5 : tensor<1x4xf32>
  }
}
