// One transformer layer, asked for in three ways: what it must send, and nothing else. Each is sharded, and runs on all ranks.
//
// Tensor parallel: one all-reduce after attention, one after the feed-forward part.
// RUN: cleave shard %s --mesh m=4 --shard 'w{q,k,v}=[_, m]' --shard 'wo=[m, _]' --shard 'up=[_, m]' --shard 'down=[m, _]' | FileCheck %s --check-prefix=TENSOR
// RUN: cleave run %s --mesh m=4 --shard 'w{q,k,v}=[_, m]' --shard 'wo=[m, _]' --shard 'up=[_, m]' --shard 'down=[m, _]' --check | FileCheck %s --check-prefix=EQUAL
//
// The same with the sequence split between the dots: two all-gathers and two reduce-scatters, as many bytes in all.
// RUN: cleave shard %s --mesh m=4 --shard '{x,y}=[_, m, _]' --shard 'w{q,k,v}=[_, m]' --shard 'wo=[m, _]' --shard 'up=[_, m]' --shard 'down=[m, _]' | FileCheck %s --check-prefix=SEQUENCE
// RUN: cleave run %s --mesh m=4 --shard '{x,y}=[_, m, _]' --shard 'w{q,k,v}=[_, m]' --shard 'wo=[m, _]' --shard 'up=[_, m]' --shard 'down=[m, _]' --check | FileCheck %s --check-prefix=EQUAL
//
// Data parallel, forward: no communication at all.
// RUN: cleave shard %s --mesh d=2 --shard 'x=[d, _, _]' | FileCheck %s --check-prefix=DATA
// RUN: cleave run %s --mesh d=2 --shard 'x=[d, _, _]' --check | FileCheck %s --check-prefix=EQUAL

// EQUAL: check y: ok

// TENSOR-LABEL: @main
// TENSOR-NOT: = spmd.{{all|reduce|permute}}
// TENSOR: spmd.all_reduce sum {{.*}} over {"m"} : tensor<2x8x16xf32>
// TENSOR-NOT: = spmd.{{all|reduce|permute}}
// TENSOR: spmd.all_reduce sum {{.*}} over {"m"} : tensor<2x8x16xf32>
// TENSOR-NOT: = spmd.{{all|reduce|permute}}

// SEQUENCE-LABEL: @main
// SEQUENCE-NOT: = spmd.{{all|reduce|permute}}
// SEQUENCE: spmd.all_gather {{.*}} dims [{}, {"m"}, {}] : (tensor<2x2x16xf32>) -> tensor<2x8x16xf32>
// SEQUENCE-NOT: = spmd.{{all|reduce|permute}}
// SEQUENCE: spmd.reduce_scatter sum {{.*}} dims [{}, {"m"}, {}] : (tensor<2x8x16xf32>) -> tensor<2x2x16xf32>
// SEQUENCE-NOT: = spmd.{{all|reduce|permute}}
// SEQUENCE: spmd.all_gather {{.*}} dims [{}, {"m"}, {}] : (tensor<2x2x16xf32>) -> tensor<2x8x16xf32>
// SEQUENCE-NOT: = spmd.{{all|reduce|permute}}
// SEQUENCE: spmd.reduce_scatter sum {{.*}} dims [{}, {"m"}, {}] : (tensor<2x8x16xf32>) -> tensor<2x2x16xf32>
// SEQUENCE-NOT: = spmd.{{all|reduce|permute}}

// DATA-LABEL: @main
// DATA-SAME: tensor<1x8x16xf32>
// DATA-NOT: = spmd.{{all|reduce|permute}}
func.func @main(%x: tensor<2x8x16xf32> {nn.name = "x"}, %s: tensor<16xf32>, %t: tensor<16xf32>, %wq: tensor<16x16xf32> {nn.name = "wq"},
                %wk: tensor<16x16xf32> {nn.name = "wk"}, %wv: tensor<16x16xf32> {nn.name = "wv"}, %wo: tensor<16x16xf32> {nn.name = "wo"},
                %up: tensor<16x64xf32> {nn.name = "up"}, %down: tensor<64x16xf32> {nn.name = "down"})
    -> (tensor<2x8x16xf32> {nn.name = "y"}) {
  %n = nn.layer_norm %x, %s bias %t dim 2 epsilon 1.0e-5 : (tensor<2x8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
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
  %r = nn.add %x, %a3 : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %m = nn.layer_norm %r, %s bias %t dim 2 epsilon 1.0e-5 : (tensor<2x8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  %u = nn.einsum %m, %up "bsi,ij->bsj" : (tensor<2x8x16xf32>, tensor<16x64xf32>) -> tensor<2x8x64xf32>
  %g = nn.tanh %u : (tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %d = nn.einsum %g, %down "bsi,ij->bsj" : (tensor<2x8x64xf32>, tensor<64x16xf32>) -> tensor<2x8x16xf32>
  %y = nn.add %r, %d : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}
