// Where a function is cut into stages. Rates of one flop and one byte a nanosecond make times plain: a product of
// tensors of 8x8 takes 1024 ns, an op of the same shape that reads one and writes one 512.
//
// RUN: cleave-opt %s --split-input-file --pipe-assign-stages="stages=2 flops-per-ns=1 bytes-per-ns=1 launch-ns=0 link-bytes-per-ns=1 link-ns=0" 2>%t.said | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID < %t.said
// RUN: cleave-opt %s --split-input-file --pipe-assign-stages="stages=2 starts=*/third flops-per-ns=1 bytes-per-ns=1 launch-ns=0" 2>%t.hand | FileCheck %s --check-prefix=HAND
// RUN: FileCheck %s --check-prefix=SAID-HAND < %t.hand

// Two products on each side; the parameters are of the stages that use them.
// SAID: remark: 2 stages: the slowest takes 2048 ns, no cuts are faster than 2048 ns
// SAID: note: stage 0: 2 ops, 2048 ns, 512 bytes of parameters, sends 256 bytes in 1 values
// SAID: note: stage 1: 2 ops, 2048 ns, 512 bytes of parameters
// CHECK-LABEL: @four_products_are_halved
// CHECK-COUNT-2: nn.einsum {{.*}}pipe.stage = 0 : i64
// CHECK-COUNT-2: nn.einsum {{.*}}pipe.stage = 1 : i64
// By hand: from the node's first op on.
// SAID-HAND: note: stage 0: 2 ops, 2048 ns, 512 bytes of parameters, sends 256 bytes in 1 values
// HAND-LABEL: @four_products_are_halved
// HAND-COUNT-2: nn.einsum {{.*}}pipe.stage = 0 : i64
// HAND-COUNT-2: nn.einsum {{.*}}pipe.stage = 1 : i64
#third = loc(#nn.node<"/model/third", "MatMul", ["c", "w"], [["d"]]>)
nn.param @a : tensor<8x8xf32> = dense<0.5> : tensor<8x8xf32>
nn.param @b : tensor<8x8xf32> = dense<0.5> : tensor<8x8xf32>
func.func @four_products_are_halved(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = nn.load @a : tensor<8x8xf32>
  %b = nn.load @b : tensor<8x8xf32>
  %0 = nn.einsum %x, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = nn.einsum %0, %b "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = nn.einsum %1, %a "ik,kj->ij" {nn.node = #third} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = nn.einsum %2, %b "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// -----

// The sum with the mask is what a stage sends; the mask, made of an argument by movement alone, each makes by itself.
// SAID: note: stage 0: 3 ops, 5120 ns, 0 bytes of parameters, sends 1024 bytes in 1 values
// SAID: note: stage 1: 1 ops, 3072 ns
// CHECK-LABEL: @cheap_masks_are_not_sent
// SAID-HAND: note: stage 0: 3 ops, {{.*}} sends 1024 bytes in 1 values
// HAND-LABEL: @cheap_masks_are_not_sent
#third = loc(#nn.node<"/model/third", "Add", ["c", "m"], [["d"]]>)
func.func @cheap_masks_are_not_sent(%x: tensor<16x16xf32>, %m: tensor<16xf32>) -> tensor<16x16xf32> {
  %mask = nn.broadcast %m : (tensor<16xf32>) -> tensor<16x16xf32>
  %0 = nn.exp %x : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = nn.add %0, %mask : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = nn.add %1, %mask {nn.node = #third} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}
