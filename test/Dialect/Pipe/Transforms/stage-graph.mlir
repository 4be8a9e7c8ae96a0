// What is counted of ops and values when stages are split. Rates of one flop and one byte a nanosecond make times plain: an
// op on tensors of 16x16 that reads two and writes one takes 3072 ns.
//
// RUN: cleave-opt %s --pipe-assign-stages="stages=2 flops-per-ns=1 bytes-per-ns=1 launch-ns=0 link-bytes-per-ns=1 link-ns=0" 2>%t.said | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID < %t.said

// The sum with the mask is what a stage sends; the mask, made of an argument by movement alone, each makes by itself.
// SAID: note: stage 0: 3 ops, 5120 ns, 0 bytes of parameters, sends 1024 bytes in 1 values
// SAID: note: stage 1: 1 ops, 3072 ns
// CHECK-LABEL: @cheap_masks_are_not_sent
func.func @cheap_masks_are_not_sent(%x: tensor<16x16xf32>, %m: tensor<16xf32>) -> tensor<16x16xf32> {
  %mask = nn.broadcast %m : (tensor<16xf32>) -> tensor<16x16xf32>
  %0 = nn.exp %x : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = nn.add %0, %mask : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = nn.add %1, %mask : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}
