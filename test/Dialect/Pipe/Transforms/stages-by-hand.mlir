// Stages that start at nodes that are named.
//
// RUN: cleave-opt %s --split-input-file --pipe-assign-stages="stages=2 starts=*/here flops-per-ns=1 bytes-per-ns=1 launch-ns=0" 2>%t.said | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID < %t.said

// Where it is best would be the middle.
// SAID: note: stage 0: 1 ops, 1024 ns, 256 bytes of parameters, sends 256 bytes in 1 values
// SAID: note: stage 1: 3 ops, 3072 ns, 512 bytes of parameters
// CHECK-LABEL: @the_second_product_starts_a_stage
// CHECK-COUNT-1: nn.einsum {{.*}}pipe.stage = 0 : i64
// CHECK-COUNT-3: nn.einsum {{.*}}pipe.stage = 1 : i64
#here = loc(#nn.node<"/model/here", "MatMul", ["c", "w"], [["d"]]>)
nn.param @a : tensor<8x8xf32> = dense<0.5> : tensor<8x8xf32>
nn.param @b : tensor<8x8xf32> = dense<0.5> : tensor<8x8xf32>
func.func @the_second_product_starts_a_stage(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = nn.load @a : tensor<8x8xf32>
  %b = nn.load @b : tensor<8x8xf32>
  %0 = nn.einsum %x, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = nn.einsum %0, %b "ik,kj->ij" {nn.node = #here} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = nn.einsum %1, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = nn.einsum %2, %b "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// -----

// The mask is used on both sides, and sent by nobody.
// SAID: note: stage 0: 3 ops, {{.*}} sends 1024 bytes in 1 values
// CHECK-LABEL: @the_last_sum_starts_a_stage
#here = loc(#nn.node<"/model/here", "Add", ["c", "m"], [["d"]]>)
func.func @the_last_sum_starts_a_stage(%x: tensor<16x16xf32>, %m: tensor<16xf32>) -> tensor<16x16xf32> {
  %mask = nn.broadcast %m : (tensor<16xf32>) -> tensor<16x16xf32>
  %0 = nn.exp %x : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = nn.add %0, %mask : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = nn.add %1, %mask {nn.node = #here} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}
