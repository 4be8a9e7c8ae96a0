// RUN: cleave-opt %s --nn-stack-experts --split-input-file --verify-diagnostics

#mesh = #spmd.mesh<["e"=2]>
#experts = #spmd.sharding<#mesh, [{"e"}, {}, {}]>
#asked = #spmd.annotation<#experts, loc(unknown), loc(unknown)>
module {
  nn.param @w0 : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
  func.func @there_is_only_one(%x: tensor<3x4xf32>) -> tensor<3x8xf32> {
    %l0 = nn.load @w0 : tensor<4x8xf32>
    %p0 = spmd.pin %l0 "w0" wants #asked : tensor<4x8xf32>
    %h0 = nn.einsum %x, %p0 "nh,hf->nf" : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    return %h0 : tensor<3x8xf32>
  }
}
// expected-error@unknown {{'w0' is not the weight of one of several experts that are computed alike and then summed, put side by side, or added to rows: there is nothing to stack it with}}

// -----

#mesh = #spmd.mesh<["e"=3]>
#experts = #spmd.sharding<#mesh, [{"e"}, {}, {}]>
#asked = #spmd.annotation<#experts, loc(unknown), loc(unknown)>
module {
  nn.param @w0 : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
  nn.param @w1 : tensor<4x8xf32> = dense<2.0> : tensor<4x8xf32>
  func.func @three_do_not_divide_two(%x: tensor<3x4xf32>) -> tensor<3x8xf32> {
    %l0 = nn.load @w0 : tensor<4x8xf32>
    %l1 = nn.load @w1 : tensor<4x8xf32>
    %p0 = spmd.pin %l0 "w0" wants #asked : tensor<4x8xf32>
    %p1 = spmd.pin %l1 "w1" wants #asked : tensor<4x8xf32>
    %h0 = nn.einsum %x, %p0 "nh,hf->nf" : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %h1 = nn.einsum %x, %p1 "nh,hf->nf" : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %y = nn.add %h0, %h1 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    return %y : tensor<3x8xf32>
  }
}
// expected-error@unknown {{'w*' are the weights of 2 experts, which 3 shards do not divide}}
