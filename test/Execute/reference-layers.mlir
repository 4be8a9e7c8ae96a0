// What the layers of a transformer must send, and nothing else. Each case is sharded, and runs on all ranks.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: cleave-opt %t/mlp.mlir --spmd-shard | FileCheck %t/mlp.mlir && cleave run %t/mlp.mlir --check | FileCheck %s --check-prefix=EQUAL
// RUN: cleave-opt %t/layer.mlir --spmd-shard | FileCheck %t/layer.mlir && cleave run %t/layer.mlir --check | FileCheck %s --check-prefix=EQUAL
// RUN: cleave-opt %t/sequence.mlir --spmd-shard | FileCheck %t/sequence.mlir && cleave run %t/sequence.mlir --check | FileCheck %s --check-prefix=EQUAL
// RUN: cleave-opt %t/data.mlir --spmd-shard | FileCheck %t/data.mlir && cleave run %t/data.mlir --check | FileCheck %s --check-prefix=EQUAL

// EQUAL: check result0: ok

//--- mlp.mlir
// Two layers, column then row: one all-reduce of the activation, 2(p-1)/p of it sent.
#mesh = #spmd.mesh<["m"=4]>
#col = #spmd.sharding<#mesh, [{}, {"m"}]>
#row = #spmd.sharding<#mesh, [{"m"}, {}]>
#vec = #spmd.sharding<#mesh, [{"m"}]>
// CHECK-LABEL: @column_then_row_needs_one_all_reduce
func.func @column_then_row_needs_one_all_reduce(%x: tensor<2x8x16xf32>, %a: tensor<16x64xf32, #col>, %b: tensor<64x16xf32, #row>) -> tensor<2x8x16xf32> {
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  // CHECK: spmd.all_reduce sum {{.*}} over {"m"} : tensor<2x8x16xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  %0 = nn.einsum %x, %a "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x64xf32, #col>) -> tensor<2x8x64xf32>
  %1 = nn.tanh %0 : (tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %2 = nn.einsum %1, %b "bsi,ij->bsj" : (tensor<2x8x64xf32>, tensor<64x16xf32, #row>) -> tensor<2x8x16xf32>
  return %2 : tensor<2x8x16xf32>
}

//--- layer.mlir
// A transformer layer, tensor parallel: one all-reduce after attention, one after the feed-forward part.
#mesh = #spmd.mesh<["m"=4]>
#col = #spmd.sharding<#mesh, [{}, {"m"}]>
#row = #spmd.sharding<#mesh, [{"m"}, {}]>
#vec = #spmd.sharding<#mesh, [{"m"}]>
// CHECK-LABEL: @a_transformer_layer_needs_two_all_reduces
func.func @a_transformer_layer_needs_two_all_reduces(%x: tensor<2x8x16xf32>, %s: tensor<16xf32>, %t: tensor<16xf32>, %wq: tensor<16x16xf32, #col>, %wk: tensor<16x16xf32, #col>, %wv: tensor<16x16xf32, #col>, %wo: tensor<16x16xf32, #row>, %up: tensor<16x64xf32, #col>, %down: tensor<64x16xf32, #row>) -> tensor<2x8x16xf32> {
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  // CHECK: spmd.all_reduce sum {{.*}} over {"m"} : tensor<2x8x16xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  // CHECK: spmd.all_reduce sum {{.*}} over {"m"} : tensor<2x8x16xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  %n = nn.layer_norm %x, %s bias %t dim 2 epsilon 1.0e-5 : (tensor<2x8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  %q0 = nn.einsum %n, %wq "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x16xf32, #col>) -> tensor<2x8x16xf32>
  %k0 = nn.einsum %n, %wk "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x16xf32, #col>) -> tensor<2x8x16xf32>
  %v0 = nn.einsum %n, %wv "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x16xf32, #col>) -> tensor<2x8x16xf32>
  %q1 = nn.reshape %q0 : (tensor<2x8x16xf32>) -> tensor<2x8x4x4xf32>
  %k1 = nn.reshape %k0 : (tensor<2x8x16xf32>) -> tensor<2x8x4x4xf32>
  %v1 = nn.reshape %v0 : (tensor<2x8x16xf32>) -> tensor<2x8x4x4xf32>
  %q2 = nn.transpose %q1 [0, 2, 1, 3] : (tensor<2x8x4x4xf32>) -> tensor<2x4x8x4xf32>
  %k2 = nn.transpose %k1 [0, 2, 1, 3] : (tensor<2x8x4x4xf32>) -> tensor<2x4x8x4xf32>
  %v2 = nn.transpose %v1 [0, 2, 1, 3] : (tensor<2x8x4x4xf32>) -> tensor<2x4x8x4xf32>
  %a0 = nn.attention %q2, %k2, %v2 scale 0.5 causal : (tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>) -> tensor<2x4x8x4xf32>
  %a1 = nn.transpose %a0 [0, 2, 1, 3] : (tensor<2x4x8x4xf32>) -> tensor<2x8x4x4xf32>
  %a2 = nn.reshape %a1 : (tensor<2x8x4x4xf32>) -> tensor<2x8x16xf32>
  %a3 = nn.einsum %a2, %wo "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x16xf32, #row>) -> tensor<2x8x16xf32>
  %r = nn.add %x, %a3 : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %m = nn.layer_norm %r, %s bias %t dim 2 epsilon 1.0e-5 : (tensor<2x8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  %u = nn.einsum %m, %up "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x64xf32, #col>) -> tensor<2x8x64xf32>
  %g = nn.tanh %u : (tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %d = nn.einsum %g, %down "bsi,ij->bsj" : (tensor<2x8x64xf32>, tensor<64x16xf32, #row>) -> tensor<2x8x16xf32>
  %y = nn.add %r, %d : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}

//--- sequence.mlir
// The same with the sequence cut between the dots: two all-gathers and two reduce-scatters, as many bytes in all.
#mesh = #spmd.mesh<["m"=4]>
#col = #spmd.sharding<#mesh, [{}, {"m"}]>
#row = #spmd.sharding<#mesh, [{"m"}, {}]>
#vec = #spmd.sharding<#mesh, [{"m"}]>
#seq = #spmd.sharding<#mesh, [{}, {"m"}, {}]>
// CHECK-LABEL: @sequence_parallel_gathers_and_scatters
func.func @sequence_parallel_gathers_and_scatters(%x: tensor<2x8x16xf32, #seq>, %s: tensor<16xf32>, %t: tensor<16xf32>, %wq: tensor<16x16xf32, #col>, %wk: tensor<16x16xf32, #col>, %wv: tensor<16x16xf32, #col>, %wo: tensor<16x16xf32, #row>, %up: tensor<16x64xf32, #col>, %down: tensor<64x16xf32, #row>) -> tensor<2x8x16xf32, #seq> {
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  // CHECK: spmd.all_gather {{.*}} dims [{}, {"m"}, {}] : (tensor<2x2x16xf32>) -> tensor<2x8x16xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  // CHECK: spmd.reduce_scatter sum {{.*}} dims [{}, {"m"}, {}] : (tensor<2x8x16xf32>) -> tensor<2x2x16xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  // CHECK: spmd.all_gather {{.*}} dims [{}, {"m"}, {}] : (tensor<2x2x16xf32>) -> tensor<2x8x16xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  // CHECK: spmd.reduce_scatter sum {{.*}} dims [{}, {"m"}, {}] : (tensor<2x8x16xf32>) -> tensor<2x2x16xf32>
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  %n = nn.layer_norm %x, %s bias %t dim 2 epsilon 1.0e-5 : (tensor<2x8x16xf32, #seq>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  %q0 = nn.einsum %n, %wq "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x16xf32, #col>) -> tensor<2x8x16xf32>
  %k0 = nn.einsum %n, %wk "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x16xf32, #col>) -> tensor<2x8x16xf32>
  %v0 = nn.einsum %n, %wv "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x16xf32, #col>) -> tensor<2x8x16xf32>
  %q1 = nn.reshape %q0 : (tensor<2x8x16xf32>) -> tensor<2x8x4x4xf32>
  %k1 = nn.reshape %k0 : (tensor<2x8x16xf32>) -> tensor<2x8x4x4xf32>
  %v1 = nn.reshape %v0 : (tensor<2x8x16xf32>) -> tensor<2x8x4x4xf32>
  %q2 = nn.transpose %q1 [0, 2, 1, 3] : (tensor<2x8x4x4xf32>) -> tensor<2x4x8x4xf32>
  %k2 = nn.transpose %k1 [0, 2, 1, 3] : (tensor<2x8x4x4xf32>) -> tensor<2x4x8x4xf32>
  %v2 = nn.transpose %v1 [0, 2, 1, 3] : (tensor<2x8x4x4xf32>) -> tensor<2x4x8x4xf32>
  %a0 = nn.attention %q2, %k2, %v2 scale 0.5 causal : (tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>) -> tensor<2x4x8x4xf32>
  %a1 = nn.transpose %a0 [0, 2, 1, 3] : (tensor<2x4x8x4xf32>) -> tensor<2x8x4x4xf32>
  %a2 = nn.reshape %a1 : (tensor<2x8x4x4xf32>) -> tensor<2x8x16xf32>
  %a3 = nn.einsum %a2, %wo "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x16xf32, #row>) -> tensor<2x8x16xf32>
  %r = nn.add %x, %a3 : (tensor<2x8x16xf32, #seq>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %m = nn.layer_norm %r, %s bias %t dim 2 epsilon 1.0e-5 : (tensor<2x8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  %u = nn.einsum %m, %up "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x64xf32, #col>) -> tensor<2x8x64xf32>
  %g = nn.tanh %u : (tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %d = nn.einsum %g, %down "bsi,ij->bsj" : (tensor<2x8x64xf32>, tensor<64x16xf32, #row>) -> tensor<2x8x16xf32>
  %y = nn.add %r, %d : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32, #seq>
  return %y : tensor<2x8x16xf32, #seq>
}

//--- data.mlir
// Data parallel, forward: no communication at all.
#mesh = #spmd.mesh<["d"=2]>
#batch = #spmd.sharding<#mesh, [{"d"}, {}, {}]>
// CHECK-LABEL: @data_parallel_needs_nothing
func.func @data_parallel_needs_nothing(%x: tensor<2x8x16xf32, #batch>, %s: tensor<16xf32>, %t: tensor<16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>, %wo: tensor<16x16xf32>, %up: tensor<16x64xf32>, %down: tensor<64x16xf32>) -> tensor<2x8x16xf32> {
  // CHECK-NOT: = spmd.{{all|reduce|permute}}
  %n = nn.layer_norm %x, %s bias %t dim 2 epsilon 1.0e-5 : (tensor<2x8x16xf32, #batch>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  %q0 = nn.einsum %n, %wq "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
  %k0 = nn.einsum %n, %wk "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
  %v0 = nn.einsum %n, %wv "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
  %q1 = nn.reshape %q0 : (tensor<2x8x16xf32>) -> tensor<2x8x4x4xf32>
  %k1 = nn.reshape %k0 : (tensor<2x8x16xf32>) -> tensor<2x8x4x4xf32>
  %v1 = nn.reshape %v0 : (tensor<2x8x16xf32>) -> tensor<2x8x4x4xf32>
  %q2 = nn.transpose %q1 [0, 2, 1, 3] : (tensor<2x8x4x4xf32>) -> tensor<2x4x8x4xf32>
  %k2 = nn.transpose %k1 [0, 2, 1, 3] : (tensor<2x8x4x4xf32>) -> tensor<2x4x8x4xf32>
  %v2 = nn.transpose %v1 [0, 2, 1, 3] : (tensor<2x8x4x4xf32>) -> tensor<2x4x8x4xf32>
  %a0 = nn.attention %q2, %k2, %v2 scale 0.5 causal : (tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>) -> tensor<2x4x8x4xf32>
  %a1 = nn.transpose %a0 [0, 2, 1, 3] : (tensor<2x4x8x4xf32>) -> tensor<2x8x4x4xf32>
  %a2 = nn.reshape %a1 : (tensor<2x8x4x4xf32>) -> tensor<2x8x16xf32>
  %a3 = nn.einsum %a2, %wo "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
  %r = nn.add %x, %a3 : (tensor<2x8x16xf32, #batch>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %m = nn.layer_norm %r, %s bias %t dim 2 epsilon 1.0e-5 : (tensor<2x8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  %u = nn.einsum %m, %up "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x64xf32>) -> tensor<2x8x64xf32>
  %g = nn.tanh %u : (tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %d = nn.einsum %g, %down "bsi,ij->bsj" : (tensor<2x8x64xf32>, tensor<64x16xf32>) -> tensor<2x8x16xf32>
  %y = nn.add %r, %d : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}
