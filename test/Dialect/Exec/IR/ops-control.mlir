// Marks of loops, on tensors and on memory, read and printed in custom form, in generic form and as bytecode.
//
// RUN: cleave-opt %s | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --mlir-print-op-generic | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --emit-bytecode | cleave-opt | FileCheck %s

// CHECK-LABEL: @marks_on_tensors
func.func @marks_on_tensors(%go: tensor<i1>, %x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %[[A:.*]]:2 = exec.enter count 8 while %arg0 carries(%arg1) captures(%arg2) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %a:2 = exec.enter count 8 while %go carries (%x) captures (%w) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: exec.leave while %arg0 next(%[[A]]#1) : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  %y = exec.leave while %go next (%a#1) : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

exec.buffer @activations activations 64 align 64
// CHECK-LABEL: @marks_on_memory
func.func @marks_on_memory() {
  %go = exec.view @activations[0] : memref<i1>
  // CHECK: exec.loop count 8 while %{{.*}} : memref<i1>
  exec.loop count 8 while %go : memref<i1>
  // CHECK: exec.loop count 3
  exec.loop count 3
  // CHECK: exec.end_loop
  exec.end_loop
  // CHECK: exec.end_loop while %{{.*}} : memref<i1>
  exec.end_loop while %go : memref<i1>
  return
}
