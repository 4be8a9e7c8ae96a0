// Messages name the ONNX nodes that they are about, in words, and stand in the file; a reproducer repeats what went wrong, for
// it keeps the names of nodes and tensors too; a crash is to be reported to this project.
//
// RUN: cleave-opt %s --spmd-print-rules -o /dev/null 2>&1 | FileCheck %s --check-prefix=NODE
// RUN: not cleave-opt %s --spmd-shard='mesh=x=3 shard=scores=[x,_]' --mlir-pass-pipeline-crash-reproducer=%t.mlir -o /dev/null 2>&1 | FileCheck %s
// RUN: not cleave-opt --run-reproducer %t.mlir -o /dev/null 2>&1 | FileCheck %s
// RUN: %{python} %S/Inputs/crash.py cleave-opt | FileCheck %s --check-prefix=CRASH

// NODE: cleave-opt.mlir:0:0: remark: node "/enc/Softmax" (Softmax): ([i,j])->([i,j])
// NODE-NOT: #nn.node
// CHECK: error: 'scores' has size 8 in dim 0, which axis "x"=3 does not divide
// CRASH: This is a bug of Cleave: please report it to the project
// CRASH-NOT: llvm-project
// CRASH: Stack dump
func.func @main(%x: tensor<8x4xf32> {nn.name = "x"}) -> (tensor<8x4xf32> {nn.name = "y"}) {
  %0 = nn.softmax %x dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32> loc(#softmax)
  %1 = nn.relu %0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
#softmax = loc(#nn.node<"/enc/Softmax", "Softmax", ["x"], [["scores"]]>)
