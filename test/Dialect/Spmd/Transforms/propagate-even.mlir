// What is kept even is not split where an axis does not divide it, though an annotation lets the axis split others so.
//
// RUN: cleave-opt %s --spmd-propagate | FileCheck %s

#mesh = #spmd.mesh<["a"=2]>
#rows = #spmd.sharding<#mesh, [{"a"}, {?}], uneven>
module attributes {spmd.mesh = #mesh, spmd.phase = "annotated"} {
// The table of 7 rows is split unevenly, and what is added to it, too.
// CHECK-LABEL: func.func @padded(
// CHECK-SAME: %arg1: tensor<7x4xf32, #[[ROWS:a_replicated]]>) -> tensor<7x4xf32, #[[ROWS]]>
func.func @padded(%t: tensor<7x4xf32, #rows>, %x: tensor<7x4xf32>) -> tensor<7x4xf32> {
  %0 = nn.add %t, %x : (tensor<7x4xf32, #rows>, tensor<7x4xf32>) -> tensor<7x4xf32>
  return %0 : tensor<7x4xf32>
}
// CHECK-LABEL: func.func @an_even_input_and_output(
// CHECK-SAME: %arg1: tensor<7x4xf32, #[[WHOLE:replicated_replicated]]>
// CHECK: return {spmd.operands = [#[[WHOLE]]]}
func.func @an_even_input_and_output(%t: tensor<7x4xf32, #rows>, %x: tensor<7x4xf32> {spmd.even = 0 : i64}) -> (tensor<7x4xf32> {spmd.even = 0 : i64}) {
  %0 = nn.add %t, %x : (tensor<7x4xf32, #rows>, tensor<7x4xf32>) -> tensor<7x4xf32>
  return %0 : tensor<7x4xf32>
}
// CHECK-LABEL: func.func @all_that_is_a_multiple(
// CHECK-SAME: %arg0: tensor<5x4xf32, #[[ROWS]]>, %arg1: tensor<7x4xf32, #[[WHOLE]]>
func.func @all_that_is_a_multiple(%t: tensor<5x4xf32, #rows>, %x: tensor<7x4xf32>) -> (tensor<5x4xf32>, tensor<7x4xf32>) attributes {spmd.even = 7 : i64} {
  %0 = nn.exp %t : (tensor<5x4xf32, #rows>) -> tensor<5x4xf32>
  %1 = nn.exp %x : (tensor<7x4xf32>) -> tensor<7x4xf32>
  return %0, %1 : tensor<5x4xf32>, tensor<7x4xf32>
}
}
