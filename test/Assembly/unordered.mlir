// What is written by hand may lack what planning gives every module: a mesh, a body, a place for each operand.
//
// RUN: %{each} %s %t "not cleave-translate --exec-to-program {} -o %t.cleave 2>&1 | FileCheck {}"
// RUN: not ls %t.cleave

//--- no_mesh.mlir
// CHECK: error: is in a module without a mesh in spmd.mesh
func.func @main() {
  return
}

//--- another_attribute.mlir
// CHECK: error: is in a module without a mesh in spmd.mesh
module attributes {spmd.mesh = "x"} {
  func.func @main() {
    return
  }
}

//--- no_body.mlir
// CHECK: error: has no body of one block, in which commands have an order
module attributes {spmd.mesh = #spmd.mesh<["x"=1]>} {
  func.func private @main()
}

//--- no_view.mlir
// CHECK: error: 'exec.copy' op operand 0 is not an exec.view: it has no place in a buffer
module attributes {spmd.mesh = #spmd.mesh<["x"=1]>} {
  exec.buffer @out output 64 align 64
  func.func @main(%x: memref<4xf32>) {
    %y = exec.view @out[0] : memref<4xf32>
    exec.output "y" in %y : memref<4xf32> of tensor<4xf32> starts [0]
    exec.copy %x into %y : memref<4xf32> into memref<4xf32>
    return
  }
}
