// What pays depends on the device: while a kernel starts, a GPU moves 300 times as many bytes as a core of the host does.
//
// RUN: cleave-opt %s --exec-fuse-kernels | FileCheck %s --check-prefix=HOST
// RUN: cleave-opt %s --exec-fuse-kernels=for-devices | FileCheck %s --check-prefix=DEVICE

// A row of 64 sums, spread over 1024 rows, would be computed 1024 times: 65472 x 2 x 2 bytes on a core, against a launch of 16384; of an H100
// 65472 x 2 x 0.5, against 4.6 MB.
// HOST-LABEL: @spread
// HOST-COUNT-2: exec.fused
// DEVICE-LABEL: @spread
// DEVICE-COUNT-1: exec.fused
// DEVICE-NOT: exec.fused
func.func @spread(%x: tensor<64xf32>, %y: tensor<64xf32>, %z: tensor<1024x64xf32>) -> tensor<1024x64xf32> {
  %a = nn.add %x, %y : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %b = nn.exp %a : (tensor<64xf32>) -> tensor<64xf32>
  %c = nn.mul %b, %z : (tensor<64xf32>, tensor<1024x64xf32>) -> tensor<1024x64xf32>
  return %c : tensor<1024x64xf32>
}
