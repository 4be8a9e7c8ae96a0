// A rank keeps a slice of its shard of a weight, and one of that: with bf16 it is rounded and packed as it is loaded, on the host and for devices.
//
// RUN: cleave run %s --check --quiet --executor=program
// RUN: cleave run %s --check --quiet --executor=program --precision bf16
// RUN: cleave run %s --check --quiet --device cuda-emulated --precision bf16
// RUN: cleave shard %s --emit optimized | FileCheck %s
// CHECK: %[[SHARD:.*]] = nn.load @w
// CHECK: %[[SLICE:.*]] = spmd.local_slice %[[SHARD]]
// CHECK: nn.einsum %{{.*}}, %[[SLICE]]

#mesh = #spmd.mesh<["a"=2, "b"=3]>
#rows = #spmd.sharding<#mesh, [{"a"}, {}]>
#both = #spmd.sharding<#mesh, [{"a"}, {"b"}]>
#columns = #spmd.sharding<#mesh, [{}, {"a"}]>
#terms = #spmd.sharding<#mesh, [{}, {"b"}], partial = {"a": sum}>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
module attributes {spmd.mesh = #mesh, spmd.phase = "resharded"} {
  nn.param @w : tensor<4x6xf32> = dense<[[0.5, 1.25, -2.0, 3.0, 0.75, -1.5], [1.0, -0.25, 2.5, 0.125, -3.0, 4.0],
                                         [-1.0, 0.375, 1.5, -2.25, 5.0, 0.5], [2.0, -4.5, 0.25, 1.75, -0.625, 3.5]]> : tensor<4x6xf32>
  func.func @main(%x: tensor<5x4xf32, #columns> {nn.name = "x"}) -> (tensor<5x6xf32, #replicated> {nn.name = "y"}) {
    %0 = nn.load @w : tensor<4x6xf32, #rows>
    %1 = spmd.reshard %0 : tensor<4x6xf32, #rows> to tensor<4x6xf32, #both>
    %2 = nn.einsum %x, %1 "mk,kn->mn" : (tensor<5x4xf32, #columns>, tensor<4x6xf32, #both>) -> tensor<5x6xf32, #terms>
    %3 = spmd.reshard %2 : tensor<5x6xf32, #terms> to tensor<5x6xf32, #replicated>
    return %3 : tensor<5x6xf32, #replicated>
  }
}
