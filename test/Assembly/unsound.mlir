// A module that cannot come from our planning is not a program: the checks of the file say why.
//
// RUN: not cleave-translate --exec-to-program %s -o %t.cleave 2>&1 | FileCheck %s
// RUN: not ls %t.cleave

module attributes {spmd.mesh = #spmd.mesh<["x"=1]>} {
  exec.buffer @activations activations 64 align 64
  exec.buffer @out output 64 align 64
  // CHECK: error: the program is not sound: {{.*}}command 0 (copy){{.*}}(P28)
  func.func @main() {
    %a = exec.view @activations[0] : memref<4xf32>
    %y = exec.view @out[0] : memref<4xf32>
    exec.output "y" in %y : memref<4xf32> of tensor<4xf32> starts [0]
    exec.copy %a into %y : memref<4xf32> into memref<4xf32>
    return
  }
}
