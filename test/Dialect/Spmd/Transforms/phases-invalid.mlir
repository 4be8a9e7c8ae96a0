// RUN: not cleave-opt %s --spmd-shard='mesh=x=2 shard=x=[x]' -o %t.mlir --split-input-file 2>&1 | FileCheck %s
// RUN: cleave-opt %S/Inputs/phases.mlir --spmd-shard='mesh=x=2 shard=x=[x]' -o %t.mlir
// RUN: not cleave-opt %t.mlir --spmd-shard 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: cleave-opt %t.mlir --spmd-optimize-collectives | FileCheck %s --check-prefix=AGAIN
// RUN: cleave-opt %S/Inputs/phases.mlir --spmd-annotate='mesh=x=2 shard=x=[x]' --spmd-verify-phase=phase=annotated -o %t.annotated.mlir
// RUN: not cleave-opt %t.annotated.mlir --spmd-partition 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: not cleave-opt %t.annotated.mlir --spmd-insert-reshards 2>&1 | FileCheck %s --check-prefix=UNDECIDED
// RUN: not cleave-opt %S/Inputs/phases.mlir --spmd-verify-phase=phase=nowhere 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not cleave-opt %S/Inputs/phases.mlir --nn-verify-form=form=annotated 2>&1 | FileCheck %s --check-prefix=FORM

// Each gate says in the module how far it has come, and the next phase demands it.
// TWICE: error: the module is optimized already, and cannot become annotated
// AGAIN-NOT: spmd.phase
// AGAIN: func.func
// EARLY: error: the module is annotated, and must be resharded before it can become partitioned
// UNDECIDED: error: the module is annotated, and must be propagated before it can become resharded
// UNKNOWN: for the --phase option: Cannot find option named 'nowhere'!
// FORM: for the --form option: Cannot find option named 'annotated'!

// A file written by hand says nothing; its signature gives it away.
// CHECK: error: the module is partitioned already, and cannot become annotated
#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
module attributes {spmd.mesh = #mesh} {
  func.func @main(%x: tensor<4xf32> {spmd.global = tensor<8xf32, #x>}) -> (tensor<4xf32> {spmd.global = tensor<8xf32, #x>}) {
    return %x : tensor<4xf32>
  }
}
