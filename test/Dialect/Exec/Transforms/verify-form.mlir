// A gate writes the phase, and changes nothing else.
//
// RUN: cleave-opt %s --exec-fuse-kernels --exec-verify-form=form=clustered --exec-outline --exec-verify-form=form=outlined \
// RUN: | cleave-opt --exec-verify-form=form=outlined | FileCheck %s
//
// One device needs no mesh to run what it was given.
// RUN: cleave-opt %s --exec-lower | cleave run - --seed 3 > %t.lowered
// RUN: cleave run %s --seed 3 | diff - %t.lowered

// CHECK: module attributes {spmd.phase = "outlined"}
// CHECK: exec.launch @relu_0
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = nn.relu %x : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
