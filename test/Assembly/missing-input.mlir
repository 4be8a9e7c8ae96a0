// Inputs have the numbers of the whole model: one that no rank has is missing.
//
// RUN: not cleave-translate --exec-to-program %s -o %t.cleave 2>&1 | FileCheck %s
// RUN: not ls %t.cleave

module attributes {spmd.mesh = #spmd.mesh<["x"=1]>} {
  exec.buffer @in input 64 align 64
  exec.buffer @out output 64 align 64
  // CHECK: :[[#@LINE+1]]:{{.*}}: error: input 0 of 2 is on no rank
  func.func @main() {
    %x = exec.view @in[0] : memref<4xf32>
    %y = exec.view @out[0] : memref<4xf32>
    exec.input "x" in %x : memref<4xf32> of tensor<4xf32> starts [0] index 1
    exec.output "y" in %y : memref<4xf32> of tensor<4xf32> starts [0]
    exec.copy %x into %y : memref<4xf32> into memref<4xf32>
    return
  }
}
