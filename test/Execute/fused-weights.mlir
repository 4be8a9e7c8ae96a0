// A weight that holds q, k and v side by side, and a plan that splits it by columns: each of the three is split by its own
// columns, so that every rank has whole heads. Two ranks need one all_reduce, after the output projection, where
// contiguous columns would have to be gathered first. Each rank stores half of each weight.
//
// RUN: cleave run %s --mesh m=2 --shard 'qkv=[_, m]' --shard 'bias=[m]' --shard 'out=[m, _]' --check | FileCheck %s
// RUN: cleave run %s --mesh d=2,m=2 --shard 'x=[d, _, _]' --shard 'qkv=[_, m]' --shard 'out=[m, _]' --check | FileCheck %s --check-prefix=BOTH
// RUN: cleave explain %s --mesh m=2 --shard 'qkv=[_, m]' qkv | FileCheck %s --check-prefix=EXPLAIN
// RUN: cleave shard %s --mesh m=2 --shard 'qkv=[_, m]' --remarks --quiet -o %t.mlir 2>&1 | FileCheck %s --check-prefix=REMARK
//
// A part that the axis does not divide is left to propagation, with a warning; values are the same.
// RUN: cleave run %s --mesh m=12 --shard 'qkv=[_, m]' --check 2>&1 | FileCheck %s --check-prefix=WARN
//
// A real export, with weights that differ from place to place: two all_reduces a layer.
// RUN: cleave run %S/../Models/gpt2_ts17.onnx --plan %S/../../examples/gpt2.yaml --check 2>&1 | FileCheck %s --check-prefix=GPT --implicit-check-not=warning

// CHECK-LABEL: mesh m=2
// CHECK-NEXT: 1 x all_reduce over m 2x4x16xf32
// CHECK-NEXT: sent by a rank: 512 B
// CHECK-NEXT: parameters of a rank: 2.14 kB of 4.29 kB
// CHECK: check y: ok

// BOTH-LABEL: mesh d=2, m=2
// BOTH-NEXT: 1 x all_reduce over m 1x4x16xf32
// BOTH-NEXT: sent by a rank: 256 B
// BOTH: check y: ok

// GPT-LABEL: mesh data=2, model=2
// GPT-NEXT: 4 x all_reduce over model 2x16x64xf32
// GPT-NEXT: sent by a rank: 32.77 kB
// GPT: check logits: ok

// EXPLAIN: qkv at [0, 0]: f32[16, 16] [_, m]
// EXPLAIN: qkv at [0, 16]: f32[16, 16] [_, m]
// EXPLAIN: qkv at [0, 32]: f32[16, 16] [_, m]

// REMARK: remark: the part of 'qkv' at [0, 16] is sharded separately, because the model reads this part of a fused weight separately

// WARN: warning: the part of 'qkv' at [0, 0] has size 16 in dim 1, which axis "m"=12 does not divide: propagation decides how that part is cut
// WARN: check y: ok
module {
  nn.param @qkv : tensor<16x48xf32> = dense<0.125> : tensor<16x48xf32>
  nn.param @bias : tensor<48xf32> = dense<0.5> : tensor<48xf32>
  nn.param @out : tensor<16x16xf32> = dense<0.25> : tensor<16x16xf32>
  func.func @main(%x: tensor<2x4x16xf32> {nn.name = "x"}) -> (tensor<2x4x16xf32> {nn.name = "y"}) {
    %w = nn.load @qkv : tensor<16x48xf32>
    %b = nn.load @bias : tensor<48xf32>
    %0 = nn.einsum %x, %w "bsi,ij->bsj" : (tensor<2x4x16xf32>, tensor<16x48xf32>) -> tensor<2x4x48xf32>
    %1 = nn.add %0, %b : (tensor<2x4x48xf32>, tensor<48xf32>) -> tensor<2x4x48xf32>
    %q = nn.slice %1 starts [0, 0, 0] sizes [2, 4, 16] steps [1, 1, 1] : (tensor<2x4x48xf32>) -> tensor<2x4x16xf32>
    %k = nn.slice %1 starts [0, 0, 16] sizes [2, 4, 16] steps [1, 1, 1] : (tensor<2x4x48xf32>) -> tensor<2x4x16xf32>
    %v = nn.slice %1 starts [0, 0, 32] sizes [2, 4, 16] steps [1, 1, 1] : (tensor<2x4x48xf32>) -> tensor<2x4x16xf32>
    %qh = nn.reshape %q : (tensor<2x4x16xf32>) -> tensor<2x4x4x4xf32>
    %kh = nn.reshape %k : (tensor<2x4x16xf32>) -> tensor<2x4x4x4xf32>
    %vh = nn.reshape %v : (tensor<2x4x16xf32>) -> tensor<2x4x4x4xf32>
    %s = nn.einsum %qh, %kh "bqhd,bkhd->bhqk" : (tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
    %p = nn.softmax %s dim 3 : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
    %a = nn.einsum %p, %vh "bhqk,bkhd->bqhd" : (tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
    %f = nn.reshape %a : (tensor<2x4x4x4xf32>) -> tensor<2x4x16xf32>
    %o = nn.load @out : tensor<16x16xf32>
    %y = nn.einsum %f, %o "bsi,ij->bsj" : (tensor<2x4x16xf32>, tensor<16x16xf32>) -> tensor<2x4x16xf32>
    return %y : tensor<2x4x16xf32>
  }
}
