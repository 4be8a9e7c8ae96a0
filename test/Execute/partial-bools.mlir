// Bools are partial by maximum (or) and minimum (and): where a whole value is made partial, and where an argument or a
// result is, the ranks that do not have the value hold false, or true, which changes nothing.
//
// RUN: cleave run %s --check | FileCheck %s

// CHECK: check or: ok
// CHECK: check and: ok
// CHECK: check argument_or: ok
// CHECK: check argument_and: ok
#mesh = #spmd.mesh<["x"=4]>
#max = #spmd.sharding<#mesh, [{}, {}], partial = {"x": max}>
#min = #spmd.sharding<#mesh, [{}, {}], partial = {"x": min}>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
func.func @main(%a: tensor<8x8xf32, #replicated>, %p: tensor<8x8xi1, #max>, %q: tensor<8x8xi1, #min>)
    -> (tensor<8x8xi1, #replicated> {nn.name = "or"}, tensor<8x8xi1, #replicated> {nn.name = "and"},
        tensor<8x8xi1, #replicated> {nn.name = "argument_or"}, tensor<8x8xi1, #replicated> {nn.name = "argument_and"}) {
  %zero = nn.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %0 = nn.lt %a, %zero : (tensor<8x8xf32, #replicated>, tensor<f32>) -> tensor<8x8xi1>
  %1 = spmd.constrain %0 : tensor<8x8xi1> to tensor<8x8xi1, #max>
  %2 = spmd.constrain %1 : tensor<8x8xi1, #max> to tensor<8x8xi1, #replicated>
  %3 = nn.not %2 : (tensor<8x8xi1, #replicated>) -> tensor<8x8xi1>
  %4 = spmd.constrain %3 : tensor<8x8xi1> to tensor<8x8xi1, #min>
  %5 = spmd.constrain %4 : tensor<8x8xi1, #min> to tensor<8x8xi1, #replicated>
  %6 = spmd.constrain %p : tensor<8x8xi1, #max> to tensor<8x8xi1, #replicated>
  %7 = spmd.constrain %q : tensor<8x8xi1, #min> to tensor<8x8xi1, #replicated>
  return %2, %5, %6, %7 : tensor<8x8xi1, #replicated>, tensor<8x8xi1, #replicated>, tensor<8x8xi1, #replicated>, tensor<8x8xi1, #replicated>
}
