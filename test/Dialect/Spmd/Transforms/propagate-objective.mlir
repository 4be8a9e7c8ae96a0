// RUN: not cleave-opt %s --spmd-propagate=optimize=money 2>&1 | FileCheck %s

// CHECK: for the --optimize option: Cannot find option named 'money'!
#x = #spmd.sharding<#spmd.mesh<["x"=2]>, [{"x"}]>
func.func @the_objective_is_one_of_three(%a: tensor<8xf32, #x>) -> tensor<8xf32, #x> {
  return %a : tensor<8xf32, #x>
}
