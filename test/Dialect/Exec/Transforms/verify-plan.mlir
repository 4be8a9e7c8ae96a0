// A gate writes the phase, and changes nothing else. Rows of other ranks are no other tensor.
//
// RUN: cleave-opt %s --exec-verify-plan | cleave-opt --exec-verify-plan=phase=ordered | FileCheck %s

// CHECK: spmd.phase = "ordered"
// CHECK-LABEL: @in_place
// CHECK: exec.run
// CHECK: exec.run
// CHECK: exec.collective
// CHECK: exec.collective
// CHECK: exec.output
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>, exec.rank_table = {"x * 32" = array<i64: 0, 32>}} {
  exec.buffer @in input 32 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @relu_0(%a: tensor<8xf32>) attributes {in_place = array<i64: 0>} {
    %0 = nn.relu %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @in_place() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %g = exec.view @out[0] : memref<16xf32>
    %a = exec.view @out["x * 32"] : memref<8xf32>
    %b = exec.view @out["x * 32"] of %g : memref<8xf32> of memref<16xf32>
    %y = exec.view @out[0] : memref<16xf32>
    exec.run @relu_0(%x) into (%a) : (memref<8xf32>) -> memref<8xf32>
    exec.run @relu_0(%a) into (%b) : (memref<8xf32>) -> memref<8xf32>
    exec.collective all_gather over {"x"} (%b) into (%g) gather [2] : (memref<8xf32>) -> memref<16xf32>
    exec.collective all_reduce by sum over {"x"} (%g) into (%y) : (memref<16xf32>) -> memref<16xf32>
    exec.output "y" in %y : memref<16xf32> of tensor<16xf32> starts [0]
    return
  }
}
