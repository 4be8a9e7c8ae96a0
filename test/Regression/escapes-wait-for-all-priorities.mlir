// RUN: cleave-opt %s --spmd-shard | FileCheck %s
// RUN: cleave run %s --check --quiet

// The first MLP is asked for before the second. Between them the solver could spread the batch over the idle axis, to
// compute less: but the axis is about to be brought by the second MLP's annotations, whose weights would then be gathered.

#mesh = #spmd.mesh<["model"=2]>
#cols = #spmd.sharding<#mesh, [{}, {"model"}]>
#rows = #spmd.sharding<#mesh, [{"model"}, {}]>
#cols_later = #spmd.sharding<#mesh, [{}, {"model"}p1]>
#rows_later = #spmd.sharding<#mesh, [{"model"}p1, {}]>

// CHECK-LABEL: @main
// CHECK: nn.einsum
// CHECK-NOT: spmd.{{[a-z]}}
// CHECK: spmd.all_reduce sum
// CHECK-NOT: spmd.{{[a-z]}}
// CHECK: spmd.all_reduce sum
// CHECK-NOT: spmd.{{[a-z]}}
// CHECK: return
func.func @main(%x: tensor<8x64xf32>, %a: tensor<64x256xf32, #cols>, %b: tensor<256x64xf32, #rows>,
                %c: tensor<64x256xf32, #cols_later>, %d: tensor<256x64xf32, #rows_later>) -> tensor<8x64xf32> {
  %h1 = nn.einsum %x, %a "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x256xf32, #cols>) -> tensor<8x256xf32>
  %r1 = nn.relu %h1 : (tensor<8x256xf32>) -> tensor<8x256xf32>
  %y1 = nn.einsum %r1, %b "ik,kj->ij" : (tensor<8x256xf32>, tensor<256x64xf32, #rows>) -> tensor<8x64xf32>
  %h2 = nn.einsum %y1, %c "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x256xf32, #cols_later>) -> tensor<8x256xf32>
  %r2 = nn.relu %h2 : (tensor<8x256xf32>) -> tensor<8x256xf32>
  %y2 = nn.einsum %r2, %d "ik,kj->ij" : (tensor<8x256xf32>, tensor<256x64xf32, #rows_later>) -> tensor<8x64xf32>
  return %y2 : tensor<8x64xf32>
}
