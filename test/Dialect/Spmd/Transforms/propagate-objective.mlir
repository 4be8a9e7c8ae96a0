// RUN: not cleave-opt %s --spmd-propagate=optimize=time 2>&1 | FileCheck %s

// CHECK: error: unknown objective 'time', expected balanced or bytes
#x = #spmd.sharding<#spmd.mesh<["x"=2]>, [{"x"}]>
func.func @the_objective_is_one_of_two(%a: tensor<8xf32, #x>) -> tensor<8xf32, #x> {
  return %a : tensor<8xf32, #x>
}
