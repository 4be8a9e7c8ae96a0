// A file without an op of nn: what uneven shards are filled up with, and cut off of, is made of its ops all the same.
//
// RUN: cleave-opt %s --spmd-partition | FileCheck %s
// RUN: cleave-opt %s --spmd-partition --spmd-bundle-collectives | FileCheck %s --check-prefix=BUNDLED

#mesh = #spmd.mesh<["x"=2]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}], uneven>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
module attributes {spmd.mesh = #mesh, spmd.phase = "resharded"} {
  // CHECK-LABEL: func.func @main
  // CHECK: %[[G:.*]] = spmd.all_gather %arg0 {{.*}} -> tensor<4x4xf32>
  // CHECK: nn.slice %[[G]] starts [0, 0] sizes [3, 4]
  // BUNDLED: nn.concat
  func.func @main(%x: tensor<3x4xf32, #rows>, %y: tensor<3x4xf32, #rows>) -> (tensor<3x4xf32, #replicated>, tensor<3x4xf32, #replicated>) {
    %0 = spmd.reshard %x : tensor<3x4xf32, #rows> to tensor<3x4xf32, #replicated>
    %1 = spmd.reshard %y : tensor<3x4xf32, #rows> to tensor<3x4xf32, #replicated>
    return %0, %1 : tensor<3x4xf32, #replicated>, tensor<3x4xf32, #replicated>
  }
}
